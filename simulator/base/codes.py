"""Integer codes shared by kernels and the Python around them."""

# Status of a job.
PENDING, WAITING, HELD, RUNNING, DONE = 0, 1, 2, 3, 4

# What `advance` returns.
DECIDE, FINISHED, STALLED, HORIZON, ASK, ENDLESS = 0, 1, 2, 3, 4, 5

# Order of the queue (rules/orders.py).
FIFO, SJF, SRTF, SRSF, LAS, RANDOM, NW_SENS, LATEST, EDF, TURNS, WEIGHTED = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
LOGGED = 11

# Placer (running/placers.py).
COUNT, CONSOLIDATED, TIER, SKEW, SCATTER, FIRST, FIRST_SKEW, AFFINITY = 0, 1, 2, 3, 4, 5, 6, 7

# Delay timers (policies/dally.py).
NO_DELAYS, FIXED, TUNED = 0, 1, 2

# What is known of run times (jobs/remaining_time.py).
TIMES_EXACT, TIMES_HIDDEN, TIMES_GUESSED = 0, 1, 2

# GPUs that hold a job (policies/bsbf/sjf_bsbf_pass.py).
NOT_SHARED, FIRST_FIT, BEST_BENEFIT = 0, 1, 2

# Backfilling (policies/passes/backfill.py).
NO_BACKFILL, RESERVE, CONSERVATIVE = 0, 1, 2

# Entries of the decision log.
START, PREEMPT, MIGRATE, HOLD, RESIZE, SHIFT, REPLICATE, MOVE, DROP = 1, 2, 3, 4, 5, 6, 7, 8, 9

# What is due about the rate of a running job: only that it is slower, by what is known already; how its
# partners slow it down; or all of it, by asking.
SLOWED, RATED, ASKED = 1, 2, 3

# A job of the network that has left its GPUs at this instant (sessions.py); and one that is on them again.
GONE, BACK = 1, 2

# Owner of a GPU that no job holds.
FREE, DOWN = -1, -2

# Why a machine takes no job, the sum of reasons in `machine_down`: it has failed, its region is down, one more outage
# of a group or of a list, and one more of which notice was given. With nothing but notices its jobs go on.
FAILED, REGION_FAILED, OUTAGE, NOTICE = 1, 2, 4, 1 << 32

# What a row of the list of outages is (lifecycle/fault_groups.py), in the order in which they come at one instant.
OVER, OVER_NOTICED, NOTICED, MAINTAINED, BROKEN = 0, 1, 2, 3, 4

# Bits in a word of a bit set: 32 of an int64, so that no sign ever matters, compiled or not.
WORD = 32

# LAS packs (level, place in the level) into one float64 key; see rules/orders.py.
LEVEL_SPAN = 2.0**45
RUNNING_BAND = -(2.0**43)
MAX_LEVELS = 16

# NW_SENS packs (millionths of Nw_sens, place among the jobs that entered the queue) into one; at most 2^32 entries.
PLACE_SPAN = 2.0**32
MILLIONTHS = 1e6

LEVELS = 7  # of priority in regions (paper mast, Sec. 4.2): 0 is the highest; workloads that name none have the lowest
HIGH_LEVELS = 3  # levels 0 to 2 are "high priority": paper mast does not say which; 3 + 20 + 16 % of its workloads
LANES = 2  # of a link between regions: copies that go first, and the others

# The same of job groups (groups/kernels/group_log.py): decisions, and which job was executed when, where, on how many
# machines.
ASSIGN, MACHINES, SPILL, JOINED, LEFT, SIZED = 10, 11, 12, 13, 14, 15
