"""Every decision of a run in order of application, its reason, and the GPUs of each job over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...policies import Policy
from ...simulator.base import codes
from ...simulator.base.codes import DONE, DROP, HOLD, LEFT, MOVE, PREEMPT, REPLICATE, SHIFT, SPILL, START
from ...simulator.base.decisions import Decision
from ...simulator.base.errors import InputError
from ...simulator.cluster.topology import Topology
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.simulator import Simulator
from ...simulator.events.journal import expect_logged, logged

KINDS = "start preempt migrate hold resize shift replicate move drop assign machines spill"
WORDS = {getattr(codes, word.upper()): word for word in KINDS.split()}  # code -> word
ABOUT_TABLES = (REPLICATE, MOVE, DROP)
Progress = Callable[[int], None]
Steps = tuple[np.ndarray, np.ndarray]  # times, and values from each of them on
JOB_FIELDS = ("first_start_s", "queueing_delay_s", "slowdown", "preemptions")  # of `Simulator.jobs`
HAPPENINGS = (codes.JOINED, LEFT, codes.SIZED)  # no decisions: results of those about groups


class Recorded(NamedTuple):
    """One decision; of a decision about a table `job` is the table and `gpus` the region.

    In job groups `gpus` are the group and, where they matter, its machines; `job` is -1 for the group alone.
    """

    time_s: float
    job: int  # index
    kind: int  # a code, see `WORDS`
    gpus: tuple[int, ...]  # lost by a preempted job, new of a migrated one; none of a held one
    value: float | None = None  # seconds of a shift, ratio of a spill; None: taken back, or neither
    why: str = ""  # the policy's reason; empty: none


def decisions(
    simulator: Simulator, policy: Decider | None = None, progress: Progress | None = None, asked: Policy | None = None
) -> Iterator[Recorded]:
    """Play a run that was just reset to its end, and yield its decisions, with the starts of held jobs by themselves.

    A job that is preempted and started on the same GPUs at the same instant yields nothing. `policy` decides; None: the
    simulator's compiled rule. `progress` gets the number of finished jobs at every instant; `asked` gives the reasons.
    """
    simulator.state.log_on = 1
    asking = None if asked is None else Asking(simulator, asked)
    player: Simulator | Asking = simulator if asking is None else asking
    while not simulator.ended:
        if policy is None:
            player.schedule()
        else:
            for decision in simulator.asked(policy):
                player.apply(decision)
        simulator.serve_holds()
        yield from _in_effect(_logged(simulator, asking.taken() if asking is not None else {}))
        simulator.advance()
        if progress is not None:
            progress(int(simulator.state.done))
    yield from _in_effect(_logged(simulator))  # starts of held jobs since then


def _logged(simulator: Simulator, why: Mapping[int, str] = MappingProxyType({})) -> list[Recorded]:
    """The entries since the last decision point, this one included; `why`: by entry of the log."""
    s = simulator.state
    expect_logged(s)
    count = int(s.log_count)
    columns = (s.log_time_s, s.log_kind, s.log_job, s.log_first, s.log_size)
    rows, gpu = zip(*(column[:count].tolist() for column in columns), strict=True), s.log_gpu
    return [
        Recorded(time_s, job, kind, tuple(gpu[first : first + size].tolist()), _value(s, at, kind), why.get(at, ""))
        for at, (time_s, kind, job, first, size) in enumerate(rows)
    ]


def _value(s: np.record, entry: int, kind: int) -> float | None:
    value = float(s.log_seconds[entry]) if kind in (SHIFT, SPILL) else -1.0
    return value if value >= 0.0 else None


def _in_effect(entries: list[Recorded]) -> list[Recorded]:
    """`entries` without stops that were undone at once, and holds between; only the last instant has stops."""
    stopped: dict[int, Recorded] = {}
    held: dict[int, Recorded] = {}
    undone: set[int] = set()
    for entry in entries:
        if entry.kind == PREEMPT:
            stopped[entry.job] = entry
            held.pop(entry.job, None)
        elif entry.kind == HOLD:
            held[entry.job] = entry
        elif entry.kind == START and entry.job in stopped:
            before = stopped.pop(entry.job)
            if set(before.gpus) == set(entry.gpus):
                undone |= {id(before), id(held.pop(entry.job, before)), id(entry)}
    return [entry for entry in entries if id(entry) not in undone] if undone else entries


class InUse(NamedTuple):
    """Use of one resource of the whole cluster over time."""

    title: str  # as a part of a heading
    label: str  # for an axis: the whole of the share
    time_s: np.ndarray  # float64 (p,), ascending
    share: np.ndarray  # float64 (p,), from 0 to 1, from each time on


@dataclass(frozen=True)
class Timeline:
    """The GPUs of each job over time, in one run; in job groups machines stand for GPUs."""

    job: np.ndarray  # int64 (k,), the job of each stretch
    start_s: np.ndarray  # float64 (k,)
    end_s: np.ndarray  # float64 (k,)
    gpus: tuple[tuple[int, ...], ...]  # k tuples of GPU indices
    arrival_s: np.ndarray  # float64 (n,), of all jobs
    leave_s: np.ndarray  # float64 (n,), finish of each job; inf if it did not finish
    begin_s: float  # first arrival
    stop_s: float  # end of the run
    gpu_machine: np.ndarray  # int64 (G,), the machine of each GPU
    unit: str = "GPU"  # `GPU`, or `machine`
    use_s: np.ndarray = field(default_factory=lambda: np.zeros(0))  # float64 (p,), of job groups: times; else p = 0
    cpu_use: np.ndarray = field(default_factory=lambda: np.zeros(0))  # shares of all machines', from each on
    network_use: np.ndarray = field(default_factory=lambda: np.zeros(0))
    machine_names: Sequence[str] = ()  # as decisions call them, `rack.machine`; none: by number
    first_start_s: np.ndarray = field(default_factory=lambda: np.zeros(0))  # float64 (n,) of all jobs; nan: never
    queueing_delay_s: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (n,), of finished jobs, else nan
    slowdown: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (n,), the same
    preemptions: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # int64 (n,)

    @property
    def num_gpus(self) -> int:
        """GPUs of the cluster."""
        return len(self.gpu_machine)

    def machine_name(self, machine: int) -> str:
        """Its name, or `m` and its number."""
        return self.machine_names[machine] if len(self.machine_names) else f"m{machine}"

    def busy_gpus(self) -> tuple[np.ndarray, np.ndarray]:
        """(times, GPUs held from each of them on); one that several jobs share counts once."""
        sizes = np.array([len(gpus) for gpus in self.gpus], np.int64)
        gpu = np.array([gpu for gpus in self.gpus for gpu in gpus], np.int64)
        alone = _alone(gpu, np.repeat(self.start_s, sizes), np.repeat(self.end_s, sizes))
        if alone is None:
            return _steps(self.start_s, sizes, self.end_s, sizes, self.begin_s)
        one = np.ones(len(alone[0]), np.int64)
        return _steps(alone[0], one, alone[1], one, self.begin_s)

    def in_use(self) -> list[InUse]:
        """CPU and network where jobs run in groups, else the GPUs that jobs hold."""
        if len(self.use_s):
            return [
                InUse("CPU use", "CPUs busy with COMP", self.use_s, self.cpu_use),
                InUse("network use", "links busy with COMM", self.use_s, self.network_use),
            ]
        times, busy = self.busy_gpus()
        return [InUse(f"{self.unit}s in use", f"{self.unit}s held by jobs", times, busy / self.num_gpus)]

    def in_system(self) -> tuple[np.ndarray, np.ndarray]:
        """(times, jobs that have come and not ended from each of them on)."""
        came = self.arrival_s[self.arrival_s <= self.stop_s]
        left = self.leave_s[np.isfinite(self.leave_s)]
        return _steps(came, np.ones(len(came), np.int64), left, np.ones(len(left), np.int64), self.begin_s)

    def queue_length(self) -> tuple[np.ndarray, np.ndarray]:
        """(times, jobs that wait or are held from each of them on)."""
        came = self.arrival_s[self.arrival_s <= self.stop_s]
        left = self.leave_s[np.isfinite(self.leave_s)]
        one = np.ones(len(self.job), np.int64)
        ups = np.concatenate([came, self.end_s])
        downs = np.concatenate([self.start_s, left])
        up_by = np.concatenate([np.ones(len(came), np.int64), one])
        down_by = np.concatenate([one, np.ones(len(left), np.int64)])
        return _steps(ups, up_by, downs, down_by, self.begin_s)


def _alone(gpu: np.ndarray, start_s: np.ndarray, end_s: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Bounds of stretches of one GPU each, without the parts that earlier ones cover; None: no part is covered."""
    order = np.lexsort((start_s, gpu))
    gpu, start_s, end_s = gpu[order], start_s[order], end_s[order]
    ends_s, place = np.unique(end_s, return_inverse=True)
    key = np.maximum.accumulate(gpu * len(ends_s) + place)  # of each GPU the latest end until then
    is_next = gpu[1:] == gpu[:-1]
    covered_s = ends_s[key[:-1][is_next] % len(ends_s)]
    if not (covered_s > start_s[1:][is_next]).any():
        return None
    start_s[1:][is_next] = np.maximum(start_s[1:][is_next], covered_s)
    return start_s[start_s < end_s], end_s[start_s < end_s]


