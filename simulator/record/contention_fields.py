"""Fields of a record where jobs share links: their use, the present part of iterations, the rates.

Without links each is one unused entry. A record may also have these fields and CHANCE alone (contention/phase_run.py),
so link_use, bottlenecks, max_min, max_min_dense, max_min_sparse, iterations and phase_clock of flows/ touch no others.
"""

from __future__ import annotations

from .field_axes import COUNTED, JOB, LINK, LOGGED, USE, Axis, Field

MOST_PHASES = 8  # Up phases of an iteration
BINS = 2048  # of durations of iterations, see flows/iterations.py
USES_PER_LINK = 16  # room for so many jobs a link on average
SEATS = 63  # jobs of a network small enough for a table of flows and one seat more (flows/max_min_dense.py)
COLUMNS = 128  # and its links


def contention_fields(jobs: int, links: int, uses: int = 0, trace: int = 1) -> list[Field]:
    """All of them. Without `links` every field is one entry.

    `uses`: pairs of a job and a link, of all jobs; 0: 16 times the links. `trace`: of the log of rates; 1: none.
    """
    if links == 0:
        jobs = links = uses = phases = bins = trace = 1
    else:
        uses, phases, bins = uses or USES_PER_LINK * links, MOST_PHASES, BINS
    per_job, per_link = Axis(JOB, jobs), Axis(LINK, links)
    return (
        _scalars()
        + _link_fields(per_link)
        + _use_fields(Axis(USE, uses))
        + _job_fields(per_job, phases)
        + _heap_fields(per_job)
        + _scratch_fields(per_job, per_link)
        + _table_fields(per_job, per_link)
        + [("iteration_bins", "i8", (bins,))]  # how many iterations had a duration in each bin
        + _trace_fields(trace)
    )


def _scalars() -> list[Field]:
    return [
        ("n_links", "i8"),
        ("n_uses", "i8"),  # uses that a job has or had,
        ("free_use", "i8"),  # and head of the list of those of them that are free; -1 = none is
        ("phase_now_s", "f8"),  # the clock of the network
        ("jitter", "f8"),  # coefficient of variation of Down times
        ("pacing", "i8"),  # a job with a shift begins every iteration at a slot; 0: the first one only
        ("adjust", "f8"),  # how late, in iterations, it may begin before it waits for its next slot; inf = any
        ("adjustments", "i8"),  # how often it did that
        ("ended_job", "i8"),  # the job whose last iteration ended when `play` returned; -1 = none
        ("phase_events", "i8"),  # Up phases that have begun or ended
        ("fills", "i8"),  # how often rates were computed,
        ("filled", "i8"),  # for how many jobs, all times together,
        ("sievings", "i8"),  # and how often it was whether a link can bind
        ("n_binding", "i8"),  # links that can
        ("is_weighted", "i8"),  # some job has or had a weight or priority of its own
        ("weight_base", "f8"),  # a weight that grows: this and
        ("weight_slope", "f8"),  # this x the part of the iteration's bytes that was sent,
        ("weight_steps", "f8"),  # in so many steps; 0 = weights do not grow
        ("iteration_count", "i8"),  # whole iterations of all jobs, and their durations together
        ("iteration_sum_s", "f8"),
        ("stalled_s", "f8"),  # seconds that jobs have waited to send, since no way was left: as far as they are booked
    ]


def _link_fields(links: Axis) -> list[Field]:
    return [
        ("link_capacity", "f8", (links,)),  # bytes per second, whole
        ("link_overload_capacity", "f8", (links,)),  # and what arrives of it when more is offered than fits
        ("link_whole", "f8", (links,)),  # `link_capacity` as it was built: now it may have less
        ("link_first", "i8", (links,)),  # head of its uses; -1 = none
        ("link_offered", "f8", (links,)),  # flows x `send_top` of all jobs that send
        ("link_bytes", "f8", (links,)),  # of phases that are over
        ("link_congestion", "f8", (links,)),  # bytes that have waited there, as far as they are booked
        ("link_users", "i8", (links,)),  # how many jobs are on it
        ("link_flows", "f8", (links,)),  # flows of all of them
        ("is_slack", "i8", (links,)),  # it never decides a rate (flows/bottlenecks.py)
    ]


def _use_fields(uses: Axis) -> list[Field]:
    return [
        ("use_job", "i8", (uses,)),
        ("use_link", "i8", (uses,)),
        ("use_flows", "f8", (uses,)),  # of the job's collective, across the link
        ("use_next", "i8", (uses,)),  # of the link
        ("use_prev", "i8", (uses,)),
        ("use_after", "i8", (uses,)),  # of the job; of the free ones
        ("use_binding", "i8", (uses,)),  # of the job, on links that can bind
    ]


