"""The search: an optuna study in DIR/study.db (sqlite, which survives kills), or in memory without a folder.

A trial is written with all its values before it is played; a killed one goes on under its number. Its sampler is seeded
by --seed and this number, so a search that was killed tries the very same values as one that was not. Sampler and
pruner are optuna's, by name and options, which a space may give under `optuna`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from ...simulator.base.errors import InputError, MissingExtra, Stalled
from ...simulator.base.names import choose
from ..console.terminal import BadArgument
from ..playing.executors import Processes
from .space import Parameter
from .subjects import VALUES, direction_of

try:
    import fcntl
except ImportError:  # not on Windows: there, two commands at once are not noticed
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from .subjects import Subject

DATABASE, LOCK, NAME = "study.db", "study.lock", "tune"
SAMPLER = {"name": "TPESampler", "multivariate": True, "group": True, "n_startup_trials": 10}
WAIT_S = 60.0  # for another process that writes
ABOUT = "about"  # attribute of the study; the others are of a trial
SECONDS, FATE, WHY = "seconds", "fate", "why"
PLAYED, STOPPED, REFUSED = "played", "stopped", "refused"


def expect_installed() -> None:
    """Raise MissingExtra without optuna."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtra('tuning needs optuna; install it with: pip install "clustergym[tune]"') from None


@dataclass
class Search:
    """A search that is begun, or goes on: of a subject over a space, in `folder` (None keeps nothing).

    `seed` is of the sampler; `at_once` trials run at the same time. `library`: `sampler` and `pruner` of optuna, each a
    name and its options, in place of the defaults. InputError for unknown ones, or a folder that holds no trials.
    """

    subject: Subject
    space: tuple[Parameter, ...]
    folder: Path | None
    seed: int = 0
    at_once: int = 1
    library: Mapping[str, Any] = field(default_factory=dict)
    storage: Any = field(init=False)
    study: optuna.Study = field(init=False)

    def __post_init__(self) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        pruner = self.library.get("pruner", self.subject.pruner) if self.subject.prunes else {"name": "NopPruner"}
        with _storing(self.folder, RuntimeError):  # tables of another version of optuna
            self.storage = optuna.storages.InMemoryStorage()
            if self.folder is not None:
                engine = {"connect_args": {"timeout": WAIT_S}}
                self.storage = optuna.storages.RDBStorage(f"sqlite:///{self.folder / DATABASE}", engine_kwargs=engine)
            self.study = self._study(0, study_name=NAME, storage=self.storage, pruner=_made("pruner", pruner))

    def _study(self, number: int, **more: Any) -> optuna.Study:
        import optuna

        said = self.library.get("sampler", {**SAMPLER, "constant_liar": self.at_once > 1})
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        direction, sampler = direction_of(self.subject.metric), _made("sampler", {**said, "seed": seed})
        return optuna.create_study(sampler=sampler, direction=direction, load_if_exists=True, **more)

    def begin(self) -> None:
        """Write the search's description; BadArgument if the folder's trials are of another search."""
        about = {**self.subject.about(), "space": [one.said for one in self.space], "seed": self.seed}
        about = json.loads(json.dumps(about | {"optuna": self.library}))
        with _storing(self.folder):
            if ABOUT not in self.study.user_attrs:
                self.study.set_user_attr(ABOUT, about)
            before = self.study.user_attrs[ABOUT]
        for key, value in about.items():
            if before.get(key) != value:
                what = _another(key, before.get(key), value)
                raise BadArgument(f"--logdir {self.folder}: {what}; give another folder")

    @property
    def ended(self) -> list[FrozenTrial]:
        """The trials that have ended, by number; 0 has the defaults."""
        return [trial for trial in self.study.get_trials(deepcopy=False) if trial.state.is_finished()]

    @property
    def ranked(self) -> list[FrozenTrial]:
        """The trials that were played to the end, the best first."""
        sign = 1.0 if direction_of(self.subject.metric) == "minimize" else -1.0
        whole = [trial for trial in self.ended if trial.user_attrs[FATE] == PLAYED]
        return sorted(whole, key=lambda trial: sign * float(trial.value or 0.0))

    def missing(self, trials: int) -> list[int]:
        """The first so many trials that are still to be played, or to be played on."""
        return sorted(set(range(trials)) - {trial.number for trial in self.ended})

    def run(self, numbers: Sequence[int], progress: Callable[[float], None]) -> Iterator[FrozenTrial]:
        """The trials of these numbers (of `missing`) as they end; the defaults before all others."""
        first = [number for number in numbers if number == 0 or self.at_once == 1]
        for done, number in enumerate(first):
            self.choose(number)
            yield self.play(number, lambda share, done=done: progress(done + share))  # type: ignore[misc]
        rest = numbers[len(first) :]
        if rest:
            how = (self.subject, self.space, self.folder, self.seed, self.at_once, self.library)
            items = ((how, number) for number in rest if self.choose(number))
            yield from Processes(min(self.at_once, len(rest))).each(_in_process, items)

    def choose(self, number: int) -> bool:
        """Write the trial of a number with its values, unless it is there; they are chosen in a copy of the study."""
        from optuna.trial import TrialState, create_trial

        with _storing(self.folder):
            trials = self.study.get_trials(deepcopy=False)
            if number < len(trials):
                return True
            copy = self._study(number)
            copy.add_trials(trials)
            new = copy.ask()
            values: dict[str, str] = {}
            for one in self.space if number else ():
                if one.applies({**self.subject.fixed, **values}):
                    values[one.key] = one.ask(new)
            kept: Any = {"params": new.params, "distributions": new.distributions, "user_attrs": {VALUES: values}}
            self.study.add_trial(create_trial(state=TrialState.RUNNING, **kept))
        return True

    def play(self, number: int, progress: Callable[[float], None] = lambda share: None) -> FrozenTrial:
        """Play a trial whose values are chosen, and keep the result; InputError if the defaults are refused."""
        import optuna
        from optuna.trial import TrialState

        began_s, value, state, fate, why = time.monotonic(), None, TrialState.PRUNED, STOPPED, ""
        with _storing(self.folder):
            of_number = self.storage.get_trial_id_from_study_id_trial_number
            trial = optuna.Trial(self.study, of_number(self.storage.get_study_id_from_name(NAME), number))
            try:
                value, state, fate = self.subject.play(trial, progress), TrialState.COMPLETE, PLAYED
            except optuna.TrialPruned as stop:
                why = str(stop)
            except (InputError, Stalled) as error:
                if number == 0:
                    raise
                fate, why = REFUSED, str(error)
            for key, said in ((SECONDS, round(time.monotonic() - began_s, 3)), (FATE, fate), (WHY, why)):
                trial.set_user_attr(key, said)
            return self.study.tell(trial, value, state=state)


