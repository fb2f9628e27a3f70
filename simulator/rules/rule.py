"""A compiled scheduler as a value: an order, a head rule, a placer, and what preemption, rounds and leases cost."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..base import codes
from ..base.errors import InputError

ORDERS = {
    "fifo": codes.FIFO,
    "sjf": codes.SJF,
    "srtf": codes.SRTF,
    "srsf": codes.SRSF,
    "las": codes.LAS,
    "random": codes.RANDOM,
    "nw-sens": codes.NW_SENS,
    "latest": codes.LATEST,
    "edf": codes.EDF,
    "turns": codes.TURNS,
    "weighted": codes.WEIGHTED,
    "logged": codes.LOGGED,
}
HEADS = {
    "strict": codes.NO_BACKFILL,
    "skip": codes.NO_BACKFILL,
    "reserve": codes.RESERVE,
    "conservative": codes.CONSERVATIVE,
}
PLACERS = {
    "count": codes.COUNT,
    "consolidated": codes.CONSOLIDATED,
    "tier": codes.TIER,
    "skew": codes.SKEW,
    "random": codes.SCATTER,
    "first": codes.FIRST,
    "first-skew": codes.FIRST_SKEW,
    "affinity": codes.AFFINITY,
}
DELAY_PLACERS = ("tier", "first")
SHARINGS = {"none": codes.NOT_SHARED, "first-fit": codes.FIRST_FIT, "best-benefit": codes.BEST_BENEFIT}
SHARING_PLACERS = ("count", "tier", "first", "random")
SKEW_PLACERS = ("skew", "first-skew")
BACKFILLED_ORDERS = ("fifo", "sjf")
BACKFILL_PLACERS = ("count", "consolidated", "tier", "skew", "random", "first")
PREEMPTIVE_ORDERS = ("srtf", "srsf", "las")
RUN_TIME_ORDERS = ("sjf", "srtf", "srsf", "weighted")
COST_SPLIT_GPUS = 8
MOST_EXPONENT = 8.0  # keys stay finite on any cluster
SHORTEST_S = 0.001  # of rounds and leases: shorter ones would be a step a nanosecond


@dataclass(frozen=True)
class Tuner:
    """How delay timers follow the waits of jobs that accepted GPUs (policies/dally.py). Times count in leases.

    Args:
        history: waits recorded longer ago are forgotten, > 0.
        initial: timers of machine and rack while no wait is known; one number or two.
        deviation: `sample` or `population`.
        floors: least timers of machine and rack; given, the tuner is the authors' (`policies/dally.py`).
    """

    history: float = 24.0
    initial: tuple[float, ...] = (1.0, 1.0)
    deviation: str = "sample"
    floors: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _choice("deviation", self.deviation, ("sample", "population"))
        if not 0.0 < self.history < math.inf:
            raise InputError(f"history = {self.history:g}: expected a finite number of leases > 0")
        for name in ("initial", "floors"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _pair(name, getattr(self, name), "leases"))

    @property
    def caps(self) -> tuple[float, float]:
        """Largest timers of the authors' tuner, leases: 0.8 of the history for a machine, all of it for a rack."""
        return float(math.ceil(0.8 * self.history)), self.history


