"""Many runs, in parallel, each played once: a finished run is a file, so a killed sweep goes on where it stopped.

The folder of a sweep is named by a hash of every source and version that a run's numbers depend on, a file in it by a
hash of the run's whole configuration, the content of its job set included; and each file repeats its configuration,
which is compared when it is read (`run_files.py`). So neither a changed configuration nor an upgrade can mix with older
results.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from ...policies import make
from ...simulator.base.errors import InputError
from ..evaluate import Setting, play, simulator_of, workload_of
from ..executors import elsewhere
from ..identity import LIBRARIES, PLAYING, expect_sources, sources, versions
from ..recording import Timeline
from ..run_files import IDENTITY, load, remove_orphans, save, short_hash
from ..terminal import progress
from .registry import Options

CASES = (
    "sweep",
    "bsbf_case",
    "bsbf_candidate",
    "cassini_case",
    "mast_case",
    "harmony_case",
)  # the modules that play runs
SOURCES = (*PLAYING, *(f"experiments/reproduce/{name}.py" for name in CASES))
ENVIRONMENT = "clustergym/Delay-v0"
SERIES_POINTS = 1000

Found_co = TypeVar("Found_co", covariant=True)


class Playable(Protocol[Found_co]):
    """What a sweep plays: hashable, and the same in every process."""

    @property
    def key(self) -> str:
        """Hash of the configuration, which names the file."""

    @property
    def text(self) -> str:
        """The configuration, all that the numbers depend on besides sources and versions."""

    def columns(self) -> Mapping[str, Any]:
        """Play it: what is kept (`run_files.save`)."""

    def outcome(self, held: Mapping[str, Any]) -> Found_co:
        """What was kept, as the caller wants it."""


@dataclass(frozen=True)
class Configured:
    """A run whose fields say all that its numbers depend on besides sources and versions."""

    @property
    def text(self) -> str:
        """The configuration as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def key(self) -> str:
        """Hash of the configuration, which names the file."""
        return short_hash(self.text)


@dataclass(frozen=True)
class Case(Configured):
    """One run.

    Attributes:
        policy, topology, network: words.
        workload: a path of a prepared job set, or a generator with all its parameters.
        digest: hash of the job set's content; "" for a generator.
        semantics: of the engine, "events" or "artist-sim".
        seed: of random placers.
        series: what to keep over time: nothing, "use" (GPUs held and jobs left) or "timer" (see `timer_gpus`).
        timer_gpus: with "timer": keep the tuned rack timer of jobs of so many GPUs.
    """

    policy: str
    topology: str
    workload: str
    digest: str = ""
    network: str = "none"
    semantics: str = "events"
    seed: int = 0
    series: Literal["", "use", "timer"] = ""
    timer_gpus: int = 0

    @property
    def text(self) -> str:
        """The configuration as JSON; where the job set lies does not matter, what it holds does."""
        own = asdict(self)
        if self.digest:
            own["workload"] = Path(self.workload).name
        return json.dumps(own, sort_keys=True)

    @property
    def setting(self) -> Setting:
        """What the policy is played on."""
        return Setting(
            ENVIRONMENT,
            topology=self.topology,
            workload=self.workload,
            network=self.network,
            semantics=self.semantics,
        )

    def columns(self) -> Mapping[str, Any]:
        """Play it."""
        none = dict.fromkeys(SERIES, np.zeros(0))
        if self.series == "timer":
            return {**none, **_timer(self)}
        run = play(self.setting, self.policy, self.seed, record=self.series == "use")
        use = _use(run.timeline) if run.timeline is not None else {}
        return {**none, "jct_s": run.jct_s, "metrics": run.metrics, **use}

    def outcome(self, held: Mapping[str, Any]) -> Outcome:
        """What a file of it holds."""
        return Outcome(**held)


@dataclass(frozen=True)
class Outcome:
    """What a run gave.

    Attributes:
        metrics: by the names of `simulator/engine/metrics.py`.
        jct_s: float64 (n,), of the finished jobs.
        time_s: float64 (k,), seconds from the first arrival, if the case asks for a series; else k = 0.
        held_gpus, jobs_left: float64 (k,): GPUs in the mean since the time before, and jobs not finished yet.
        timer_s: float64 (k,), the timer in seconds.
    """

    metrics: dict[str, float]
    jct_s: np.ndarray
    time_s: np.ndarray
    held_gpus: np.ndarray
    jobs_left: np.ndarray
    timer_s: np.ndarray


SERIES = ("time_s", "held_gpus", "jobs_left", "timer_s")


@functools.cache
def source_version() -> str:
    """Hash of every source and version that a run's numbers depend on, as this process found them."""
    return short_hash(sources(*SOURCES), repr(versions(*LIBRARIES)))


