"""Evaluations on disk: every run is written when it ends, so that a killed command goes on; `read` returns all.

A folder holds the runs of one setting, from any number of commands: policies and seeds add up.

    DIR/evaluation.json   setting, hashes of what its words name, versions, policies (see `evaluation_file.py`)
    DIR/runs/KEY.parquet  one run: a row (columns below); KEY is a hash of policy and seed
    DIR/results.parquet   all runs as one table for other programs: written at the end and every minute or so
    DIR/command.json      the commands that made it (see `command_log.py`)

Columns of a run: `identity` (hash of all that its numbers depend on), then `policy`, `seed`, `jobs`, `metrics` (map),
`jct_s` (in order of arrival), `knows_run_times` and `is_drawn` as in `Run`. Recorded runs (by default those of the
first seed of a command) also have `timeline_*`, the fields of `recording.Timeline` (`timeline_gpus` lists the GPUs of
all stretches, `timeline_gpu_count` the number of each), and `decision_*`, the last ones of `runs.DECISION_COLUMNS`.

Runs are never mixed: a setting of other words is refused. Where a file that the setting names
(simulator/files/file_marks.py), the sources or versions, or the files of an agent or a user's policy have changed, a
run is played anew in the place of the old one; old files leave, and the table, charts, event files and pages with them.
Of the folder `read` returns only runs that belong together. It imports nothing that a word in there names.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ...policies import PolicyObject, make_for, word_of
from ...simulator.base.errors import InputError
from ...simulator.files import sealed_parquet
from ..charts.chart_files import is_ours
from ..console.terminal import BadArgument, expect_writable
from ..playing.copy_rows import COPY_COLUMNS
from ..playing.recording import JOB_FIELDS, Timeline
from ..playing.runs import Run, labels_of, players_of, with_labels
from ..settings.evaluation_setting import Setting, stamps
from . import command_log, evaluation_file, identity, results
from .event_file import HEURISTIC, files
from .run_files import StoredRunWarning, load, remove_orphans, save, short_hash

RUNS, TABLE, SUMMARY = "runs", "results.parquet", evaluation_file.NAME
GENERATOR, PAGE_HEAD = b'<meta name="generator" content="clustergym compare">', 1024  # of a page of ours
RUN_NAME = re.compile(r"[0-9a-f]{20}\.parquet")
RECORDED = ("timeline_", "decision_", "copy_")
DECISION = ("time_s", "job_id", "decision", "gpus", "shift_s", "why")
TIMELINE = (
    *("job", "start_s", "end_s", "arrival_s", "leave_s", "begin_s", "stop_s", "gpu_machine", "unit"),
    *("use_s", "cpu_use", "network_use", "machine_names", *JOB_FIELDS),
)
BETWEEN_TABLES_S = 60.0
SHARE_FOR_TABLES = 0.05  # of the time may go into tables of the runs so far


@dataclass(frozen=True)
class Evaluation:
    """The content of a folder.

    Attributes:
        folder: it was read from.
        setting: of all runs.
        played_on: the setting by content; equal where the runs of two folders can be compared.
        runs: policies in the order in which they were evaluated first, then ascending seeds. A run has its metrics and
            `jct_s`; `timeline` and `decisions` where they were recorded (else None and empty).
        versions: name -> version, of clustergym, python and the libraries that numbers depend on.
        commands: one dict a command, oldest first; see `command_log.py`.
    """

    folder: Path
    setting: Setting
    played_on: Hashable
    runs: tuple[Run, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[Mapping[str, Any]] = ()

    @property
    def policies(self) -> list[str]:
        """Words of the policies, each once, in order."""
        return list(dict.fromkeys(run.policy for run in self.runs))

    @property
    def seeds(self) -> list[int]:
        """All seeds, ascending; a policy need not have been played on all of them."""
        return sorted({run.seed for run in self.runs})


def read(folder: Path, timelines: bool = True) -> Evaluation:
    """The evaluation in `folder`, also while it goes on or after it was killed.

    Args:
        folder: DIR of `evaluate --logdir DIR`.
        timelines: False leaves timelines and decisions on disk, which is faster.

    Returns:
        The setting and the runs, policy by policy in the order in which they were asked for.

    Raises:
        InputError: the folder holds no evaluation, or one that this version cannot read.
    """
    about = evaluation_file.read(folder)
    if about is None:
        raise InputError(f"{folder}: it holds no evaluation; make one with: clustergym evaluate ENV --logdir {folder}")
    place = {word: number for number, word in enumerate(about["policies"])}
    without, seals = () if timelines else RECORDED, about["schema"] > evaluation_file.WITHOUT_CHECKSUMS
    if not seals:
        warnings.warn(f"{folder}: an older clustergym wrote it, without checksums", StoredRunWarning, stacklevel=2)
    found = (_read_run(path, without, seals, about["policies"]) for path in sorted((folder / RUNS).glob("*.parquet")))
    runs = [run for run in found if run is not None]
    runs.sort(key=lambda run: (place[run.policy], run.seed))
    setting, played_on = evaluation_file.setting_of(about), evaluation_file.played_on(about)
    labelled = tuple(with_labels(runs, about.get(evaluation_file.LABELS, {})))
    return Evaluation(folder, setting, played_on, labelled, about["versions"], command_log.read(folder))


def _read_run(path: Path, without: tuple[str, ...], seals: bool, identities: Mapping[str, str]) -> Run | None:
    """The run in a file; None where it cannot be read, does not belong to the others, or is a copy of another file."""
    row = load(path, without, seals)
    if row is None:
        return None
    try:
        if identities.get(row["policy"]) != row["identity"]:
            return None
        if path.name != file_name(row["policy"], row["seed"]):  # the same run must not count twice
            _say_misplaced(path)
            return None
        return _run_of(row)
    except (KeyError, TypeError, ValueError, IndexError) as error:  # a damaged one that has no seal
        warnings.warn(f"{path}: no run can be read from it ({error!r})", StoredRunWarning, stacklevel=2)
        return None


def file_name(policy: str, seed: int) -> str:
    """The name of a run's file."""
    return f"{short_hash(policy, str(seed))}.parquet"


