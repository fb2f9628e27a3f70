"""The line chart of a sweep: where lines and bands lie, on which axis, and which settings are a sweep at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jinja2")

from clustergym.experiments import cli
from clustergym.experiments.charts import axes
from clustergym.experiments.comparing.intervals import estimate
from clustergym.experiments.playing.runs import Run
from clustergym.experiments.report import load, page, sweeps
from clustergym.experiments.settings.evaluation_setting import Setting

SETTING = Setting.of("clustergym/Delay-v0", "flat:machines=4", "poisson:jobs=30,load=0.5", "none")
SMALL = ("evaluate", "Delay", "--workload", "poisson:jobs=12,load=0.9", "--policies", "fifo greedy", "--quiet")


def section(setting, baseline=None, **means):
    """Policies with the mean JCT of each seed."""
    runs = [
        Run(word, seed, {"jct_mean": value, "jobs_finished": 1}, 1, np.array([value]))
        for word, values in means.items()
        for seed, value in enumerate(values)
    ]
    return load.section(setting, [(Path("a"), runs)], baseline)


def at_load(value, baseline="fifo", **means):
    return section(SETTING.copy_with(workload=f"poisson:jobs=30,load={value}"), baseline, **means)


def drawn(sweep):
    return sweeps.charts(sweep, page.page_styles(load.Material(sweep.sections, (), ()))[0])


def shapes(chart, kind):
    return [shape for shape in chart.shapes if shape.classes.startswith(kind)]


def test_settings_that_differ_in_one_parameter_are_a_sweep():
    found = sweeps.found([at_load(2, fifo=[1.0]), at_load(0.5, fifo=[1.0]), at_load(1, fifo=[1.0])])
    assert (found.name, found.values) == ("workload.load", ("0.5", "1", "2"))
    assert [one.setting.workload[-3:] for one in found.sections] == ["0.5", "d=1", "d=2"]
    by_key = [section(SETTING.copy_with(mtbf_s=value), fifo=[1.0]) for value in (1e5, 1e6)]
    assert (sweeps.found(by_key).name, sweeps.found(by_key).values) == ("mtbf_s", ("100000.0", "1000000.0"))
    words = [section(SETTING.copy_with(network=value), fifo=[1.0]) for value in ("none", "penalty")]
    assert (sweeps.found(words).name, sweeps.found(words).values) == ("network", ("none", "penalty"))


def test_settings_that_differ_in_more_are_none():
    other = SETTING.copy_with(workload="poisson:jobs=40,load=1")
    assert sweeps.found([section(SETTING, fifo=[1.0]), section(other, fifo=[1.0])]) is None
    assert sweeps.found([section(SETTING, fifo=[1.0])]) is None


def test_a_band_is_the_interval_and_a_line_the_mean():
    """Seeds 90, 100, 110 s at load 1, and 200 s each at load 2: a band that ends in a point."""
    low, high = at_load(1, None, fifo=[90.0, 100.0, 110.0]), at_load(2, None, fifo=[200.0, 200.0, 200.0])
    (chart,) = drawn(sweeps.swept("workload.load", {"2": high, "1": low}))
    (band,), (line,) = shapes(chart, "band"), shapes(chart, "line")
    interval = estimate([90.0, 100.0, 110.0])
    assert interval.low < 90.0 and interval.high > 110.0
    expected = [(1.0, interval.high), (2.0, 200.0), (2.0, 200.0), (1.0, interval.low)]
    points = [(float(chart.x.at(x)), float(chart.y.at(y))) for x, y in expected]
    assert band.paths[0] == pytest.approx(np.array(points))
    means = [(float(chart.x.at(x)), float(chart.y.at(y))) for x, y in ((1, 100), (2, 200))]
    assert line.paths[0] == pytest.approx(np.array(means))
    assert band.closed and [end.text for end in chart.ends] == ["fifo"]


def test_ratios_are_paired_and_the_baseline_is_the_line_at_one():
    """Half of fifo's on every seed: 0.5, and no band."""
    sections = {
        str(value): at_load(value, fifo=[100.0, 300.0], greedy=[50.0, 150.0], las=[100.0, 330.0]) for value in (1, 2)
    }
    _, ratios = drawn(sweeps.swept("workload.load", sections))
    assert "greedy: 1: 0.500, 2: 0.500" in ratios.summary and "fifo:" not in ratios.summary
    assert len(shapes(ratios, "one")) == 1 and len(shapes(ratios, "band")) == 1
    assert ratios.title == "Mean JCT as a ratio to fifo, over workload.load"


def test_one_value_is_left_out_where_nothing_finished():
    sections = {
        "1": at_load(1, None, fifo=[10.0]),
        "2": at_load(2, None, fifo=[np.nan]),
        "3": at_load(3, None, fifo=[9]),
    }
    (chart,) = drawn(sweeps.swept("workload.load", sections))
    assert shapes(chart, "line")[0].paths[0][:, 0].tolist() == [0.0, 1.0]
    assert len(shapes(chart, "dot")[0].paths) == 2
    assert drawn(sweeps.swept("workload.load", {"1": at_load(1, fifo=[np.nan])})) == []


@pytest.mark.parametrize(
    ("values", "places", "is_long"),
    [
        (("1", "2", "4"), [0.0, 1 / 3, 1.0], False),
        (("1", "10", "100"), [0.0, 0.5, 1.0], True),
        (("1e5", "inf", "off"), [0.0, 0.5, 1.0], False),
        (("7",), [0.0], False),
    ],
)
def test_values_lie_by_size_or_beside_each_other(values, places, is_long):
    axis, at = axes.of_values(values)
    assert at == pytest.approx(places) and axis.log is is_long
    assert [text for _, text in axis.ticks] == list(values)


def test_commands_write_the_charts(tmp_path, capsys):
    """`evaluate --sweep` as SVG beside its folders, `compare` on the page and as the files that are asked for."""
    arguments = [*SMALL, "--seeds", "0-1", "--sweep", "load=0.5/2", "--logdir", str(tmp_path / "out"), "--baseline"]
    assert cli.run([*arguments, "fifo"]) == 0
    names = ["sweep-workload.load-jct-ratio.svg", "sweep-workload.load-jct.svg"]
    assert sorted(path.name for path in (tmp_path / "out").glob("*.svg")) == names
    assert all(name in capsys.readouterr().out for name in names[:1])
    folders = sorted(str(path) for path in (tmp_path / "out").iterdir() if path.is_dir())
    to = ["--out", str(tmp_path / "page.html"), "--pictures", str(tmp_path / "pictures"), "--quiet"]
    assert cli.run(["compare", *folders, *to]) == 0
    assert "Mean JCT over workload.load" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "pictures" / names[1]).exists()
