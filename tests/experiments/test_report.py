"""The report: one page that needs nothing else, says what was played, and copes with whatever is missing."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorboard")

from clustergym.experiments import cli
from clustergym.experiments.charts import axes, chart, marks
from clustergym.experiments.learning.tensorboard_log import AgentLog, write_heuristics
from clustergym.experiments.playing import over_time
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.report import figures, gantt, load, numbers, page
from clustergym.experiments.settings.evaluation_setting import Setting

SETTING = Setting.of("clustergym/Delay-v0", "flat:machines=4", "poisson:jobs=30,backlog=10", "none")
WORDS = ("fifo", "srtf", "las")
AGENT = "maskable-ppo:run/best"
VOID = {"meta", "link", "br", "path"}


@pytest.fixture(scope="module")
def runs():
    return evaluate(SETTING, WORDS, [0, 1, 2], record="first")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `evaluate --logdir` leaves."""
    place = tmp_path_factory.mktemp("evaluated") / "results"
    place.mkdir()
    arguments = ["evaluate", "Delay", "--policies", " ".join(WORDS), "--seeds", "0-2", "--logdir", str(place)]
    arguments += ["--topology", SETTING.topology, "--workload", SETTING.workload, "--network", "none", "--quiet"]
    assert cli.run(arguments) == 0
    return place


def trained(folder: Path, runs, factor: float = 1.0) -> Path:
    """What a training leaves for the report: curves of an agent, and heuristics as level lines."""
    log = AgentLog(folder / "agent")
    for step in (0, 1000, 2000):
        log.scalars(step, {"jct/mean_s": factor * (9000.0 - step), "gpu_utilisation": 0.5})
    log.close()
    write_heuristics(runs, folder, 2000)
    return folder


def as_agent(runs, factor: float, word: str = AGENT):
    """The runs of srtf as those of an agent that is `factor` times as slow."""
    mine = [run for run in runs if run.policy == "srtf"]
    scaled = [{**run.metrics, "jct_mean": factor * run.metrics["jct_mean"]} for run in mine]
    return [
        dataclasses.replace(run, policy=word, metrics=metrics, jct_s=factor * run.jct_s)
        for run, metrics in zip(mine, scaled, strict=True)
    ]


def page_of(*sections, trainings=(), sources=()) -> str:
    return page.render(load.Material(tuple(sections), tuple(trainings), tuple(sources)), {"command": "a < b"})


