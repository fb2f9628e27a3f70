"""A picture of one iteration: compute, and the collectives of each tier, over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..matplotlib_style import COLOURS, DPI

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .placement_explained import Communication

SHADES = ("#0072B2", "#56B4E9")  # neighbours differ, so that one sees where a collective ends
COMPUTE = ("#009E73", "#007355")
UPDATE = "#E69F00"
LABELLED = 12  # layers whose name is written, if their bar is long enough


def draw(found: Communication, path: Path) -> None:
    """Write the picture of `found` to `path`, png."""
    figure(found).savefig(path, dpi=DPI, format="png")


def figure(found: Communication) -> Figure:
    """A row for compute, one for each tier that the gang spans, and one for updates if there are any."""
    from matplotlib.figure import Figure

    unit_ns, unit = (1e6, "ms") if found.duration_ns >= 1e6 else (1e3, "us")
    rows = ["compute", *(f"{tier.name}\n{tier.kind.replace('_', ' ')} of {tier.units}" for tier in found.tiers)]
    updates = [layer for layer in found.layers if layer.spans_ns and layer.done_ns > layer.spans_ns[-1][1]]
    if updates:
        rows.append("update")
    picture = Figure(figsize=(11.0, 1.8 + 0.7 * len(rows)), layout="constrained")
    axis = picture.subplots()
    forward, end = found.forward_end_ns / unit_ns, found.backward_end_ns / unit_ns
    axis.broken_barh([(0.0, forward), (forward, end - forward)], (-0.35, 0.7), facecolors=COMPUTE)
    for begin, stop, word in ((0.0, forward, "forward"), (forward, end, "backward")):
        axis.text((begin + stop) / 2, 0, word, ha="center", va="center", fontsize=8, color="white")
    for number in range(len(found.tiers)):
        _draw_tier(axis, found, number, unit_ns)
    for layer in updates:
        start = layer.spans_ns[-1][1] / unit_ns
        span = (start, layer.done_ns / unit_ns - start)
        axis.broken_barh([span], (len(rows) - 1.35, 0.7), facecolors=UPDATE, alpha=0.6)
    axis.axvline(end, color=COLOURS[-1], linewidth=0.8, linestyle=":")
    axis.axvspan(end, found.duration_ns / unit_ns, color="#D55E00", alpha=0.10, linewidth=0, zorder=0)
    axis.set_yticks(range(len(rows)), rows)
    axis.invert_yaxis()
    axis.set(xlim=(0, found.duration_ns / unit_ns), xlabel=f"time since the forward pass began [{unit}]")
    axis.set_title(
        f"{found.model}: exposed communication is {found.exposed_over_compute:.4g} of compute (shaded)",
        fontweight="bold",
    )
    axis.spines[["top", "right"]].set_visible(False)
    return picture


def _draw_tier(axis: Axes, found: Communication, number: int, unit_ns: float) -> None:
    spans = sorted((layer.spans_ns[number], layer.name) for layer in found.layers if layer.spans_ns)
    bars = [(start / unit_ns, (end - start) / unit_ns) for (start, end), _ in spans]
    row = number + 1
    shades = [SHADES[i % 2] for i in range(len(bars))]
    axis.broken_barh(bars, (row - 0.35, 0.7), facecolors=shades, edgecolors=shades, linewidth=0.5)  # hair lines show
    longest = sorted(range(len(bars)), key=lambda i: -bars[i][1])[:LABELLED]
    for i in longest:
        if bars[i][1] * unit_ns > 0.06 * found.duration_ns:
            middle = bars[i][0] + bars[i][1] / 2
            axis.text(middle, row, spans[i][1][-14:], ha="center", va="center", fontsize=7, color="white")
