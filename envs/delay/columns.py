"""Columns of the present that `Delay-v0` shows to an agent.

GPUs are counted in units of 64, cut at 1, whatever the size of the cluster, so that what an agent has learned on one
size means the same on another: 32 free GPUs are as much room on 1,024 GPUs as on 64. Numbers of jobs n read
n' / (n' + 32), with n' = 64 n / GPUs of the cluster. Times and services t (seconds, GPU-seconds) are log1p(t) /
log1p(horizon), cut at 1; a slowdown f is log(f) / log(1000), cut at 1; a slack t, which may be below 0, is 1/2 + or -
half of what |t| would be. Run times are what is known of them (`estimates`): 0, with a flag, where nothing is.
Everything lies in [0, 1]; rows without a job, and candidates that are not legal, are zero. Nothing says how many jobs
are still to come.
"""

from ..columns import FEW_JOBS, JOBS, LARGEST_MACHINE, RATIO, SERVICE, SLACK, THIRDS, TIME, Column, flag, table

GPUS = "GPUs, of 64"
SIZE = "log2(1 + GPUs) / log2(65)"
LARGEST_RACK = "share of the largest rack"

CLUSTER = table(
    time=Column("time since the first arrival", TIME),
    free=Column("free GPUs", GPUS),
    down=Column("GPUs on failed machines", GPUS),
    fragmented=Column("free GPUs on partly used machines", GPUS),
    machine_room=Column("most free GPUs in one machine", LARGEST_MACHINE),
    rack_room=Column("most free GPUs in one rack", GPUS),
    waiting=Column("waiting jobs", JOBS),
    held=Column("held jobs", JOBS),
    running=Column("running jobs", JOBS),
    asked=Column("GPUs asked in the window", "GPUs d: d / (d + 64)"),
    times_known=flag("run times are known, or estimated"),
)
QUEUE = table(
    present=flag("a job stands here"),
    gpus=Column("GPUs", GPUS),
    size=Column("its size", SIZE),
    waited=Column("time since it arrived or lost its GPUs", TIME),
    age=Column("time since it arrived", TIME),
    time_left=Column("isolated run time left", TIME),
    service_left=Column("isolated GPU-seconds left", SERVICE),
    attained=Column("GPU-seconds attained", SERVICE),
    slowdown_machine=Column("slowdown inside a machine", RATIO),
    slowdown_rack=Column("slowdown inside a rack", RATIO),
    slowdown_network=Column("slowdown across racks", RATIO),
    has_run=flag("it has run before"),
    slack=Column("deadline - now - isolated run time left; 1: no deadline", SLACK),
    machine_wait=Column("time until a machine has room, if running jobs end as expected; 1: never", TIME),
    rack_wait=Column("time until a rack has room, likewise", TIME),
    machine_timer=Column("delay timer of its size for a machine (0: it is not tuned)", TIME),
    rack_timer=Column("delay timer of its size for a rack", TIME),
)
RUNNING = table(
    present=flag("a job stands here"),
    gpus=Column("GPUs", GPUS),
    size=Column("its size", SIZE),
    ran=Column("time on these GPUs", TIME),
    age=Column("time since it arrived", TIME),
    time_left=Column("time to its end at this placement", TIME),
    slowdown=Column("slowdown now", RATIO),
    tier=Column("tier now", THIRDS),
    better_tier=Column("tier that it could move to now", THIRDS),
    slack=Column("deadline - now - isolated run time left; 1: no deadline", SLACK),
    machine_free=Column("free GPUs of its machine", LARGEST_MACHINE),
    rack_free=Column("free GPUs of its rack", LARGEST_RACK),
)
CANDIDATES = table(
    legal=flag("legal"),
    advance=flag("advance"),
    start=flag("start"),
    hold=flag("hold"),
    preempt=flag("preempt"),
    migrate=flag("migrate"),
    tier=Column("tier of the gang (make room: of the place; defragment: now)", THIRDS),
    slowdown=Column("slowdown of the gang (make room: of the best gang at that tier; defragment: now)", RATIO),
    time_left=Column("run time left: on these GPUs (start), isolated (hold), until its end (running)", TIME),
    gpus=Column("GPUs", GPUS),
    free_after=Column("GPUs that would be free afterwards", GPUS),
    machine_left=Column("GPUs left free on the gang's machine; 0 beyond one machine", LARGEST_MACHINE),
    make_room=flag("make room, and start there"),
    defragment=flag("defragment"),
    stopped=Column("jobs stopped to make room", FEW_JOBS),
    moved=Column("jobs moved to make room", FEW_JOBS),
    victims_left=Column("isolated run time left of these", TIME),
    room_cost=Column("seconds that making room costs", TIME),
)
