"""Paper harmony, Figure 13a: what Harmony's gain is worth where what it measures is wrong."""

from __future__ import annotations

from . import harmony_published as published
from .harmony_runs import HARMONY, NO_LIMIT, Cell, gain, jct_h, makespan_h, offered, play, said, under
from .registry import Findings, Options, Reproduction
from .rows import Row, printed

ERRORS = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5)
QUICK_ERRORS = (0.0, 0.075, 0.2)
STEEP_AT, STEEP = 0.2, 50.0  # "rapidly degrades": ours, less than half of the gain is left
TIMES = (("average JCT", jct_h), ("makespan", makespan_h))


def sensitivity(options: Options) -> Findings:
    """Every job's COMP and COMM are measured too long or too short by the error."""
    levels = QUICK_ERRORS if options.quick else ERRORS
    rows: list[Row] = []
    for memory in ("", NO_LIMIT):
        base = under(Cell(), memory)
        cells = {error: under(base, f"model_error={error:g}" * (error > 0.0)) for error in levels}
        runs = play("harmony-sensitivity", options, list(dict.fromkeys((base, *cells.values()))), ("isolated", HARMONY))
        what = "memory without limit: " if memory else ""
        for name, number in TIMES:
            gains = {error: gain(runs, number, HARMONY, cell) for error, cell in cells.items()}
            kept = {error: 100.0 * found / gains[0.0] for error, found in gains.items()}
            rows.append(printed(f"{what}gain in {name} without error", gains[0.0], "%"))
            rows += [
                _row(f"{what}gain in {name} that is kept, error {100 * error:g} %", error, kept[error])
                for error in levels[1:]
            ]
    notes = [
        said(options),
        offered(options, {"80 jobs": Cell()}),
        "COMP and COMM of each job are off by the error, up or down as drawn; gain: isolated's time over Harmony's, "
        "less 1",
        f"a steep loss, published without a number: less than {STEEP:g} % kept at {100 * STEEP_AT:g} %, is ours",
    ]
    return Findings(rows, notes)


def _row(words: str, error: float, kept: float) -> Row:
    if 100.0 * error <= published.INJECTED:
        return Row(words, f"over {published.KEPT:g} %", kept, (published.KEPT, float("inf")), unit="%")
    if error == STEEP_AT:
        return Row(words, "a steep loss", kept, (-float("inf"), STEEP), unit="%")
    return printed(words, kept, "%")


REPRODUCTIONS = (
    Reproduction(
        "harmony-sensitivity", "harmony", "order", "Figure 13a: injected errors of what is measured", sensitivity
    ),
)
