"""Columns of the present that `TimeShift-v0` shows to an agent.

Numbers n of jobs read n / (n + 32) where nothing else is said; times t (seconds, GPU-seconds) are log1p(t) /
log1p(horizon), slowdowns f log(f) / log(1000), all cut at 1; a slack t, which may be below 0, is 1/2 + or - half of
what |t| would be. Excess is what jobs want of a link above its capacity, on average over their unified circle, as a
fraction of the capacity (1 - the compatibility score of paper cassini), cut at 1. Everything lies in [0, 1]; rows
without a job, and candidates that are not legal, are zero.
"""

from ..columns import JOBS, OF_ALL, OF_ITS_OWN, RATIO, SERVICE, SLACK, TIME, Column, flag, table

OF_RUNNING = "share of the jobs that run"
EXCESS = "share of the capacity"
SUM_OF_EXCESS = "sum x: x / (1 + x)"

CLUSTER = table(
    time=Column("time since the first arrival", TIME),
    free=Column("free GPUs", OF_ALL),
    down=Column("GPUs on failed machines", OF_ALL),
    waiting=Column("waiting jobs", JOBS),
    held=Column("held jobs", JOBS),
    running=Column("running jobs", JOBS),
    arrived=Column("jobs that have arrived", OF_ALL),
    finished=Column("jobs that have finished", OF_ALL),
    asked=Column("GPUs asked in the window", "GPUs d: d / (d + all GPUs)"),
    shared_links=Column("links that several jobs use", OF_ALL),
    contending=Column("running jobs that meet others on a link", OF_RUNNING),
    placing=flag("a placement is chosen, not a shift"),
    shifts_left=Column("jobs whose shift is still to be chosen at this instant, this one included", OF_RUNNING),
)
QUEUE = table(
    present=flag("a job stands here"),
    gpus=Column("GPUs", OF_ALL),
    size=Column("its size", "log2(1 + GPUs) / log2(1 + all GPUs)"),
    waited=Column("time since it arrived or lost its GPUs", TIME),
    age=Column("time since it arrived", TIME),
    time_left=Column("isolated run time left", TIME),
    service_left=Column("isolated GPU-seconds left", SERVICE),
    attained=Column("GPU-seconds attained", SERVICE),
    has_run=flag("it has run before"),
    slack=Column("deadline - now - isolated run time left; 1: no deadline", SLACK),
)
RUNNING = table(
    present=flag("a job stands here"),
    gpus=Column("GPUs", OF_ALL),
    size=Column("its size", "log2(1 + GPUs) / log2(1 + all GPUs)"),
    ran=Column("time on these GPUs", TIME),
    age=Column("time since it arrived", TIME),
    time_left=Column("isolated run time left", TIME),
    slowdown=Column("slowdown over its time on these GPUs", RATIO),
    turns=flag("its shift is chosen now"),
    iteration=Column("time of an iteration alone", "s t: t / (1 + t)"),
    communicates=Column("part of an iteration in which it wants its links, alone"),
    peak_rate=Column("highest rate of a flow", "share of its slowest link"),
    links=Column("links that it uses", OF_ALL),
    shared_links=Column("links that it shares", OF_ITS_OWN),
    joined_jobs=Column("jobs that it is joined with by links", OF_RUNNING),
    has_shift=flag("it has a shift"),
    shift=Column("its shift", "share of its period"),
    excess=Column("excess on its links, the mean, as all are turned now", EXCESS),
    slack=Column("deadline - now - isolated run time left; 1: no deadline", SLACK),
)
ROTATIONS = table(
    excess=Column("excess on the links of the job whose shift is chosen, the mean, were it turned so", EXCESS),
)
CANDIDATES = table(
    legal=flag("legal"),
    no_more=flag("no more now"),
    place=flag("place"),
    leave=flag("leave its shift as it is"),
    shift=flag("shift"),
    run_free=flag("run free"),
    rank=Column("place among the candidates", OF_ALL),
    started=Column("jobs that start", JOBS),
    moved=Column("jobs that move, or have other numbers of workers than now", JOBS),
    stopped=Column("jobs that stop", JOBS),
    used_after=Column("GPUs in use then", OF_ALL),
    started_gpus=Column("GPUs of the jobs that start", OF_ALL),
    waiting_after=Column("waiting jobs then", JOBS),
    contending=Column("jobs that meet others on a link", OF_RUNNING),
    shared_links=Column("links that several jobs use", OF_ALL),
    crowded_links=Column("links on which they can want more than there is", "share of those"),
    joined_jobs=Column("largest number of jobs that are joined by links", OF_RUNNING),
    load=Column("load of the fullest link that is shared", "load x: x / (1 + x)"),
    excess_any=Column("mean excess over shared links, at any rotations", EXCESS),
    excess_good=Column("mean excess over shared links, at good rotations", EXCESS),
    worst_any=Column("sum over jobs of the excess on their worst link, at any rotations", SUM_OF_EXCESS),
    worst_good=Column("sum over jobs of the excess on their worst link, at good rotations", SUM_OF_EXCESS),
    cycles=Column("cycles of the affinity graph", "cycles n: n / (n + 8)"),
    excess_now=Column("excess on the job's links as it is turned now", EXCESS),
    excess_least=Column("excess on its links, the least of all rotations", EXCESS),
    excess_mean=Column("excess on its links, the mean over rotations", EXCESS),
    excess_most=Column("excess on its links, the most of all rotations", EXCESS),
    chosen=Column("the instant's shifts that are chosen", OF_ALL),
    iterations_left=Column("iterations left", "iterations n: log2(1 + n) / 24"),
)
