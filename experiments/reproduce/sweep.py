"""Many runs, in parallel, each played once: a finished run is a file, so a killed sweep goes on where it stopped.

The folder of a sweep is named by a hash of every source and version that a run's numbers depend on, a file in it by a
hash of the run's whole configuration, the content of its job set included; and each file repeats its configuration,
which is compared when it is read (`run_files.py`). So neither a changed configuration nor an upgrade can mix with older
results.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...simulator.base.errors import InputError
from ..console.terminal import progress
from ..console.versions import LIBRARIES, versions
from ..playing.executors import elsewhere
from ..storing.identity import PLAYING, expect_sources, sources
from ..storing.run_files import IDENTITY, load, remove_orphans, save, short_hash
from .case import Case, Outcome
from .rows import Options

# The modules that play runs, of which `Case.how` names one.
PLAYERS = (
    "case",
    "bsbf/bsbf_runs",
    "cassini/cassini_runs",
    "dally/dally_runs",
    "harmony/harmony_runs",
    "mast/mast_fast",
    "mast/mast_slow",
)
SOURCES = (*PLAYING, *(f"experiments/reproduce/{name}.py" for name in PLAYERS))

Place = TypeVar("Place", bound=Hashable)


@functools.cache
def source_version() -> str:
    """Hash of every source and version that a run's numbers depend on, as this process found them."""
    return short_hash(sources(*SOURCES), repr(versions(*LIBRARIES)))


def sweep_by(what: str, cases: Mapping[Place, Sequence[Case]], options: Options) -> dict[Place, list[Outcome]]:
    """The outcomes of the cases of every place; see `sweep`."""
    found = sweep(what, [case for some in cases.values() for case in some], options)
    return {place: [found[case] for case in some] for place, some in cases.items()}


def sweep(what: str, cases: Sequence[Case], options: Options) -> dict[Case, Outcome]:
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


def _played(cases: Sequence[Case], folder: Path, options: Options) -> Iterator[None]:
    executor = elsewhere(options.executor, options.processes, len(cases))
    tasks = [(case.key, case, sources(*SOURCES)) for case in cases]
    texts = {case.key: case.text for case in cases}
    for key, columns in map(_play, tasks) if executor is None else executor.each(_play, tasks):
        save(folder / f"{key}.parquet", texts[key], columns)
        yield


def _play(task: tuple[str, Case, str]) -> tuple[str, Mapping[str, Any]]:
    key, case, version = task
    expect_sources(version, *SOURCES, what="reproduce")
    return key, case.columns()


def _path(case: Case, folder: Path) -> Path:
    return folder / f"{case.key}.parquet"


def _read(case: Case, folder: Path) -> Outcome | None:
    """The outcome that is on disk, if it is there and whole."""
    path = _path(case, folder)
    held = load(path)
    if held is None:
        return None
    if held.pop(IDENTITY) != case.text:
        raise InputError(f"{path}: it holds another run than its name says; delete it")
    return Outcome.of(held)


def _expect(case: Case, folder: Path) -> Outcome:
    outcome = _read(case, folder)
    if outcome is None:
        raise InputError(f"{_path(case, folder)}: it vanished or was damaged while the others were played")
    return outcome