def _steps(ups: np.ndarray, up_by: np.ndarray, downs: np.ndarray, down_by: np.ndarray, begin_s: float) -> Steps:
    """A step function from rises and falls at some times; simultaneous steps are one."""
    times, place = np.unique(np.concatenate([[begin_s], ups, downs]), return_inverse=True)
    change = np.bincount(place, weights=np.concatenate([[0], up_by, -down_by]), minlength=len(times))
    return times, np.rint(np.cumsum(change)).astype(np.int64)


def timeline(simulator: Simulator, entries: Iterable[Recorded]) -> Timeline:
    """Follow the decisions of a run while `decisions` plays it; returns the GPUs of each job over time.

    A machine's failure is no decision: the stretch of a job that it stopped ends when the state says so.
    """
    s = simulator.state
    job: list[int] = []
    start_s: list[float] = []
    end_s: list[float] = []
    gpus: list[tuple[int, ...]] = []
    open_at: dict[int, int] = {}

    for entry in entries:
        if entry.kind in (SHIFT, *ABOUT_TABLES):
            continue
        place = open_at.pop(entry.job, None)
        if entry.kind == HOLD:
            if place is not None:  # a machine failed under it; until it starts another may
                end_s[place] = float(s.stopped_s[entry.job])
            continue
        if place is not None:
            end_s[place] = entry.time_s if entry.kind != START else float(s.stopped_s[entry.job])
        if entry.kind != PREEMPT:
            open_at[entry.job] = len(job)
            job.append(entry.job)
            start_s.append(entry.time_s)
            end_s.append(np.nan)
            gpus.append(entry.gpus)
    now_s = float(s.now_s)
    for who, place in open_at.items():
        status = int(s.status[who])
        ended_s = s.finish_s[who] if status == DONE else now_s if status == codes.RUNNING else s.stopped_s[who]
        end_s[place] = float(ended_s)
    machines = np.asarray(simulator.topology.gpu_machine)
    return timeline_of(s, (job, start_s, end_s, gpus), machines, machine_names=_machine_names(simulator.topology))


