"""What has been tried, as a table: DIR/trials.csv, written after every trial, and the lines of the terminal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...simulator.files.csv_cells import write_csv
from ..console.terminal import written_whole
from .space import Parameter
from .trial_search import REFUSED, Search, Trial, quietly

TABLE = "trials.csv"
COLUMNS = ("trial", "state", "value", "seeds", "seconds", "word", "why")


def state_of(trial: Trial) -> str:
    """`played` to the end, `stopped` early, or `refused`."""
    return "refused" if trial.refused else "stopped" if trial.outcome.stopped else "played"


def row_of(trial: Trial, space: Sequence[Parameter]) -> dict[str, Any]:
    """A trial as one row: `COLUMNS`, then the parameters; those of the defaults, and what was not asked, are empty."""
    outcome = trial.outcome
    head = (
        trial.place,
        state_of(trial),
        outcome.value,
        len(outcome.per_seed),
        trial.seconds,
        outcome.word,
        trial.refused or outcome.stopped,
    )
    return dict(zip(COLUMNS, head, strict=True)) | {one.key: trial.values.get(one.key) for one in space}


def write(trials: Sequence[Trial], space: Sequence[Parameter], folder: Path) -> None:
    """Write the table of all trials."""
    rows = [list(row_of(trial, space).values()) for trial in trials]
    with written_whole(folder / TABLE) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        header = [*COLUMNS, *(one.key for one in space)]
        write_csv(file, header, ([None if _is_missing(value) else value for value in row] for row in rows))


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def importance(search: Search) -> dict[str, float]:
    """How much each parameter matters, shares of 1, the largest first (PED-ANOVA); empty where it cannot be told.

    Trials that were stopped early count with what they had reached: without them a choice that is always worse would
    seem to be none. Of a parameter that is asked only sometimes, where it is.
    """
    import optuna

    ended = [trial for trial in search.study.get_trials(deepcopy=False) if _is_measured(trial)]
    if len({trial.value for trial in ended}) < 2:
        return {}
    with quietly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = optuna.create_study(direction=search.subject.direction)
        whole.add_trials(
            optuna.trial.create_trial(value=trial.value, params=trial.params, distributions=trial.distributions)
            for trial in ended
        )
        try:
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            found = optuna.importance.get_param_importances(whole, evaluator=evaluator)
        except (ValueError, RuntimeError, ZeroDivisionError):  # too few trials, or all alike
            return {}
    return {key: float(value) for key, value in found.items() if math.isfinite(value)}


def _is_measured(trial: Any) -> bool:
    return trial.state.name in ("COMPLETE", "PRUNED") and trial.value is not None and not trial.user_attrs[REFUSED]
