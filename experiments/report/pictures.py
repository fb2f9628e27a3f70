"""The charts of the page as files: one SVG, PDF or PNG a chart, with its legend and words."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...simulator.base.errors import InputError
from ..playing.recording import Timeline
from ..playing.runs import Run
from ..settings.evaluation_setting import Setting
from ..storing.run_files import StoredRunWarning
from ..storing.store import Evaluation
from ..terminal import written_whole
from . import colours, figures, sweeps
from .charts import Chart
from .colours import Style
from .drawing import Drawing, laid_out, stacked
from .episodes import Episodes
from .gantt import gantt
from .load import Entry, Material, Section, section
from .marks import variables_of

CARD_PX = 460.0  # the width of pictures on TensorBoard's cards, so that words are legible there
KINDS = ("svg", "pdf", "png")


def kinds_of(text: str) -> list[str]:
    """Kinds of files from their names, as `svg` or `svg,pdf`.

    Raises:
        InputError: an unknown one.
    """
    kinds = text.replace(",", " ").lower().split()
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise InputError(f"{text!r}: expected kinds of pictures among {', '.join(KINDS)}, as svg,pdf")
    return list(dict.fromkeys(kinds))


def expect_installed(kinds: Sequence[str]) -> None:
    """Raise MissingExtra where a kind needs a library that is not installed; SVG needs none."""
    if set(kinds) - {"svg"}:
        from ..matplotlib_style import expect_installed as expect_matplotlib

        expect_matplotlib("pictures as PDF and PNG")


def of_section(section: Section, styles: Mapping[str, Style]) -> list[Chart]:
    """All charts of a setting."""
    over_seeds = (
        figures.ratios(section, styles),
        figures.box_over_seeds(section, styles),
        figures.jct_cdf(section.entries, styles),
    )
    shown = [chart for chart in over_seeds if chart is not None]
    return [*shown, *figures.over_time(section, styles), *_gantts(section)]


def of_material(
    material: Material, folder: Path, kinds: Sequence[str], pairs: Mapping[int, Episodes | None]
) -> list[Path]:
    """Write the charts of a page into `folder`, which is made; of several settings, each has a folder in it.

    Args:
        material: of the page.
        folder: where to.
        kinds: of files.
        pairs: by number of the section, two episodes that are laid side by side.

    Raises:
        InputError: the folder cannot be made.
    """
    from . import learning
    from .page import by_yardstick, page_styles

    of_label, of_training, of_name = page_styles(material)
    paths = []
    for number, one in enumerate(material.sections):
        place = _made(folder / f"setting-{number + 1}" if material.sections[1:] else folder)
        paths += write(of_section(one, of_label), of_label, place, kinds)
        if (pair := pairs.get(number)) is not None:
            paths += save(of_episodes(pair, of_label), place, f"episodes-seed-{pair.seed}", kinds)
    if (sweep := sweeps.found(material.sections)) is not None:
        paths += write(sweeps.charts(sweep, of_label), of_label, _made(folder), kinds)
    found = {style.name: style for style in (*of_training.values(), *of_name.values())}
    charts = [chart for group in by_yardstick(material) for chart in learning.charts(group, of_training, of_name)]
    return paths + (write(charts, found, _made(folder), kinds) if charts else [])


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--pictures {folder}: {error.strerror}") from None
    return folder


def of_evaluation(found: Evaluation) -> list[Path]:
    """Write the charts of an evaluation into its folder, as SVG; returns their paths.

    A file of somebody else that has the name of one is left as it is, with a warning.
    """
    from .page import page_styles

    one = section(found.setting, [(found.folder, found.runs)], None)
    styles = page_styles(Material((one,), (), ()))[0]
    return write(of_section(one, styles), styles, found.folder, keep_others=True)


def of_sweep(
    name: str, settings: Mapping[str, Setting], runs: Mapping[str, Sequence[Run]], baseline: str | None, folder: Path
) -> list[Path]:
    """Write the charts of a sweep into `folder`, which is there, as SVG; returns their paths.

    Args:
        name: of the parameter.
        settings: value -> what was played on.
        runs: value -> what was played there.
        baseline: the policy that ratios are to; None: no ratios.
        folder: where to.
    """
    from .page import page_styles

    sections = {
        value: replace(section(settings[value], [(folder, mine)], baseline), baseline=baseline)
        for value, mine in runs.items()
    }
    found = sweeps.swept(name, sections)
    styles = page_styles(Material(found.sections, (), ()))[0]
    return write(sweeps.charts(found, styles), styles, folder)


def of_runs(runs: Sequence[Run], beside: Sequence[Run] = ()) -> dict[str, bytes]:
    """Two pictures as PNG: `jct-cdf` of all runs, and `gantt` of the first of `runs` that was recorded.

    Args:
        runs: of one policy.
        beside: of others, on the same workloads.
    """
    by_policy: dict[str, list[Run]] = {}
    for run in (*runs, *beside):
        by_policy.setdefault(run.policy, []).append(run)
    entries = [Entry(policy, policy, tuple(mine)) for policy, mine in by_policy.items()]
    found = colours.styles([entries[0].label], [entry.label for entry in entries[1:]])
    seen = next((run for run in runs if run.timeline is not None), None)
    drawn = {"jct-cdf": figures.jct_cdf(entries, found)}
    if seen is not None and seen.timeline is not None:
        drawn["gantt"] = _gantt(seen.policy, seen.timeline, seen.timeline.stop_s - seen.timeline.begin_s, seen.seed)
    variables = variables_of(found)
    from .printed import png

    shown = {name: one for name, one in drawn.items() if one is not None}
    return {name: png(laid_out(one, variables, CARD_PX), dpi=96) for name, one in shown.items()}


def of_run(run: Run) -> Drawing:
    """One recorded run: who held what when, how much was in use, and the queue, one under the other."""
    if run.timeline is None:
        raise ValueError("the run was not recorded")
    found = colours.styles([], [run.policy])
    line = run.timeline
    above = _gantt(run.policy, line, line.stop_s - line.begin_s, run.seed)
    charts = [above, *figures.over_time_of(run.seed, {run.policy: line}, found)]
    return _under_each_other([replace(chart, legend=()) for chart in charts], found, above.title)


def of_episodes(pair: Episodes, styles: Mapping[str, Style]) -> Drawing:
    """Two episodes on one time axis."""
    title = f"{pair.labels[0]} and {pair.labels[1]}, seed {pair.seed}"
    return _under_each_other(figures.of_episodes(pair, styles), styles, title)


def _under_each_other(charts: Sequence[Chart], styles: Mapping[str, Style], title: str) -> Drawing:
    """Charts whose time axes are the same, exactly one under the other."""
    variables = variables_of(styles)
    left = max(laid_out(chart, variables).plots[0][0] for chart in charts)
    return stacked([laid_out(chart, variables, least_left=left) for chart in charts], title)


def _gantts(section: Section) -> Iterator[Chart]:
    seed, timelines = figures.one_seed(section)
    stop_s = max((line.stop_s - line.begin_s for line in timelines.values()), default=0.0)
    for entry in section.entries:
        if entry.label in timelines:
            yield _gantt(entry.label, timelines[entry.label], stop_s, seed)


def _gantt(label: str, line: Timeline, stop_s: float, seed: int) -> Chart:
    """A chart that says by itself what it shows."""
    title = f"{label}: who held which {line.unit} when, seed {seed}"
    return replace(gantt(label, line, stop_s, seed), title=title)


def write(
    charts: Sequence[Chart],
    styles: Mapping[str, Style],
    folder: Path,
    kinds: Sequence[str] = ("svg",),
    keep_others: bool = False,
) -> list[Path]:
    """Write each chart into `folder`, which is there; returns the paths, all different.

    Args:
        charts, styles, folder: what is drawn, how, and where to.
        kinds: of files.
        keep_others: write no SVG file in the place of one that was not drawn here; a warning says so.
    """
    from .svg import is_ours

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
        paths += save(laid_out(chart, variables), folder, name, kinds)
    return paths


def save(drawing: Drawing, folder: Path, name: str, kinds: Sequence[str]) -> list[Path]:
    """Write one drawing, once a kind; each file appears whole or not at all."""
    paths = [folder / f"{name}.{kind}" for kind in kinds]
    for path, kind in zip(paths, kinds, strict=True):
        content = content_of(drawing, kind)
        with written_whole(path) as draft:
            draft.write_bytes(content)
    return paths


def content_of(drawing: Drawing, kind: str) -> bytes:
    """A drawing as the content of a file of a kind.

    Raises:
        MissingExtra: of pdf and png, where matplotlib is not installed.
    """
    if kind == "svg":
        from .svg import svg

        return svg(drawing).encode()
    from . import printed

    return printed.pdf(drawing) if kind == "pdf" else printed.png(drawing)
