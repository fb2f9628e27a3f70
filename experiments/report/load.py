"""The contents of folders of `evaluate --logdir` and `train --logdir`, sorted for a page: by setting, then training."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...simulator.base.errors import InputError, MissingExtra
from ..comparing.intervals import Estimate, estimate_of, is_resampled, paired_ratio, pairs
from ..playing.runs import Run, distinct, grouped, is_same, same_as
from ..settings.evaluation_setting import Setting
from ..storing.event_file import AGENT, AGENT_WORDS, HEURISTIC, files, scalars_of
from ..storing.run_files import StoredRunWarning

if TYPE_CHECKING:
    from ..storing.store import Evaluation

PREFERRED_BASELINE = "greedy"
Curve = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Entry:
    """One policy of a section."""

    label: str  # its label or word on the page, with its folder where that alone is not enough
    policy: str  # its word
    runs: tuple[Run, ...]  # ascending seeds, each once

    @property
    def is_agent(self) -> bool:
        """Whether it was trained."""
        return self.policy.partition(":")[0] in AGENT_WORDS

    @property
    def seeds(self) -> list[int]:
        """Ascending."""
        return [run.seed for run in self.runs]

    @property
    def knows_run_times(self) -> str:
        """Whether it knew how long jobs run: `yes`, `no`, `estimates`; a dash where its runs do not say."""
        return self.runs[0].knows_run_times or "-"

    def values(self, metric: str) -> np.ndarray:
        """Of a metric, one a seed; nan where the run has none."""
        return np.array([run.metrics.get(metric, np.nan) for run in self.runs])

    def estimate(self, metric: str) -> Estimate:
        """Mean over seeds and its interval; one run where all seeds give the same."""
        return estimate_of(distinct(self.runs), metric)


@dataclass(frozen=True)
class Section:
    """All runs on one setting."""

    setting: Setting
    entries: tuple[Entry, ...]  # by mean JCT, best first
    baseline: str | None  # the label that ratios are to; None if the wanted one was not played here
    folders: tuple[Path, ...] = ()  # of the runs
    place: str = ""  # tells it from another section with the same words but other content; else ""

    @property
    def seeds(self) -> list[int]:
        """All of them, ascending; not every policy need have been played on each."""
        return sorted({seed for entry in self.entries for seed in entry.seeds})

    @property
    def is_unfinished(self) -> bool:
        """Whether some run stopped before all its jobs had finished: those jobs are in no JCT."""
        return any(run.metrics["jobs_finished"] < run.jobs for entry in self.entries for run in entry.runs)

    @property
    def one_set_of_seeds(self) -> bool:
        """Whether all policies were played on the same seeds."""
        return len({tuple(entry.seeds) for entry in self.entries}) == 1

    @property
    def same_runs(self) -> list[str]:
        """A line for each set of policies with equal runs on all seeds."""
        return same_as(self.labelled)

    @property
    def labelled(self) -> list[Run]:
        """All runs, their policy the label of their entry."""
        return [replace(run, policy=entry.label) for entry in self.entries for run in entry.runs]

    @property
    def words(self) -> dict[str, str]:
        """Label -> word of the policies."""
        return {entry.label: entry.policy for entry in self.entries}

    def entry(self, label: str) -> Entry:
        """The policy of that label."""
        return next(entry for entry in self.entries if entry.label == label)

    def pairs(self, entry: Entry, metric: str = "jct_mean") -> tuple[np.ndarray, np.ndarray]:
        """Values of a policy and of the baseline in pairs, see `intervals.pairs`; empty without a baseline."""
        return pairs(entry.runs, self.entry(self.baseline).runs if self.baseline is not None else (), metric)

    def ratio(self, entry: Entry, metric: str = "jct_mean") -> Estimate | None:
        """Mean over the baseline's mean with the paired interval; None where there is nothing to compare."""
        mine, base = self.pairs(entry, metric)
        if not len(mine) or not base.mean() > 0.0:
            return None
        return paired_ratio(mine.tolist(), base.tolist(), is_resampled(entry.runs))


@dataclass(frozen=True, eq=False)
class Training:
    """The curves of one training folder."""

    folder: Path
    agent: Mapping[str, Curve]  # tag -> its curve
    heuristics: Mapping[str, Mapping[str, float]]  # folder name of the policy -> tag -> its level

    @property
    def yardstick(self) -> tuple[Any, ...]:
        """Equal for folders whose heuristics have equal results: their curves belong into one chart."""
        levels = [(name, tags["jct/mean_s"]) for name, tags in self.heuristics.items() if "jct/mean_s" in tags]
        return tuple(sorted(levels)) or (self.folder,)


@dataclass(frozen=True)
class Source:
    """A folder of the page and the commands that filled it, oldest first."""

    folder: Path
    commands: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Material:
    """The contents of a page."""

    sections: tuple[Section, ...]
    trainings: tuple[Training, ...]
    sources: tuple[Source, ...]


