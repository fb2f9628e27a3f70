"""Evaluations on disk: every finished run at once, so that a killed one goes on; `read` gives all of it back.

A folder holds the runs of one setting, from any number of commands: policies and seeds add up.

    DIR/evaluation.json   the setting, hashes of what its words name, versions, and the policies (see `Store`)
    DIR/runs/KEY.parquet  one run: a row (columns below); KEY is a hash of policy and seed
    DIR/results.parquet   all runs as one table for other programs: written at the end and every minute or so
    DIR/command.json      the commands that made it (see `command_log.py`)

Columns of a run: `identity` (hash of all that its numbers depend on), `policy`, `seed`, `jobs` (how many there were),
`metrics` (struct of float64, names of `simulator/metrics.py`), `jct_s` (list of float64, of the finished jobs, in
order of arrival). Of recorded runs also `timeline_*`, the fields of `recording.Timeline` (`timeline_gpus` lists the
GPUs of all stretches on end, `timeline_gpu_count` says how many each has), and `decision_*`, lists of words, the last
four of `evaluate.DECISION_COLUMNS`. Recorded are, by default, the runs of the first seed of a command.

What is never mixed: other words of the setting are refused. A trace, topology or network file with another content,
other sources or versions, an agent whose files have changed: the run is another, and is played anew in its place; of
what is in the folder, `read` gives only runs that belong together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .evaluate import Run, Setting


@dataclass(frozen=True)
class Evaluation:
    """What a folder holds.

    Attributes:
        folder: where it was read from.
        setting: what all runs were played on.
        runs: policies in the order in which they were evaluated first, then ascending seeds. A run has its metrics
            and `jct_s`; `timeline` and `decisions` where they were recorded (else None and empty).
        versions: name -> version, of clustergym, python and the libraries that numbers depend on.
        commands: one dict a command, oldest first: `command` (one line as typed), `date` (ISO, UTC), `wall_s` (None:
            it did not end), `processes`, `versions`.
    """

    folder: Path
    setting: Setting
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

    def timeline_runs(self) -> dict[str, Run]:
        """Policy -> its first run that has a timeline."""
        found: dict[str, Run] = {}
        for run in self.runs:
            if run.timeline is not None:
                found.setdefault(run.policy, run)
        return found


def read(folder: Path, timelines: bool = True) -> Evaluation:
    """What was evaluated into `folder`, also while that goes on or after it was killed.

    Args:
        folder: DIR of `evaluate --logdir DIR`.
        timelines: False leaves timelines and decisions on disk.

    Raises:
        InputError: the folder holds no evaluation, or one that this version cannot read.
    """
