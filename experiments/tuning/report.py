"""The result of a search: DIR/trials.csv after every trial, and the best one beside the defaults, on unseen seeds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulator.base.names import short_name
from ...simulator.files.csv_cells import write_csv
from ..comparing.intervals import FEWEST_TO_TELL, Comparison
from ..comparing.table import ranges
from ..console.terminal import out, plain_table, print_lines, styled, written_whole
from .subjects import BEST, PER_SEED, TRIALS, VALUES, TrainingParameters, direction_of
from .trial_search import FATE, PLAYED, REFUSED, SECONDS, STOPPED, WHY, Search

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

TABLE = "trials.csv"
BEST_SHOWN = 5
SAID: Mapping[str, str] = {
    "better": "it is better than the defaults: the whole interval says so",
    "worse": "it is worse than the defaults there: keep the defaults",
    "as good": "no difference to the defaults can be told on these seeds",
    "one run": "nothing depends on the seed, so this is the run that was tuned on: judge it on another workload",
    "mixed": "it is better in some scenarios and not in others",
}
Judged = Mapping[str, Comparison]  # by scenario, of the best with the defaults; none: these are the best


def row_of(trial: FrozenTrial, search: Search) -> dict[str, Any]:
    """A trial as one row of the table; parameters of the defaults, and those that were not asked, are None."""
    attrs = trial.user_attrs
    value, seeds = None if attrs[FATE] == REFUSED else trial.value, len(attrs.get(PER_SEED, ()))
    row = {"trial": trial.number, "state": attrs[FATE], "value": value, "seeds": seeds, "seconds": attrs[SECONDS]}
    row |= {"word": search.subject.word(trial), "why": attrs[WHY]}
    return row | {one.key: attrs[VALUES].get(one.key) for one in search.space}


def write_trials(search: Search, folder: Path) -> None:
    """Write the table of all trials that have ended."""
    rows = [row_of(trial, search) for trial in search.ended]
    with written_whole(folder / TABLE) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        write_csv(file, list(rows[0]), (list(row.values()) for row in rows))


def importance(search: Search) -> dict[str, float]:
    """How much each parameter matters, shares of 1, the largest first (PED-ANOVA); empty where it cannot be told.

    Trials that were stopped early count with their last value: without them a choice that is always worse would be
    missing.
    """
    from optuna import create_study, importance
    from optuna.trial import create_trial

    whole = create_study(direction=direction_of(search.subject.metric))
    for one in search.ended[1:]:
        if one.user_attrs[FATE] != REFUSED:
            whole.add_trial(create_trial(value=one.value, params=one.params, distributions=one.distributions))
    try:
        return importance.get_param_importances(whole, evaluator=importance.PedAnovaImportanceEvaluator())
    except (ValueError, RuntimeError, ZeroDivisionError):  # too few trials, or all alike
        return {}


def verdict(judged: Judged, metric: str) -> str:
    """The intervals' verdict on the best: `better`, `worse`, `as good` (none can be told), `one run`, or `mixed`."""
    found = set()
    for one in judged.values():
        is_above = one.ratio.runs >= FEWEST_TO_TELL and not one.ratio.is_sure and one.ratio.low > 1.0
        is_other = is_above or one.ratio.is_below(1.0)
        is_better = is_above == (direction_of(metric) == "maximize")
        found.add("one run" if one.seeds < 2 else "as good" if not is_other else "better" if is_better else "worse")
    return found.pop() if len(found) == 1 else "mixed"


def document(search: Search, judged: Judged, seeds: Sequence[int]) -> dict[str, Any]:
    """All of it as JSON."""
    best = search.ranked[0]
    word, scenarios = search.subject.word(best), [{"name": name, **asdict(one)} for name, one in judged.items()]
    said = verdict(judged, search.subject.metric) if judged else "the defaults are the best"
    return {
        "about": {key: value for key, value in search.subject.about().items() if key not in ("sources", "content")},
        "space": [one.said for one in search.space],
        "trials": [row_of(trial, search) for trial in search.ended],
        "best": {"trial": best.number, "value": best.value, "parameters": best.user_attrs[VALUES], "policy": word},
        "importance": importance(search),
        "judged": {"seeds": list(seeds), "metric": search.subject.metric, "verdict": said, "scenarios": scenarios},
    }


