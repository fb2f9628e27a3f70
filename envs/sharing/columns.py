"""Columns of the present that `Sharing-v0` shows to an agent.

Counts are shares of the cluster; times and services t (seconds, GPU-seconds) are log1p(t) / log1p(horizon), slowdowns f
log(f) / log(1000), interference ratios xi log(xi) / log(10), all cut at 1; a slack t, which may be below 0, is 1/2 + or
- half of what |t| would be; memory is a share of a GPU's, and 1 is left where it has no limit. Everything lies in
[0, 1]; rows without a job, and candidates that are not legal, are zero.
"""

from ..columns import (
    IGNORANCE,
    JOB_SIZE,
    JOBS,
    LARGEST_MACHINE,
    OF_ALL,
    OF_ITS_OWN,
    RATIO,
    SERVICE,
    SLACK,
    THIRDS,
    TIME,
    Column,
    flag,
    joined,
    table,
)
from ..families.share_offers import INTERFERENCE, MEMORY, OFFER, PASSES

CLUSTER = table(
    time=Column("time since the first arrival", TIME),
    free=Column("free GPUs"),
    single=Column("GPUs that hold one job"),
    shared=Column("GPUs that hold several"),
    down=Column("GPUs on failed machines"),
    fragmented=Column("free GPUs on partly used machines"),
    machine_room=Column("most free GPUs in one machine", LARGEST_MACHINE),
    waiting=Column("waiting jobs", JOBS),
    held=Column("held jobs", JOBS),
    running=Column("running jobs", JOBS),
    arrived=Column("jobs that have arrived", OF_ALL),
    finished=Column("jobs that have finished", OF_ALL),
    asked=Column("GPUs asked in the window", "GPUs d: d / (d + cluster)"),
    times_unknown=Column("whether run times are known; what counts those that are not is 0", IGNORANCE),
)
QUEUE = joined(
    JOB_SIZE,
    table(
        waited=Column("time since it arrived or lost its GPUs", TIME),
        age=Column("time since it arrived", TIME),
        time_left=Column("isolated run time left", TIME),
        service_left=Column("isolated GPU-seconds left", SERVICE),
        attained=Column("GPU-seconds attained", SERVICE),
        has_run=flag("it has run before"),
        samples=Column("samples a GPU", "samples n: log2(n) / 16"),
        passes=Column("passes of an iteration on an empty GPU", PASSES),
        memory=Column("memory that it takes of an empty GPU", MEMORY),
        suffered=Column("interference that it would suffer, the mean over running jobs", INTERFERENCE),
        caused=Column("interference that they would suffer, their mean", INTERFERENCE),
        slack=Column("deadline - now - isolated run time left; 1: no deadline", SLACK),
    ),
)
RUNNING = joined(
    JOB_SIZE,
    table(
        ran=Column("time on these GPUs", TIME),
        age=Column("time since it arrived", TIME),
        time_left=Column("time to its end as it runs now", TIME),
        work_left=Column("work left, alone on its GPUs", TIME),
        slowdown=Column("slowdown now", RATIO),
        suffered=Column("interference now", INTERFERENCE),
        tier=Column("tier now", THIRDS),
        held_alone=Column("GPUs that it holds alone", OF_ITS_OWN),
        passes=Column("passes of an iteration", PASSES),
        memory_left=Column("memory left on its first GPU", MEMORY),
        slack=Column("deadline - now - isolated run time left; 1: no deadline", SLACK),
    ),
)
KINDS = table(
    legal=flag("legal"),
    advance=flag("advance"),
    start=flag("start"),
    hold=flag("hold"),
    preempt=flag("preempt"),
    resize=flag("resize"),
    on_free=flag("on free GPUs"),
    beside_best=flag("beside the best partners"),
    beside_first_fit=flag("beside those that fit first"),
    beside_partner=flag("beside one partner"),
    takes_second=flag("the second part of the action means something"),
)
CANDIDATES = joined(KINDS, OFFER, table(gpus=Column("GPUs")))
