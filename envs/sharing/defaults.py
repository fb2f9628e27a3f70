"""The small congested setting that Sharing-v0 has unless told otherwise.

Paper sjf-bsbf, section VI: four machines of four GPUs and its six models, with their measured step times and the
measured interference of their pairs. 64 jobs of the sampled Philly workload ask more than such a cluster can give:
without congestion nobody has to share.
"""

TOPOLOGY = "bsbf-physical"
WORKLOAD = "philly-sample:jobs=64,hours=8"
NETWORK = "allreduce:calibration=measured,gpu=2080ti"
MEMORY_GB = 11.0
