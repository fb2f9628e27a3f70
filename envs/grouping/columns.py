"""Columns of the present that `Grouping-v0` shows to an agent.

Machines are shares of the cluster's, memory too; times t of jobs are log1p(t) / log1p(horizon), seconds of subtasks and
rounds log1p(t) / log1p(3600), cut at 1; a slack t, which may be below 0, is 1/2 + or - half of what |t| would be. Times
of subtasks are those that are measured, 0 before. Everything lies in [0, 1]; rows in which nothing stands, and
candidates that are not legal, are zero.
"""

from ..columns import FEW_JOBS, IGNORANCE, JOBS, OF_ALL, SLACK, TIME, Column, flag, joined, table

SECONDS = "s, logarithmic to an hour"
SPEED = "speed v, 1 is alone: v / (1 + v)"
BALANCED = "machines d: d / (d + machines)"
CHANGE = "change x: (1 + x / (1 + |x|)) / 2"
OVER = "share x: x / (1 + x)"  # may be above 1

CLUSTER = table(
    time=Column("time since the first arrival", TIME),
    available=Column("machines that can be had"),
    down=Column("machines that have failed"),
    waiting=Column("waiting jobs", JOBS),
    running=Column("jobs in groups", JOBS),
    groups=Column("groups", "groups g: g / (g + 8)"),
    arrived=Column("jobs that have arrived", OF_ALL),
    finished=Column("jobs that have finished", OF_ALL),
    loading=Column("jobs that load, of those in groups"),
    changed=Column("jobs that have changed their place at this instant, of all here"),
    cpu=Column("CPU use of all groups, as measured"),
    net=Column("network use of all groups, as measured"),
    speeds=Column("sum of all speeds", "sum v: v / (v + 8)"),
    balanced=Column("machines on which all jobs in the window balance", BALANCED),
    times_unknown=Column("whether run times are known; what counts those that are not is 0", IGNORANCE),
)
JOB = table(
    present=flag("a job stands here"),
    iteration=Column("seconds of an iteration alone", SECONDS),
    comm=Column("seconds of COMM of an iteration", SECONDS),
    comp_share=Column("COMP of an iteration alone, of all of it"),
    balanced=Column("machines on which COMP takes as long as COMM", BALANCED),
    age=Column("time since it arrived", TIME),
    time_left=Column("isolated run time left; 0 where it is not known", TIME),
    time_done=Column("isolated run time of the iterations that it has done", TIME),
    input=Column("input over the cluster's memory", OVER),
    model=Column("model over the cluster's memory", OVER),
    measured=flag("its times are measured"),
    changed=flag("it has changed its place at this instant"),
    slack=Column("deadline - now - isolated run time left; 1: no deadline", SLACK),
    waited=Column("time since it arrived or left a group", TIME),
)
QUEUE = joined(JOB, table(has_run=flag("it has run before")))
RUNNING = joined(
    JOB,
    table(
        speed=Column("speed", SPEED),
        loads=flag("it loads"),
        executed=flag("it is executed where it is to be"),
        input_spilled=Column("share of its input on disk"),
        spill_asked=flag("that share was asked for"),
        model_spilled=Column("share of its model on disk"),
        members=Column("jobs of its group", FEW_JOBS),
        machines=Column("machines of its group"),
        round=Column("seconds of a round of its group", SECONDS),
        cpu=Column("CPU use of its group"),
        net=Column("network use of its group"),
        group=Column("group slot that shows its group", "slot k of G: (k + 1) / G; 0: none"),
    ),
)
GROUP = table(
    present=flag("a group stands here"),
    machines=Column("machines"),
    room=Column("machines that it could have"),
    members=Column("jobs", FEW_JOBS),
    executed=Column("jobs that are executed, of these"),
    round=Column("seconds of a round", SECONDS),
    cpu=Column("CPU use"),
    net=Column("network use"),
    longest=Column("seconds of the longest iteration, over the round"),
    speeds=Column("sum of its jobs' speeds", "sum v: v / (1 + v)"),
    balanced=Column("machines on which it balances", BALANCED),
    memory=Column("memory in use"),
    garbage=Column("how much longer collecting garbage makes COMP", "factor x: 1 - 1 / x"),
    memory_needed=Column("memory that it needs, of its own, if nothing is spilled", OVER),
    memory_spilled=Column("memory that it needs if all input is spilled"),
    sized=flag("it has got machines at this instant"),
    measured=flag("the times of all its jobs are measured"),
)
CANDIDATES = table(
    legal=flag("legal"),
    advance=flag("advance"),
    open=flag("open a group"),
    join=flag("join a group"),
    pause=flag("pause"),
    swap=flag("make room for a waiting job"),
    stay=flag("stay, with another spill ratio"),
    give=flag("give machines"),
    takes_second=flag("the second part of the action means something"),
    takes_third=flag("the third part means something"),
    speeds=Column("change of the sum of speeds", CHANGE),
    use=Column("change of CPU use + half of network use", CHANGE),
    value=Column("change of the sum of speeds over roots of hours left; 1/2 where run times are not known", CHANGE),
    speed=Column("speed of the job there", SPEED),
    speed_now=Column("speed of the job now", SPEED),
    round=Column("seconds of a round of the group", SECONDS),
    cpu=Column("CPU use of the group"),
    net=Column("network use of the group"),
    machines=Column("machines of the group"),
    memory_needed=Column("memory that the group needs, of its own, if nothing is spilled", OVER),
    memory_spilled=Column("memory that it needs if all input is spilled"),
    loading=Column("job-seconds of loading", TIME),
    time_left=Column("isolated run time that the job has left; 0 where it is not known", TIME),
    members=Column("jobs of the group", FEW_JOBS),
)
