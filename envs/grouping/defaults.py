"""The small congested setting that Grouping-v0 has unless told otherwise.

Paper harmony on a third of its cluster: 32 machines, 24 jobs of its applications and data sets that come every quarter
of an hour, more than the machines can serve alone. Run times and the ratio of COMP to COMM differ more than the paper's
figures need, so that it matters who runs with whom. Their times are known when jobs come: profiling is an option.
"""

TOPOLOGY = "harmony:machines=32"
WORKLOAD = "harmony-like:jobs=24,length_sigma=0.6,ratio_sigma=0.4,gap_min=15"
NETWORK = "none"
PROFILE_ITERATIONS = 0
