"""The search itself: which values next, what has been tried, and going on after a kill.

optuna keeps the trials in DIR/study.db (sqlite), or in memory without a folder. The sampler of each trial is seeded by
the trial's place, so what is tried next follows from the seed and from what has been finished: a search that was killed
and goes on tries the very same values as one that was not. A trial that was killed is none: its place is played anew.
"""

from __future__ import annotations

import functools
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from ...simulator.base.errors import InputError, MissingExtra, Stalled
from ..console.terminal import BadArgument
from ..playing.executors import Processes
from .space import Kind, Parameter, chosen

try:
    import fcntl
except ImportError:  # not on Windows: there, two commands at once are not noticed
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import optuna

DATABASE, LOCK = "study.db", "study.lock"
NAME = "tune"
AT_RANDOM = 10  # trials, the defaults among them, before the sampler learns from them
WAIT_S = 60.0  # for another process that writes
ABOUT = "about"  # of a study; the others are of a trial
WORD, PER_SEED, JOBS, STOPPED, REFUSED = "word", "per_seed", "jobs", "stopped", "refused"
PLACE, VALUES, SECONDS = "place", "values", "seconds"

Direction = Literal["minimize", "maximize"]


class Refused(InputError):
    """The values of a trial go not together, or what they give cannot be compared; the message says why."""


@dataclass(frozen=True)
class Outcome:
    """What a trial gave.

    Attributes:
        word: what was played, or where what was trained is.
        value: what is compared; of a trial that was stopped early, that until then.
        per_seed: the metric on each seed, as far as it was played.
        jobs: how many finished on each.
        stopped: why it was stopped early; empty: it was played to the end.
    """

    word: str
    value: float
    per_seed: tuple[float, ...] = ()
    jobs: tuple[float, ...] = ()
    stopped: str = ""


@dataclass(frozen=True)
class Trial:
    """A finished trial.

    Attributes:
        place: 0, 1, ... in the order of trials; 0 has the defaults.
        values: of the parameters, as text; none for the defaults.
        outcome: what it gave; value nan if it was refused.
        refused: why its values were refused; empty: they were not.
        seconds: that it took.
    """

    place: int
    values: Mapping[str, str]
    outcome: Outcome
    refused: str = ""
    seconds: float = math.nan

    @property
    def is_whole(self) -> bool:
        """Whether it was played to the end."""
        return not self.outcome.stopped and not self.refused


@dataclass
class Going:
    """A trial that is played now, and what has been tried before it.

    Attributes:
        place: its place.
        values: of the parameters; None: the defaults.
        finished: the trials that have ended.
        best: the best of those that were played to the end.
        report: takes a step and the value so far; every step once, in order.
        is_behind: whether the value so far is worse than the median of the others' at the same step.
        progress: takes the share of the trial that is done.
    """

    place: int
    values: Mapping[str, str] | None
    finished: Sequence[Trial]
    best: Trial | None
    report: Callable[[int, float], None]
    is_behind: Callable[[], bool]
    progress: Callable[[float], None] = lambda share: None


class Subject(Protocol):
    """What is tuned."""

    @property
    def direction(self) -> Direction:
        """Which end of the value is sought."""

    @property
    def prunes(self) -> bool:
        """Whether trials may be stopped early."""

    def about(self) -> dict[str, Any]:
        """All that trials must have in common, in the types of JSON."""

    @property
    def fixed(self) -> Mapping[str, str]:
        """Parameters that have a value already."""

    def kind_of(self, key: str) -> Kind:
        """What values a parameter takes; InputError if there is none of that name."""

    def default_of(self, key: str) -> Any:
        """The value that a parameter has unless it is given; None if that is not known."""

    def check(self, values: Mapping[str, str]) -> None:
        """InputError for values that are refused."""

    def play(self, going: Going) -> Outcome:
        """One trial."""