def _say_misplaced(path: Path) -> None:
    warnings.warn(f"{path}: it holds another run than its name says", StoredRunWarning, stacklevel=3)


@dataclass(frozen=True)
class Store:
    """The folder of an evaluation that goes on. Processes may share it: it is a folder's name and some hashes."""

    folder: Path  # DIR
    identities: Mapping[str, str]  # policy -> hash of all that its runs depend on
    setting: Mapping[str, str]  # hashes of the contents of a setting; see `identity.content`
    files: Mapping[str, str]  # policy -> hash of its files if it is a trained agent or a user's own, else ""
    sources: str  # hash of the sources that play

    def find(self, policy: str, seed: int, recorded: bool = False) -> Run | None:
        """The stored run, with its timeline and decisions if `recorded`; None if there is none of that kind."""
        path = self._path(policy, seed)
        row = load(path, () if recorded else RECORDED)
        if row is None or row["identity"] != self.identities[policy]:
            return None
        if (row["policy"], row["seed"]) != (policy, seed):
            _say_misplaced(path)
            return None
        run = _run_of(row)
        return None if recorded and run.timeline is None else run

    def keep(self, run: Run) -> None:
        """Store a run that has just ended."""
        save(self._path(run.policy, run.seed), self.identities[run.policy], _row_of(run))

    def expect_unchanged(self, setting: Setting, player: str | PolicyObject) -> None:
        """Raise InputError if sources, files or the policy have changed; to be called after a play, in its process."""
        identity.expect_sources(self.sources, *identity.PLAYING, what=str(self.folder))
        now = identity.content_once(setting, stamps(setting))
        changed = [name for name, digest in self.setting.items() if now.get(name) != digest]
        if self.files[word_of(player)] != identity.of_policy(make_for(player, setting.environment)):
            changed.append(word_of(player))
        if changed:
            raise InputError(f"{self.folder}: {changed[0]} changed while it was evaluated; start it again")

    def _path(self, policy: str, seed: int) -> Path:
        return self.folder / RUNS / file_name(policy, seed)