def timeline_of(s: Any, stretches: tuple[Any, Any, Any, Any], gpu_machine: np.ndarray, **more: Any) -> Timeline:
    """A timeline from its stretches (job, start_s, end_s, gpus) and the state at the end of the run."""
    n, (job, start_s, end_s, gpus) = int(s.n_jobs), stretches
    leave_s = np.where(s.status[:n] == DONE, s.finish_s[:n], np.inf)
    bounds = np.array(job, np.int64), np.array(start_s, np.float64), np.array(end_s, np.float64), tuple(gpus)
    return Timeline(*bounds, s.arrival_s[:n].copy(), leave_s, float(s.start_s), float(s.now_s), gpu_machine, **more)


def _machine_names(topology: Topology) -> list[str]:
    """The first parts of the labels of each machine's GPUs."""
    return [topology.gpu_label(gpu).rpartition(".")[0] for gpu in np.unique(topology.gpu_machine, return_index=True)[1]]


class Asking:
    """Plays an instant of a simulator that was just reset, and keeps the policy's reasons for every entry of its log.

    A compiled rule makes a whole pass at once; its reasons are found afterwards, from a copy of the state before it. So
    the run is the same to the bit with and without reasons.
    """

    def __init__(self, simulator: Any, policy: Policy) -> None:
        self._simulator, self._policy = simulator, policy
        self._copy: Any = None
        self._words: dict[int, str] = {}

    def schedule(self) -> None:
        """Make the pass of the compiled rule."""
        simulator = self._simulator
        if not self._may_decide():
            simulator.schedule()
            return
        if self._copy is None:
            self._copy = simulator.twin()
        self._copy.copy_run(simulator)
        first = int(simulator.state.log_count)
        simulator.schedule()
        if int(simulator.state.log_count) == first:
            return
        decisions = [decision for _, decision in logged(simulator.state)][first:]
        words = self._policy.whys(self._copy.view, decisions)
        self._words |= {first + place: self._checked(text) for place, text in enumerate(words)}

    def _may_decide(self) -> bool:
        """Whether the compiled rule may find something to decide; it saves copies, which are slow."""
        s, rule = self._simulator.raw.record, self._simulator.rule
        if rule.migrates or rule.restore:
            return True
        if s["waiting"] == 0:
            return False
        takes_others = rule.preempt or rule.lease or rule.preemptive or rule.sharing != "none"
        return bool(takes_others or s["free_gpus"] > 0)

    def apply(self, decision: Decision) -> None:
        """Carry out a decision of the policy."""
        simulator = self._simulator
        words = self._checked(self._policy.why(simulator.view, decision))
        first = int(simulator.state.log_count)
        simulator.apply(decision)
        self._words |= dict.fromkeys(range(first, int(simulator.state.log_count)), words)

    def taken(self) -> dict[int, str]:
        """The reasons of this instant by entry of the log; clears them."""
        words, self._words = self._words, {}
        return words

    def _checked(self, words: Any) -> str:
        if not isinstance(words, str):
            raise InputError(f"policy {self._policy.name!r}: why gave {words!r}; expected text")
        return " ".join(words.split())
