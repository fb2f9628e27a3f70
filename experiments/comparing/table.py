"""The tables of an evaluation and of a sweep in the terminal, under their setting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from ...policies import Policy, make_for
from ...simulator.engine.metric_registry import METRICS, Metric, columns
from ...simulator.rules.rule import Rule
from ..console.terminal import plain_table, styled
from ..playing.by_group import table_of
from ..playing.runs import Run, grouped, is_one, label_and_word, same_as
from ..settings.describing import describe_load, describe_network, describe_topology, describe_workload, semantics_of
from ..settings.evaluation_setting import Setting
from .intervals import FEWEST_TO_TELL, Estimate, against, by_policy, is_resampled
from .replays import notes_of_replays

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Cells = Mapping[str, Mapping[str, Estimate]]  # by value and policy
MARK = "*"
KNOWS = "knows\nrun\ntimes"  # header of the column that says whether a policy knows how long jobs run
SEVERAL = "of one trace, slices:file=TRACE and resampled:file=TRACE make a workload for each seed"
MOST_COLUMNS = 2000  # wider than any table
LONGEST_UNBROKEN = 14
WIDEST_FACT = 28
ALWAYS_SAID = ("order", "head", "placer")
SWEPT_COLUMN, FIRST_COLUMN = 19, 14  # characters that a policy's numbers and a value need in the table of a sweep


def print_setting(console: Console, setting: Setting, words: Sequence[str], seeds: Sequence[int]) -> None:
    """Print the setting and the rules of the policies, whose words may have labels."""
    config = setting.config
    facts = {
        "environment": setting.environment,
        "topology": describe_topology(setting.topology, config.unit),
        "workload": describe_workload(setting, seeds[0]),
        "network": describe_network(setting),
        "load": describe_load(setting, seeds),
        "seeds": ranges(seeds),
    }
    if setting.oversize != "error":
        facts["oversize"] = setting.oversize
    if setting.window is not None:
        facts["window"] = f"{setting.window} s: its time, and the jobs that arrive in it"
    if unusual := config.unusual():
        facts["options"] = shown(unusual)
    for label, word in map(label_and_word, words):
        policy = make_for(word, setting.environment)
        options_text = shown(_policy_options(policy, setting))
        said = options_text if policy.rule else f"decides in Python {options_text}".rstrip()
        facts[label or word] = f"{word} {said}" if label else said
    grid = plain_table(show_header=False, box=None)
    grid.add_column(no_wrap=max(map(len, facts)) <= WIDEST_FACT, max_width=WIDEST_FACT, overflow="fold", style="bold")
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(styled(name if len(name) <= WIDEST_FACT else broken(name)), styled(value))
    console.print(grid)


def _policy_options(policy: Policy, setting: Setting) -> dict[str, Any]:
    """A rule's kind and all that is not as usual; the cost of a preemption too for policies that preempt."""
    every, rule = semantics_of(policy, setting), policy.rule
    if rule is None:
        return every
    usual = {field.name: field.default for field in fields(Rule)}
    stops = rule.preemptive or rule.preempt or rule.migrates or rule.lease > 0.0
    always = {*ALWAYS_SAID, *(["preemption_cost"] if stops else [])}
    return {key: value for key, value in every.items() if key in always or value != usual.get(key)}


