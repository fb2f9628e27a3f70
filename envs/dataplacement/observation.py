"""Features of the present: what `DataPlacement-v0` shows to an agent.

Counts n read n / (n + 32), ratios x x / (1 + x), times t log1p(t) / log1p(horizon), bytes b log2(1 + b / 1 MB) / 32;
all are cut at 1. A change c of the cost reads 1/2 + c / (2 (|c| + 0.01 c0)), c0 being the cost at the beginning: below
1/2 it gains. Tables lie where they will once everything that is on the way has arrived. Users of tables are the
training jobs that the slow path knows; one that counts as high priority does so with its GPU-hours a day. Everything
lies in [0, 1]; rows without a table, copy or region, and candidates that are not legal, are zero.
"""

from __future__ import annotations

CLUSTER = (
    "time since the first arrival",
    "jobs that have arrived, of all",
    "jobs that have finished, of all",
    "waiting jobs",
    "running jobs",
    "waiting jobs that no region can run for want of tables",
    "units that are free, of all",
    "tables that are behind, of all",
    "quota that is left, of the quota",
    "cost of Figure 4 c: c / (c + cost at the beginning)",
    "Expression 1: bytes read across regions, of all that are read",
    "Expression 6: high-priority GPU-hours that train at home, of all",
    "high-priority GPU-hours that some region has tables and GPUs for, of all",
    "highest demand over supply of a region, high priority",
    "storage that is taken, of all",
    "copies on the way",
)
QUEUE = (
    "1: a table stands here",
    "its bytes",
    "its bytes, of all tables",
    "readers",
    "bytes that are read of it, of all that are read",
    "high-priority GPU-hours of its readers, of all",
    "copies, of the regions",
    "1: its home is on the move",
    "what its best move by itself gains, of the cost at the beginning",
    "readers that no region can run, of its readers",
    "waiting jobs that read it",
    "decisions about it at this instant: n / (n + 4)",
)
RUNNING = (
    "1: a copy on the way stands here",
    "bytes left",
    "1: its table moves home with it",
    "1: it waits for a source",
    "readers of its table",
    "waiting jobs that read its table",
)
REGIONS = (
    "1: a region stands here",
    "1: it is up",
    "its GPUs, of all",
    "its units that are free, of its own",
    "demand over supply of high-priority GPU-hours",
    "demand over supply of all GPU-hours",
    "its storage, of all",
    "storage that is taken, of its own",
    "bytes that have their home here, of all tables",
    "jobs that run here",
    "1: home of the offered table",
    "1: the offered table lies here, or is on the way",
    "1: it is on the way",
    "readers of the offered table whose hardware is here, of its readers",
    "readers of the offered table that could run here, of its readers",
    "time to copy the offered table here from its home, over an idle link",
)
CANDIDATES = (
    "1: legal",
    "1: done for now",
    "1: home to the region",
    "1: drop the replica",
    "1: on to the next table",
    "1: replica to the region",
    "change of the cost",
    "1: Expressions 4 to 6 stay as they are, or get better",
    "bytes to copy, of the room in the region",
    "bytes to copy, of the quota that is left",
    "readers that can run in the region then, and could not",
    "high-priority GPU-hours of those that could run nowhere, of all",
    "readers that cannot run in the region then, and could",
    "high-priority GPU-hours of those that can run nowhere then, of all",
    "waiting jobs that can run in the region then, and in none now",
)
LEGAL, IS_DONE, IS_HOME, IS_DROP, IS_LEAVE, IS_REPLICA = range(6)
CHANGE = 6  # the first column that tells what a candidate comes to
