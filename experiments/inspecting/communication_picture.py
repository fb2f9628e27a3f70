"""A picture of one iteration: compute, and the collectives of each tier, over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..charts import axes
from ..charts.chart import Chart, Label, Shape, box, upright
from ..charts.chart_files import save
from ..charts.drawing import laid_out, shortened
from ..charts.marks import styles, variables_of

if TYPE_CHECKING:
    from .placement_explained import Communication

WIDTH, ROW_PX = 1000.0, 44
# Neighbouring collectives differ, so that one sees where each ends.
PARTS = ("forward", "update", "backward", "collectives of layers", "in turn", "exposed")
LETTER_PX = 7.5  # of a name in a bar
LABELLED = 12  # layers whose name is written, if their bar is long enough


def draw(found: Communication, path: Path) -> None:
    """Write the picture of `found` to `path`, png."""
    save(laid_out(chart_of(found), variables_of(styles([], PARTS)), WIDTH), path)


def chart_of(found: Communication) -> Chart:
    """A row for compute, one for each tier that the gang spans, and one for updates if there are any."""
    unit_ns, unit = (1e6, "ms") if found.duration_ns >= 1e6 else (1e3, "us")
    x = axes.linear(0.0, found.duration_ns / unit_ns)
    rows = ["compute", *(f"{tier.name}, {tier.kind.replace('_', ' ')} of {tier.units}" for tier in found.tiers)]
    updates = [layer for layer in found.layers if layer.spans_ns and layer.done_ns > layer.spans_ns[-1][1]]
    rows += ["update"] if updates else []
    bars: list[tuple[int, int, int, str, str]] = [
        (0, 0, found.forward_end_ns, "forward", "forward"),
        (0, found.forward_end_ns, found.backward_end_ns, "backward", "backward"),
    ]
    for number in range(len(found.tiers)):
        spans = sorted((*layer.spans_ns[number], layer.name) for layer in found.layers if layer.spans_ns)
        longest = sorted(range(len(spans)), key=lambda at: spans[at][0] - spans[at][1])[:LABELLED]
        for at, (start_ns, end_ns, name) in enumerate(spans):
            bars.append((number + 1, start_ns, end_ns, PARTS[3 + at % 2], name if at in longest else ""))
    bars += [(len(rows) - 1, layer.spans_ns[-1][1], layer.done_ns, "update", "") for layer in updates]
    shapes: dict[str, list[np.ndarray]] = {}
    inside = []
    for row, start_ns, end_ns, part, name in bars:
        left, right = x.at(np.array([start_ns, end_ns]) / unit_ns).tolist()
        middle = 1.0 - (row + 0.5) / len(rows)
        shapes.setdefault(part, []).append(box(left, right, middle - 0.35 / len(rows), middle + 0.35 / len(rows)))
        room = (right - left) * 0.8 * WIDTH
        if name and room > 5 * LETTER_PX:
            inside.append(((left + right) / 2.0, middle, shortened(name, room, LETTER_PX * 1.5)))
    looks = styles([], PARTS)
    after = float(x.at(found.backward_end_ns / unit_ns))
    keys = [part for part in PARTS if part in shapes and part != "in turn"]
    return Chart(
        title=f"{found.model}: exposed communication is {found.exposed_over_compute:.4g} of compute (shaded)",
        summary=f"{len(found.layers)} layers; compute {found.backward_end_ns:,} ns of {found.duration_ns:,} ns",
        height=ROW_PX * len(rows),
        x=x,
        y=None,
        x_label=f"time since the forward pass began [{unit}]",
        y_label="",
        shapes=[
            Shape(f"band {looks['exposed'].classes}", [box(after, 1.0, 0.0, 1.0)], closed=True),
            *(Shape(f"bar {looks[part].classes}", some, closed=True) for part, some in shapes.items()),
            Shape("one", [upright(after, 0.0, 1.0)]),
        ],
        rows=[Label("", 100.0 * (row + 0.5) / len(rows), name) for row, name in enumerate(rows)],
        legend=[(f"bar {looks[part].classes}", part) for part in keys],
        inside=inside,
    )
