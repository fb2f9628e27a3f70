"""The common part of `Simulator` and `GroupSimulator`: their records, why a run stopped, how policies are asked.

A policy declares its rule by `clock_for(view)`, any other decider by its attribute `clock`: preemption cost, rounds and
leases; the terms of job groups. The simulator installs it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from ..base import codes
from ..base.arguments import checked_seed
from ..base.decisions import Advance, Decision
from ..base.errors import Endless, InputError, InvalidDecision
from ..base.names import called
from ..cluster.topology import Topology
from ..jobs.estimates import Estimates
from ..jobs.workload import Workload
from ..rules.semantics import Semantics
from ..running.endless_runs import A_JOB, EVENTS_BETWEEN_CHECKS

MOST_AT_ONCE, AND_A_JOB = 100_000, 20  # decisions at one instant, and so many more for every job of the workload
OF_A_RUN = frozenset(("workload", "records", "state", "raw"))  # attributes of a simulator since its first `reset`


class Decider(Protocol):
    """Anything that decides: called at a decision point until it returns `Advance`."""

    def decide(self, view: Any) -> Decision:
        """The next decision at this instant."""


class BaseSimulator:
    """A simulator of one cluster; see `Simulator` for its attributes."""

    # What each kind of simulator defines.
    PLAIN: ClassVar[Any]  # the class of `raw`
    _copy_record: Callable[[np.record, np.record], None]  # a run into a zeroed record of no smaller capacity
    _logged: Callable[[np.void], Iterable[tuple[Any, Decision]]]  # the decisions that the log of a record has
    _take: Callable[[Workload], None]  # take over a workload
    _forget: Callable[[], None]  # what was remembered of the run before
    _close_instant: Callable[[], None]  # run to the next decision point
    _rule_player: Callable[[], Callable[[], None]]  # what plays the compiled rule for a while at each call
    use: Callable[[Any], None]
    apply: Callable[[Decision], None]
    metrics: Callable[[], dict[str, float]]

    config: Any
    topology: Topology
    workload: Workload
    rule: Any
    estimates: Estimates
    semantics: Semantics
    view: Any
    capacity: Any
    room: Callable[[Any], None] | None = None
    records: np.recarray
    state: Any
    raw: Any
    runs = 0
    _copy: Any = None  # a raw record of the same capacity, for rehearsals
    _other: Any = None  # a simulator of the same kind and terms, to play deciders
    _code = codes.FINISHED  # for which the clock stopped last (base/codes.py)

    if not TYPE_CHECKING:  # type checkers know which attributes there are

        def __getattr__(self, name: str) -> Any:
            """InputError for what only a run has, where there has been none; else as usual."""
            if name in OF_A_RUN:
                raise InputError("the simulator has no run yet; call reset(workload) first")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def has_run(self) -> bool:
        """Whether there is a run: a workload has been written, or a run's record taken over."""
        return "raw" in vars(self) and bool(self.raw.record["n_jobs"] > 0)

    @property
    def is_drawn(self) -> bool:
        """Whether the run so far depends on its seed: a number was drawn from it."""
        return bool(self.raw.record["is_drawn"])

    def _expect_both(self, workload: Any, seed: Any) -> None:
        if not isinstance(workload, Workload):
            raise InputError(f"reset: workload {called(workload)}: expected a Workload, as open_workload(word) gives")
        checked_seed(seed)

    def _expect_snapshot(self, snapshot: Any) -> None:
        like = self.records
        if not isinstance(snapshot, np.ndarray) or snapshot.shape != like.shape or snapshot.dtype != like.dtype:
            kind = type(snapshot).__name__
            raise InputError(f"restore: a {kind} given; expected what snapshot() of a run of this size gave")

    def twin(self, rule: Any = None, **instead: Any) -> Any:
        """A fresh simulator of the same kind and terms; `instead`: options and fields of `config` that differ."""
        return self.config.copy_with(**instead).build(rule or self.rule)

    def _make_room(self, capacity: Any) -> None:
        if self.room is not None:
            self.room(capacity)
        elif self.capacity != capacity:
            self.move_to(capacity.empty(), capacity, keep=False)

    def _stand_on(self, topology: Topology) -> None:
        self.topology = topology

    def reset_as(self, other: Self) -> None:
        """As if reset like `other`, which has just been with `begin=False`, and differs in nothing but its run."""
        self._stand_on(other.topology)
        self.workload = other.workload
        self.runs += 1
        self._forget()
        self._code = codes.DECIDE
        self._make_room(other.capacity)
        self.raw.take_over(other.raw)

    def copy_run(self, other: Self) -> None:
        """Take over the present of `other`, which differs in nothing but its run; runs count as there."""
        self._stand_on(other.topology)
        self.workload, self.rule, self.runs, self._code = other.workload, other.rule, other.runs, other._code
        self._forget()
        if self.capacity != other.capacity:
            self.move_to(other.capacity.empty(), other.capacity, keep=False)
        self.raw.become(other.raw)

    def move_to(self, records: np.recarray, capacity: Any, keep: bool = True) -> None:
        """Go on in another array of one zeroed record; what runs is kept (it must fit), or `reset` comes next."""
        if keep and self.capacity.jobs > 0:
            self._copy_record(self.records[0], records[0])
        self.records, self.capacity, self.state, self._copy = records, capacity, records[0], None
        self.raw = self.PLAIN(records, capacity)

    def resume(self, workload: Workload, rule: Any, code: int) -> None:
        """Go on with a run of `workload` under `rule` whose record has just been written; it stopped for `code`."""
        self._take(workload)
        self.rule, self.state, self._code = rule, self.records[0], code
        self._forget()

    def python_state(self) -> tuple[Any, ...]:
        """What of the present is not in the record, for `take_python_state`."""
        return self.workload, self.rule, self._code

    def take_python_state(self, python_state: tuple[Any, ...]) -> None:
        """Go on with a run whose record has just been written, and of which `python_state` said the rest."""
        workload, self.rule, self._code = python_state[:3]
        self._take(workload)
        self.runs += 1

    def snapshot(self) -> np.recarray:
        """A copy of the state record, for `restore`."""
        present = self.raw  # where there is no run, this says so
        copy = self.PLAIN(self.capacity.empty(), self.capacity)
        copy.become(present)
        found: np.recarray = copy.records
        return found

    def restore(self, snapshot: np.recarray) -> None:
        """Go back to a snapshot of this run."""
        self._expect_snapshot(snapshot)
        self.raw.become(self.PLAIN(snapshot, self.capacity))
        self.runs += 1
        self._code = codes.FINISHED if self.state.done == self.state.n_jobs else codes.DECIDE

    def rehearse(self, kernel: Callable[..., Any], *arguments: Any) -> list[Decision]:
        """The decisions that `kernel(records, row, *arguments)` would carry out now; nothing is carried out."""
        present = self.raw
        if self._copy is None:
            self._copy = self.PLAIN(self.capacity.empty(), self.capacity)
        self._copy.become(present)
        s = self._copy.record
        s["log_on"], s["log_count"], s["log_gpus"] = 1, 0, 0
        self._copy.call(kernel, *arguments)
        present.record["is_drawn"] |= s["is_drawn"]  # its decisions rest on what was drawn there
        return [decision for _, decision in self._logged(s)]

    def foresee(self, decider: Any) -> list[Decision]:
        """All that `decider` decides now, played on another simulator; nothing is carried out but what it declares."""
        other, found = self._beside(), []
        for decision in other.asked(decider):
            other.apply(decision)
            found.append(decision)
        self.use(other.rule)
        return found

    def view_under(self, rule: Any) -> Any:
        """The present as it is seen on another simulator, where `rule` holds."""
        other = self._beside()
        other.use(rule)
        return other.view

    def _beside(self) -> Any:
        """Another simulator at the present of this one."""
        if self._other is None:
            self._other = self.twin()
        self._other.copy_run(self)
        return self._other

    def advance(self) -> None:
        """Close this instant and run to the next decision point.

        Raises:
            Stalled: jobs wait, nothing runs and no event comes. The state is as before: start something.
            Endless: time passes, but nothing gets done and nothing will.
        """
        if self.ended:
            raise InvalidDecision("advance: the run has ended; call reset() first")
        self._close_instant()

    def run(self, policy: Decider | None = None, progress: Callable[[int], None] | None = None) -> dict[str, float]:
        """Play to the end: the compiled rule, or `policy.decide` until it returns `Advance` at every decision point.

        `progress` is called now and then with the number of finished jobs. Returns `metrics`.
        """
        play = self._rule_player() if policy is None else partial(self._play, policy)
        while not self.ended:
            play()
            if progress is not None:
                progress(int(self.state.done))
        return self.metrics()

    def _play(self, policy: Decider) -> None:
        for decision in self.asked(policy):
            self.apply(decision)
        self.advance()

    def note(self, code: int) -> None:
        """Take over why the run stopped from a kernel that advanced the state itself."""
        self._code = code

    def expect_end(self) -> None:
        """Endless if the run stopped since it has no end (running/endless_runs.py)."""
        if self._code != codes.ENDLESS:
            return
        s = self.raw.record
        jobs, why = int(s["next_arrival"] - s["done"]), ""
        if s["mtbf_s"] > 0.0:
            why = f"; machines fail every {s['mtbf_s']:g} s on average (mtbf_s), faster than these jobs get on"
        elif "region_mtbf_s" in s.dtype.names and s["region_mtbf_s"] > 0.0:
            why = f"; regions fail every {s['region_mtbf_s']:g} s on average (region_mtbf_s)"
        elif "group_mtbf_s" in s.dtype.names and s["group_mtbf_s"] > 0.0:
            why = f"; fault groups fail every {s['group_mtbf_s']:g} s on average (group_mtbf_s)"
        elif "link_mtbf_s" in s.dtype.names and s["link_mtbf_s"] > 0.0:
            why = f"; cables fail every {s['link_mtbf_s']:g} s on average (link_mtbf_s), faster than these jobs get on"
        elif "cut_off" in s.dtype.names and s["cut_off"].any():
            why = "; links are down, and no way is left between the machines of a job that runs"
        raise Endless(
            f"the run has no end: {jobs} jobs are there at {s['now_s']:g} s, and in the last "
            f"{2 * (EVENTS_BETWEEN_CHECKS + A_JOB * jobs):,} events none has finished and next to no work got done{why}"
        )

    @staticmethod
    def expect_decider(decider: Any) -> None:
        """InputError for what decides nothing: it has no `decide`, or is a class."""
        if inspect.isclass(decider) or not callable(getattr(decider, "decide", None)):
            raise InputError(
                f"{called(decider)} has no decide(view); expected an object that decides, as policies.make gives"
            )

    def install(self, decider: Any) -> None:
        """Use the rule or the clock that `decider` declares, else the earlier ones; InputError: it decides nothing."""
        self.expect_decider(decider)
        says = getattr(decider, "clock_for", None)
        clock = getattr(decider, "clock", None) if says is None else says(self.view)
        if clock is not None:
            self.use(clock)

    def ask(self, decider: Any) -> Decision:
        """What `decider` decides next at this instant, under what it declares."""
        self.install(decider)
        found: Decision = decider.decide(self.view)
        if not isinstance(found, Decision):
            raise InvalidDecision(f"{called(found)}: expected a decision, as Start or Advance")
        return found

    def asked(self, decider: Any) -> Iterator[Decision]:
        """The decisions of `decider` now, up to `Advance`; apply each before the next. Endless: absurdly many."""
        self.install(decider)
        view, record = self.view, self.raw.record
        most = MOST_AT_ONCE + AND_A_JOB * int(record["n_jobs"])
        for _ in range(most):
            decision = decider.decide(view)
            if isinstance(decision, Advance):
                return
            yield decision
        raise Endless(
            f"{most:,} decisions at {record['now_s']:g} s and no Advance(), the last one {decision!r:.200}: decide "
            "must say when there is nothing more to do at an instant"
        )

    @property
    def done(self) -> bool:
        """Every job is finished."""
        return self._code == codes.FINISHED

    @property
    def at_horizon(self) -> bool:
        """The horizon was reached before every job had finished."""
        return self._code == codes.HORIZON

    @property
    def ended(self) -> bool:
        """Nothing more can be decided."""
        return self.done or self.at_horizon
