"""The charts of the page as files: one SVG, PDF or PNG a chart, with its legend and words."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...simulator.base.errors import InputError
from ..charts import marks
from ..charts.chart import Chart
from ..charts.chart_files import is_ours, png, save
from ..charts.drawing import PAPER, Drawing, fitting, laid_out, stacked
from ..charts.marks import variables_of
from ..charts.plots import Styles
from ..comparing.heads import note_of_heads
from ..playing.recording import Timeline
from ..playing.runs import Run, grouped
from ..settings.evaluation_setting import Setting
from ..storing.run_files import StoredRunWarning
from ..storing.store import Evaluation
from . import figures, learning_curves, sweeps
from .episodes import Episodes
from .gantt import gantts
from .load import Entry, Material, Section, section
from .page import by_yardstick, page_styles

Pairs = Mapping[int, Episodes | None]
CARD_PX = 460.0  # the width of pictures on TensorBoard's cards, so that words are legible there


def of_section(section: Section, styles: Styles) -> list[Chart]:
    """All charts of a setting; those of several policies say under which jobs pass a blocked one."""
    heads = note_of_heads(section.words, section.setting)
    means = (figures.ratios(section, styles), figures.box_over_seeds(section, styles))
    over_seeds = (*means, figures.jct_cdf(section.entries, styles))
    shown = [chart for chart in (*over_seeds, *figures.over_time(section, styles)) if chart is not None]
    return [*(chart.with_note(heads) for chart in shown), *_gantts(*figures.one_seed(section))]


def of_material(
    material: Material, folder: Path, kinds: Sequence[str], pairs: Pairs, width: float = PAPER
) -> list[Path]:
    """Write the charts of a page into `folder`, which is made; each of several settings has a folder in it.

    `width`: of each, pixels.
    """
    of_label, of_training, of_name = page_styles(material)
    paths = []
    for number, one in enumerate(material.sections):
        place = _made(folder / f"setting-{number + 1}" if material.sections[1:] else folder)
        paths += write(of_section(one, of_label), of_label, place, kinds, width=width)
        if (pair := pairs.get(number)) is not None:
            both = of_episodes(
                pair, of_label, width, note_of_heads({name: one.words[name] for name in pair.labels}, one.setting)
            )
            paths += [save(both, place / f"episodes-seed-{pair.seed}.{kind}") for kind in kinds]
    if (sweep := sweeps.found(material.sections)) is not None:
        paths += write(sweeps.charts(sweep, of_label), of_label, _made(folder), kinds, width=width)
    found = {style.name: style for style in (*of_training.values(), *of_name.values())}
    groups = by_yardstick(material)
    charts = [chart for group in groups for chart in learning_curves.charts(group, of_training, of_name)]
    return paths + (write(charts, found, _made(folder), kinds, width=width) if charts else [])


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--pictures {folder}: {error.strerror}") from None
    return folder


def of_evaluation(found: Evaluation) -> list[Path]:
    """Write the charts of an evaluation into its folder, as SVG; files of other origin stay, with a warning."""
    one = section(found.setting, [(found.folder, found.runs)], None)
    styles = page_styles(Material((one,), (), ()))[0]
    return write(of_section(one, styles), styles, found.folder, keep_others=True)


def of_sweep(
    name: str, settings: Mapping[str, Setting], runs: Mapping[str, Sequence[Run]], baseline: str | None, folder: Path
) -> list[Path]:
    """Write the charts of a sweep over `name` into `folder`, as SVG; ratios are to `baseline`, if any."""
    played = {value: section(settings[value], [(folder, mine)], baseline) for value, mine in runs.items()}
    sections = {value: replace(one, baseline=baseline) for value, one in played.items()}
    found = sweeps.swept(name, sections)
    styles = page_styles(Material(found.sections, (), ()))[0]
    return write(sweeps.charts(found, styles), styles, folder)


def of_runs(runs: Sequence[Run], beside: Sequence[Run] = ()) -> dict[str, bytes]:
    """PNG pictures: `jct-cdf` of `runs` of one policy and those `beside`, `gantt` of its first recorded run."""
    entries = [Entry(policy, policy, tuple(mine)) for policy, mine in grouped((*runs, *beside)).items()]
    found = marks.styles([entries[0].label], [entry.label for entry in entries[1:]])
    seen = next((run for run in runs if run.timeline is not None), None)
    drawn = {"jct-cdf": figures.jct_cdf(entries, found)}
    if seen is not None and seen.timeline is not None:
        drawn["gantt"] = _gantts(seen.seed, {seen.policy: seen.timeline})[0]
    variables = variables_of(found)
    shown = {name: one for name, one in drawn.items() if one is not None}
    return {name: png(laid_out(one, variables, CARD_PX), dpi=96) for name, one in shown.items()}


def of_run(run: Run) -> Drawing:
    """One recorded run: Gantt chart, use, and queue, one under the other."""
    if run.timeline is None:
        raise ValueError("the run was not recorded")
    found = marks.styles([], [run.policy])
    lines = {run.policy: run.timeline}
    charts = [*_gantts(run.seed, lines), *figures.over_time_of(run.seed, lines, found)]
    return _under_each_other([replace(chart, legend=()) for chart in charts], found, charts[0].title)


def of_episodes(pair: Episodes, styles: Styles, width: float = PAPER, note: str = "") -> Drawing:
    """Two episodes on one time axis, `width` pixels wide, with a `note` under the first chart."""
    first, *others = figures.of_episodes(pair, styles)
    title = f"{pair.labels[0]} and {pair.labels[1]}, seed {pair.seed}"
    return _under_each_other([first.with_note(note), *others], styles, title, width)


def _under_each_other(charts: Sequence[Chart], styles: Styles, title: str, width: float = PAPER) -> Drawing:
    """Charts whose time axes are the same, aligned one under the other."""
    variables = variables_of(styles)
    fit = [fitting(chart, width) for chart in charts]
    left = max(laid_out(chart, variables, width).plots[0][0] for chart in fit)
    return stacked([laid_out(chart, variables, width, left) for chart in fit], title)


def _gantts(seed: int, timelines: Mapping[str, Timeline]) -> list[Chart]:
    return [
        replace(chart, title=f"{chart.title}: which job held which {line.unit} when, seed {seed}")
        for chart, line in zip(gantts(seed, timelines), timelines.values(), strict=True)
    ]


def write(
    charts: Sequence[Chart],
    styles: Styles,
    folder: Path,
    kinds: Sequence[str] = ("svg",),
    keep_others: bool = False,
    width: float = PAPER,
) -> list[Path]:
    """Write each chart into `folder`, `width` pixels wide; returns the paths.

    `keep_others`: SVG files of other origin stay (a warning).
    """
    variables = variables_of(styles)
    paths: list[Path] = []
    for chart in charts:
        name, number = chart.name, 2
        while any(path.stem == name for path in paths):
            name, number = f"{chart.name}-{number}", number + 1
        path = folder / f"{name}.svg"
        if keep_others and path.exists() and not is_ours(path):
            warnings.warn(f"{path}: it is not clustergym's and is left as it is", StoredRunWarning, stacklevel=2)
            continue
        drawing = laid_out(fitting(chart, width), variables, width)
        paths += [save(drawing, folder / f"{name}.{kind}") for kind in kinds]
    return paths