def expect_installed() -> None:
    """Raise MissingExtra without optuna."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtra('tuning needs optuna; install it with: pip install "clustergym[tune]"') from None


@dataclass
class Search:
    """A search that is begun, or goes on.

    Args:
        subject: what is tuned.
        space: what may be chosen.
        folder: DIR, which is there; None keeps nothing.
        seed: of the sampler.
        at_once: trials at the same time.
    """

    subject: Subject
    space: tuple[Parameter, ...]
    folder: Path | None
    seed: int = 0
    at_once: int = 1
    study: optuna.Study = field(init=False)

    def __post_init__(self) -> None:
        with quietly(), _storing(self.folder):
            self.study = _opened(self.folder, self.subject)

    def begin(self) -> None:
        """Say what the trials are of, or see that it is what stands there; what was killed is told from what ended.

        Raises:
            BadArgument: the folder's trials are of something else.
            InputError: it cannot be written.
        """
        with quietly(), _storing(self.folder):
            self._begin()

    def _begin(self) -> None:
        about = json.loads(json.dumps({**self.subject.about(), "space": list(map(str, self.space)), "seed": self.seed}))
        if ABOUT not in self.study.user_attrs:
            self.study.set_user_attr(ABOUT, about)
        before = self.study.user_attrs[ABOUT]
        for key, value in about.items():
            if before.get(key) != value:
                raise BadArgument(_another(self.folder, key, before.get(key), value))
        from optuna.trial import TrialState

        for trial in self.study.get_trials(states=(TrialState.RUNNING,)):
            self.study.tell(trial.number, state=TrialState.FAIL)

    def finished(self) -> list[Trial]:
        """All trials that have ended, by place."""
        from optuna.trial import TrialState

        done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
        return sorted(map(_trial_of, done), key=lambda trial: trial.place)

    def missing(self, trials: int) -> list[int]:
        """Of the first so many places, those that are still to be played."""
        done = {trial.place for trial in self.finished()}
        return [place for place in range(trials) if place not in done]

    def best_of(self, finished: Sequence[Trial]) -> Trial | None:
        """The best trial that was played to the end; of equals the first."""
        sign = 1.0 if self.subject.direction == "minimize" else -1.0
        return min((one for one in finished if one.is_whole), key=lambda one: sign * one.outcome.value, default=None)

    def run(self, places: Sequence[int], progress: Callable[[float], None]) -> Iterator[Trial]:
        """The trials of these places as they end; the defaults before all others.

        Args:
            places: ascending.
            progress: told how many are done, fractions included, where one is played at a time.
        """
        first = [place for place in places if place == 0 or self.at_once == 1 or self.folder is None]
        for number, place in enumerate(first):
            yield self.play(place, functools.partial(_further, progress, number))
        rest = places[len(first) :]
        if rest:
            assert self.folder is not None
            task = (self.subject, self.space, self.folder, self.seed, self.at_once)
            yield from Processes(min(self.at_once, len(rest))).each(_in_process, [(*task, place) for place in rest])

    def play(self, place: int, progress: Callable[[float], None] = lambda share: None) -> Trial:
        """One trial: its values are chosen, played, and kept.

        Raises:
            InputError: it cannot be kept, as on a full disk.
        """
        with quietly(), _storing(self.folder):
            return self._defaults(progress) if place == 0 else self._chosen(place, progress)

    def _defaults(self, progress: Callable[[float], None]) -> Trial:
        """The first trial: as things are, without a choice."""
        from optuna.trial import TrialState, create_trial

        began_s = time.monotonic()
        reported: dict[int, float] = {}
        going = Going(0, None, [], None, reported.__setitem__, lambda: False, progress)
        outcome = self.subject.play(going)
        params, distributions = self._default_params()
        frozen = create_trial(
            state=TrialState.COMPLETE,
            value=outcome.value,
            params=params,
            distributions=distributions,
            intermediate_values=reported,
            user_attrs=_attributes(0, outcome, time.monotonic() - began_s),
        )
        self.study.add_trial(frozen)
        return _trial_of(frozen)

    def _default_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The defaults that lie in the space, for the sampler to learn from."""
        held: dict[str, Any] = {}
        words = dict(self.subject.fixed)
        for one in self.space:
            value = one.held(self.subject.default_of(one.key)) if one.applies(words) else None
            if value is not None:
                held[one.key] = value
                words[one.key] = str(value)
        return held, {one.key: _distribution(one) for one in self.space if one.key in held}

    def _chosen(self, place: int, progress: Callable[[float], None]) -> Trial:
        import optuna
        from optuna.trial import TrialState

        self.study.sampler = optuna.samplers.TPESampler(
            seed=int(np.random.SeedSequence([self.seed, place]).generate_state(1)[0]),
            multivariate=True,
            group=True,
            n_startup_trials=AT_RANDOM,
            constant_liar=self.at_once > 1,
        )
        began_s = time.monotonic()
        finished = self.finished()
        trial = self.study.ask()
        trial.set_user_attr(PLACE, place)
        values = chosen(self.space, trial, self.subject.fixed)
        report = self._reporting(trial, place)
        going = Going(place, values, finished, self.best_of(finished), report, trial.should_prune, progress)
        try:
            outcome, refused = self.subject.play(going), ""
        except (InputError, Stalled) as error:
            outcome, refused = Outcome("", math.nan), str(error)
        whole = not outcome.stopped and not refused
        for key, value in _attributes(place, outcome, time.monotonic() - began_s, refused, values).items():
            trial.set_user_attr(key, value)
        state = TrialState.COMPLETE if whole else TrialState.PRUNED
        self.study.tell(trial, outcome.value if whole else None, state=state)
        return Trial(place, values, outcome, refused, time.monotonic() - began_s)

    def _reporting(self, trial: optuna.Trial, place: int) -> Callable[[int, float], None]:
        """A function that reports; what the same trial said before it was killed is said at once."""
        from optuna.trial import TrialState

        said: dict[int, float] = {}
        for killed in self.study.get_trials(deepcopy=False, states=(TrialState.FAIL,)):
            if killed.user_attrs.get(PLACE) == place and killed.params == trial.params:
                said |= killed.intermediate_values
        for step, value in sorted(said.items()):
            trial.report(value, step)

        def report(step: int, value: float) -> None:
            if step not in said:
                said[step] = value
                trial.report(value, step)

        return report