@dataclass(frozen=True)
class Rule:
    """What one compiled scheduler does; the words are those of the command line.

    Args:
        order: the first job by: `fifo` (arrival), `sjf` (isolated run time), `srtf` (isolated run time left), `srsf`
            (GPU-seconds left), `las` (attained service), `random` (a random order, drawn from the seed), `nw-sens`
            (most slowed down so far, in millionths; then fewer GPUs, then longest since it got or lost GPUs: paper
            dally), `latest` (first started last, never started last of all: Gandiva), `edf` (earliest deadline, none
            last), `turns` (longest wait since it arrived or lost its GPUs: Gandiva with slices), `weighted` (isolated
            run time left x GPUs to the power of `exponent`), `logged` (when the log says that it started, and not
            before; unknown: when it arrived).
        head: `strict` (no job passes one that does not fit), `skip` (every job in order that fits starts), `reserve` (a
            job passes one that does not fit if that starts no later for it, as expected: EASY backfilling) or
            `conservative` (no job at all may start later for it); policies/passes/backfill.py has the definitions.
            Backfilling is for `fifo` and `sjf` without preemption or moves.
        placer: which GPUs: `count`, `consolidated`, `tier`, `skew` (consolidated for skewed models, else count),
            `random`, `first` (the first place with room on the best tier), `first-skew`, `affinity`
            (running/placers.py).
        preemption_cost: seconds without progress when a stopped or moved job starts anew; one number, or two: for gangs
            of up to 8 GPUs and for larger ones.
        thresholds: GPU-seconds of attained service at which a job is demoted, ascending; empty: `las` orders by
            attained service itself.
        quantum: seconds; demotions happen at its multiples (0: at once).
        round: seconds; passes happen only at its multiples (0: at every event).
        lease: seconds; a started job cannot be stopped before its lease ends, and can then, whatever the order (0: no
            leases). If it is not stopped then, its lease is renewed; under delay timers, as soon as a job waits, all
            jobs with an ended lease instead give their GPUs back and are offered GPUs like waiting ones
            (policies/loop/offer_pass.py).
        slicing: seconds; while jobs wait, running jobs make way for them in turns at this interval
            (policies/gandiva/time_slicing.py; 0: no slices), longer than a restart costs. The order is `turns` then,
            jobs migrate, and there are no leases, rounds, delay timers or packing.
        timers: delay timers: seconds for which a job refuses GPUs outside one machine, and outside one rack, from when
            it arrived or lost its GPUs; inf: for ever. The placer is `tier` or `first` then.
        tuner: delay timers that follow the waits of other jobs, instead of `timers`.
        advisory: the timers do not bind: they follow accepted GPUs and say how long a job could wait
            (`ClusterView.timer_s`, `timer_end_s`), and all else is as without them.
        migrates: running jobs move when a better tier has room; under delay timers only without leases.
        margin: a job takes free GPUs only if its predicted end is at most this share of the one after waiting for a
            better tier (policies/greedy/greedy_wait.py); 0: it always waits, where a better tier will have room; inf:
            never; None: no look ahead. The placer is then `tier` or `first`; only `preempt` stops or moves jobs.
        preempt: a job without GPUs, or that would rather wait for better ones, may stop and move running jobs to start
            (policies/greedy/room.py). The order is `weighted` then, with a margin and `head=skip`.
        theta: a stopped job has so many times as long left, weighed, as the starting one; >= 0, inf: none is stopped.
        exponent: of the GPUs, in the weight of a job; 0 to 8. Environments use theta and exponent under any rule.
        sharing: where GPUs may hold several jobs, a job that finds too few free ones takes GPUs that hold one: the
            first (`first-fit`) or those of the best partners (`best-benefit`); policies/bsbf/sjf_bsbf_pass.py. The
            order is `srtf` then, without preemption or moves. Elsewhere it is as `none`.
        free: `last`: free GPUs complete a gang that shared ones do not fill; `first`: shared ones complete a gang that
            free ones do not fill; `never`: a gang has free GPUs or shared ones, else the job waits.
        packing: where GPUs may hold several jobs, those of one GPU that find none free share one
            (policies/gandiva/gandiva.py).
        restore: with `sharing`: jobs whose partners have left get the largest sub-batch that fits
            (policies/bsbf/restore.py).
        fallback: `most-free`, or `last`: the defect of the authors' Gandiva (placers.py).
    """

    order: str
    head: str = "skip"
    placer: str = "count"
    preemption_cost: tuple[float, ...] = (0.0,)
    thresholds: tuple[float, ...] = ()
    quantum: float = 1.0
    round: float = 0.0
    lease: float = 0.0
    timers: tuple[float, ...] | None = None
    tuner: Tuner | None = None
    migrates: bool = False
    fallback: str = "most-free"
    margin: float | None = None
    sharing: str = "none"
    free: str = "last"
    packing: bool = False
    slicing: float = 0.0
    advisory: bool = False
    preempt: bool = False
    theta: float = 1.2
    exponent: float = 0.5
    restore: bool = False

    def __post_init__(self) -> None:
        if self.timers is not None:
            object.__setattr__(self, "timers", _pair("timers", self.timers, "seconds"))
        if self.advisory and self.timing == codes.NO_DELAYS:
            raise InputError(f"advisory = {self.advisory!r}: there are no delay timers; expected timers or a tuner too")
        if self.delays != codes.NO_DELAYS:
            _choice("placer with delay timers", self.placer, DELAY_PLACERS)
            if self.order == "las" and self.thresholds:
                raise InputError("delay timers go with an order without queues: give las thresholds=")
            if self.migrates and self.lease:
                raise InputError("under delay timers jobs move when their leases end: give migrates=False, or lease=0")
        if self.margin is not None:
            self._check_margin()
        self._check_sharing()
        _choice("fallback", self.fallback, ("most-free", "last"))
        for name in ("preemption_cost", "thresholds"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        _choice("order", self.order, ORDERS)
        _choice("placer", self.placer, PLACERS)
        _choice("head", self.head, HEADS)
        if self.backfills:
            self._check_backfilling()
        if len(self.preemption_cost) not in (1, 2):
            raise InputError(f"preemption_cost = {_slashed(self.preemption_cost)}: expected SECONDS or SMALL/LARGE")
        for name in ("preemption_cost", "thresholds"):
            for value in getattr(self, name):
                _not_negative(name, value)
        for name in ("quantum", "round", "lease", "slicing"):
            value = _number(name, getattr(self, name))
            _not_negative(name, value)
            if 0.0 < value < SHORTEST_S:
                raise InputError(f"{name} = {value:g}: expected 0, or at least {SHORTEST_S:g} seconds")
        if self.slicing:
            self._check_slicing()
        if self.order == "logged" and replace(self, order="fifo") != Rule("fifo", self.head, self.placer):
            raise InputError("order=logged goes with a head and a placer alone")
        self._check_preempt()
        if list(self.thresholds) != sorted(set(self.thresholds)):
            raise InputError(f"thresholds = {_slashed(self.thresholds)}: expected GPU-seconds in ascending order")
        if len(self.thresholds) >= codes.MAX_LEVELS:
            raise InputError(f"thresholds: {len(self.thresholds)} given, at most {codes.MAX_LEVELS - 1} are possible")

    def _check_backfilling(self) -> None:
        _choice(f"order with head={self.head}", self.order, BACKFILLED_ORDERS)
        _choice(f"placer with head={self.head}", self.placer, BACKFILL_PLACERS)
        if self.delays != codes.NO_DELAYS or self.migrates or self.lease or self.margin is not None:
            raise InputError(f"head={self.head} goes without delay timers, leases, migration and margin")

    def _check_margin(self) -> None:
        margin = _number("margin", self.margin)
        if not margin >= 0.0:
            raise InputError(f"margin = {margin:g}: expected a number >= 0, or inf")
        object.__setattr__(self, "margin", margin)
        _choice("placer with margin", self.placer, DELAY_PLACERS)
        if self.delays != codes.NO_DELAYS or self.migrates or self.lease:
            raise InputError("margin goes without delay timers, leases and migration")
        if self.order == "las" and self.thresholds:
            raise InputError("margin goes with an order without queues: give las no thresholds")

    def _check_slicing(self) -> None:
        _choice("order with slicing", self.order, ("turns",))
        if not self.migrates or self.delays != codes.NO_DELAYS:
            raise InputError("slicing goes with migration, and without delay timers")
        if self.lease or self.round or self.packing:
            raise InputError("slicing goes without leases, rounds and packing")
        if self.slicing <= max(self.preemption_cost):  # else jobs would do nothing but restore
            cost = f"preemption_cost = {_slashed(self.preemption_cost)}"
            raise InputError(f"slicing = {self.slicing:g}: expected more than {cost}, the seconds that a restart takes")

    def _check_preempt(self) -> None:
        for name, most in (("theta", math.inf), ("exponent", MOST_EXPONENT)):
            value = _number(name, getattr(self, name), "a number")
            if not 0.0 <= value <= most:
                raise InputError(f"{name} = {value:g}: expected a number from 0 to {most:g}")
            object.__setattr__(self, name, value)
        if not self.preempt:
            return
        _choice("order with preempt", self.order, ("weighted",))
        _choice("head with preempt", self.head, ("skip",))
        if self.margin is None:
            raise InputError("preempt goes with a margin: a job that would rather wait may stop others instead")

    def expect_alone(self, where: str) -> None:
        """Raise InputError under `preempt`, which does not play there; `where` is the end of the sentence."""
        if self.preempt:
            raise InputError(
                "preempt=on stops and moves jobs of known speed that have their GPUs to themselves until they end: "
                f"it does not play {where}"
            )

    def _check_sharing(self) -> None:
        _choice("sharing", self.sharing, SHARINGS)
        _choice("free", self.free, ("last", "first", "never"))
        if self.packing and not self.migrates:
            raise InputError("packing goes with migration")
        if self.sharing == "none":
            if self.restore:
                raise InputError("restore goes with sharing: else jobs have no partners that could leave them")
            return
        _choice("placer with sharing", self.placer, SHARING_PLACERS)
        _choice("order with sharing", self.order, ("srtf",))
        if self.delays != codes.NO_DELAYS or self.migrates or self.lease or self.margin is not None:
            raise InputError("sharing goes without delay timers, leases, migration and margin")

    @property
    def delays(self) -> int:
        """Code of the kind of delay timers by which jobs refuse."""
        return codes.NO_DELAYS if self.advisory else self.timing

    @property
    def timing(self) -> int:
        """Code of the kind of delay timers that there are."""
        if self.tuner is not None:
            return codes.TUNED
        return codes.NO_DELAYS if self.timers is None else codes.FIXED

    @property
    def needs_run_times(self) -> bool:
        """Whether it asks how long jobs run, as far as that is known (simulator/jobs/estimates.py)."""
        return self.order in RUN_TIME_ORDERS or self.margin is not None or self.head not in ("strict", "skip")

    def describe(self) -> str:
        """What it is, for a message."""
        return f"order={self.order}" + ("" if self.margin is None else f",margin={self.margin:g}")

    @property
    def preemptive(self) -> bool:
        """Whether running jobs stand in the order too."""
        return self.order in PREEMPTIVE_ORDERS and self.margin is None and self.sharing == "none"

    @property
    def backfills(self) -> int:
        """Code of the kind of backfilling."""
        return HEADS[self.head]


def rule_from(fields: Mapping[str, Any]) -> Rule:
    """The rule of `dataclasses.asdict`, also after a way through JSON."""
    tuner = fields.get("tuner")
    return Rule(**{**fields, "tuner": None if tuner is None else Tuner(**tuner)})


def _choice(name: str, value: Any, known: Collection[str]) -> None:
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} = {value!r}: expected one of {', '.join(known)}")


def _numbers(name: str, value: Any, expected: str = "seconds") -> tuple[float, ...]:
    try:
        return tuple(float(item) for item in (value if isinstance(value, tuple | list) else (value,)))
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: expected {expected}") from None


def _number(name: str, value: Any, expected: str = "seconds") -> float:
    if isinstance(value, tuple | list):
        raise InputError(f"{name} = {value!r}: expected {expected}, one number")
    return _numbers(name, value, expected)[0]


def _pair(name: str, value: Any, unit: str) -> tuple[float, float]:
    numbers = _numbers(name, value)
    if len(numbers) not in (1, 2) or not all(number >= 0.0 for number in numbers):
        raise InputError(f"{name} = {_slashed(numbers)}: expected {unit} >= 0, MACHINE/RACK or one number for both")
    return numbers[0], numbers[-1]


def _not_negative(name: str, value: float) -> None:
    if not 0.0 <= value < float("inf"):
        raise InputError(f"{name} = {value:g}: expected a finite number >= 0")


def _slashed(values: tuple[float, ...]) -> str:
    return "/".join(f"{value:g}" for value in values)