def open_store(folder: Path, setting: Setting, policies: Sequence[Any], fresh: bool = False) -> Store:
    """Begin or go on to evaluate into `folder`, which is made if need be.

    Args:
        folder: DIR.
        setting, policies: to play, as `evaluate` takes them.
        fresh: forget the runs that the folder holds.

    Returns:
        The `store` of `evaluate`: runs that it has are not played again.

    Raises:
        BadArgument, InputError: the folder holds an evaluation of another setting or of a newer version, or a file of
            other origin that would be replaced.
        OSError: the folder cannot be written.
    """
    _expect_ours(folder)
    (folder / RUNS).mkdir(parents=True, exist_ok=True)
    for path in (folder / SUMMARY, folder / RUNS / "run.parquet"):
        expect_writable(path, "--logdir")
    if fresh:
        _forget(folder)
    before = evaluation_file.read(folder)
    if before is not None:
        evaluation_file.expect_same_setting(folder, before, setting)
    common = evaluation_file.common(setting)
    players = players_of(policies)
    own = {word: identity.of_policy(make_for(player, setting.environment)) for word, player in players.items()}
    held = {word: identity.of_object(player) for word, player in players.items()}
    common_text = json.dumps(common, sort_keys=True)
    identities = {word: short_hash(common_text, word, own[word] + held[word]) for word in players}
    changes = list(evaluation_file.changes(before, common, identities)) if before is not None else []
    for change in changes:
        gone = "earlier results are not used and leave tables and pictures; a folder of its own keeps them"
        warnings.warn(f"{folder}: {change}; {gone}", StoredRunWarning, stacklevel=2)
    remove_orphans(folder / RUNS)
    evaluation_file.declare(folder, common, identities, labels_of(policies))
    if changes:
        _forget_shown(folder)
        _forget_left(folder)
    return Store(folder, identities, common["content"], own, common["sources"])


def _expect_ours(folder: Path) -> None:
    path, table = folder / SUMMARY, folder / TABLE
    about = evaluation_file.read(folder)
    runs = (folder / RUNS).glob("*.parquet")
    if about is None and not evaluation_file.is_blank(path) and not any(RUN_NAME.fullmatch(run.name) for run in runs):
        _refuse(path)
    _expect_our_table(table, about is not None and about["schema"] == evaluation_file.WITHOUT_CHECKSUMS)


def _expect_our_table(path: Path, older: bool = False) -> None:
    """Raise BadArgument for another table; a torn one is made anew from its runs."""
    if not path.exists() or results.is_ours(path, older):
        return
    if not (path.is_file() and results.is_torn(path) and _has_whole_runs(path.parent)):
        _refuse(path)
    warnings.warn(f"{path}: it is empty or torn, and is made anew from the runs", StoredRunWarning, stacklevel=3)
    path.unlink()


def _has_whole_runs(folder: Path) -> bool:
    runs = (path for path in (folder / RUNS).glob("*.parquet") if RUN_NAME.fullmatch(path.name))
    return any(sealed_parquet.state(path.read_bytes()) == "whole" for path in runs)


def _refuse(path: Path) -> NoReturn:
    raise BadArgument(
        f"--logdir {path.parent}: its {path.name} is damaged or not clustergym's, and is not replaced; give another "
        "folder, or move the file away"
    )


def write_table(store: Store) -> None:
    """Write `results.parquet` from all runs of the folder; BadArgument if a file of other origin is there."""
    found = read(store.folder, timelines=False)
    _expect_our_table(store.folder / TABLE)
    if found.runs:
        results.write_parquet(found.runs, found.setting, store.folder / TABLE)


def tables_now_and_then(store: Store) -> Callable[[], None]:
    """A function to call again and again: it writes the table about every minute, less often where that takes long."""
    due_s = time.monotonic() + BETWEEN_TABLES_S

    def write_if_due() -> None:
        nonlocal due_s
        began_s = time.monotonic()
        if began_s >= due_s:
            write_table(store)
            took_s = time.monotonic() - began_s
            due_s = time.monotonic() + max(BETWEEN_TABLES_S, took_s / SHARE_FOR_TABLES)

    return write_if_due


