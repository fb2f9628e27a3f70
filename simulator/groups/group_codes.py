"""Integer codes of job groups, shared by kernels and the Python around them."""

# Where a job is in the execution of its group.
OUT, LOADING, CPU_QUEUE, ON_CPU, NET_QUEUE, ON_NET = 0, 1, 2, 3, 4, 5

# No job, no group.
NONE = -1

# A spill ratio that is found by climbing.
CLIMBS = -1.0

# How a group executes (config.GroupTerms.execution): subtasks in turn, or jobs that share each resource at once.
SUBTASKS, NAIVE = 0, 1

# Subtasks of an iteration (config.GroupConfig.comm): COMP, COMM; or PULL, COMP, PUSH.
MERGED, SPLIT = 0, 1
KINDS = ("COMP", "COMM", "PULL", "PUSH")
COMP, COMM, PULL, PUSH = 0, 1, 2, 3