def _in_process(item: tuple[tuple[Any, ...], int]) -> FrozenTrial:
    how, number = item
    return Search(*how).play(number)


def library_of(said: Any, source: str) -> dict[str, Any]:
    """`sampler` and `pruner` as a space says them: a name, or a mapping with `name` and options."""
    if not isinstance(said, Mapping) or any(isinstance(one, list) for one in said.values()):
        raise InputError(f"{source}: optuna: expected sampler and pruner, each a name, or a name and its options")
    for key in said:
        choose(key, ("sampler", "pruner"), f"key of {source}: optuna:")
    return {key: {"name": one} if isinstance(one, str) else dict(one) for key, one in said.items()}


def _made(what: str, said: Mapping[str, Any]) -> Any:
    """A sampler or pruner of optuna from its name and its options, those that are text as YAML reads them."""
    import optuna

    room = getattr(optuna, f"{what}s")
    name = choose(said.get("name", ""), room.__all__, f"optuna {what}")
    options = {key: yaml.safe_load(one) if isinstance(one, str) else one for key, one in said.items() if key != "name"}
    try:
        return getattr(room, name)(**options)
    except (TypeError, ValueError, ImportError) as error:
        raise InputError(f"optuna: {what} {name}: {' '.join(str(error).split())}") from None


@contextmanager
def _storing(folder: Path | None, *more: type[Exception]) -> Iterator[None]:
    """Errors of the database become an InputError: a full disk, one that fails, or a file that is no database."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except Exception as error:
        if folder is None or not isinstance(error, (StorageInternalError, SQLAlchemyError, *more)):
            raise
        cause = error.__cause__ or error
        reason = str(getattr(cause, "orig", cause)).partition("\n")[0]
        raise InputError(f"{folder / DATABASE}: trials cannot be kept there ({reason})") from None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other command tunes in `folder` meanwhile; BadArgument if one does."""
    with open(folder / LOCK, "w") as lock:
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadArgument(f"--logdir {folder}: another command is tuning there; wait, or stop it") from None
        yield


def _another(key: str, before: Any, now: Any) -> str:
    if key in ("sources", "content"):
        what = "clustergym's sources have" if key == "sources" else "what its words name has"
        return f"{what} changed since its trials were played"
    return f"its trials were played with {key} {before!r}, not {now!r}"
