"""One parameter at several values (`evaluate --sweep`): a line a policy, with its 95 % interval as a band."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...simulator.base.durations import duration
from ...simulator.base.errors import InputError
from ...simulator.base.names import parse_name
from ..charts import axes
from ..charts.chart import Chart, Shape, chart_name, segment
from ..charts.marks import Style
from ..charts.plots import means
from ..comparing.heads import note_of_heads
from ..comparing.intervals import Estimate
from ..settings.sweeping import PLACES
from .load import Section

WIDEST = 2.0  # an interval of few seeds reaches at most so many times beyond the means


@dataclass(frozen=True)
class Swept:
    """Settings that differ in one parameter."""

    name: str  # of the parameter: `workload.load`, `mtbf_s`
    values: tuple[str, ...]  # of each setting, as text, in the order of the chart
    sections: tuple[Section, ...]  # one a value

    @property
    def labels(self) -> list[str]:
        """Policies that were played at several values."""
        counts: dict[str, int] = {}
        for section in self.sections:
            for entry in section.entries:
                counts[entry.label] = counts.get(entry.label, 0) + 1
        return [label for label, count in counts.items() if count > 1]

    @property
    def baseline(self) -> str | None:
        """The baseline of all sections, if it is one."""
        baselines = {section.baseline for section in self.sections}
        return next(iter(baselines)) if len(baselines) == 1 else None


def swept(name: str, sections: Mapping[str, Section]) -> Swept:
    """A sweep from the section of each value: ascending where the values are numbers, else in their order."""
    numbers = [axes.number_of(value) for value in sections]
    known = [number for number in numbers if number is not None]
    order = list(sections)
    if len(known) == len(order):
        order = [value for _, value in sorted(zip(known, order, strict=True))]
    return Swept(name, tuple(order), tuple(sections[value] for value in order))


def found(sections: Sequence[Section]) -> Swept | None:
    """The sweep of some settings; None where they differ in more than one parameter, or there are not two."""
    if len(sections) < 2:
        return None
    parameters = [_parameters(section.setting.words()) for section in sections]
    names = dict.fromkeys(name for some in parameters for name in some)
    differing = [name for name in names if len({some.get(name) for some in parameters}) > 1]
    if len(differing) != 1:
        return None
    values = [some.get(differing[0]) for some in parameters]
    if None in values or len(set(values)) < len(values):
        return None
    return swept(differing[0], dict(zip(map(str, values), sections, strict=True)))


def _parameters(words: Mapping[str, Any]) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for key, value in words.items():
        try:
            name, params = parse_name(str(value), key) if key in PLACES else (str(value), {})
        except InputError:  # a file, or a word of its own kind
            name, params = str(value), {}
        parameters[key] = name
        parameters |= {f"{key}.{name}": text for name, text in params.items()}
    return parameters


def charts(sweep: Swept, styles: Mapping[str, Style]) -> list[Chart]:
    """The mean JCT over the values; and its ratio to the baseline's, if there is one."""
    drawn = [_chart(sweep, styles, is_ratio) for is_ratio in (False, True)[: 1 + (sweep.baseline is not None)]]
    words = {label: word for section in sweep.sections for label, word in section.words.items()}
    heads = note_of_heads(words, sweep.sections[0].setting)
    return [chart.with_note(heads) for chart in drawn if chart is not None]


def _of(section: Section, label: str, is_ratio: bool) -> Estimate | None:
    entry = next((entry for entry in section.entries if entry.label == label), None)
    if entry is None:
        return None
    value = section.ratio(entry) if is_ratio else entry.estimate("jct_mean")
    return value if value is not None and math.isfinite(value.mean) and value.mean > 0.0 else None


def _chart(sweep: Swept, styles: Mapping[str, Style], is_ratio: bool) -> Chart | None:
    labels = [label for label in sweep.labels if not is_ratio or label != sweep.baseline]
    lines = {label: [_of(section, label, is_ratio) for section in sweep.sections] for label in labels}
    every = [value for line in lines.values() for value in line if value is not None]
    if not every:
        return None
    low, high = min(value.mean for value in every), max(value.mean for value in every)
    low = max(min(value.low for value in every), low / WIDEST)
    high = min(max(value.high for value in every), high * WIDEST)
    y = axes.log_ratios(0.98 * low, 1.02 * high) if is_ratio else axes.between(low, high)
    title = f"Mean JCT{f' as a ratio to {sweep.baseline},' * is_ratio} over {sweep.name}"
    y_label = "below 1 is better (log scale)" if is_ratio else f"mean JCT{' (log scale)' if y.log else ''}"
    note = f"Dots: means over seeds. Bands: {'paired ' * is_ratio}95 % intervals."
    name = chart_name("sweep", sweep.name, "jct-ratio" if is_ratio else "jct")
    about = {"title": title, "x_label": sweep.name, "y_label": y_label, "note": note, "name": name}
    chart = means(sweep.values, lines, styles, y, "{:.3f}".format if is_ratio else duration, **about)
    one = Shape("one", [segment(0.0, 1.0, float(y.at(1.0)))])
    return chart.with_shapes(one, first=True) if is_ratio else chart
