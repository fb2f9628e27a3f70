"""One TensorBoard event file a run, written record by record: after a kill all earlier records are on disk.

TensorBoard's default data server ignores the purge mark of a restarted run (`SessionLog.START`) and shows later
records. So a log that is opened again at a step is copied up to that step, and the copy replaces it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...policies.registry import AGENTS
from ...simulator.base.errors import MissingExtra
from ..console.terminal import written_whole

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event

NAME = "events.out.tfevents."
HEURISTIC, AGENT = ".evaluate", ".agent"  # endings of files
AGENT_WORDS = tuple(AGENTS)
HPARAMS = "_hparams_/"
_SCALARS, _IMAGES = "scalars", "images"


def expect_installed() -> None:
    """Raise MissingExtra without TensorBoard."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # where TensorFlow is installed, it has much to say
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        raise MissingExtra(
            'TensorBoard logs need tensorboard; install it with: pip install "clustergym[report]"'
        ) from None


def folder_name(policy: str) -> str:
    """The policy's word as the name of a folder or file: `las:head=skip` -> `las,head=skip`."""
    return re.sub(r"[^A-Za-z0-9.,=_+-]", ",", policy)[:150]


def folder_names(policies: Sequence[str]) -> dict[str, str]:
    """One folder name a policy, all different."""
    names: dict[str, str] = {}
    for policy in policies:
        name, number = folder_name(policy), 2
        while name in names.values():
            name, number = f"{folder_name(policy)}-{number}", number + 1
        names[policy] = name
    return names


def files(folder: Path, ending: str = "") -> list[Path]:
    """The event files of `folder` itself in the order in which TensorBoard reads them; those with `ending` only."""
    return sorted(path for path in folder.glob(f"{NAME}*{ending}") if path.is_file())


def events(path: Path) -> Iterator[Event]:
    """Every whole event of a file; a record that a kill cut off at its end is left out."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    yield from LegacyEventFileLoader(str(path)).Load()


class EventFile:
    """The event file of one TensorBoard run; `folder` is made if it is not there.

    Events of earlier files up to step `until`, inclusive, are kept; None: none. Only files with `ending` are continued
    or replaced.
    """

    def __init__(self, folder: Path, until: int | None = None, ending: str = "") -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        expect_installed()
        folder.mkdir(parents=True, exist_ok=True)
        old = files(folder, ending)
        numbers = [int(found[1]) for path in old if (found := re.match(re.escape(NAME) + r"(\d+)", path.name))]
        self.path = folder / f"{NAME}{max(numbers, default=0) + 1:010d}{ending}"
        self.last_step = -1
        self.tags: set[str] = set()  # of the kept events
        with written_whole(self.path) as draft, open(draft, "wb") as file:
            writer = RecordWriter(file)
            writer.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
            for record in _kept(old, until, without=HPARAMS if ending == AGENT else None):
                writer.write(record)
                event = Event.FromString(record)
                self.last_step = max(self.last_step, event.step)
                self.tags |= {value.tag for value in event.summary.value}
        for path in old:
            path.unlink(missing_ok=True)
        self._file = open(self.path, "ab")  # noqa: SIM115 - closed by close()
        self._writer = RecordWriter(self._file)

    def write(self, step: int, **content: Any) -> None:
        """Append one event, a `summary=` or another field of the protocol buffer, and hand it to the system."""
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.write(Event(wall_time=time.time(), step=step, **content).SerializeToString())
        self._writer.flush()
        self.last_step = max(self.last_step, step)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _kept(paths: list[Path], until: int | None, without: str | None) -> Iterator[bytes]:
    """The events up to a step, each once: a kill between copying and removing leaves the same ones in two files.

    Those of tags that begin with `without` are left out: TensorBoard shows the first of several rows of HParams.
    """
    seen: set[bytes] = set()
    for path in paths if until is not None else ():
        for event in events(path):
            record = event.SerializeToString()
            if without and any(value.tag.startswith(without) for value in event.summary.value):
                continue
            if not event.HasField("file_version") and event.step <= until and record not in seen:
                seen.add(record)
                yield record


def scalars_of(folder: Path) -> Mapping[str, list[tuple[int, float]]]:
    """Tag -> (step, value) pairs in order of steps, of one run's folder; a step that was written again counts once."""
    expect_installed()
    import logging

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    accumulator = EventAccumulator(str(folder), size_guidance={_SCALARS: 0, _IMAGES: 1})
    accumulator.Reload()
    curves = {tag: accumulator.Scalars(tag) for tag in accumulator.Tags()[_SCALARS]}
    return {tag: sorted({one.step: float(one.value) for one in curve}.items()) for tag, curve in curves.items()}