class Reader(HTMLParser):
    """Every tag is closed, in order; what was there is kept."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def expect_alone(html: str) -> Reader:
    """The page is well-formed and asks for nothing from elsewhere."""
    reader = Reader(html)
    assert "script" not in reader.tags
    outside = [
        (name, value) for name, value in reader.attributes if name in ("src", "href", "srcset", "action", "data")
    ]
    assert all(value.startswith(("#", "data:")) for _, value in outside)
    assert re.findall(r"https?://|@import|url\(", html) == []
    assert "prefers-color-scheme: dark" in html and "@media print" in html and 'name="viewport"' in html
    return reader


def test_the_page_of_an_evaluation(folder, capsys):
    assert cli.run(["compare", str(folder), "--baseline", "fifo"]) == 0
    said = capsys.readouterr().out
    html = (folder / "report.html").read_text()
    text = " ".join(" ".join(expect_alone(html).text).split())
    assert f"report: {folder / 'report.html'}" in said
    for word in (*WORDS, "fifo", SETTING.workload, "seeds 0-2", "clustergym evaluate Delay", "numpy"):
        assert word in text
    for heading in (
        "ratio to fifo",
        "over seeds",
        "Distribution of job",
        "GPUs in use",
        "Queue over",
        "held which GPU",
    ):
        assert heading in text
    assert len(html) < 300_000


def test_json_is_one_document(folder, tmp_path, capsys):
    to = tmp_path / "page.html"
    assert cli.run(["compare", str(folder), "--out", str(to), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"] == str(to) and to.exists()
    (only,) = found["settings"]
    assert {row["policy"] for row in only["policies"]} == set(WORDS)
    best = min(only["policies"], key=lambda row: row["metrics"]["jct_mean"]["mean"])
    assert only["policies"][0] == best
    assert next(row for row in only["policies"] if row["label"] == only["baseline"])["ratio"]["mean"] == 1.0


def test_the_ratio_is_of_means_on_common_seeds():
    """Agent 2 s and 4 s, baseline 4 s and 4 s on seeds 0 and 1: 3/4; its own seed 7 is in no ratio."""

    def run(policy, seed, jct):
        metrics = {"jct_mean": jct, "makespan": jct, "jobs_finished": 1.0}
        return load.Run(policy, seed, metrics, 1, np.array([jct]))

    mine = [run(AGENT, 0, 2.0), run(AGENT, 1, 4.0), run(AGENT, 7, 90.0)]
    one = load.section(SETTING, [(Path("a"), [*mine, run("fifo", 0, 4.0), run("fifo", 1, 4.0)])], None)
    assert one.baseline == "fifo" and not one.one_set_of_seeds
    assert one.ratio(one.entry(AGENT)).mean == 0.75
    assert "different seeds" in page_of(one)


def test_an_agent_is_told_apart_and_marked(runs):
    one = load.section(SETTING, [(Path("a"), [*runs, *as_agent(runs, 0.5)])], "srtf")
    html = page_of(one)
    expect_alone(html)
    assert numbers.verdict(one).startswith(f"{AGENT} has the shortest mean JCT")
    assert re.search(r'<tr class="agent"><th scope="row"[^>]*>.*run/best <span class="tag">agent', html)
    assert numbers.rows(one)[0].entry.label == AGENT
    assert numbers.rows(one)[0].cells[0].is_best


def test_a_verdict_claims_no_more_than_the_interval(runs):
    near = [dataclasses.replace(run) for run in as_agent(runs, 1.0)]
    wobbled = [
        dataclasses.replace(run, metrics={**run.metrics, "jct_mean": run.metrics["jct_mean"] * factor})
        for run, factor in zip(near, (0.9, 1.05, 1.0), strict=True)
    ]
    one = load.section(SETTING, [(Path("a"), [run for run in runs if run.policy == "srtf"] + wobbled)], "srtf")
    assert "cannot be told apart" in numbers.verdict(one)


def test_equal_runs_of_two_folders_are_one_policy_and_different_ones_are_named(runs):
    parts = [(Path("x/one"), [*runs, *as_agent(runs, 0.5)]), (Path("x/two"), [*runs, *as_agent(runs, 0.7)])]
    one = load.section(SETTING, parts, None)
    assert {entry.label for entry in one.entries} == {*WORDS, f"{AGENT} (one)", f"{AGENT} (two)"}
    assert all(entry.seeds == [0, 1, 2] for entry in one.entries)


def test_seeds_of_two_folders_add_up(runs):
    early, late = [run for run in runs if run.seed < 2], [run for run in runs if run.seed > 0]
    one = load.section(SETTING, [(Path("a"), early), (Path("b"), late)], None)
    assert [entry.seeds for entry in one.entries] == [[0, 1, 2]] * 3


def test_settings_are_never_averaged(folder, runs, tmp_path, capsys):
    other = tmp_path / "other"
    other.mkdir()
    arguments = ["evaluate", "Delay", "--policies", "fifo", "--seeds", "0-1", "--logdir", str(other), "--quiet"]
    assert (
        cli.run([*arguments, "--topology", "flat:machines=2", "--workload", "poisson:jobs=20", "--network", "none"])
        == 0
    )
    capsys.readouterr()
    assert cli.run(["compare", str(folder), str(other), "--out", str(tmp_path / "p.html"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["settings"]
    assert [one["setting"]["topology"] for one in found] == ["flat:machines=4", "flat:machines=2"]
    assert (tmp_path / "p.html").read_text().count("<section") == 3


def test_learning_curves_stand_beside_heuristics(folder, runs, tmp_path):
    place = trained(tmp_path / "run", runs)
    material = load.load([folder, place])
    html = page.render(material, {})
    expect_alone(html)
    assert material.trainings[0].agent["jct/mean_s"] == [(0, 9000.0), (1000, 8000.0), (2000, 7000.0)]
    assert set(material.trainings[0].heuristics) == set(WORDS)
    learning = html[html.index('id="learning"') :]
    assert all(re.search(rf'<span class="[^"]*"[^>]*>{word}</span>', learning) for word in (*WORDS, "run"))
    assert "run ends at 1.94 h" in learning


def test_only_training(runs, tmp_path, capsys):
    assert cli.run(["compare", str(trained(tmp_path, runs))]) == 0
    html = (tmp_path / "report.html").read_text()
    expect_alone(html)
    assert "Learning" in html and "<table" not in html


def test_trainings_on_other_workloads_have_charts_of_their_own(runs, tmp_path):
    slower = [dataclasses.replace(run, metrics={**run.metrics, "jct_mean": 1.0}) for run in runs]
    one, two = trained(tmp_path / "one", runs), trained(tmp_path / "two", runs, 0.9)
    three = trained(tmp_path / "three", slower)
    html = page.render(load.load([one, two, three]), {})
    assert html.count("Mean JCT on held-out workloads</h3>") == 2


def test_a_policy_has_one_colour_on_the_whole_page(runs, tmp_path):
    material = load.Material(
        (load.section(SETTING, [(Path("a"), [*runs, *as_agent(runs, 0.5)])], None),),
        (load._training(trained(tmp_path / "run", runs)),),
        (),
    )
    of_label, of_training, of_folder_name = page.page_styles(material)
    assert of_label["fifo"] == of_folder_name["fifo"]
    assert next(iter(of_training.values())) == of_label[AGENT]  # it is that training's agent
    assert len({style.name for style in of_label.values()}) == 4
    assert of_label[AGENT].is_agent and not of_label["las"].is_agent


def test_no_timelines_and_one_seed(runs):
    bare = [dataclasses.replace(run, timeline=None) for run in runs if run.seed == 0]
    html = page_of(load.section(SETTING, [(Path("a"), bare)], None))
    expect_alone(html)
    assert "no charts over time" in html and "Mean JCT over seeds" not in html


def test_nothing_finished(runs):
    unfinished = [
        dataclasses.replace(run, jct_s=np.empty(0), metrics=run.metrics | {"jct_mean": np.nan, "jobs_finished": 0.0})
        for run in runs
    ]
    html = page_of(load.section(SETTING, [(Path("a"), unfinished)], None))
    expect_alone(html)
    assert "No job finished" in html and "nan" not in " ".join(Reader(html).text)


def test_what_was_not_finished_is_said(folder, tmp_path, capsys):
    place = tmp_path / "cut"
    place.mkdir()
    arguments = [
        "--policies",
        "fifo las",
        "--seeds",
        "0-1",
        "--logdir",
        str(place),
        "--set",
        "horizon_s=20000",
        "--quiet",
    ]
    words = ["--topology", SETTING.topology, "--workload", SETTING.workload, "--network", "none"]
    assert cli.run(["evaluate", "Delay", *arguments, *words]) == 0
    capsys.readouterr()
    assert cli.run(["compare", str(place)]) == 0
    said, html = capsys.readouterr().out, (place / "report.html").read_text()
    assert "finished" in said and "in no JCT" in said
    assert "finished<br>[% of jobs]" in html and "in no JCT" in html and "<dd>20000</dd>" in html


def test_words_are_shown_and_never_become_markup(runs):
    evil = "ppo:<script>alert(1)</script>&'\""
    html = page_of(load.section(SETTING, [(Path("a"), [*runs, *as_agent(runs, 0.9, evil)])], None))
    expect_alone(html)
    assert any("<script>alert(1)</script>" in text for text in Reader(html).text)


def test_14_policies_of_128_jobs_stay_small(runs):
    setting = SETTING.copy_with(topology="dally:racks=2", workload="poisson:jobs=128,backlog=128")
    (heavy,) = evaluate(setting, ["tiresias"], [0], record="first")
    many = [dataclasses.replace(heavy, policy=f"policy-{number}", seed=0) for number in range(14)]
    assert len(page_of(load.section(setting, [(Path("a"), many)], None))) < 1_500_000


@pytest.mark.parametrize("machines", [8, 120])
def test_the_gantt_shows_all_time_that_jobs_held(machines):
    """The area of its boxes is the GPU time held, in both forms."""
    setting = Setting.of("clustergym/Delay-v0", f"flat:machines={machines},gpus_per_machine=4", "batch:jobs=60", "none")
    (run,) = evaluate(setting, ["fifo:head=skip"], [0], record="first")
    line = run.timeline
    stop_s = line.stop_s - line.begin_s
    chart = gantt.gantt("fifo", line, stop_s, 0)
    area = 0.0
    for shape in chart.shapes:
        share = int(shape.classes[-1]) / marks.SHADES if shape.classes.startswith("shade") else 1.0
        area += share * sum(float(np.prod(np.ptp(corners, axis=0))) for corners in shape.paths)
    held = sum(len(gpus) * (end - start) for gpus, start, end in zip(line.gpus, line.start_s, line.end_s, strict=True))
    assert area == pytest.approx(held / (line.num_gpus * stop_s), rel=0.05, abs=0.01)


def test_shares_in_use_add_up(runs):
    line = runs[0].timeline
    share = over_time.shares_in_use(line, 50)
    held = sum(len(gpus) * (end - start) for gpus, start, end in zip(line.gpus, line.start_s, line.end_s, strict=True))
    assert share.mean() * line.num_gpus * (line.stop_s - line.begin_s) == pytest.approx(held)


def test_axes_have_round_ticks_inside():
    for axis in (axes.log_durations(7.0, 9e5), axes.log_durations(4000.0, 9000.0), axes.log_ratios(0.93, 3.1)):
        values = [value for value, _ in axis.ticks]
        assert len(values) >= 2 and values == sorted(values)
        assert all(axis.low <= value <= axis.high for value in values)
    assert [text for _, text in axes.durations(0.0, 7200.0).ticks] == ["0 h", "0.5 h", "1 h", "1.5 h", "2 h"]
    assert float(axes.log_durations(1.0, 100.0).at(10.0)) == pytest.approx(0.5)
    assert axes.linear(5.0, 5.0).at(5.0) == 0.0


def test_labels_at_the_edge_never_touch():
    places = chart.spread([50.0, 50.0, 51.0, 99.0, 100.0, 0.0], 200)
    apart = np.diff(sorted(places))
    assert apart.min() >= 100.0 * chart.LABEL_PX / 200 - 0.02
    assert places[5] == 0.0 and max(places) <= 100.0


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["nowhere"], 1, "nowhere: there is no such folder; expected one of evaluate --logdir or train --logdir"),
        (["{folder}/results.parquet"], 1, "results.parquet: is a file; expected the folder"),
        (["{empty}"], 1, "{empty}"),
        (["{folder}", "--baseline", "greeedy"], 1, "--baseline 'greeedy'"),
        (["{folder}", "--out", "{empty}"], 1, "this is a folder"),
        ([], 2, "DIR"),
    ],
)
def test_mistakes_are_one_sentence(folder, tmp_path, capsys, arguments, status, sentence):
    words = {"folder": folder, "empty": tmp_path}
    assert cli.run(["compare", *(text.format(**words) for text in arguments)]) == status
    said = capsys.readouterr()
    assert sentence.format(**words) in said.err and said.err.count("\n") == 1 and said.out == ""


def test_a_killed_write_leaves_the_old_page(folder, tmp_path, monkeypatch):
    to = tmp_path / "page.html"
    to.write_text("old")
    monkeypatch.setattr(page, "render", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.run(["compare", str(folder), "--out", str(to)])
    assert to.read_text() == "old" and list(tmp_path.iterdir()) == [to]


def test_of_long_names_the_end_is_shown():
    """Agents differ in the end of their folders' paths, which is what a narrow column would cut off."""
    words = ["greedy", "ppo:/runs/a/best", "ppo:/runs/b/best (again)", "zoo:Delay", "maskable-ppo:best"]
    short = ["greedy", "…/a/best", "…/b/best (again)", "zoo:Delay", "maskable-ppo:best"]
    assert list(figures.short_labels(words).values()) == short
    assert figures.short_labels(["ppo:/1/a/best", "ppo:/2/a/best"]) == {
        "ppo:/1/a/best": "…/1/a/best",
        "ppo:/2/a/best": "…/2/a/best",
    }