def print_all(search: Search, judged: Judged, seeds: Sequence[int], typed: str) -> None:
    """Print it, the words to copy last; `typed`: ENV and the options of the setting."""
    about, metric = search.subject.about(), search.subject.metric
    fates = [trial.user_attrs[FATE] for trial in search.ended]
    said = {PLAYED: "played", STOPPED: "stopped early", REFUSED: "refused"}
    counts = ", ".join(f"{fates.count(fate)} {words}" for fate, words in said.items() if fate in fates)
    steps = f", {about['timesteps']:,} steps a trial" if "timesteps" in about else ""
    lines = [f"tuned   {about['what']} in {about['environment']}{steps}", f"trials  {len(fates)}: {counts}"]
    lines += [f"seeds   {ranges(about['seeds'])}", f"metric  {metric}"] if "seeds" in about else []
    print_lines(*lines, f"space   {'; '.join(one.said for one in search.space)}")
    _print_trials(search)
    shares = ", ".join(f"{key} {share:.2f}" for key, share in importance(search).items())
    lines = [f"importance: {shares} (PED-ANOVA: by how the best tenth of the trials differs from all)"] * bool(shares)
    if judged:
        lines += [f"\njudged on seeds {ranges(seeds)}, which no trial was played on:"]
        for name, one in judged.items():
            interval = "" if one.ratio.is_sure else f", 95 % interval {one.ratio.low:.3f} to {one.ratio.high:.3f}"
            ratio = f"{metric} is {one.ratio.mean:.3f} times that of the defaults{interval}"
            lines += [f"{name}{': ' if name else ''}{ratio}; lower on {one.lower} of {one.seeds} seeds"]
        lines += [SAID[verdict(judged, metric)]]
    else:
        lines += ["\nno parameters were better than the defaults on what they were tuned on"]
    print_lines(*lines, *_to_copy(search, ranges(seeds), typed))


def _print_trials(search: Search) -> None:
    table = plain_table(padding=(0, 1, 0, 0))
    table.add_column("trial", justify="right", no_wrap=True)
    training = isinstance(search.subject, TrainingParameters)
    table.add_column("score" if training else "ratio to\ndefaults", justify="right", no_wrap=True)
    table.add_column("parameters", overflow="fold")
    ranked = search.ranked
    for trial in ranked[:BEST_SHOWN] + [one for one in ranked[BEST_SHOWN:] if one.number == 0]:
        values = " ".join(f"{key}={value}" for key, value in trial.user_attrs[VALUES].items())
        table.add_row(str(trial.number), f"{trial.value:.4f}", styled(values or "the defaults"))
    out().print(table)
    if isinstance(search.subject, TrainingParameters):
        print_lines(f"score: mean JCT on the validation workloads / {search.subject.config.reference}'s")


def _to_copy(search: Search, seeds: str, typed: str) -> list[str]:
    subject, best = search.subject, search.ranked[0]
    kept = [] if search.folder is None else [f"trials       {search.folder / TABLE}"]
    if best.number == 0:
        return kept
    default, word = subject.word(search.ended[0]), subject.word(best)
    policies = f"--policies {shlex.quote(f'{default} {word}')} --seeds {seeds} --baseline {shlex.quote(default)}"
    lines = [*kept, f"its word     {word}", f"compare it   clustergym evaluate {typed} {policies}"]
    if isinstance(subject, TrainingParameters):
        env = short_name(subject.config.environment)
        lines += [f"train more   clustergym train {env} --config {subject.folder / BEST} --logdir DIR"]
        lines += [f"its curves   tensorboard --logdir {subject.folder / TRIALS}"]
    return lines
