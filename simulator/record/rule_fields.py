"""Fields of a record for the compiled rule: its parameters, leases, timers, foresight, room, backfilling."""

from __future__ import annotations

from ..base.codes import MAX_LEVELS
from ..base.tiers import MACHINE, TIERS
from .field_axes import CALL, COUNTED, Axis, Field


def rule_fields(jobs: Axis, seats: Axis) -> list[Field]:
    """The compiled rule: its codes and parameters, running jobs, and scratch space of one scheduling pass."""
    return [
        ("order", "i8"),
        ("strict", "i8"),
        ("placer", "i8"),
        ("preemptive", "i8"),
        ("round_s", "f8"),
        ("lease_s", "f8"),
        ("slicing_s", "f8"),  # time slices (policies/gandiva/time_slicing.py); 0 = none
        ("turn_s", "f8"),  # when the present ones end; infinity while no job waits
        ("cost_small_s", "f8"),  # restore after a preemption, gangs of up to cost_split GPUs
        ("cost_large_s", "f8"),
        ("cost_split", "i8"),
        ("quantum_s", "f8"),  # demotions happen at multiples of it; 0 = at once
        ("n_thresholds", "i8"),
        ("thresholds", "f8", (MAX_LEVELS,)),  # GPU-seconds, ascending
        ("level_running", "i8", (MAX_LEVELS,)),  # LAS: running jobs by level,
        ("demoted_now", "i8"),  # and how many of them were demoted at this instant
        ("last_place", "i8"),  # LAS: places given at the end of levels,
        ("first_place", "i8"),  # at the front,
        ("running_place", "i8"),  # and among the running
        ("pass_number", "i8"),
        ("runner", "i8", (seats,)),  # running jobs, in no order
        ("joined", "i8", (jobs,)),  # jobs that take their places in the order when the instant ends
        ("n_joined", "i8"),
        ("untimed", "i8", (jobs,)),  # waiting jobs of which the rule has still to say when it wakes them
        ("n_untimed", "i8"),
        ("is_untimed", "i1", (jobs,)),
        ("offered", "i8", (jobs,)),  # jobs that are held until GPUs are freed
        ("n_offered", "i8"),
        ("tier_hold_jobs", "i8", (jobs,)),  # jobs that are held for a tier (tier_holds.py)
        ("n_tier_holds", "i8"),
        ("hold_tier", "i1", (jobs,)),  # of a held job the worst tier at which it starts by itself; 0 = it does not
        ("hold_over", "i1", (jobs,)),  # 1: it is back in the queue once those in `tier_hold_jobs` have been served
        ("holds_over", "i8"),  # the time of one of them may be over
        ("pick_key", "f8", (seats,)),  # scratch: heap of running jobs that may be stopped, worst first
        ("pick_job", "i8", (seats,)),
        ("n_picked", "i8"),
        ("out_key", "f8", (seats,)),  # scratch: those of them that are given up in trial
        ("out_job", "i8", (seats,)),
        ("chosen", "i8", (seats,)),  # scratch: jobs that are about to start
        ("migrates", "i8"),  # the rule moves running jobs to better tiers
        ("moved", "i8"),  # it did in this pass
        ("leases_over", "i8"),  # the lease of a running job may have ended, and no other begun
        ("offers", "i8"),  # jobs were offered GPUs at the last decision point
        ("fallback_defect", "i8"),  # of Gandiva in the simulator behind paper dally; see placers.py
        (
            "bid",
            "i8",
            (2 * jobs.length + seats.length,),
            CALL,
        ),  # scratch: jobs that are offered GPUs, a heap in the order of the rule
    ]


def semantics_fields() -> list[Field]:
    """How leases end and when passes are made (semantics.py)."""
    return [
        ("auctions", "i8"),  # passes are made at auctions only, and a job whose lease ends loses its GPUs
        ("chunk", "f8"),  # iterations per GPU whose completion is looked at as one; 0 = progress is continuous
        ("release_s", "f8"),  # from the end of a lease to the auction, per GPU
    ]


def delay_fields(classes: int, waits: int) -> list[Field]:
    """Delay timers (policies/dally.py). Lists of waits: 2 x demand class + (0: machine, 1: rack); `waits`: in all."""
    lists = 2 * classes
    return [
        ("delays", "i8"),  # kind of the timers by which jobs refuse (codes.FIXED, TUNED); 0 = they do not
        ("timing", "i8"),  # kind of the timers that there are, if only to look at
        ("timer_s", "f8", (2,)),  # fixed timers: machine, rack
        ("tuner_whole", "i8"),
        ("tuner_population", "i8"),
        ("tuner_unit_s", "f8"),  # a lease: waits and timers are counted in it
        ("tuner_initial", "f8", (2,)),
        ("tuner_floor", "f8", (2,)),
        ("tuner_cap", "f8", (2,)),
        ("history_s", "f8"),
        ("next_wait", "i8"),
        ("wait_time_s", "f8", (waits,), COUNTED),
        ("wait_value", "f8", (waits,), COUNTED),
        ("wait_list", "i2", (waits,)),  # list of an entry, from 1; 0 = none
        ("wait_after", "i8", (waits,), COUNTED),  # looked up most often, and quicker so than shorter
        ("waits_first", "i2", (lists,)),
        ("waits_last", "i2", (lists,)),
        ("waits_count", "i2", (lists,)),
        ("waits_total", "f8", (lists,)),  # the sum of its waits,
        ("waits_summed", "i1", (lists,)),  # 1: that is up to date
        ("waits_known", "i1", (lists,)),  # 1: the next is up to date
        ("waits_timer", "f8", (lists,)),
    ]