def shown(parameters: Mapping[str, Any]) -> str:
    """Parameters as they are typed: key=value, lists with "/"."""
    return " ".join(f"{key}={_value(value)}" for key, value in parameters.items())


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return "/".join(map(_value, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def ranges(seeds: Sequence[int]) -> str:
    """Seeds as they are typed: "0-4,7"."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1][1:] = [seed]
        else:
            parts.append([seed])
    return ",".join("-".join(map(str, part)) for part in parts)


def print_table(console: Console, runs: Sequence[Run], more: Sequence[str] = ()) -> None:
    """Print one row a policy: means over seeds, 95 % intervals under them, the best marked; lines `more` below."""
    estimates = by_policy(runs)
    knows = {run.policy: run.knows_run_times for run in runs}
    shown = columns({name for name in METRICS if all(name in row for row in estimates.values())})
    best = {one: best_of(one, {policy: row[one.name] for policy, row in estimates.items()}) for one in shown}
    unfinished = any(run.metrics["jobs_finished"] < run.jobs for run in runs)

    def drawn(intervals: bool) -> Table:
        lines = {}
        for policy, row in estimates.items():
            lines[policy] = [_cell(metric, row[metric.name], policy in best[metric], intervals) for metric in shown]
            if unfinished:
                lines[policy].append(styled(f"{row['jobs_finished'].mean:,.6g}"))
        return policy_table([metric.title for metric in shown] + ["finished"] * unfinished, lines, knows)

    intervals, needed = print_fitting(console, drawn, estimates)
    notes = [f"{MARK} best of its column"] if any(best.values()) else []
    if any(not row[metric.name].is_sure for row in estimates.values() for metric in shown):
        below = f"below: 95 % interval of {'logs like this one' if is_resampled(runs) else 'the mean over seeds'}"
        notes.append(below if intervals else f"{needed} columns have room for the intervals")
    if unfinished:
        notes.append("jobs that had not finished at the end are in no JCT")
    if notes:
        console.print("; ".join(notes), style="dim", markup=False)
    replays = [f"{word}: {text}" for word, text in notes_of_replays(runs).items()]
    for line in [*_alone(runs), *same_as(runs), *replays, *filter(None, more)]:
        console.print(line, style="dim", markup=False)


def print_groups(console: Console, runs: Sequence[Run], by: str) -> None:
    """Print a row for each policy and group of jobs, or kind of copies."""
    headers, rows, note = table_of(runs, by)
    table = plain_table(padding=(0, 1, 0, 0))
    for header in headers[:2]:
        table.add_column(header, overflow="fold")
    for header in headers[2:]:
        table.add_column(styled(header), justify="right", no_wrap=True)
    for policy, *cells in rows:
        table.add_row(styled(broken(policy)), *map(styled, cells))
    console.print(table)
    console.print(note, style="dim", markup=False)


def _alone(runs: Sequence[Run]) -> list[str]:
    by_word = grouped(runs)
    alike = {policy: mine for policy, mine in by_word.items() if len(mine) > 1 and is_one(mine)}
    fixed = [policy for policy, mine in alike.items() if not any(run.is_drawn for run in mine)]
    sentences = []
    if fixed:
        who = "" if len(fixed) == len(by_word) else f" of {', '.join(fixed)}"
        sentences.append(f"nothing{who} depends on the seed: one run stands for all seeds; {SEVERAL}")
    if len(fixed) < len(alike):
        who = ", ".join(policy for policy in alike if policy not in fixed)
        sentences.append(f"{who}: what is drawn changed nothing on these seeds; they count as one run")
    return sentences


def print_comparison(console: Console, runs: Sequence[Run], baseline: str) -> None:
    """Print one row a policy, the shortest mean JCT first: its ratio to the baseline's and the difference, paired."""
    knows = {run.policy: run.knows_run_times for run in runs}
    found = list(against(runs, baseline).items())
    found.sort(key=lambda item: (math.isnan(item[1].ratio.mean), item[1].ratio.mean))
    headers = ["JCT mean\nratio", "95 %\ninterval", "difference\n[s]", "95 %\ninterval", "shorter on\n[seeds]"]

    def drawn(wide: bool) -> Table:
        lines = {}
        for policy, row in found:
            differences = f"{_signed(row.difference.low)} to {_signed(row.difference.high)}"
            cells = [
                marked(f"{row.ratio.mean:.3f}", row.ratio.is_below(1.0)),
                styled("" if row.ratio.is_sure else f"{row.ratio.low:.3f}-{row.ratio.high:.3f}", "dim"),
                styled(_signed(row.difference.mean)),
                styled("" if row.difference.is_sure else differences, "dim"),
                styled("baseline" if policy == baseline else f"{row.lower} of {row.seeds}"),
            ]
            lines[policy] = cells if wide else cells[:3] + cells[4:]
        return policy_table(headers if wide else headers[:3] + headers[4:], lines, knows)

    console.print(styled(f"\nagainst {baseline}, on the same workloads:", "bold"))
    print_fitting(console, drawn, [word for word, _ in found])
    notes = [f"{MARK} interval wholly below 1"] if any(row.ratio.is_below(1.0) for _, row in found) else []
    notes.append("ratio of the means over seeds, paired by seed")
    if any(1 < row.seeds < FEWEST_TO_TELL for _, row in found):
        notes.append(f"no {MARK} on fewer than {FEWEST_TO_TELL} seeds")
    console.print("; ".join(notes), style="dim", markup=False)


def _signed(seconds: float) -> str:
    return "0" if seconds == 0.0 else f"{seconds:+,.{1 if abs(seconds) < 100 else 0}f}"


def print_sweep(console: Console, name: str, runs: Mapping[str, Sequence[Run]], baseline: str | None) -> None:
    """Print the mean JCT of each policy at each value (`runs`: value -> runs), and its ratio to a baseline's."""
    means = {value: {word: row["jct_mean"] for word, row in by_policy(mine).items()} for value, mine in runs.items()}
    least = {value: best_of(METRICS["jct_mean"], row) for value, row in means.items()}
    console.print(styled("mean JCT [s], 95 % interval", "bold"))
    _print_swept(console, name, means, least, lambda value: f"{value:,.{1 if abs(value) < 1000 else 0}f}")
    notes = [f"{MARK} least of its row"] if any(least.values()) else []
    if baseline is not None:
        compared = {value: against(mine, baseline) for value, mine in runs.items()}
        ratios = {value: {word: one.ratio for word, one in row.items()} for value, row in compared.items()}
        below = {value: {word for word, one in row.items() if one.is_below(1.0)} for value, row in ratios.items()}
        console.print(styled(f"ratio to {baseline}'s mean JCT on the same workloads, 95 % interval", "bold"))
        _print_swept(console, name, ratios, below, "{:.3f}".format)
        if any(below.values()):
            notes.append(f"of ratios {MARK}: interval wholly below 1, on {FEWEST_TO_TELL} seeds or more")
    if notes:
        console.print("; ".join(notes), style="dim", markup=False)
    # Each with a seed of its own: policies that go alike at all values are found.
    mixed = [(number, run) for number, mine in enumerate(runs.values()) for run in mine]
    numbered = (replace(run, seed=len(runs) * run.seed + number) for number, run in mixed)
    for line in same_as(numbered):
        console.print(line, style="dim", markup=False)


def _print_swept(
    console: Console, name: str, cells: Cells, marked: Mapping[str, set[str]], shown: Callable[[float], str]
) -> None:
    words = list(next(iter(cells.values())))
    at_once = max(1, (console.width - FIRST_COLUMN) // SWEPT_COLUMN)
    for first in range(0, len(words), at_once):
        some = words[first : first + at_once]
        table = plain_table(padding=(0, 1, 0, 0))
        for header in (name, *some):
            table.add_column(styled(header), justify="right", overflow="fold")
        for value, row in cells.items():
            drawn = [_swept_cell(row[word], shown, word in marked[value]) for word in some]
            table.add_row(styled(value), *drawn)
        console.print(table)


def _swept_cell(value: Estimate, shown: Callable[[float], str], is_marked: bool) -> Text:
    if math.isnan(value.mean):
        return styled("- ")
    cell = marked(shown(value.mean), is_marked)
    if not value.is_sure:
        cell.append(f"\n{shown(value.low)}-{shown(value.high)} ".replace(",", ""), style="dim not bold")
    return cell


def policy_table(headers: Sequence[str], lines: Mapping[str, Sequence[Text]], knows: Mapping[str, str]) -> Table:
    """A row a policy: its word, whether it knows run times, and what its line has under the headers."""
    table = plain_table(padding=(0, 1, 0, 0))
    table.add_column("policy", overflow="fold", min_width=10)
    table.add_column(styled(KNOWS), overflow="fold", min_width=5)
    for header in headers:
        table.add_column(styled(header), justify="right", no_wrap=True)
    for policy, cells in lines.items():
        table.add_row(styled(broken(policy)), styled(knows[policy] or "-"), *cells)
    return table


def print_fitting(console: Console, drawn: Callable[[bool], Table], policies: Iterable[str]) -> tuple[bool, int]:
    """Print the wide table, or the narrow one if it has no room; whether it had, and the columns that it needs."""
    needed = width_of(console, wide := drawn(True), policies)
    console.print(wide if needed <= console.width else drawn(False))
    return needed <= console.width, needed


def width_of(console: Console, table: Table, policies: Iterable[str]) -> int:
    """Columns that a table needs whole; long words of policies may break."""
    from rich.measure import Measurement

    widest = max((len(line) for policy in policies for line in broken(policy).splitlines()), default=0)
    whole = Measurement.get(console, console.options.update(max_width=MOST_COLUMNS), table).maximum
    return whole - max(0, widest - LONGEST_UNBROKEN)


def broken(policy: str) -> str:
    """A long word of a policy with a line a parameter."""
    if len(policy) <= LONGEST_UNBROKEN:
        return policy
    name, colon, rest = policy.partition(":")
    if name == "py":  # its file stands beside it
        file, colon, rest = rest.partition(":")
        name = f"py:{file}"
    if not colon:
        return policy
    return name + colon + "".join(f"\n {part}" for part in rest.replace(",", ",\0").split("\0"))


def best_of(metric: Metric, estimates: Mapping[str, Estimate]) -> set[str]:
    """The labels of the best means; none where no end is better, or all means are equal."""
    means = {label: metric.better * value.mean for label, value in estimates.items() if not math.isnan(value.mean)}
    if not metric.better or len(set(means.values())) < 2:
        return set()
    return {label for label, mean in means.items() if mean == max(means.values())}


def _cell(metric: Metric, value: Estimate, is_best: bool, interval: bool) -> Text:
    low, mean, high = (metric.factor * number for number in (value.low, value.mean, value.high))
    is_count = metric.unit == "count"
    digits = 0 if abs(mean) >= (100 if is_count else 1000) or (is_count and mean % 1.0 == 0.0) else 1
    cell = marked("-" if math.isnan(mean) else f"{mean:,.{digits}f}", is_best)
    if interval and not value.is_sure:
        cell.append(f"\n{low:.{digits}f}-{high:.{digits}f} ", style="dim")
    return cell


def marked(shown: str, is_marked: bool) -> Text:
    """A number, in bold green with a mark if it is to be seen."""
    return styled(shown + (MARK if is_marked else " "), "bold green" if is_marked else "")
