"""Charts as files: they show what was recorded, words cover nothing, and PDF and PNG show what SVG shows."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from clustergym.experiments.charts import axes, chart_files, plots
from clustergym.experiments.charts.chart import Chart, Label, Shape, box
from clustergym.experiments.charts.chart_files import svg
from clustergym.experiments.charts.drawing import laid_out, shortened, stacked, width_of, wrapped
from clustergym.experiments.charts.marks import css, properties, styles, variables_of
from clustergym.experiments.comparing.intervals import UNKNOWN, Estimate
from clustergym.experiments.playing import over_time
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.report import figures, load, page, pictures
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing.event_file import folder_names
from clustergym.simulator.base.errors import InputError

ENVIRONMENT = "clustergym/Delay-v0"
AGENT = "maskable-ppo:runs/a-folder-with-a-name-that-does-not-end/second-attempt/best"
SVG = "{http://www.w3.org/2000/svg}"
EVERY = ["jct-ratio", "jct-by-seed", "jct-cdf", "gpus-in-use", "queue", "gantt-srtf", "gantt-fifo"]


def runs_on(topology: str, workload: str = "poisson:jobs=30,backlog=10", words=("fifo", "srtf"), **more):
    return evaluate(Setting.of(ENVIRONMENT, topology, workload, "none", **more), words, [0, 1], record="first")


def section_of(runs, baseline=None):
    return load.section(Setting.of(ENVIRONMENT, "flat:machines=4", "w", "none"), [("folder", runs)], baseline)


def styles_of(section):
    return page.page_styles(load.Material((section,), (), ()))[0]


@pytest.fixture(scope="module")
def runs():
    return runs_on("flat:machines=4")


@pytest.fixture(scope="module")
def many(runs):
    """Fifteen policies, some with names that fit nowhere."""
    import dataclasses

    names = [AGENT, *(f"las:thresholds={number}/7200,head=strict" for number in range(12))]
    copies = [dataclasses.replace(run, policy=name) for name in names for run in runs if run.policy == "srtf"]
    return section_of([*runs, *copies], "fifo")


@pytest.mark.parametrize(
    ("topology", "more"),
    [
        ("flat:machines=4", {}),
        ("flat:machines=1,gpus_per_machine=16", {}),
        ("flat:machines=40,gpus_per_machine=4", {}),
        ("flat:machines=8", {"mtbf_s": 20_000.0}),
    ],
)
def test_every_chart_becomes_a_file(tmp_path, topology, more):
    section = section_of(runs_on(topology, **more), "fifo")
    styles = styles_of(section)
    paths = pictures.write(pictures.of_section(section, styles), styles, tmp_path)
    assert sorted(path.stem for path in paths) == sorted(EVERY)
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    for path in paths:
        root = ElementTree.parse(path).getroot()
        assert root.tag == f"{SVG}svg" and root.find(f"{SVG}title").text


def test_nothing_finished_is_no_chart_of_times(tmp_path):
    section = section_of(runs_on("flat:machines=8", horizon_s=1.0))
    paths = pictures.write(pictures.of_section(section, styles_of(section)), styles_of(section), tmp_path)
    assert not {"jct-cdf", "jct-ratio"} & {path.stem for path in paths}


def test_legends_and_words_cover_nothing(many):
    """No word reaches into a plot, out of the drawing or over another word, for fifteen policies of long names."""
    styles = styles_of(many)
    for chart in pictures.of_section(many, styles):
        drawing = laid_out(chart, variables_of(styles))
        for number, word in enumerate(drawing.words):
            left, top, right, bottom = word.extent
            assert left >= 0.0 and right <= drawing.width + 0.01 and top >= 0.0 and bottom <= drawing.height
            boxes = [*drawing.plots, *(other.extent for other in drawing.words[:number])]
            for other in boxes:
                apart = right <= other[0] or left >= other[2] or bottom <= other[1] + 1.5 or top >= other[3] - 1.5
                assert apart, f"{chart.name}: {word.text!r} covers something"
        for stroke in drawing.strokes:
            for path in stroke.paths:
                assert path.min() >= 0.0 and (path <= (drawing.width, drawing.height)).all()


def test_names_at_the_right_edge_are_the_legend():
    axis = axes.linear(0.0, 10.0)
    ends = (Label("p0 agent", 20.0, "mine"), Label("p1", 80.0, "greedy"))
    chart = Chart("t", "s", 200, axis, axis, "x", "y", (), ends=ends, legend=[("p0 agent", "mine")])
    drawing = laid_out(chart, {"p0": {"c": "#f00", "dash": "none"}, "p1": {"c": "#00f", "dash": "none"}})
    found = {word.text: word for word in drawing.words}
    assert found["mine"].x > drawing.plots[0][2] and found["mine"].colour == "#f00" and found["mine"].bold
    assert [word.text for word in drawing.words].count("mine") == 1
    assert found["mine"].y > found["greedy"].y, "20 % is below 80 %"


def test_the_distribution_ends_at_all_jobs_and_at_the_longest(runs):
    section = section_of(runs)
    chart = figures.jct_cdf(section.entries, styles_of(section))
    longest = {policy: max(run.jct_s.max() for run in runs if run.policy == policy) for policy in ("fifo", "srtf")}
    ends = {tuple(shape.paths[0][-1]) for shape in chart.shapes if shape.classes.startswith("line")}
    assert ends == {(float(chart.x.at(value)), 1.0) for value in longest.values()}


def test_a_path_on_a_page_is_relative_steps_from_above():
    """0, 0 is below at the left; of 2,000 x 1,000 steps, and a line of no length is a dot."""
    shape = Shape("box", [box(0.0, 0.5, 0.25, 1.0), np.array([[1.0, 1.0], [1.0, 1.0]])], closed=True)
    assert shape.d == "M0 750l1000 0 0 -750 -1000 0zM2000 0h0z"
    assert Shape("line", []).d == ""


def test_a_file_looks_as_the_page_does():
    """One table says how shapes look: the later rule of two that fit wins, and colours are those on white."""
    look = properties("line p3 agent", {"p3": {"c": "#123456", "dash": "7 3"}})
    assert look["stroke"] == "#123456" and look["stroke-dasharray"] == "7 3" and look["stroke-width"] == "2.8px"
    assert properties("shade s4", {})["fill-opacity"] == "0.5"
    assert properties("job j1", {})["fill"] == "#ee8844"
    assert ".line.agent { stroke-width: 2.8px; }" in css()


def test_pdf_and_png_have_every_stroke_and_word_of_the_svg(runs):
    pytest.importorskip("matplotlib")
    section = section_of(runs, "fifo")
    styles = styles_of(section)
    drawing = laid_out(pictures.of_section(section, styles)[0], variables_of(styles))
    figure = chart_files.figure_of(drawing)
    assert [text.get_text() for text in figure.axes[0].texts] == [word.text for word in drawing.words]
    assert len(figure.axes[0].patches) == len(drawing.strokes)
    content = chart_files.pdf(drawing)
    assert content.startswith(b"%PDF") and b"FontFile2" in content, "letters are TrueType"
    assert content == chart_files.pdf(drawing)
    png = chart_files.png(drawing)
    size = tuple(int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert size == (2 * drawing.width, 2 * drawing.height)


def test_dots_are_seen_on_paper(runs):
    """The mean of a policy is a line of no length with round ends: 9 pixels of its colour."""
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    import io

    section = section_of(runs, "fifo")
    styles = styles_of(section)
    drawing = laid_out(figures.ratios(section, styles), variables_of(styles))
    dot = next(stroke for stroke in drawing.strokes if stroke.look.get("stroke-width") == "9px")
    x, y = (2.0 * dot.paths[0][0]).round().astype(int)
    pixels = np.array(image.open(io.BytesIO(chart_files.png(drawing))).convert("RGB"))
    colour = tuple(int(dot.look["stroke"][at : at + 2], 16) for at in (1, 3, 5))
    assert tuple(pixels[y, x + 4]) == colour and tuple(pixels[y + 4, x]) == colour


def test_words_are_taken_for_wider_than_they_are():
    """So that nothing overlaps whatever font a browser has; DejaVu Sans is the widest of those that are asked for."""
    pytest.importorskip("matplotlib")
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    for text in ("maskable-ppo:runs/first/best", "jobs waiting", "WWW@@%%", "0123456789 min", "las:thresholds=1/2"):
        for bold in (False, True):
            font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal", size=72)
            width, _, _ = TextToPath().get_text_width_height_descent(text, font, False)
            assert width <= width_of(text, 72.0, bold) * 1.01 <= 1.1 * width + 3.0


def test_what_is_too_long_keeps_both_ends():
    assert shortened("greedy", 100.0, 12.0) == "greedy"
    short = shortened(AGENT, 150.0, 12.0)
    assert short.startswith("maskable") and short.endswith("/best") and "…" in short
    assert width_of(short, 12.0) <= 150.0
    assert wrapped("one two three", width_of("one two", 12.0) + 1.0, 12.0) == ["one two", "three"]


def test_words_never_become_markup(runs):
    import dataclasses

    evil = "ppo:<script>&'\""
    section = section_of([dataclasses.replace(run, policy=evil) for run in runs if run.policy == "fifo"])
    styles = styles_of(section)
    for chart in pictures.of_section(section, styles):
        root = ElementTree.fromstring(svg(laid_out(chart, variables_of(styles))))
        assert "script" not in {element.tag for element in root.iter()}


def test_charts_one_under_the_other_keep_apart(runs):
    section = section_of(runs)
    styles = styles_of(section)
    one, two = (laid_out(chart, variables_of(styles)) for chart in figures.over_time(section, styles))
    both = stacked([one, two], "over time")
    assert both.height == one.height + two.height
    assert both.plots[1][1] >= one.height and max(word.y for word in both.words) <= both.height
    assert both.words[len(one.words)].y == two.words[0].y + one.height


def test_kinds_of_pictures_are_told_apart():
    assert chart_files.kinds_of("svg, PDF svg") == ["svg", "pdf"]
    with pytest.raises(InputError, match=r"'svg,gif': expected kinds of pictures among svg, pdf, png"):
        chart_files.kinds_of("svg,gif")


def test_bin_means_of_a_step_function():
    """1 for 10 s, then 3: the mean over 0-20 s is 2."""
    means = over_time.bin_means(np.array([0.0, 10.0]), np.array([1, 3]), np.array([0.0, 5.0, 15.0, 20.0]))
    assert means.tolist() == [1.0, 2.0, 3.0]


def test_policies_that_look_alike_get_folders_of_their_own():
    names = folder_names(["las:thresholds=1/2", "las:thresholds=1,2", "a" * 300, "a" * 301])
    assert len(set(names.values())) == 4
    assert all("/" not in name and ":" not in name and len(name) <= 160 for name in names.values())


def test_bars_stand_on_zero_and_have_their_intervals():
    """10 (5 to 20) is half of an axis to 20; what is not known has no bar, one run no interval."""
    series = {"a": [Estimate(10.0, 5.0, 20.0), Estimate(-5.0, -5.0, -5.0)], "b": [UNKNOWN, Estimate(20.0, 20.0, 20.0)]}
    chart = plots.bars(["x", "y"], series, styles([], "ab"), axes.linear(-20.0, 20.0), title="t")
    first, second = (shape for shape in chart.shapes if shape.classes.startswith("bar"))
    assert [path[:, 1].tolist() for path in first.paths] == [[0.5, 0.5, 0.75, 0.75], [0.5, 0.5, 0.375, 0.375]]
    (only,) = second.paths
    assert only[:, 0].min() > first.paths[1][:, 0].max() and only[:, 1].max() == 1.0
    (error,) = next(shape for shape in chart.shapes if shape.classes == "error").paths
    assert error[:, 1].tolist() == [0.625, 1.0]
    assert chart.summary == "x, y. a: 10, -5; b: nan, 20"


def test_a_distribution_begins_with_what_takes_no_time():
    """Half of the jobs take no time: the curve rises at its left edge first."""
    chart = plots.distribution({"a": np.array([0.0, 0.0, 100.0, 200.0])}, styles([], "a"), title="t")
    (line,) = (shape.paths[0] for shape in chart.shapes if shape.classes.startswith("line"))
    assert line[line[:, 0] == 0.0][:, 1].max() > 0.32 and tuple(line[-1]) == (1.0, 1.0)
    assert plots.distribution({"a": np.zeros(3)}, styles([], "a"), title="t") is None


def test_a_curve_of_one_more_x_than_y_is_a_step_function():
    x, y = axes.linear(0.0, 4.0), axes.linear(0.0, 10.0)
    lines = {
        "line": (np.array([0.0, 4.0]), np.array([0.0, 10.0])),
        "steps": (np.array([0.0, 2.0, 4.0]), np.array([5, 10])),
    }
    chart = plots.curves(lines, styles([], lines), x, y, title="t")
    steps, line = (shape.paths[0].tolist() for shape in chart.shapes if shape.classes.startswith("line"))
    assert line == [[0.0, 0.0], [1.0, 1.0]] and steps == [[0.0, 0.5], [0.5, 0.5], [0.5, 1.0], [1.0, 1.0]]


def test_charts_beside_each_other_are_under_their_title(runs):
    section = section_of(runs)
    looks = styles_of(section)
    one, two = (laid_out(chart, variables_of(looks), 500.0) for chart in figures.over_time(section, looks))
    both = stacked([one, two], "over time", columns=2)
    assert both.width == 1000.0 and both.plots[1][0] == 500.0 + two.plots[0][0]
    assert both.words[0].text == "over time" and min(word.y for word in both.words[1:]) > both.words[0].y
