"""Why a run stopped, of whatever simulator; and whoever decides is asked until he has nothing more to say.

What holds while somebody decides is his to declare and the simulator's to install: `clock_for(view)` of a policy, or
the attribute `clock` of any other object that decides: a rule, whose preemption cost, rounds and leases hold; of job
groups their terms. Nobody changes it while he decides.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import codes
from ..base.arguments import checked_seed
from ..base.decisions import Advance, Decision
from ..base.errors import Endless, InputError, InvalidDecision
from ..base.names import called
from ..jobs.workload import Workload
from ..running.patience import A_JOB, PATIENCE

MOST_AT_ONCE, AND_A_JOB = 100_000, 20  # decisions at one instant, and so many more for every job of the workload
OF_A_RUN = frozenset(("workload", "records", "state", "plain"))  # attributes of a simulator since its first `reset`


class Stops:
    """Knows the code for which the clock stopped last (`base/codes.py`)."""

    _code = codes.FINISHED

    if not TYPE_CHECKING:  # who reads types knows which attributes there are

        def __getattr__(self, name: str) -> Any:
            """InputError for what only a run has, where there has been none; else as usual."""
            if name in OF_A_RUN:
                raise InputError("the simulator has no run yet; call reset(workload) first")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def has_run(self) -> bool:
        """Whether there is a run: a workload has been laid, or a run's record taken over."""
        return "plain" in vars(self) and bool(self.plain.record["n_jobs"] > 0)  # type: ignore[attr-defined]

    @property
    def is_drawn(self) -> bool:
        """Whether the run so far depends on its seed: a number was drawn from it."""
        return bool(self.plain.record["is_drawn"])  # type: ignore[attr-defined]

    def _expect_both(self, workload: Any, seed: Any) -> None:
        """InputError for what is no workload and no seed; for `reset`."""
        if not isinstance(workload, Workload):
            raise InputError(f"reset: workload {called(workload)}: expected a Workload, as open_workload(word) gives")
        checked_seed(seed)

    def _expect_snapshot(self, snapshot: Any) -> None:
        """InputError for what no `snapshot` of such a run gave; for `restore`."""
        like = self.records  # type: ignore[attr-defined]
        if not isinstance(snapshot, np.ndarray) or snapshot.shape != like.shape or snapshot.dtype != like.dtype:
            kind = type(snapshot).__name__
            raise InputError(f"restore: a {kind} given; expected what snapshot() of a run of this size gave")

    def twin(self, rule: Any = None, **instead: Any) -> Any:
        """A simulator of the same kind, on the same terms, that has not run yet.

        Args:
            rule: what holds there; None: what holds here now.
            instead: options and fields of its `config` that differ.
        """
        here: Any = self
        return here.config.copy_with(**instead).build(rule or here.rule)

    def note(self, code: int) -> None:
        """Take over why the run stopped from a kernel that advanced the state itself."""
        self._code = code

    def expect_end(self) -> None:
        """Endless if the run stopped since it has no end (running/patience.py)."""
        if self._code != codes.ENDLESS:
            return
        s: Any = self.plain.record  # type: ignore[attr-defined]
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
            f"{2 * (PATIENCE + A_JOB * jobs):,} events none has finished and next to no work got done{why}"
        )

    @staticmethod
    def expect_decider(decider: Any) -> None:
        """InputError for what decides nothing: it has no `decide`, or is a class."""
        if inspect.isclass(decider) or not callable(getattr(decider, "decide", None)):
            raise InputError(
                f"{called(decider)} has no decide(view); expected an object that decides, as policies.make gives"
            )

    def install(self, decider: Any) -> None:
        """From now on what `decider` declares holds, his compiled rule or his clock; if none, what did before.

        Raises:
            InputError: it decides nothing.
        """
        self.expect_decider(decider)
        says = getattr(decider, "clock_for", None)
        clock = getattr(decider, "clock", None) if says is None else says(self.view)  # type: ignore[attr-defined]
        if clock is not None:
            self.use(clock)  # type: ignore[attr-defined]

    def ask(self, decider: Any) -> Decision:
        """What `decider` decides next at this instant, under what he declares."""
        self.install(decider)
        found: Decision = decider.decide(self.view)  # type: ignore[attr-defined]
        if not isinstance(found, Decision):
            raise InvalidDecision(f"{called(found)}: expected a decision, as Start or Advance")
        return found

    def asked(self, decider: Any) -> Iterator[Decision]:
        """What `decider` decides at this instant, up to `Advance`; carry each out before you take the next one.

        Raises:
            Endless: far more than anybody needs.
        """
        self.install(decider)
        view, record = self.view, self.plain.record  # type: ignore[attr-defined]
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
