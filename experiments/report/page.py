"""The page: material, styles and charts put into the template `page.html.j2`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..charts import marks
from ..charts.chart import HEIGHT, WIDTH
from ..charts.marks import JOB_COLOURS, Style, styles
from ..comparing.replays import notes_of_replays
from ..comparing.table import ranges
from ..playing.by_group import table_of
from ..storing.event_file import folder_name
from . import episode_words, figures, learning_curves, numbers, sweeps
from .episodes import Episodes, chosen
from .gantt import gantts
from .load import Material, Section, Training

if TYPE_CHECKING:
    from jinja2 import Template

FOLDER = Path(__file__).parent


def render(
    material: Material,
    about: Mapping[str, str],
    title: str = "Scheduling policies compared",
    pairs: Mapping[int, Episodes | None] | None = None,
) -> str:
    """The page as HTML; `about`: its origin; `pairs`: two episodes by number of the section (None: chosen here)."""
    pairs = {n: chosen(one) for n, one in enumerate(material.sections)} if pairs is None else pairs
    of_label, of_training, of_folder_name = page_styles(material)
    return _template().render(
        title=title,
        sections=[_view(one, of_label, pairs.get(number)) for number, one in enumerate(material.sections)],
        swept=sweeps.charts(sweep, of_label) if (sweep := sweeps.found(material.sections)) is not None else (),
        learning=[learning_curves.charts(group, of_training, of_folder_name) for group in by_yardstick(material)],
        sources=material.sources,
        about=about,
        styles=[*of_label.values(), *of_training.values(), *of_folder_name.values()],
        style_of=of_label,
        episode_words=episode_words,
        **{"width": WIDTH, "height": HEIGHT, "job_hues": JOB_COLOURS},
        **{"marks_css": marks.css, "theme_css": marks.theme_css},
    )


def by_yardstick(material: Material) -> list[list[Training]]:
    """Trainings whose curves belong into one chart together."""
    groups: dict[tuple[Any, ...], list[Training]] = {}
    for training in material.trainings:
        groups.setdefault(training.yardstick, []).append(training)
    return list(groups.values())


def page_styles(material: Material) -> tuple[dict[str, Style], dict[Training, Style], dict[str, Style]]:
    """Styles of policies by label, of trainings, and of heuristics by the name of their folder; one a policy in all."""
    entries = {entry.label: entry for section in material.sections for entry in section.entries}
    agents = [label for label, entry in entries.items() if entry.is_agent]
    heuristics = sorted(label for label, entry in entries.items() if not entry.is_agent)
    parts = {label: Path(entries[label].policy.partition(":")[2]).parts for label in agents}
    trained: dict[Training, str] = {}
    for training in material.trainings:
        mine = [label for label in agents if training.folder.name in parts[label]]
        trained[training] = mine[0] if len(mine) == 1 and mine[0] not in trained.values() else f"{training.folder}/"
    named = {folder_name(label): label for label in heuristics}
    for training in material.trainings:
        for name in training.heuristics:
            named.setdefault(name, name)
    found = styles([*agents, *trained.values()], [*heuristics, *named.values()])
    return (
        {label: found[label] for label in entries},
        {training: found[label] for training, label in trained.items()},
        {name: found[label] for name, label in named.items()},
    )


def _view(section: Section, of_label: Mapping[str, Style], pair: Episodes | None) -> dict[str, Any]:
    seed, timelines = figures.one_seed(section)
    labels, charts = list(timelines), gantts(seed, timelines)
    return {
        "title": section.setting.environment.rpartition("/")[2] + (f", {section.place}" if section.place else ""),
        "facts": facts(section),
        **{name: getattr(numbers, name)(section) for name in ("verdict", "headers", "rows", "warnings")},
        "groups": {by: table_of(section.labelled, by) for by in section.setting.groupings},
        "section": section,
        "ratios": figures.ratios(section, of_label),
        "boxes": figures.box_over_seeds(section, of_label),
        "distribution": figures.jct_cdf(section.entries, of_label),
        "over_time": figures.over_time(section, of_label),
        "gantts": charts,
        "gantt_seed": seed,
        "gantt_unit": next((line.unit for line in timelines.values()), "GPU"),
        "open_gantts": {*labels[:1], *[label for label in labels if label == section.baseline]},
        "jobs_have_colours": any(shape.classes.startswith("job") for chart in charts for shape in chart.shapes),
        "episodes": pair,
        "episode_charts": figures.of_episodes(pair, of_label) if pair is not None else (),
    }


def facts(section: Section) -> dict[str, str]:
    """The setting in words, without default values."""
    setting, folders = section.setting, {"folder": section.place} if section.place else {}
    places = {"topology": setting.topology, "workload": setting.workload, "network": setting.network}
    own = {"format": setting.format, "oversize": setting.oversize, "window": setting.window, "by": setting.by}
    usual = {"format": None, "oversize": "error", "window": None, "by": None}
    found = folders | {"environment": setting.environment, **places, "seeds": ranges(section.seeds)}
    found |= setting.config.unusual()
    found |= {name: value for name, value in own.items() if value != usual[name]}
    found |= notes_of_replays(section.labelled)
    return {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in found.items()}


def made_by(command: str) -> dict[str, str]:
    """The origin of a page: the command, the time and the versions."""
    import shlex
    import sys
    from datetime import UTC, datetime

    from ..console.versions import versions

    libraries = ("numpy", "jinja2", "tensorboard")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"command": command or shlex.join(sys.argv), "date": now, **versions(*libraries)}


def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(FOLDER)
    room = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return room.get_template("page.html.j2")
