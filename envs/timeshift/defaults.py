"""The small congested setting that TimeShift-v0 has unless told otherwise.

Paper cassini, section 5: its testbed of 24 servers with one GPU each and links of 50 Gbps, at an oversubscription of
2 : 1, its 13 models, and jobs that come at random so that the cluster is about as busy as in its Poisson traces.
"""

TOPOLOGY = "cassini-testbed"
WORKLOAD = "cassini-poisson:jobs=24,load=0.9"
NETWORK = "contention"
SCHEDULER = "themis"
