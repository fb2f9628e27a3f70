"""Columns of the present that `DataPlacement-v0` shows to an agent.

Numbers n of jobs read n / (n + 32), ratios x x / (1 + x), times t log1p(t) / log1p(horizon), bytes b log2(1 + b / 1 MB)
/ 32; all are cut at 1. A change c of the cost reads 1/2 + c / (2 (|c| + 0.01 c0)), c0 being the cost at the beginning:
below 1/2 it gains. Tables lie where they will once everything that is on the way has arrived. Users of tables are the
training jobs that the slow path knows; one that counts as high priority does so with its GPU-hours a day. Everything
lies in [0, 1]; rows without a table, copy or region, and candidates that are not legal, are zero.
"""

from ..columns import JOBS, OF_ALL, OF_ITS_OWN, OVER_SUPPLY, TIME, Column, flag, table

OF_ITS_READERS = "share of its readers"
OF_READ = "share of all that are read"
BYTES = "bytes, logarithmic"

CLUSTER = table(
    time=Column("time since the first arrival", TIME),
    arrived=Column("jobs that have arrived", OF_ALL),
    finished=Column("jobs that have finished", OF_ALL),
    waiting=Column("waiting jobs", JOBS),
    running=Column("running jobs", JOBS),
    stranded=Column("waiting jobs that no region can run for want of tables", JOBS),
    free=Column("units that are free", OF_ALL),
    behind=Column("tables that are behind", OF_ALL),
    quota_left=Column("quota that is left", "share of the quota"),
    cost=Column("cost of Figure 4", "cost c: c / (c + cost at the beginning)"),
    read_across=Column("Expression 1: bytes read across regions", OF_READ),
    at_home=Column("Expression 6: high-priority GPU-hours that train at home", OF_ALL),
    able=Column("high-priority GPU-hours that some region has tables and GPUs for", OF_ALL),
    demand=Column("highest demand over supply of a region, high priority", OVER_SUPPLY),
    stored=Column("storage that is taken", OF_ALL),
    copies=Column("copies on the way", "copies n: n / (n + 32)"),
)
QUEUE = table(
    present=flag("a table stands here"),
    bytes=Column("its bytes", BYTES),
    bytes_share=Column("its bytes, of all tables"),
    readers=Column("readers", JOBS),
    bytes_read=Column("bytes that are read of it", OF_READ),
    high_hours=Column("high-priority GPU-hours of its readers", OF_ALL),
    copies=Column("copies", "share of the regions"),
    moves=flag("its home is on the move"),
    gain=Column("what its best move by itself gains", "share of the cost at the beginning"),
    stranded_readers=Column("readers that no region can run", OF_ITS_READERS),
    waiting_readers=Column("waiting jobs that read it", JOBS),
    decided=Column("decisions about it at this instant", "decisions n: n / (n + 4)"),
)
RUNNING = table(
    present=flag("a copy on the way stands here"),
    bytes_left=Column("bytes left", BYTES),
    moves=flag("its table moves home with it"),
    waits=flag("it waits for a source"),
    readers=Column("readers of its table", JOBS),
    waiting_readers=Column("waiting jobs that read its table", JOBS),
)
REGIONS = table(
    present=flag("a region stands here"),
    up=flag("it is up"),
    gpus=Column("its GPUs", OF_ALL),
    free=Column("its units that are free", OF_ITS_OWN),
    high_demand=Column("demand over supply of high-priority GPU-hours", OVER_SUPPLY),
    demand=Column("demand over supply of all GPU-hours", OVER_SUPPLY),
    storage=Column("its storage", OF_ALL),
    stored=Column("storage that is taken", OF_ITS_OWN),
    homes=Column("bytes that have their home here", "share of all tables"),
    running=Column("jobs that run here", JOBS),
    home=flag("home of the offered table"),
    holds=flag("the offered table lies here, or is on the way"),
    incoming=flag("it is on the way"),
    fitting_readers=Column("readers of the offered table whose hardware is here", OF_ITS_READERS),
    able_readers=Column("readers of the offered table that could run here", OF_ITS_READERS),
    copy_time=Column("time to copy the offered table here from its home, over an idle link", TIME),
)
CANDIDATES = table(
    legal=flag("legal"),
    done=flag("done for now"),
    home=flag("home to the region"),
    drop=flag("drop the replica"),
    leave=flag("on to the next table"),
    replica=flag("replica to the region"),
    change=Column("change of the cost", "change c: 1/2 + c / (2 (|c| + 0.01 c0))"),
    fits=flag("Expressions 4 to 6 stay as they are, or get better"),
    copied=Column("bytes to copy, of the room in the region"),
    quota_taken=Column("bytes to copy, of the quota that is left"),
    readers_gained=Column("readers that can run in the region then, and could not", JOBS),
    hours_gained=Column("high-priority GPU-hours of those that could run nowhere", OF_ALL),
    readers_lost=Column("readers that cannot run in the region then, and could", JOBS),
    hours_lost=Column("high-priority GPU-hours of those that can run nowhere then", OF_ALL),
    waiting_gained=Column("waiting jobs that can run in the region then, and in none now", JOBS),
)
