"""The small congested setting that Delay-v0 has unless told otherwise.

64 GPUs on two racks, 128 jobs of which 48 wait at the start while the others arrive a third faster than they could be
served if each ran as fast as alone: without congestion there is nothing to learn. The network's slowdowns are measured
ones.
"""

TOPOLOGY = "dally:racks=2,machines=4"
WORKLOAD = "poisson:jobs=128,backlog=48,load=1.3"
NETWORK = "penalty:table=chronus"
