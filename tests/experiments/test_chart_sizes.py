"""`compare --pictures DIR --size 3.3in`: charts of a column's width, with plain names and letters that embed."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from clustergym.experiments.charts.chart import chart_name
from clustergym.experiments.charts.chart_files import width_px
from clustergym.experiments.charts.drawing import fitting, laid_out
from clustergym.experiments.charts.marks import variables_of
from clustergym.experiments.cli import run
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.report import load, page, pictures
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.simulator.base.errors import InputError

WORDS = ("EASY=fifo:head=reserve", "las:head=strict,placer=tier", "srtf", "sjf")
PLAIN = re.compile(r"[A-Za-z0-9._-]+")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sizes")
    words = ["--topology", "flat:machines=4", "--workload", "poisson:jobs=30,backlog=10", "--network", "none"]
    words += ["--seeds", "0-1", "--policies", " ".join(WORDS), "--logdir", str(place), "-q", "--json"]
    assert run(["evaluate", "Delay", *words]) == 0
    return place


@pytest.mark.parametrize(
    ("text", "pixels"), [("3.3in", 316.8), ("84mm", 84 * 96 / 25.4), ("252pt", 336.0), ("400PX", 400.0)]
)
def test_an_inch_is_96_pixels_and_72_points(text, pixels):
    assert width_px(text) == pytest.approx(pixels)


@pytest.mark.parametrize("text", ["3.3", "in", "1in", "21in", "3.3 in", "3,3in", "-3in", "3em"])
def test_other_sizes_are_refused(text):
    with pytest.raises(InputError, match="expected a width of 2 to 20 inches in in, cm, mm, pt, px"):
        width_px(text)


def test_names_of_files_are_plain():
    assert chart_name("gantt", "las:head=strict,placer=tier") == "gantt-las-head-strict-placer-tier"
    assert chart_name("gantt", "A.1 (py:my_s.py:S)") == "gantt-A.1-py-my_s.py-S"


def test_charts_of_a_column_have_its_width_and_plain_names(folder, tmp_path, capsys):
    """3.3 inches are 316.8 pixels; a plot is at most 0.75 x 317 = 238 high."""
    words = ["compare", str(folder), "--baseline", "EASY", "--pictures", str(tmp_path), "--size", "3.3in", "--json"]
    assert run(words) == 0
    paths = json.loads(capsys.readouterr().out)["pictures"]
    assert "gantt-las-head-strict-placer-tier.svg" in {path.rpartition("/")[2] for path in paths}
    assert "gantt-EASY.svg" in {path.rpartition("/")[2] for path in paths}
    for path in paths:
        assert PLAIN.fullmatch(path.rpartition("/")[2])
        root = ElementTree.parse(path).getroot()
        assert float(root.get("width")) == pytest.approx(316.8)
    text = " ".join(ElementTree.parse(tmp_path / "jct-cdf.svg").getroot().itertext())
    assert "EASY" in text and "fifo:head=reserve" not in text


def test_pdf_embeds_its_letters(folder, tmp_path):
    pytest.importorskip("matplotlib")
    words = ["compare", str(folder), "--pictures", str(tmp_path), "--size", "84mm", "--as", "pdf", "-q"]
    assert run(words) == 0
    data = (tmp_path / "jct-ratio.pdf").read_bytes()
    assert b"/FontFile2" in data and b"/Type3" not in data
    assert float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", data)[1]) == pytest.approx(84 / 25.4 * 72, abs=0.1)


@pytest.mark.parametrize("width", [192.0, 316.8, 500.0])
def test_words_cover_nothing_at_any_width(width):
    setting = Setting.of("clustergym/Delay-v0", "flat:machines=4", "poisson:jobs=30,backlog=10", "none")
    section = load.section(setting, [("folder", evaluate(setting, WORDS, [0, 1], record="first"))], "EASY")
    styles = page.page_styles(load.Material((section,), (), ()))[0]
    for chart in pictures.of_section(section, styles):
        drawing = laid_out(fitting(chart, width), variables_of(styles), width)
        assert drawing.width == width
        for number, word in enumerate(drawing.words):
            left, top, right, bottom = word.extent
            assert left >= 0.0 and right <= width + 0.01 and top >= 0.0 and bottom <= drawing.height, word
            for other in [*drawing.plots, *(one.extent for one in drawing.words[:number])]:
                apart = right <= other[0] or left >= other[2] or bottom <= other[1] + 1.5 or top >= other[3] - 1.5
                assert apart, f"{chart.name}: {word.text!r} covers something"


def test_charts_of_several_policies_say_under_which_jobs_pass_a_blocked_head():
    """In order with a reservation, and strictly, none does; a chart of one policy says nothing."""
    setting = Setting.of("clustergym/Delay-v0", "flat:machines=4", "poisson:jobs=30,backlog=10", "none")
    section = load.section(setting, [("folder", evaluate(setting, WORDS, [0, 1], record="first"))], "EASY")
    styles = page.page_styles(load.Material((section,), (), ()))[0]
    notes = {chart.name: chart.note for chart in pictures.of_section(section, styles)}
    said = {
        name: re.search(r"(\S+, \S+): jobs pass one that finds no room \(head=skip\)\.$", notes[name]) for name in notes
    }
    several = [name for name in notes if not name.startswith("gantt")]
    assert several and all(set(said[name][1].split(", ")) == {"srtf", "sjf"} for name in several)
    assert {notes[name] for name in notes if name.startswith("gantt")} == {""}


def test_a_size_without_pictures_is_refused(folder, capsys):
    assert run(["compare", str(folder), "--size", "3.3in"]) == 2
    assert "--size: it is that of --pictures DIR" in capsys.readouterr().err
    assert run(["compare", str(folder), "--pictures", "x", "--size", "wide"]) == 2
    assert "'wide': expected a width of 2 to 20 inches" in " ".join(capsys.readouterr().err.split())