def foresight_fields(jobs: Axis, gpus: Axis, seats: Axis) -> list[Field]:
    """Waiting for a better tier (policies/greedy/greedy_wait.py)."""
    return [
        ("waits", "i8"),  # the rule weighs waiting
        ("margin", "f8"),
        ("changes", "i8"),  # how often holders of GPUs, or their ends, have changed
        ("foresees", "i8"),  # the rest is up to date: the ends of running jobs gone through so far,
        ("soon_machine", "i8", (gpus,), COUNTED),  # free GPUs then by machine
        ("soon_rack", "i8", (gpus,), COUNTED),  # and rack, and wholly free machines by rack,
        ("soon_whole", "i8", (gpus,), COUNTED),
        ("soon_free", "i8", (3,)),  # the most of each in one,
        ("soon_s", "f8", (3, gpus.and_more(1)), COUNTED),  # and when there were so many for the first time
        ("end_key", "f8", (seats,), COUNTED),  # heap of the running jobs that have not ended then
        ("end_job", "i8", (seats,), COUNTED),
        ("end_position", "i8", (jobs,), COUNTED),
        ("n_ends", "i8"),
    ]


def room_fields(jobs: Axis, gpus: Axis, seats: Axis) -> list[Field]:
    """Room that waiting jobs make by stopping and moving others (policies/greedy/room.py)."""
    rows = TIERS - MACHINE  # tiers whose areas are looked at: machines, racks, the network
    return [
        ("preempts", "i8"),  # the rule makes room; the rest is there for other callers, too
        ("theta", "f8"),
        ("weight", "f8", (jobs,)),  # of a job: its GPUs to the power of the rule's exponent
        ("mine_s", "f8"),  # of the job that asks: run time left at the tier of the areas,
        ("mine_weighed", "f8"),  # and theta x that x its weight
        ("room_tier", "i8"),  # the plan: an area,
        ("room_area", "i8"),
        ("room_cost_s", "f8"),  # what it costs,
        ("victims", "i8"),  # and which jobs, in the order in which they were taken
        ("victims_stopped", "i8"),
        ("victims_moved", "i8"),
        ("victims_left_s", "f8"),  # the sum of their isolated run times left
        ("victim", "i8", (seats,), COUNTED),
        ("victim_moves", "i1", (seats,), COUNTED),  # 1: it is moved, 0: stopped
        (
            "victim_claim",
            "i8",
            (seats,),
            COUNTED,
        ),  # scratch: free GPUs of the machine that it would move to; -1: stopped
        ("victim_inside", "i8", (seats,), COUNTED),  # scratch: its GPUs in the area
        ("victim_cost_s", "f8", (seats,), COUNTED),  # scratch
        ("item_of", "i8", (jobs,), COUNTED),  # scratch: of the survey
        ("survey_version", "i8", (rows,)),  # of the state that was surveyed, by tier; 0 = none
        ("survey_s", "f8", (rows,)),  # and when
        ("survey_most", "f8", (rows,)),  # the most of `survey_gain`
        ("survey_free", "i8", (gpus.and_more(1),), COUNTED),  # machines by their free GPUs
        ("survey_head", "i8", (rows, gpus), COUNTED),  # by area: the first of a list of items,
        ("survey_gpus", "i8", (rows, gpus), COUNTED),  # GPUs of the jobs that may be asked to go,
        ("survey_gain", "f8", (rows, gpus), COUNTED),  # and the most time left, weighed, less the cost of a new start
        ("survey_job", "i8", (rows, seats), COUNTED),  # by item: the jobs that may be asked,
        ("survey_inside", "i8", (rows, seats), COUNTED),  # its GPUs in the area,
        ("survey_weighed", "f8", (rows, seats), COUNTED),  # its time left, weighed,
        ("survey_next", "i8", (rows, seats), COUNTED),  # and the next item of the area; -1 = none
    ]


def backfill_fields(jobs: Axis) -> list[Field]:
    """Backfilling (policies/passes/backfill.py). A step is the present, or the end of a job or of a promise."""
    return [
        ("backfills", "i8"),
        ("last_end_s", "f8"),  # when a job ended last; -1 = never
        ("n_steps", "i8"),  # scratch: steps in the number of free GPUs, as expected,
        ("step_s", "f8", (jobs.and_more(1),), COUNTED),  # when each begins,
        ("step_free", "i8", (jobs.and_more(1),), COUNTED),  # and how many are free from then on, until the next
    ]