def _job_fields(jobs: Axis, phases: int) -> list[Field]:
    floats = (
        "tail_s",  # Down time after the last Up phase
        "alone_s",  # seconds of an iteration with no other job on its links, without stretch and jitter
        "own_rate",  # bytes per second that its links leave to a flow if no other job sends
        "rounds_done",  # whole iterations since `begin`
        "rounds_left",  # iterations at `begin` until it ends; inf = for ever
        "first_round",  # the part of the first iteration that was done before
        "round_began_s",  # when its present iteration began
        "last_round_s",  # seconds from the beginning of its last whole iteration to the next
        "ready_s",  # when it could have begun, of a job that waits for its slot
        "down_factor",  # Down times of the present iteration are longer by it: stretch and jitter
        "stretch",  # Down times of coming iterations are longer by it: several jobs on a GPU
        "bytes_due",  # of the present Up phase a flow sends so many,
        "bytes_left",  # of which so many are left at
        "sent_since_s",  # when its rate last changed
        "send_rate",  # bytes per second of a flow now
        "send_top",  # and the most that it could be in this phase
        "step_left",  # bytes left when the next step of its weight is due; 0 = none in this phase
        "flow_weight",  # its rate beside others' on a full link, whole 2^-20ths
        "up_began_s",  # when the present Up phase began
        "phase_end_s",  # when the present part of the iteration ends, if no rate changes
        "shift_s",  # iterations begin at this modulo the period; -1 = whenever the one before is over
        "period_s",
        "slot",  # the last that it began in; -inf = none yet
        "job_congestion",  # its part of the congestion of its links, bytes, until its rate last changed
        "held_flows",  # how many it has across `held_at`
        "job_rounds_s",  # durations of its whole iterations,
        "job_alone_s",  # what they had taken with no other job on the links,
        "job_up_s",  # and seconds in their Up phases, together
        "round_up_s",  # seconds in Up phases of the present iteration that are over
    )
    integers = (
        "first_use",  # -1 = not in the network
        "first_binding",
        "cut_off",  # no way is left on which it could send: it is on no link, and waits where it would
        "held_at",  # the link that holds it back; -1 = none
        "n_phases",
        "phase",  # the Up phase that it is in or before; n_phases: in the tail; -1: before the iteration
        "is_sending",
        "flow_priority",  # the highest goes first on a full link
        "draws",  # iterations begun, in all its life: counts the random numbers
        "job_rounds",  # whole iterations in `job_rounds_s`
    )
    columns: list[Field] = [(name, "f8", (jobs,)) for name in floats]
    columns += [(name, "i8", (jobs,)) for name in integers]
    return [
        *columns,
        ("phase_down_s", "f8", (jobs, phases), COUNTED),  # before each Up phase
        ("phase_bytes", "f8", (jobs, phases), COUNTED),  # a flow
        ("phase_rate", "f8", (jobs, phases), COUNTED),  # the most that a flow sends, bytes per second, whole
    ]


def _heap_fields(jobs: Axis) -> list[Field]:
    return [
        ("phase_key", "f8", (jobs,)),
        ("phase_item", "i8", (jobs,)),
        ("phase_position", "i8", (jobs,)),  # place in it; -1 = none
        ("phase_count", "i8"),
    ]


def _scratch_fields(jobs: Axis, links: Axis) -> list[Field]:
    return [
        ("n_dirty", "i8"),  # links whose jobs need new rates before time passes
        ("dirty_link", "i8", (links,)),
        ("is_dirty", "i8", (links,)),
        ("sieve_mark", "i8", (jobs,)),  # by job: on the link of this sieving,
        ("sieve_flows", "f8", (jobs,)),  # with so many flows
        ("may_join", "i8", (jobs,)),  # by job: 1 = it sends and is not in the present fill
        ("fill_rate", "f8", (jobs,), COUNTED),  # its rate after the present fill; 0 = it rises, or does not send
        ("stop_link", "i8", (jobs,)),  # by job: the link at which it stopped to rise; -1 = at its top
        ("stop_flows", "f8", (jobs,)),  # and how many flows it has there
        ("fill_job", "i8", (jobs,), COUNTED),  # the jobs of the component
        ("link_place", "i8", (links,)),  # its place in the lists below + links of the record x number of the fill
        ("fill_link", "i8", (links,)),  # the hot links of the component,
        ("fill_room", "f8", (links,)),  # capacity that is left to
        ("fill_flows", "f8", (links,)),  # flows that are still rising,
        ("fill_height", "f8", (links,)),  # how far each of them can rise
        ("link_level", "f8", (links,)),  # the rate of the jobs that stopped at a link; inf = none has
        ("link_load", "f8", (links,)),  # flows x rate of the jobs that send, of a hot link
        ("n_rechecks", "i8"),  # links that may not be full where they were:
        ("recheck_level", "f8", (links,)),  # a heap by the rate at which it is looked at next
        ("recheck_link", "i8", (links,)),
        ("recheck_position", "i8", (links,)),  # place in it; -1 = none
    ]