def _forget(folder: Path) -> None:
    for path in (folder / RUNS).glob("*.parquet"):
        if RUN_NAME.fullmatch(path.name):
            path.unlink(missing_ok=True)
    if (folder / SUMMARY).exists():
        _forget_shown(folder)
    (folder / SUMMARY).unlink(missing_ok=True)


def _forget_left(folder: Path) -> None:
    """Delete the files of runs that are no longer of the evaluation; none that cannot be read."""
    about = evaluation_file.read(folder)
    assert about is not None
    for path in (folder / RUNS).glob("*.parquet"):
        row = load(path, RECORDED, seals=False) if RUN_NAME.fullmatch(path.name) else None
        if row is not None and about["policies"].get(row.get("policy")) != row["identity"]:
            path.unlink(missing_ok=True)


def _forget_shown(folder: Path) -> None:
    """Delete our own files that show runs of the folder: table, charts, event files and pages."""
    shown = [path for place in folder.iterdir() if place.is_dir() for path in files(place, HEURISTIC)]
    pages = (path for path in folder.glob("*.html") if path.is_file() and GENERATOR in path.read_bytes()[:PAGE_HEAD])
    charts = (path for path in folder.glob("*.svg") if path.is_file() and is_ours(path))
    for path in (folder / TABLE, *shown, *pages, *charts):
        path.unlink(missing_ok=True)
    for place in {path.parent for path in shown}:
        if not any(place.iterdir()):
            place.rmdir()


def _row_of(run: Run) -> dict[str, Any]:
    names = ("policy", "seed", "jobs", "metrics", "jct_s", "knows_run_times", "is_drawn", "is_resampled")
    row: dict[str, Any] = {name: getattr(run, name) for name in names}
    if run.timeline is not None:
        line = run.timeline
        row |= {f"timeline_{name}": getattr(line, name) for name in TIMELINE}
        row["timeline_gpus"] = np.array([gpu for gpus in line.gpus for gpu in gpus], np.int64)
        row["timeline_gpu_count"] = np.array([len(gpus) for gpus in line.gpus], np.int64)
        columns = list(zip(*run.decisions, strict=True)) or [()] * len(DECISION)
        row |= {f"decision_{name}": list(column) for name, column in zip(DECISION, columns, strict=True)}
        moved = list(zip(*run.copies, strict=True)) or [()] * len(COPY_COLUMNS)
        row |= {f"copy_{name}": list(column) for name, column in zip(COPY_COLUMNS, moved, strict=True)}
    return row


def _run_of(row: Mapping[str, Any]) -> Run:
    line: Timeline | None = None
    decisions: tuple[tuple[str, ...], ...] = ()
    copies: tuple[tuple[str, ...], ...] = ()
    if "timeline_job" in row:
        counts = row["timeline_gpu_count"]
        parts = np.split(row["timeline_gpus"], np.cumsum(counts)[:-1]) if len(counts) else ()
        gpus = tuple(tuple(part.tolist()) for part in parts)
        held = {name: row[f"timeline_{name}"] for name in TIMELINE if f"timeline_{name}" in row}
        line = Timeline(gpus=gpus, **held)  # older runs lack fields with a default
        empty = [""] * len(row["decision_time_s"])
        row = {"decision_shift_s": empty, "decision_why": empty, **row}  # older runs had neither
        decisions = tuple(zip(*(row[f"decision_{name}"] for name in DECISION), strict=True))
        copies = tuple(zip(*(row.get(f"copy_{name}", ()) for name in COPY_COLUMNS), strict=True))  # nor these
    knows = row.get("knows_run_times", "")  # older runs do not say
    about = row["policy"], row["seed"], row["metrics"], row["jobs"], row["jct_s"]
    chance = {"is_drawn": row.get("is_drawn", True), "is_resampled": row.get("is_resampled", False)}  # nor these
    return Run(*about, decisions, line, knows, copies, **chance)