def sweep(what: str, cases: Sequence[Playable[Found_co]], options: Options) -> dict[Any, Found_co]:
    """The outcome of every case; those that are not on disk yet are played, with progress on stderr.

    Raises:
        InputError: a case that cannot be played, or sources that changed meanwhile.
    """
    folder = options.cache / source_version()
    folder.mkdir(parents=True, exist_ok=True)
    remove_orphans(folder)
    wanted = list(dict.fromkeys(cases))
    found = {case: outcome for case in wanted if (outcome := _read(case, folder)) is not None}
    missing = [case for case in wanted if case not in found]
    if missing:
        with progress(what, len(wanted), options.quiet) as show:
            for number, _ in enumerate(_played(missing, folder, options)):
                show(len(found) + number + 1)
    return {case: found[case] if case in found else _expect(case, folder) for case in wanted}


def _played(cases: Sequence[Playable[Any]], folder: Path, options: Options) -> Iterator[None]:
    executor = elsewhere(options.executor, options.processes, len(cases))
    version = sources(*SOURCES)
    outcomes: Iterator[tuple[str, Mapping[str, Any]]]
    if executor is None:
        outcomes = ((case.key, _play((case, version))) for case in cases)
    else:
        outcomes = executor.each(_keyed, [(case.key, case, version) for case in cases])
    texts = {case.key: case.text for case in cases}
    for key, columns in outcomes:
        save(folder / f"{key}.parquet", texts[key], columns)
        yield


def _keyed(task: tuple[str, Playable[Any], str]) -> tuple[str, Mapping[str, Any]]:
    return task[0], _play(task[1:])


def _play(task: tuple[Playable[Any], str]) -> Mapping[str, Any]:
    case, version = task
    expect_sources(version, *SOURCES, what="reproduce")
    return case.columns()


def _use(timeline: Timeline) -> dict[str, np.ndarray]:
    """GPUs held and jobs left at SERIES_POINTS times from the first arrival to the end."""
    edges = np.linspace(timeline.begin_s, timeline.stop_s, SERIES_POINTS + 1)
    times, held = timeline.busy_gpus()
    integral = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(times))])
    place = np.clip(np.searchsorted(times, edges, side="right") - 1, 0, len(times) - 1)
    until = integral[place] + held[place] * (edges - times[place])
    leaves = np.sort(timeline.leave_s)
    return {
        "time_s": edges[1:] - timeline.begin_s,
        "held_gpus": np.diff(until) / np.maximum(np.diff(edges), 1e-300),
        "jobs_left": (len(leaves) - np.searchsorted(leaves, edges[1:], side="right")).astype(np.float64),
    }


def _timer(case: Case) -> dict[str, Any]:
    """A run, looked at after every pass: the tuned rack timer of one GPU demand and the jobs left."""
    simulator = simulator_of(case.setting, make(case.policy))
    simulator.reset(workload_of(case.setting, case.seed), case.seed)
    s = simulator.state
    times, timers, left = [], [], []
    timer_s = 0.0
    while not simulator.ended:
        simulator.schedule()
        timer_s = tuned_rack_timer_s(s, case.timer_gpus, timer_s)
        times.append(float(s.now_s - s.start_s))
        timers.append(timer_s)
        left.append(float(s.n_jobs - s.done))
        simulator.advance()
    grid_s = np.linspace(0.0, times[-1], SERIES_POINTS + 1)[1:]
    place = np.searchsorted(times, grid_s, side="right") - 1
    series = {"time_s": grid_s, "timer_s": np.array(timers)[place], "jobs_left": np.array(left)[place]}
    return {"jct_s": simulator.jobs()["jct_s"], "metrics": simulator.metrics(), **series}


def tuned_rack_timer_s(s: np.record, gpus: int, before_s: float) -> float:
    """The rack timer that jobs of `gpus` GPUs were last refused by, seconds; `before_s` if it is not known anew."""
    demand = int(np.searchsorted(s.class_gpus[: s.n_classes], gpus))
    if demand >= s.n_classes or s.class_gpus[demand] != gpus:
        raise InputError(f"reproduce: no job of the set asks {gpus} GPUs")
    waits = 2 * demand + 1
    return float(s.waits_timer[waits] * s.tuner_unit_s) if s.waits_known[waits] else before_s


def _path(case: Playable[Any], folder: Path) -> Path:
    return folder / f"{case.key}.parquet"


def _read(case: Playable[Found_co], folder: Path) -> Found_co | None:
    """The outcome that is on disk, if it is there and whole."""
    path = _path(case, folder)
    held = load(path)
    if held is None:
        return None
    if held.pop(IDENTITY) != case.text:
        raise InputError(f"{path}: it holds another run than its name says; delete it")
    return case.outcome(held)


def _expect(case: Playable[Found_co], folder: Path) -> Found_co:
    outcome = _read(case, folder)
    if outcome is None:
        raise InputError(f"{_path(case, folder)}: it vanished or was damaged while the others were played")
    return outcome
