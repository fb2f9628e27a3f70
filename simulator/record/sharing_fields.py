"""Fields of a record where the speed of a running job changes: shared GPUs, or asked rates.

They have their size where a GPU has more than one berth; elsewhere each is one unused entry.
"""

from __future__ import annotations

from ..numerics.bitset import words
from .field_axes import GPU, JOB, Axis, Field

CLASSES = 256
SHARED_MODELS = 32
GAINS = 512
STEPS = 16
FIT_TERMS = 9  # a, b, ai, bi, an, bn, d, one_a, one_b: see network/step_time.py


def sharing_fields(jobs: Axis, gpus: Axis, classes: int, berths: int) -> list[Field]:
    """All of them; `classes` of jobs by demand."""
    models, gains = SHARED_MODELS, GAINS
    if berths == 1:
        jobs, gpus, classes, models, gains = Axis(JOB, 1), Axis(GPU, 1), 1, 1, 1
    return (
        _scalars()
        + _gpu_fields(gpus)
        + _model_fields(models)
        + _job_fields(jobs, 1 if berths == 1 else STEPS)
        + _alone_fields(jobs, gpus, gains)
        + _pass_fields(gpus, classes, models)
    )


def _scalars() -> list[Field]:
    return [
        ("jobs_per_gpu", "i8"),  # C: the most that may hold a GPU at once
        ("gpu_memory", "f8"),  # bytes for the jobs on a GPU, or for each if it is cut in slices; inf = not looked at
        ("memory_shared", "f8"),  # 1: out of the same bytes; 0: each has its own
        ("slice_slowdown", "f8"),  # times that an iteration takes longer on a slice of a GPU than on a whole one
        ("busy_gpus", "i8"),  # held by a job or more
        ("shared_gpus", "i8"),  # held by two or more
        ("busy_integral", "f8"),  # GPU-seconds of each
        ("shared_integral", "f8"),
        ("interference_gpu_s", "f8"),  # see clock_fields of state.py: one more part of used_gpu_s
        ("net_steps", "i8"),  # the network is measured: `fit` gives the time of a placement
        ("asks", "i8"),  # rates are asked of Python (codes.ASK)
        ("asking", "i8"),  # the clock stands still for them
        ("elastic", "i8"),  # jobs may run on other numbers of GPUs than they ask
        ("restores_first", "i8"),  # the first start costs a restore too
        ("n_asked", "i8"),
        ("restores", "i8"),  # the rule gives jobs larger passes when partners have left (policies/bsbf/restore.py)
        ("eases", "i8"),  # jobs that partners have left are noted, for it or other readers
        ("n_eased", "i8"),
        ("n_kinds", "i8"),  # rows of `xi`,
        ("kinds_by_pass", "i8"),  # of which a job may change its own with its sub-batch
    ]


def _gpu_fields(gpus: Axis) -> list[Field]:
    low, mid, top = words(gpus.length)
    return [
        ("gpu_load", "i8", (gpus,)),  # jobs on it
        ("gpu_memory_used", "f8", (gpus,)),
        ("open_low", "i8", (low,)),  # the set of those that hold a job at least and have room for another
        ("open_mid", "i8", (mid,)),
        ("open_top", "i8", (top,)),
    ]


def _model_fields(models: int) -> list[Field]:
    return [
        ("xi", "f8", (models, models)),  # slowdown of a job of the first kind beside one of the second (job_kinds.py)
        ("kind_model", "i8", (models,)),  # the model of a kind
        ("memory_base", "f8", (models,)),  # bytes on each GPU,
        ("memory_sample", "f8", (models,)),  # and for each sample of a sub-batch
        ("fit", "f8", (models, FIT_TERMS)),  # d = 0: not known
    ]


