"""The small congested setting that Sharing-v0 has unless told otherwise.

Paper sjf-bsbf, section VI: four machines of four 2080 Ti GPUs, its six models with their measured step times, memory
and interference. 64 jobs of the sampled Philly workload come within two hours, which is more than such a cluster can
serve: without congestion nobody has to share. Many pairs lose by sharing, so that it matters who shares with whom.
"""

TOPOLOGY = "bsbf-physical"
WORKLOAD = "philly-sample:jobs=64,hours=2"
NETWORK = "allreduce:calibration=measured,gpu=2080ti"
MEMORY_GB = 11.0  # of a 2080 Ti
