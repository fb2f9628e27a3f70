"""What a search found, on the terminal and as JSON: the best trials, what matters, and what it is worth unseen."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...simulator.base.names import short_name
from ..comparing.table import ranges
from ..console.terminal import plain_table
from .judging import Judged, overall
from .of_training import BEST, TRIALS, TrainingParameters
from .trial_search import Search, Trial
from .trials import importance, row_of, state_of

if TYPE_CHECKING:
    from rich.console import Console

BEST_SHOWN = 5
SAID: Mapping[str, str] = {
    "better": "it is better than the defaults: the whole interval says so",
    "worse": "it is worse than the defaults there: keep the defaults",
    "as good": "no difference to the defaults can be told on these seeds",
    "one run": "nothing depends on the seed, so this is the run that was tuned on: judge it on another workload",
    "mixed": "it is better in some scenarios and not in others",
}


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Attributes:
        search: the search.
        trials: all that have ended.
        judged: the best beside the defaults, by scenario; none: these are the best.
        seeds: what was judged on.
        typed: ENV and the options that say what is played on.
    """

    search: Search
    trials: Sequence[Trial]
    judged: Sequence[Judged]
    seeds: tuple[int, ...]
    typed: str

    @property
    def best(self) -> Trial:
        """The best trial; the defaults are played to the end always."""
        best = self.search.best_of(self.trials)
        assert best is not None
        return best

    @property
    def ranked(self) -> list[Trial]:
        """The trials that were played to the end, the best first."""
        sign = 1.0 if self.search.subject.direction == "minimize" else -1.0
        return sorted((one for one in self.trials if one.is_whole), key=lambda one: sign * one.outcome.value)


def document(found: Found) -> dict[str, Any]:
    """All of it as JSON."""
    subject, best = found.search.subject, found.best
    training = isinstance(subject, TrainingParameters)
    return {
        "about": {key: value for key, value in subject.about().items() if key not in ("sources", "content")},
        "space": list(map(str, found.search.space)),
        "trials": [row_of(trial, found.search.space) for trial in found.trials],
        "best": {
            "trial": best.place,
            "value": best.outcome.value,
            "parameters": dict(best.values),
            ("folder" if training else "policy"): best.outcome.word,
        },
        "importance": importance(found.search),
        "judged": {
            "seeds": list(found.seeds),
            "verdict": overall(found.judged) if found.judged else "the defaults are the best",
            "scenarios": [
                {
                    "name": one.name,
                    "metric": one.metric,
                    "verdict": one.verdict,
                    "ratio": asdict(one.comparison.ratio),
                    "difference": asdict(one.comparison.difference),
                    "lower_on": one.comparison.lower,
                    "pairs": one.comparison.seeds,
                }
                for one in found.judged
            ],
        },
    }


def print_all(console: Console, found: Found) -> None:
    """Print it, the words to copy last."""
    _print_head(console, found)
    _print_trials(console, found)
    weights = importance(found.search)
    if weights:
        shares = ", ".join(f"{key} {share:.2f}" for key, share in weights.items())
        console.print(
            f"importance: {shares} (PED-ANOVA: by how the best tenth of the trials differs from all)",
            markup=False,
            soft_wrap=True,
        )
    _print_judged(console, found)
    for line in _to_copy(found):
        console.print(line, markup=False, soft_wrap=True)


def _print_head(console: Console, found: Found) -> None:
    subject = found.search.subject
    counts = [state_of(trial) for trial in found.trials]
    told = ", ".join(f"{counts.count(state)} {state}" for state in ("played", "stopped", "refused") if state in counts)
    facts = {"tuned": _what(found), "trials": f"{len(counts)}: {told.replace('stopped', 'stopped early')}"}
    if not isinstance(subject, TrainingParameters):
        about = subject.about()
        facts |= {"seeds": ranges(about["seeds"]), "metric": about["metric"]}
    facts["space"] = "; ".join(map(str, found.search.space))
    grid = plain_table(show_header=False, box=None)
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(name, _plain(value))
    console.print(grid)


def _what(found: Found) -> str:
    subject = found.search.subject
    if isinstance(subject, TrainingParameters):
        return f"training in {subject.config.environment}, {subject.config.timesteps:,} steps a trial"
    return f"{subject.about()['what']} in {subject.about()['environment']}"


def _print_trials(console: Console, found: Found) -> None:
    training = isinstance(found.search.subject, TrainingParameters)
    table = plain_table(padding=(0, 1, 0, 0))
    table.add_column("trial", justify="right", no_wrap=True)
    table.add_column("score" if training else "ratio to\ndefaults", justify="right", no_wrap=True)
    table.add_column("parameters", overflow="fold")
    ranked = found.ranked
    shown = ranked[:BEST_SHOWN] + [one for one in ranked[BEST_SHOWN:] if one.place == 0]
    for trial in shown:
        values = " ".join(f"{key}={value}" for key, value in trial.values.items())
        table.add_row(str(trial.place), f"{trial.outcome.value:.4f}", _plain(values or "the defaults"))
    console.print(table)
    if training:
        reference = found.search.subject.config.reference  # type: ignore[attr-defined]
        console.print(f"score: mean JCT on the validation workloads / {reference}'s", style="dim", markup=False)


def _print_judged(console: Console, found: Found) -> None:
    if not found.judged:
        console.print("\nno parameters were better than the defaults on what they were tuned on", markup=False)
        return
    console.print(f"\njudged on seeds {ranges(found.seeds)}, which no trial was played on:", style="bold", markup=False)
    for one in found.judged:
        ratio, row = one.comparison.ratio, one.comparison
        name = f"{one.name}: " if one.name else ""
        interval = "" if ratio.is_sure else f", 95 % interval {ratio.low:.3f} to {ratio.high:.3f}"
        console.print(
            f"{name}{one.metric} is {ratio.mean:.3f} times that of the defaults{interval}; "
            f"lower on {row.lower} of {row.seeds} seeds",
            markup=False,
            soft_wrap=True,
        )
    console.print(SAID[overall(found.judged)], markup=False, soft_wrap=True)


def _to_copy(found: Found) -> list[str]:
    subject, best, folder = found.search.subject, found.best, found.search.folder
    kept = [] if folder is None else [f"trials       {folder / 'trials.csv'}"]
    if best.place == 0:
        return kept
    seeds = ranges(found.seeds)
    if isinstance(subject, TrainingParameters):
        env = shlex.split(found.typed)[0]
        first = subject.config.validation[0]
        places = {"topology": first.topology, "network": first.network, "workload": first.workloads[0]}
        options = shlex.join(part for name, value in places.items() for part in (f"--{name}", value))
        short = short_name(subject.config.environment)
        words = f"{subject.agent(best.place)} {subject.agent(0)}"
        return [
            *kept,
            f"its values   {subject.folder / BEST}",
            f"train more   clustergym train {env} --config {subject.folder / BEST} --logdir DIR",
            f"compare it   clustergym evaluate {short} {options} --policies {shlex.quote(words)} --seeds {seeds}",
            f"its curves   tensorboard --logdir {subject.folder / TRIALS}",
        ]
    word = best.outcome.word
    default = subject.about()["what"].removeprefix("policy ")
    return [
        *kept,
        f"its word     {word}",
        f"compare it   clustergym evaluate {found.typed} --policies {shlex.quote(f'{default} {word}')} "
        f"--seeds {seeds} --baseline {shlex.quote(default)}",
    ]


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)