def _job_fields(jobs: Axis, steps: int) -> list[Field]:
    floats = (
        "solo_s",  # seconds per iteration on its GPUs with no job beside it
        "slowdown",  # times that an iteration takes longer beside its partners, as last rated
        "booked_s",  # until when its present stretch is in the totals
        "best_step_s",  # time of a step of its whole batch, placed best, by `fit`
        "interference_s",
        "phase_left",  # iterations left at which its rate is asked for again; 0 = never
        "phase_s",  # when that will be
        "progress_s",  # when its progress on its GPUs began: checkpoints count from there
        "unsaved",  # iterations since the last checkpoint, at `since_s`,
        "unsaved_hindered_s",  # and the seconds that partners cost in them
        "stop_booked_s",  # as the others of that name, see job_fields of state.py
        "stop_solo_s",
        "stop_iteration_s",
        "stop_progress_s",
        "stop_unsaved",
        "stop_unsaved_hindered_s",
        "stop_service_gpu_s",
    )
    integers = (
        "model",  # its row of `fit` and of the memory lines
        "batch",  # samples a GPU and iteration,
        "own_batch",  # and what it is on the GPUs that the workload asks,
        "own_gpus",
        "sub_batch",  # samples in one pass; of a waiting job the most that an empty GPU can hold
        "stop_batch",
        "stop_sub_batch",
        "stop_gpus",
        "asked",  # jobs whose rate is due before time passes
        "is_asked",  # how: codes.SLOWED, RATED, ASKED; 0 = not
        "eased",  # running jobs in small passes that a partner has left since the last decision point was over
        "is_eased",  # 1: it is among them
    )
    columns: list[Field] = [(name, "f8", (jobs,)) for name in floats]
    columns += [(name, "i8", (jobs,)) for name in integers]
    # Its row of `xi`, by how often its whole batch is halved; a multiple of 8 bytes, so that records have no gaps.
    columns += [("kind", "i1", (jobs, max(steps, 8)))]
    return columns


def _alone_fields(jobs: Axis, gpus: Axis, gains: int) -> list[Field]:
    return [
        ("lists", "i8"),  # the rest is kept,
        ("lists_always", "i8"),  # even where the rule does not ask for it
        ("alone", "i8", (jobs,)),  # GPUs that a running job holds alone
        ("alone_place", "i8", (jobs,)),  # in the list of these jobs, from 1; 0 = not in it
        ("n_alone", "i8"),
        ("alone_job", "i8", (gpus,)),
        ("alone_gpus", "i8", (gpus,)),
        ("alone_kind", "i8", (gpus,)),
        ("alone_left_s", "f8", (gpus,)),  # seconds of work that it had left, alone on its GPUs,
        ("alone_since_s", "f8", (gpus,)),  # then,
        ("alone_speed", "f8", (gpus,)),  # and how many of them it does in a second
        ("alone_memory", "f8", (gpus,)),  # bytes that it uses on each of its GPUs
        ("gains", "i8"),  # entries so far, of which the ring has the last ones,
        ("gains_read", "i8"),  # how many of them are known,
        ("gained_gpus", "i8"),  # and the GPUs of all of them
        ("gain_job", "i8", (gains,)),
        ("gain_gpus", "i8", (gains,)),
    ]


def _pass_fields(gpus: Axis, classes: int, models: int) -> list[Field]:
    steps = 1 if models == 1 else STEPS
    return [
        ("shares", "i8"),  # which of them
        ("packs", "i8"),  # jobs of one GPU share GPUs (policies/gandiva/gandiva.py),
        ("slices", "i8"),  # and take turns where sharing is no gain
        ("free_first", "i8"),  # free GPUs are in the gang before shared ones,
        ("free_last", "i8"),  # or behind them; else in none that is shared
        ("pair_ratio", "f8", (models, models)),  # least `pairs.least_ratio`: new job's model, other's kind
        ("class_key", "f8", (classes,)),  # of a class: no job from this key on
        ("class_supply", "i8", (classes,)),  # had partners for more GPUs than so many,
        ("class_gains", "i8", (classes,)),  # when `gains` and `gained_gpus` were these
        ("class_gained", "i8", (classes,)),
        ("class_stretch", "f8", (classes, steps)),  # by how often the sub-batch is halved; 0 = not known
        ("accepting", "i8"),  # GPUs of all partners that would have the job that is asked
        ("pair_pass", "i8"),
        ("pair_refused", "i8", (gpus,)),  # scratch: `pair_pass` in which a place of the list was left out
        ("pair_s", "f8", (gpus,)),  # scratch: the best partners of a job: the JCT of the pair,
        ("pair_place", "i8", (gpus,)),  # the place in the list,
        ("pair_halvings", "i8", (gpus,)),  # and how often the sub-batch is halved
        ("halvings", "i8"),  # on which all of them agree
    ]
