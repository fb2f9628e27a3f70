"""Fields of a record where the speed of a running job changes: several jobs may hold a GPU, or rates are asked for.

They have their size where a GPU has more than one berth; elsewhere each is one entry that nobody reads.
"""

from __future__ import annotations

from .kernels.bits import words

SHARED_MODELS = 32
FIT_TERMS = 9  # a, b, ai, bi, an, bn, d, one_a, one_b: see network/steps.py

Field = tuple[str, str] | tuple[str, str, tuple[int, ...]]


def sharing_fields(jobs: int, gpus: int, berths: int) -> list[Field]:
    """All of them."""
    if berths == 1:
        jobs = gpus = models = 1
    else:
        models = SHARED_MODELS
    return _scalars() + _gpu_fields(gpus) + _model_fields(models) + _job_fields(jobs)


def _scalars() -> list[Field]:
    return [
        ("jobs_per_gpu", "i8"),  # C: the most that may hold a GPU at once
        ("gpu_memory", "f8"),  # bytes; inf = not looked at
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
    ]


def _gpu_fields(gpus: int) -> list[Field]:
    low, mid, top = words(gpus)
    return [
        ("gpu_load", "i8", (gpus,)),  # jobs on it
        ("gpu_memory_used", "f8", (gpus,)),
        ("open_low", "i8", (low,)),  # the set of those that hold a job at least and have room for another
        ("open_mid", "i8", (mid,)),
        ("open_top", "i8", (top,)),
    ]


def _model_fields(models: int) -> list[Field]:
    return [
        ("xi", "f8", (models, models)),  # slowdown of the first beside the second
        ("memory_base", "f8", (models,)),  # bytes on each GPU,
        ("memory_sample", "f8", (models,)),  # and for each sample of a sub-batch
        ("fit", "f8", (models, FIT_TERMS)),  # d = 0: not known
    ]


def _job_fields(jobs: int) -> list[Field]:
    floats = (
        "solo_s",  # seconds per iteration on its GPUs with nobody beside it
        "booked_s",  # until when its present stretch is in the totals
        "best_step_s",  # time of a step of its whole batch, placed best, by `fit`
        "interference_s",
        "phase_left",  # iterations left at which its rate is asked for again; 0 = never
        "phase_s",  # when that will be
        "progress_s",  # when its progress on its GPUs began: checkpoints count from there
        "unsaved",  # iterations since the last checkpoint, at `since_s`
        "stop_booked_s",  # as the others of that name, see job_fields of state.py
        "stop_solo_s",
        "stop_iteration_s",
        "stop_progress_s",
        "stop_unsaved",
        "stop_service_gpu_s",
    )
    integers = (
        "model",  # its row of `xi`
        "batch",  # samples a GPU and iteration,
        "own_batch",  # and what it is on the GPUs that the workload asks,
        "own_gpus",
        "sub_batch",  # samples in one pass; of a waiting job the most that an empty GPU can hold
        "stop_batch",
        "stop_sub_batch",
        "stop_gpus",
        "asked",  # jobs whose rate is to be settled before time passes
        "is_asked",  # how: codes.RATED, codes.ASKED; 0 = not
    )
    columns: list[Field] = [(name, "f8", (jobs,)) for name in floats]
    columns += [(name, "i8", (jobs,)) for name in integers]
    return columns