def _further(progress: Callable[[float], None], done: int, share: float) -> None:
    progress(done + share)


def _in_process(task: tuple[Subject, tuple[Parameter, ...], Path, int, int, int]) -> Trial:
    """One trial in a process of its own, on the trials in a folder as they stand: how a `Search` is made; its place."""
    subject, space, folder, seed, at_once, place = task
    return Search(subject, space, folder, seed, at_once).play(place)


def _opened(folder: Path | None, subject: Subject) -> optuna.Study:
    import optuna

    # Of a training: a trial is stopped if half of those before it were better at the same evaluation.
    pruner = optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1, n_min_trials=3)
    storage: Any = None
    try:
        if folder is not None:
            arguments = {"connect_args": {"timeout": WAIT_S}}
            storage = optuna.storages.RDBStorage(f"sqlite:///{folder / DATABASE}", engine_kwargs=arguments)
        return optuna.create_study(
            study_name=NAME,
            storage=storage,
            direction=subject.direction,
            pruner=pruner if subject.prunes else optuna.pruners.NopPruner(),
            load_if_exists=True,
        )
    except Exception as error:
        if folder is None or not (folder / DATABASE).exists():
            raise
        if _of_disk(error):
            raise
        raise InputError(f"{folder / DATABASE}: it holds no trials ({_reason(error)}); give another folder") from None


@contextmanager
def _storing(folder: Path | None) -> Iterator[None]:
    """What the database cannot take is told in one sentence; what it has taken stays.

    Raises:
        InputError: a full disk, or one that fails.
    """
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        if folder is None:
            raise
        reason = _reason(error.__cause__ or error)
        raise InputError(f"{folder / DATABASE}: trials cannot be kept there ({reason})") from None


def _of_disk(error: Exception) -> bool:
    """Whether it is not what the database holds, but where it lies."""
    import sqlite3

    return isinstance(getattr(error, "orig", error), sqlite3.OperationalError)


def _reason(error: BaseException) -> str:
    return str(getattr(error, "orig", error)).partition("\n")[0]


@contextmanager
def alone(folder: Path | None) -> Iterator[None]:
    """Nobody else tunes in `folder` meanwhile.

    Raises:
        BadArgument: another process does.
    """
    if folder is None or fcntl is None:
        yield
        return
    with open(folder / LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadArgument(f"--logdir {folder}: another command is tuning there; wait, or stop it") from None
        yield


@contextmanager
def quietly() -> Iterator[None]:
    """Neither optuna's log nor its warnings of what is experimental."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def _distribution(one: Parameter) -> optuna.distributions.BaseDistribution:
    """What optuna makes of the same parameter when a trial asks for it."""
    from optuna import distributions

    if one.low is None or one.high is None:
        return distributions.CategoricalDistribution(one.choices)
    if one.whole:
        step = 1 if one.step is None else int(one.step)
        return distributions.IntDistribution(int(one.low), int(one.high), one.log, step)
    return distributions.FloatDistribution(one.low, one.high, one.log, one.step)


def _attributes(
    place: int, outcome: Outcome, seconds: float, refused: str = "", values: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return {
        PLACE: place,
        WORD: outcome.word,
        PER_SEED: list(outcome.per_seed),
        JOBS: list(outcome.jobs),
        STOPPED: outcome.stopped,
        REFUSED: refused,
        SECONDS: round(seconds, 3),
        VALUES: dict(values or {}),
    }


def _trial_of(frozen: optuna.trial.FrozenTrial) -> Trial:
    said = frozen.user_attrs
    value = math.nan if frozen.value is None or said[REFUSED] else float(frozen.value)
    outcome = Outcome(said[WORD], value, tuple(said[PER_SEED]), tuple(said[JOBS]), said[STOPPED])
    return Trial(said[PLACE], said[VALUES], outcome, said[REFUSED], said[SECONDS])


def _another(folder: Path | None, key: str, before: Any, now: Any) -> str:
    if key in ("sources", "content"):
        what = "clustergym's sources have" if key == "sources" else "what its words name has"
        return f"--logdir {folder}: {what} changed since its trials were played; give another folder"
    return f"--logdir {folder}: its trials were played with {key} {before!r}, not {now!r}; give another folder"