def chromium(*arguments: str, profile: Path) -> subprocess.CompletedProcess[str]:
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if binary is None:
        pytest.skip("no Chromium on the path")
    quiet = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")
    return subprocess.run(
        [binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", *quiet, f"--user-data-dir={profile}",
         "--enable-logging=stderr", "--v=0", *arguments],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_opens_it_without_an_error(runs, tmp_path, width):
    """In a frame of that width, as a headless window is never narrower than 500 pixels."""
    section = load.section(SETTING, [(Path("a"), [*runs, *as_agent(runs, 0.9)])], None)
    training = load._training(trained(tmp_path / "run", runs))
    (tmp_path / "frame.html").write_text(
        f"<!doctype html><title></title><iframe width={width} height=800"
        f' srcdoc="{escape(page_of(section, trainings=[training]))}"></iframe>'
        "<script>addEventListener('load', () => { const page = document.querySelector('iframe').contentDocument;"
        "const shown = [...page.querySelectorAll('.plot')].filter(plot => plot.offsetParent);"
        "document.title = JSON.stringify([page.documentElement.scrollWidth,"
        "Math.min(...shown.map(plot => Math.min(plot.offsetWidth, plot.offsetHeight)))]) })</script>"
    )
    seen = chromium("--dump-dom", (tmp_path / "frame.html").as_uri(), profile=tmp_path / "profile")
    assert "CONSOLE" not in seen.stderr, seen.stderr
    wide, smallest = json.loads(re.search(r"<title>(.*?)</title>", seen.stdout)[1])
    assert width - 40 < wide <= width, "the page is wider than its window"
    assert smallest > 50