def _table_fields(jobs: Axis, links: Axis) -> list[Field]:
    """Of a small network: jobs have seats, links that can bind have columns (flows/max_min_dense.py)."""
    seats, columns = (1, 1) if links.length == 1 else (SEATS, COLUMNS)
    return [
        ("is_laid", "i8"),  # the table is that of the jobs that are there now
        ("fits_table", "i8"),  # they fit in
        ("n_seats", "i8"),
        ("n_columns", "i8"),
        ("seat_job", "i8", (seats,), COUNTED),
        ("seat_stop", "i8", (seats,), COUNTED),  # the column at which it stopped to rise; -1 = at its top
        ("seat_of", "i8", (jobs,)),  # -1 = none
        ("column_link", "i8", (columns,), COUNTED),  # ascending
        ("column_of", "i8", (links,)),  # -1 = none
        ("column_users", "i8", (columns,), COUNTED),  # a bit a seat
        ("seats_sending", "i8"),  # likewise
        (
            "table_flows",
            "f4",
            (seats, max(columns, 2)),
            COUNTED,
        ),  # an even number: no padding, whose bytes are anything
        ("column_capacity", "f8", (columns,), COUNTED),
        ("column_overload_capacity", "f8", (columns,), COUNTED),  # `link_overload_capacity`
        ("column_sending", "f8", (columns,), COUNTED),  # flows of the jobs that send
        ("column_offered", "f8", (columns,), COUNTED),  # `link_offered`
        ("column_joined", "i8", (columns,), COUNTED),  # these jobs, if more is offered than fits
        ("column_room", "f8", (columns,), COUNTED),  # capacity that is left to
        ("column_flows", "f8", (columns,), COUNTED),  # flows that are still rising
        ("column_rate", "f8", (columns,), COUNTED),  # that of the jobs that stopped there
    ]


def _trace_fields(trace: int) -> list[Field]:
    """The log of rates: a flow of the job sends at the rate from then on; rate -1: an iteration is over."""
    return [
        ("trace_count", "i8"),
        ("tracing", "i8"),
        ("trace_s", "f8", (trace,)),
        ("trace_job", "i8", (trace,)),
        ("trace_rate", "f8", (trace,)),
        ("trace_offered", "f8", (trace,)),  # rate of the phase; duration of the iteration
    ]


def cable_events(links: int) -> int:
    """Ids that links add to the heap of events: their failures, and the next change of capacities."""
    return links + 1 if links > 0 else 0


def stay_fields(jobs: Axis, links: int, entries: Axis) -> list[Field]:
    """Between a network and the running jobs of a cluster (flows/sessions.py); `entries` of the decision log."""
    if links == 0:
        jobs, entries = Axis(JOB, 1), Axis(LOGGED, 1)
    per_link = Axis(LINK, max(1, links))
    return [
        ("averages", "i8"),  # jobs on the network run at average rates, not phase by phase;
        ("asks_changes", "i8"),  # rates are asked too when the jobs, or a shift, have changed:
        ("net_changed", "i8"),  # it has since;
        ("averaged_rate", "f8"),  # the bytes of congestion per second that go with average rates,
        ("averaged_bytes", "f8"),  # and that so far
        ("stays", "i8", (jobs,)),  # the stretch of the job on its GPUs is, or was until it ended, on the network
        ("session_done", "f8", (jobs,)),  # iterations since `begin` that it had done at `since_s`
        ("asked_shift_s", "f8", (jobs,)),  # the shift with which a job that has just got GPUs will begin; -1 = none
        ("asked_period_s", "f8", (jobs,)),
        ("n_leavers", "i8"),  # jobs that have left their GPUs at this instant,
        ("leaver", "i8", (jobs,), COUNTED),
        ("link_mtbf_s", "f8"),  # mean time between failures of a cable; 0 = none fail
        ("link_mttr_s", "f8"),
        ("link_failures", "i8"),  # of all cables so far
        ("links_change", "i8"),  # now and then: cables fail, or a file says so;
        ("links_changed", "i8"),  # a cable has failed or come back, or a capacity is due to change
        ("first_cable_event", "i8"),  # cables fail or come back by the number of a link; after them capacities change
        ("cable_down", "i8", (per_link,)),  # 1 = the cable of which this is the first link has failed
        ("cable_failures", "i8", (per_link,)),
        ("is_leaver", "i8", (jobs,)),  # codes.GONE; codes.BACK: and are on them again; 0 = neither
        ("log_seconds", "f8", (entries,), COUNTED),  # of a shift, with the other fields of log_fields
    ]