def load(folders: Sequence[Path], baseline: str | None = None) -> Material:
    """Read folders of `evaluate --logdir`, `train --logdir`, or both in one; at least one.

    `baseline` is the word of the policy that ratios are to; None: `greedy`, else the best heuristic.

    Raises:
        InputError: a folder that is none, or holds neither; a baseline that was played nowhere.
        MissingExtra: there are trainings alone, and TensorBoard, which reads their curves, is not installed.
    """
    from ..storing import command_log, evaluation_file, store

    evaluations, trainings, sources = [], [], []
    unread: dict[Path, MissingExtra] = {}
    for folder in dict.fromkeys(folders):
        if folder.is_file():
            raise InputError(f"{folder}: is a file; expected the folder of evaluate --logdir or train --logdir")
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder; expected one of evaluate --logdir or train --logdir")
        training = None
        try:
            training = _training(folder)
        except MissingExtra as error:
            unread[folder] = error
        if (folder / evaluation_file.NAME).exists() or (training is None and folder not in unread):
            evaluations.append(store.read(folder))
        if training is not None:
            trainings.append(training)
        sources.append(Source(folder, command_log.read(folder)))
    for folder, missing in unread.items():
        if not evaluations and not trainings:
            raise missing
        warnings.warn(f"{folder}: its learning curves are left out: {missing}", StoredRunWarning, stacklevel=2)
    by_setting: dict[Hashable, list[Evaluation]] = {}
    for evaluation in evaluations:
        by_setting.setdefault(evaluation.played_on, []).append(evaluation)
    settings = ((parts[0].setting, [(part.folder, part.runs) for part in parts]) for parts in by_setting.values())
    sections = _with_places([section(setting, runs, baseline) for setting, runs in settings])
    if baseline is not None and sections and all(one.baseline is None for one in sections):
        played = dict.fromkeys(entry.label for one in sections for entry in one.entries)
        raise InputError(f"--baseline {baseline!r}: not among what was played; these are: {', '.join(played)}")
    return Material(sections, tuple(trainings), tuple(sources))


def _with_places(sections: Sequence[Section]) -> tuple[Section, ...]:
    words = [repr(one.setting.words()) for one in sections]
    names = _short_names([folder for one in sections for folder in one.folders])
    found = []
    for one, mine in zip(sections, words, strict=True):
        own, names = names[: len(one.folders)], names[len(one.folders) :]
        found.append(replace(one, place=", ".join(own)) if words.count(mine) > 1 else one)
    return tuple(found)


def section(setting: Setting, parts: Sequence[tuple[Path, Sequence[Run]]], baseline: str | None) -> Section:
    """One setting's runs from one or more folders.

    A policy whose runs agree wherever two folders have the same seed is one policy, with the seeds of both; otherwise
    (an agent that was trained on, say) it appears once a folder, and its label says which.
    """
    by_word: dict[str, list[tuple[Path, dict[int, Run]]]] = {}
    for folder, runs in parts:
        for word, mine in grouped(runs).items():
            by_word.setdefault(word, []).append((folder, {run.seed: run for run in mine}))
    names = {word: _label(places) or word for word, places in by_word.items()}
    common = {name for name in names.values() if list(names.values()).count(name) > 1}
    names = {word: f"{name} ({word})" if name in common and name != word else name for word, name in names.items()}
    found = (_entries(names[word], word, places) for word, places in by_word.items())
    entries = [entry for some in found for entry in some if entry.runs]
    entries.sort(key=lambda entry: (_or_last(entry.estimate("jct_mean").mean), entry.label))
    return Section(setting, tuple(entries), _baseline(entries, baseline), tuple(folder for folder, _ in parts))


def _label(places: Sequence[tuple[Path, dict[int, Run]]]) -> str:
    """The label of a policy: that of the first folder that gives it one."""
    return next((run.label for _, runs in places for run in runs.values() if run.label), "")


def _entries(label: str, word: str, places: Sequence[tuple[Path, dict[int, Run]]]) -> list[Entry]:
    merged: dict[int, Run] = {}
    for _, runs in places:
        for seed, run in runs.items():
            other = merged.setdefault(seed, run)
            if not is_same(other, run):
                names = _short_names([folder for folder, _ in places])
                named = zip(names, places, strict=True)
                return [Entry(f"{label} ({name})", word, _ascending(runs)) for name, (_, runs) in named]
            if other.timeline is None:
                merged[seed] = run
    return [Entry(label, word, _ascending(merged))]


def _ascending(runs: Mapping[int, Run]) -> tuple[Run, ...]:
    return tuple(runs[seed] for seed in sorted(runs))


def _short_names(folders: Sequence[Path]) -> list[str]:
    """The last parts of paths, as many as tell them apart."""
    parts = [folder.resolve().parts for folder in folders]
    names: list[str] = []
    for count in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            break
    return names


def _or_last(value: float) -> float:
    return value if np.isfinite(value) else np.inf


def _baseline(entries: Sequence[Entry], wanted: str | None) -> str | None:
    words = [wanted] if wanted is not None else [PREFERRED_BASELINE]
    for entry in entries:
        if entry.label in words or entry.policy in words:
            return entry.label
    if wanted is not None or len(entries) < 2:
        return None
    return next((entry.label for entry in entries if not entry.is_agent), None)


def _training(folder: Path) -> Training | None:
    places = sorted(path for path in folder.iterdir() if path.is_dir())
    agents = [place for place in places if files(place, AGENT)]
    if not agents:
        return None
    heuristics = {
        place.name: {tag: curve[-1][1] for tag, curve in scalars_of(place).items() if curve}
        for place in places
        if place not in agents and files(place, HEURISTIC) and place.name.partition(",")[0] not in AGENT_WORDS
    }
    return Training(folder, scalars_of(agents[-1]), heuristics)
