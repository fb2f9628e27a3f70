"""Checking the GPUs of a decision before anything happens, and writing them for the kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..base.codes import DONE, DOWN, HELD, NOTICE, PENDING, RUNNING, WAITING
from ..base.decisions import Migrate, Resize, Shift, Start
from ..base.errors import InvalidDecision
from ..contention.link_network import LinkNetwork
from ..events.clock_calls import shift
from ..events.initialise import gpus_of
from ..network.simulated import Simulated, may_resize
from ..regions.region_calls import takes_units
from .check_regions import INSTEAD, check_parts, expect_one_region

VERBS = {Start: "start", Migrate: "migrate", Resize: "resize"}
STATUS_WORDS = {
    PENDING: "has not arrived yet",
    WAITING: "is waiting",
    HELD: "is held",
    RUNNING: "is running",
    DONE: "has finished",
}
GIB = 2.0**30


def write_gang(simulator: Simulated, decision: Start | Migrate | Resize) -> int:
    """Write the GPUs of a legal decision into the record, of a start the batches too; as `check_gang`."""
    s, job, gpus = simulator.raw.record, decision.job, decision.gpus
    batch, sub_batch = check_gang(simulator, decision)
    if simulator.capacity.berths > 1 and isinstance(decision, Start):
        s["gpus"][job], s["batch"][job], s["sub_batch"][job] = len(gpus), batch, sub_batch
    s["gang"][: len(gpus)] = gpus
    s["gang_size"] = len(gpus)
    return batch


def check_gang(simulator: Simulated, decision: Start | Migrate | Resize) -> tuple[int, int]:
    """Check the GPUs of a decision; returns samples a GPU and a pass there, 0: not recorded. Raises InvalidDecision."""
    s, job, gpus = simulator.raw.record, decision.job, decision.gpus
    what = f"{VERBS[type(decision)]} job {job} ({simulator.workload.job_id[job]})"
    elastic = bool(s["elastic"]) and not isinstance(decision, Migrate) and may_resize(simulator, job)
    _check_size(what, len(gpus), int(s["gpus"][job]), elastic, int(s["n_gpus"]))
    if len(set(gpus)) != len(gpus):
        raise InvalidDecision(f"{what}: a GPU is named twice in {list(gpus)}")
    own = () if isinstance(decision, Start) else tuple(gpus_of(s, job))
    if s["closing_machines"] and isinstance(decision, Migrate):
        _expect_open(simulator, what, gpus)
    may_keep = not (s["auctions"] and own and s["started_s"][job] < s["now_s"])
    units = np.array(gpus)
    if simulator.capacity.regions == 0 or not simulator.raw.call(takes_units, job, units):
        for gpu in gpus:
            _check_gpu(simulator, what, gpu, gpu in own and may_keep)
        if simulator.capacity.regions > 0:
            check_parts(simulator, what, job, units)
    if s["n_apart"] > 1:
        expect_one_region(simulator, f"{what}: its GPUs lie", units, f"GPUs of one, {INSTEAD}")
    if isinstance(decision, Migrate) and set(gpus) == set(own):
        raise InvalidDecision(f"{what}: it runs on these GPUs already")
    batch = _batch(simulator, decision, what)
    if simulator.capacity.berths > 1:
        return batch, _sub_batch(simulator, decision, what, batch, own)
    if isinstance(decision, Start) and decision.sub_batch is not None:
        raise InvalidDecision(f"{what}: sub_batch = {decision.sub_batch}: GPUs are not shared in this simulator")
    return batch, 0


def check_passes(simulator: Simulated, decision: Resize) -> int | None:
    """The sub-batch that a `Resize` asks; None: elastic jobs. `write_gang` checks memory. Raises InvalidDecision."""
    s, job, asked = simulator.raw.record, decision.job, decision.sub_batch
    what = f"resize job {job} ({simulator.workload.job_id[job]})"
    if s["elastic"]:
        if asked is not None:
            raise InvalidDecision(
                f"{what}: sub_batch = {asked}: elastic jobs take the largest that fits; expected none"
            )
        return None
    if asked is None or decision.batch is not None:
        raise InvalidDecision(
            f"{what}: the jobs of this simulator are not elastic; expected sub_batch, and neither other GPUs nor batch"
        )
    if simulator.capacity.berths == 1:
        raise InvalidDecision(f"{what}: sub_batch = {asked}: GPUs are not shared in this simulator")
    if simulator.capacity.links:
        raise InvalidDecision(f"{what}: sub_batch = {asked}: passes stay as they are where jobs share links")
    own = gpus_of(s, job)
    if set(decision.gpus) != set(own) or len(decision.gpus) != len(own):
        raise InvalidDecision(f"{what}: GPUs {list(decision.gpus)} given, expected its own, {own}: it is not elastic")
    batch, present = int(s["batch"][job]), int(s["sub_batch"][job])
    if asked == present:
        raise InvalidDecision(f"{what}: sub_batch = {asked}: that is the one that it has")
    if asked not in [batch >> halvings for halvings in range(batch.bit_length())]:
        raise InvalidDecision(
            f"{what}: sub_batch = {asked}: expected its batch of {batch} samples a GPU, or that halved so and so often"
        )
    return asked


def keeps_place(simulator: Simulated, decision: Migrate | Resize) -> bool:
    """Whether a job goes on on all GPUs that it holds and more, or on some of them: a lease is for where it is."""
    own, gpus = set(gpus_of(simulator.raw.record, decision.job)), set(decision.gpus)
    return isinstance(decision, Resize) and (own <= gpus or gpus <= own)


def _check_size(what: str, given: int, need: int, elastic: bool, room: int) -> None:
    if not elastic and given != need:
        raise InvalidDecision(f"{what}: {given} GPUs given, its gang needs {need}")
    if not 0 < given <= room:
        raise InvalidDecision(f"{what}: {given} GPUs given, expected 1 to {room}")


def _expect_open(simulator: Simulated, what: str, gpus: Sequence[int]) -> None:
    s = simulator.raw.record
    for gpu in gpus:
        if 0 <= gpu < s["n_gpus"] and s["machine_down"][s["gpu_machine"][gpu]]:
            name = f"GPU {gpu} ({simulator.topology.gpu_label(gpu)})"
            raise InvalidDecision(f"{what}: {name} is on a machine that is about to go down")


def _check_gpu(simulator: Simulated, what: str, gpu: int, keeps: bool) -> None:
    s = simulator.raw.record
    if not 0 <= gpu < s["n_gpus"]:
        raise InvalidDecision(f"{what}: there is no GPU {gpu}; the cluster has 0 to {s['n_gpus'] - 1}")
    if keeps:
        return
    name = f"GPU {gpu} ({simulator.topology.gpu_label(gpu)})"
    if s["gpu_job"][gpu] == DOWN:
        is_noticed = s["machine_down"][s["gpu_machine"][gpu]] % NOTICE == 0
        raise InvalidDecision(
            f"{what}: {name} is on a {'machine that is about to go down' if is_noticed else 'failed machine'}"
        )
    holders = simulator.view.jobs_on(gpu)
    most = simulator.view.jobs_per_gpu
    if len(holders) >= most:
        whose = " and ".join(f"job {holder}" for holder in holders)
        limit = f"; at most {most} may share a GPU" if most > 1 else ""
        raise InvalidDecision(f"{what}: {name} is held by {whose}{limit}")


def _batch(simulator: Simulated, decision: Start | Migrate | Resize, what: str) -> int:
    asked = getattr(decision, "batch", None)
    if asked is None:
        return simulator.view.batch(decision.job)
    if not simulator.raw.record["elastic"]:
        raise InvalidDecision(f"{what}: batch = {asked}: the jobs of this simulator are not elastic")
    if asked < len(decision.gpus):
        raise InvalidDecision(
            f"{what}: batch = {asked}: expected at least a sample for each of {len(decision.gpus)} GPUs"
        )
    return -(-asked // len(decision.gpus))


def _sub_batch(
    simulator: Simulated, decision: Start | Migrate | Resize, what: str, batch: int, own: tuple[int, ...]
) -> int:
    s, job = simulator.raw.record, decision.job
    asked = getattr(decision, "sub_batch", None)
    if asked is not None and not 1 <= asked <= batch:
        raise InvalidDecision(f"{what}: sub_batch = {asked}: expected 1 to its batch of {batch} samples a GPU")
    base, each = float(s["memory_base"][s["model"][job]]), float(s["memory_sample"][s["model"][job]])
    mine = float(s["memory_shared"]) * (base + each * float(s["sub_batch"][job]))  # what of `used` is its own
    used = {gpu: float(s["gpu_memory_used"][gpu]) - (mine if gpu in own else 0.0) for gpu in decision.gpus}
    fullest = max(used, key=lambda gpu: used[gpu])
    sub_batch = batch if asked is None else asked
    while used[fullest] + base + each * sub_batch > s["gpu_memory"]:
        if asked is not None or sub_batch == 1:
            raise InvalidDecision(
                f"{what}: GPU {fullest} ({simulator.topology.gpu_label(fullest)}) has "
                f"{(s['gpu_memory'] - used[fullest]) / GIB:.2f} of {s['gpu_memory'] / GIB:.2f} GiB left, and "
                f"{sub_batch} samples a pass need {(base + each * sub_batch) / GIB:.2f}"
            )
        sub_batch //= 2
    return sub_batch


def apply_shift(simulator: Simulated, decision: Shift) -> None:
    """Shift a running job; its period is that of its component as jobs lie now. Raises InvalidDecision; see `Shift`."""
    job = int(decision.job)
    what = f"shift job {job} ({simulator.workload.job_id[job]})"
    network = _network(simulator, what)
    if decision.seconds is not None:
        _check_seconds(decision.seconds, what)
    period_s = network.joined(simulator).period_s.get(job)
    if period_s is None:
        raise InvalidDecision(f"{what}: it sends nothing over the network on its GPUs")
    seconds = -1.0 if decision.seconds is None else float(decision.seconds)
    simulator.raw.call(shift, job, seconds, period_s)


def check_time_shift(simulator: Simulated, decision: Start) -> None:
    """Check the time-shift of a start, if it has one; InvalidDecision: the job could not be shifted on these GPUs."""
    if decision.time_shift is None:
        return
    job = decision.job
    what = f"start job {job} ({simulator.workload.job_id[job]})"
    network = _network(simulator, what)
    _check_seconds(decision.time_shift, what)
    topology, gpus = simulator.topology, set(decision.gpus)
    if len(gpus) != simulator.view.gpus(job) or not all(0 <= gpu < topology.num_gpus for gpu in gpus):
        return  # the gang is refused anyway
    if not network.alone(topology, simulator.workload, job, decision.gpus)[0].rate:
        raise InvalidDecision(f"{what}: with a time_shift, but it sends nothing over the network on these GPUs")


def _network(simulator: Simulated, what: str) -> LinkNetwork:
    if not isinstance(simulator.network, LinkNetwork):
        raise InvalidDecision(f"{what}: time-shifts need network contention, not {simulator.network.describe()!r}")
    return simulator.network


def _check_seconds(seconds: float, what: str) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.0 <= seconds < math.inf:
        raise InvalidDecision(f"{what} by {seconds!r} seconds: expected a finite number of at least 0, or None")
