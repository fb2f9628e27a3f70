"""One training a seed, in other processes or on other machines, in pieces of some minutes.

A piece begins with a copy of the training's folder and ends at a rollout, with a checkpoint; a training that goes on
from a checkpoint ends with the weights of one without a stop. So a kill of a process or machine loses a piece at most,
and other machines need no disk of ours.
"""

from __future__ import annotations

import io
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulator.base.errors import InputError
from ..console.terminal import typed
from ..playing.executors import Executor

if TYPE_CHECKING:
    from ...agents.training.config import Config

PIECE_S = 300.0  # after which a piece ends at the next rollout


@dataclass(frozen=True)
class Piece:
    """A part of a training."""

    seed: int
    values: Mapping[str, Any]  # the configuration of the training
    folder: bytes  # its folder as a zip archive; empty: it has not begun
    command: str  # as it was typed
    seconds: float  # after which it ends at the next rollout


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a training."""

    step: int = 0  # training steps done
    best: Mapping[str, Any] | None = None  # result of its best agent on the validation; None: it goes on


class _Enough(Exception):
    """The piece is long enough."""


def folder_of(folder: Path, seed: int) -> Path:
    """Where the training of a seed is."""
    return folder / f"seed={seed}"


def progress_of(folder: Path, config: Config) -> TrainingProgress:
    """The progress of the training in `folder`; InputError if it has another configuration or cannot be read."""
    from ...agents.files.checkpoint import read_checkpoint
    from ...agents.files.folders import complete_folder
    from ...agents.training.config import make_config
    from ...agents.training.trainer import CHECKPOINT
    from ...agents.training.what_is_read import expect_same, read_in
    from .training import CONFIG, read_config

    if not (folder / CONFIG).exists():
        return TrainingProgress()
    if make_config(read_config(folder), str(folder / CONFIG)).model_dump(mode="json") != config.model_dump(mode="json"):
        raise InputError(f"{folder}: the training there has another configuration; give another folder")
    if not complete_folder(folder / CHECKPOINT).is_dir():
        return TrainingProgress()
    saved = read_checkpoint(folder / CHECKPOINT)
    expect_same(saved.data.get("read", {}), read_in(config), folder / CHECKPOINT)
    is_whole = saved.step >= config.timesteps and saved.data["next_evaluation"] > saved.step
    return TrainingProgress(saved.step, saved.data["best"] if is_whole else None)


def train_seeds(
    configs: Mapping[int, Config],
    folder: Path,
    executor: Executor,
    progress: Callable[[float], None] = lambda steps: None,
    piece_s: float = PIECE_S,
) -> dict[int, Mapping[str, Any]]:
    """Train once for each seed, into `folder`/seed=N, in pieces of `piece_s` seconds; returns the results by seed.

    Trainings that stand there go on, those that ended stay. `progress` is called with the training steps done in all.
    """
    found = {seed: progress_of(folder_of(folder, seed), config) for seed, config in configs.items()}
    while left := [seed for seed, one in found.items() if one.best is None]:
        progress(sum(one.step for one in found.values()))
        values = {seed: configs[seed].model_dump(mode="json") for seed in left}
        pieces = [Piece(seed, values[seed], _packed(folder_of(folder, seed)), typed.get(), piece_s) for seed in left]
        for seed, packed in executor.each(train_piece, pieces):
            _unpack(packed, folder_of(folder, seed))
            found[seed] = progress_of(folder_of(folder, seed), configs[seed])
            progress(sum(one.step for one in found.values()))
    return {seed: one.best for seed, one in found.items() if one.best is not None}


def train_piece(piece: Piece) -> tuple[int, bytes]:
    """Go on with a training for some minutes; returns its seed and its folder then."""
    from ...agents.files.folders import complete_folder
    from ...agents.training.config import make_config
    from ...agents.training.trainer import CHECKPOINT, Training
    from .training import words_beside, write_config

    config = make_config(dict(piece.values), "configuration")
    with tempfile.TemporaryDirectory(prefix="clustergym-training-") as place:
        folder = Path(place) / "training"
        folder.mkdir()
        _extract(piece.folder, folder)
        resume = complete_folder(folder / CHECKPOINT).is_dir()
        log = _log_until(folder, config, resume, time.monotonic() + piece.seconds)
        training = Training(config, folder, log, command=piece.command)
        if not resume:
            write_config(folder, config)
            log.heuristics(training.validation, words_beside(config))
        try:
            log.finished(training.run(resume))
        except _Enough:
            training.checkpoint()
            log.log.close()
        return piece.seed, _packed(folder)


def _log_until(folder: Path, config: Config, resume: bool, until_s: float) -> Any:
    """The listener of a training, which ends the piece at the first rollout after `until_s`."""
    from ...agents.files.checkpoint import read_checkpoint
    from ...agents.training.trainer import CHECKPOINT
    from .training import TrainingLog

    begun_at = read_checkpoint(folder / CHECKPOINT).step if resume else -1

    def enough(step: float) -> None:
        if time.monotonic() > until_s and step > begun_at:
            raise _Enough

    return TrainingLog(folder, config, begun_at if resume else None, enough, quiet=True)


def _packed(folder: Path) -> bytes:
    if not folder.is_dir():
        return b""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            with suppress(FileNotFoundError):  # a draft that has just found its place
                if path.is_file():
                    archive.writestr(path.relative_to(folder).as_posix(), path.read_bytes())
    return held.getvalue()


def _extract(packed: bytes, folder: Path) -> None:
    if packed:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            archive.extractall(folder)


def _unpack(packed: bytes, folder: Path) -> None:
    from ...agents.files.folders import replaced_whole

    with replaced_whole(folder) as draft:
        _extract(packed, draft)
