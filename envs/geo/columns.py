"""Columns of the present that `Geo-v0` shows to an agent.

Units are GPUs, or CPU machines; numbers of jobs n read n / (n + 32) where nothing else is said; times and services t
(seconds, unit-seconds) are log1p(t) / log1p(horizon), cut at 1. Importance is that of the priority that counts now, 1
the highest, 1/7 the lowest (a workload beyond its tenant's quota has the lowest). The weight of a workload is what
`greedy` goes by: its isolated run time left x the square root of its GPUs, of one where it has none. The demand of a
region is what workloads hold there, and what those that wait or are held ask, divided evenly among the regions that
could run each, now or once what is on the way has come; of several types that a part accepts each is asked by its share
of their supply there. Where types differ in speed, isolated times are those on the fastest that a workload accepts, and
of a start those on its own. Everything lies in [0, 1]; rows without a job, or without a region, and candidates that are
not legal, are zero.
"""

from ..columns import FEW_JOBS, JOBS, OF_ALL, OF_ITS_OWN, OVER_SUPPLY, TIME, Column, flag, table

UNIT_SECONDS = "unit-s, logarithmic"
IMPORTANCE = "1/7 to 1"
PLACE = "number from 1 on, of their number"
FEW_RACKS = "racks n: n / (n + 4)"

CLUSTER = table(
    time=Column("time since the first arrival", TIME),
    free=Column("free GPUs", OF_ALL),
    free_cpus=Column("free CPU machines", OF_ALL),
    down=Column("GPUs on failed machines", OF_ALL),
    waiting=Column("waiting workloads", JOBS),
    held=Column("held workloads", JOBS),
    running=Column("running workloads", JOBS),
    arrived=Column("workloads that have arrived", OF_ALL),
    finished=Column("workloads that have finished", OF_ALL),
    asked=Column("units asked in the window", "units d: d / (d + all units)"),
    up=Column("regions that are up", OF_ALL),
    copies=Column("tables on the way to a region", "tables n: n / (n + 8)"),
    unplaceable=Column("waiting and held workloads that no region can run now", JOBS),
    late=Column("workloads that started too late", "share of those that have arrived"),
)
QUEUE = table(
    present=flag("a workload stands here"),
    gpus=Column("units", OF_ALL),
    size=Column("its size", "log2(1 + units) / log2(1 + all units)"),
    waited=Column("time since it arrived or lost its units", TIME),
    age=Column("time since it arrived", TIME),
    time_left=Column("isolated run time left", TIME),
    service_left=Column("isolated unit-seconds left", UNIT_SECONDS),
    has_run=flag("it has run before"),
    own_importance=Column("importance, of its own priority", IMPORTANCE),
    importance=Column("importance, of the priority that counts now", IMPORTANCE),
    start_slack=Column("time until its first start is too late; 1 where it never is", TIME),
    late=flag("its first start is too late already"),
    gpu_share=Column("units that are GPUs", OF_ITS_OWN),
    parts=Column("parts", "parts n: n / 4"),
    regions=Column("regions that could run it", OF_ALL),
    stranded=flag("no region could run it now"),
    rank=Column("place by weight, the least first, among the workloads shown", "place n, from 0 on: n / (n + 4)"),
    regions_later=Column("regions that could run it once what is on the way has come", OF_ALL),
)
RUNNING = table(
    present=flag("a workload stands here"),
    gpus=Column("units", OF_ALL),
    size=Column("its size", "log2(1 + units) / log2(1 + all units)"),
    ran=Column("time on these units", TIME),
    age=Column("time since it arrived", TIME),
    time_left=Column("time to its end", TIME),
    own_importance=Column("importance, of its own priority", IMPORTANCE),
    importance=Column("importance, of the priority that counts now", IMPORTANCE),
    gpu_share=Column("units that are GPUs", OF_ITS_OWN),
    region=Column("place of its region among the regions", PLACE),
)
REGIONS = table(
    present=flag("a region stands here"),
    up=flag("it is up"),
    gpus=Column("GPUs", OF_ALL),
    cpus=Column("CPU machines", OF_ALL),
    free=Column("GPUs that are free", OF_ITS_OWN),
    free_cpus=Column("CPU machines that are free", OF_ITS_OWN),
    demand=Column("demand for its GPUs over them", OVER_SUPPLY),
    demand_cpus=Column("demand for its CPU machines over them", OVER_SUPPLY),
    high=Column("GPUs of workloads of the highest three priorities", OF_ITS_OWN),
    low=Column("GPUs of workloads of the lowest priority", OF_ITS_OWN),
    stored=Column("storage in use", OF_ITS_OWN),
    incoming=Column("bytes on the way to it", "share of its storage"),
)
CANDIDATES = table(
    legal=flag("legal"),
    advance=flag("advance"),
    start=flag("start"),
    hold=flag("hold"),
    make_room=flag("others leave for it"),
    bring=flag("its tables are brought"),
    gpus=Column("units", OF_ALL),
    time_left=Column("isolated run time left", TIME),
    region=Column("place of the region among the regions", PLACE),
    demand=Column("demand for the types that the first part could get in the region over their supply", OVER_SUPPLY),
    free=Column("free units of the cluster", OF_ITS_OWN),
    free_after=Column("units of the cluster that would be free", OF_ITS_OWN),
    racks=Column("racks that it would lie on", FEW_RACKS),
    stopped=Column("workloads that leave", FEW_JOBS),
    stopped_gpus=Column("units of jobs that leave", OF_ALL),
    stopped_importance=Column("importance of the most important that leaves", IMPORTANCE),
    stopped_ran=Column("time that the youngest that leaves has run", TIME),
    stopped_service=Column("unit-seconds that jobs that leave have left", UNIT_SECONDS),
    at_home=Column("tables that have their home in the region; 1 where it reads none", "share of those that it reads"),
    regions=Column("regions that could run it", OF_ALL),
    weight=Column("its weight x beside the least y of jobs that leave", "x / (x + y)"),
    types_free=Column("units of these types that are free in the region", "share of those there"),
    copied=Column("bytes to copy", "share of the room in the region"),
    copy_time=Column("time to copy them, one table after the other over idle links", TIME),
)
