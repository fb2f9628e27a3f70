"""Two policies on one workload, decision by decision: where they part, how many decisions differ, and the page."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from clustergym.experiments import cli
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.report import episode_words, episodes, figures, load, page
from clustergym.experiments.report.episodes import Decision, aligned, kinds, place_of
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.simulator.base.errors import InputError

SETTING = Setting.of("clustergym/Delay-v0", "flat:machines=4", "poisson:jobs=30,backlog=10", "none")
WORDS = ("fifo", "srtf", "las")


def start(time_s: float, job: str, place: str = "0.0 x 1", kind: str = "start", why: str = "") -> Decision:
    return Decision(time_s, job, kind, place, "", why)


@pytest.fixture(scope="module")
def runs():
    return evaluate(SETTING, WORDS, [0, 1], record="first")


@pytest.fixture(scope="module")
def section(runs):
    return load.section(SETTING, [(Path("a"), runs)], "fifo")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `evaluate --logdir` leaves."""
    place = tmp_path_factory.mktemp("evaluated") / "results"
    arguments = ["evaluate", "Delay", "--policies", " ".join(WORDS), "--seeds", "0-1", "--logdir", str(place)]
    arguments += ["--topology", SETTING.topology, "--workload", SETTING.workload, "--network", "none", "--quiet"]
    assert cli.run(arguments) == 0
    return place


def test_a_place_is_machines_and_how_many_gpus_of_each():
    assert place_of("0.1.6 0.1.7 0.0.3") == "0.0 x 1, 0.1 x 2"
    assert place_of("east.1.0.2.5") == "east.1.0.2 x 1"
    assert [place_of(word) for word in ("", "us-west", "group=1 machines=3")] == ["", "us-west", "group=1 machines=3"]


def test_decisions_of_one_instant_are_a_set():
    """At 0 s both start a and b, in either order; at 5 s c and d; d alone at 7 s."""
    first = [start(0.0, "a"), start(0.0, "b"), start(5.0, "c")]
    second = [start(0.0, "b"), start(0.0, "a"), start(5.0, "d"), start(7.0, "c")]
    instants = aligned(first, second)
    found = [(one.time_s, one.common, one.differs) for one in instants]
    assert found == [(0.0, 2, False), (5.0, 0, True), (7.0, 0, True)]
    assert [[one.job for one in side] for side in (instants[1].first, instants[1].second)] == [["c"], ["d"]]


def test_the_same_decision_twice_is_not_one():
    """Stopped and started again twice within an instant by one policy, once by the other."""
    twice = [start(1.0, "a"), start(1.0, "a")]
    (only,) = aligned(twice, twice[:1])
    assert (only.common, len(only.first), only.second) == (1, 1, ())


def test_decisions_are_counted_by_what_is_not_the_same():
    """a the same; b later; c elsewhere; d both; e and the second start of a by the first alone; f by the other."""
    first = [start(0.0, "a"), start(0.0, "b"), start(0.0, "c"), start(0.0, "d"), start(0.0, "e"), start(9.0, "a")]
    second = [start(0.0, "a"), start(1.0, "b"), start(0.0, "c", "0.1 x 1"), start(1.0, "d", "0.1 x 1"), start(3.0, "f")]
    (found,) = kinds(first, second)
    assert found == ("start", 1, 1, 1, 1, 2, 1)
    assert found.differing == 6
    both = kinds([*first, start(5.0, "a", kind="preempt")], second)
    assert [(one.kind, one.only_first) for one in both] == [("start", 2), ("preempt", 1)]


def test_equal_runs_part_nowhere(section, runs):
    copies = [dataclasses.replace(run, policy="again") for run in runs if run.policy == "srtf"]
    both = load.section(SETTING, [(Path("a"), [*runs, *copies])], "srtf")
    found = episodes.chosen(both, ("srtf", "again"))
    assert found.parting is None and found.jobs == () and found.sooner == (0, 0, found.runs[0].jobs)
    assert found.same_for == len(found.runs[0].decisions)
    assert "decided the same" in episode_words.parting(found)
    assert all(one.differing == 0 for one in found.kinds)


def test_until_they_part_all_is_the_same(section):
    """Before the first difference the decisions of both are equal; every decision is counted once on its side."""
    found = episodes.chosen(section, ("srtf", "fifo"))
    begin_s = found.timelines[0].begin_s
    before = [
        sorted(one.what for one in episodes.decisions_of(run) if one.time_s - begin_s < found.parting.time_s)
        for run in found.runs
    ]
    assert before[0] == before[1]
    assert len(before[0]) + found.parting.common == found.same_for
    counts = [sum(one[1:5]) for one in found.kinds]
    assert sum(counts) + sum(one.only_first for one in found.kinds) == len(found.runs[0].decisions)
    assert sum(counts) + sum(one.only_second for one in found.kinds) == len(found.runs[1].decisions)


def test_differences_of_jobs_add_up_to_that_of_the_means(section):
    found = episodes.chosen(section, ("srtf", "fifo"))
    one, other = (run.metrics["jct_mean"] for run in found.runs)
    count = found.runs[0].jobs
    assert sum(job.gain_s for job in found.jobs) / count == pytest.approx(one - other)
    assert sum(found.sooner) == count and found.sooner[2] == count - len(found.jobs)
    names = {decision.job for decision in episodes.decisions_of(found.runs[0])}
    assert {job.job for job in found.jobs} <= names
    size = [abs(job.gain_s) for job in found.jobs]
    assert size == sorted(size, reverse=True)


def test_without_a_wish_it_is_the_best_and_the_baseline(section):
    found = episodes.chosen(section)
    assert found.labels == (section.entries[0].label, "fifo") and found.seed == 0
    alone = load.section(SETTING, [(Path("a"), section.entries[0].runs)], None)
    assert episodes.chosen(alone) is None


def test_what_was_not_recorded_is_said(section):
    says = r"seed 1 of both .* \(srtf on 0; las on 0\); .* clustergym evaluate .* --seed N"
    with pytest.raises(InputError, match=says):
        episodes.chosen(section, ("srtf", "las"), 1)
    assert episodes.chosen(section, ("srtf", "nobody")) is None


def test_what_is_the_same_in_both_is_pale(section):
    """The area of pale boxes is the GPU time of stretches that both runs have, under either policy."""
    found = episodes.chosen(section, ("srtf", "fifo"))
    same = episodes.same_stretches(*found.timelines)
    styles = page.page_styles(load.Material((section,), (), ()))[0]
    jobs, *gantts = figures.of_episodes(found, styles)
    assert jobs.shapes[-1].classes == "parting" and all(chart.shapes[-1].classes == "parting" for chart in gantts)
    for chart in gantts:
        assert any(" same" in shape.classes for shape in chart.shapes) is bool(same)
        assert any(shape.classes.startswith("job") and "same" not in shape.classes for shape in chart.shapes)


def test_jobs_in_the_system_add_up_to_completion_times(runs):
    """The area under the curve is the sum of all JCTs."""
    line = runs[0].timeline
    times, jobs = line.in_system()
    area = float((jobs[:-1] * (times[1:] - times[:-1])).sum())
    assert area == pytest.approx(runs[0].jobs * runs[0].metrics["jct_mean"])


def test_the_page_lays_two_episodes_side_by_side(section):
    material = load.Material((section,), (), ())
    html = page.render(material, {})
    found = episodes.chosen(section)
    assert f"Two episodes side by side: {found.labels[0]} and fifo (seed 0)" in html
    assert episode_words.parting(found).replace("'", "&#39;") in html
    assert html.count('class="parting"') == 3 and "<script" not in html
    assert f'<small class="why">{found.parting.first[0].why}'.partition(";")[0] in html


def test_reasons_stand_below_their_decisions(section):
    """Where there are any: runs that were kept before there were some have none."""
    found = episodes.chosen(section)
    silent, told = (
        tuple(
            dataclasses.replace(run, decisions=tuple((*row[:5], *why) for row in run.decisions)) for run in found.runs
        )
        for why in ((), ("since <it> is short",))
    )
    without, with_reasons = episodes.compared(found.labels, silent), episodes.compared(found.labels, told)
    assert with_reasons.has_reasons and not without.has_reasons
    html = page.render(load.Material((section,), (), ()), {}, pairs={0: with_reasons})
    assert '<small class="why">since &lt;it&gt; is short</small>' in html
    assert 'class="why"' not in page.render(load.Material((section,), (), ()), {}, pairs={0: without})


def test_the_command_tells_where_two_policies_part(folder, tmp_path, capsys):
    to = ("--out", str(tmp_path / "page.html"))
    assert cli.run(["compare", str(folder), *to, "--episodes", "las", "fifo", "--seed", "0"]) == 0
    said = capsys.readouterr().out
    assert "las and fifo on seed 0:" in said and "decisions are the same" in said and "only las" in said
    assert "Two episodes side by side: las and fifo (seed 0)" in (tmp_path / "page.html").read_text()
    assert cli.run(["compare", str(folder), *to, "--episodes", "las", "fifo", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["settings"][0]["episodes"]
    assert found["policies"] == ["las", "fifo"] and found["parting_s"] == found["differences"][0]["time_s"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--episodes", "las", "greeedy"], "--episodes las greeedy: expected two policies of one setting; these were"),
        (["--episodes", "las", "fifo", "--seed", "1"], "seed 1 of both is not among those that were recorded"),
    ],
)
def test_mistakes_are_one_sentence(folder, tmp_path, capsys, arguments, sentence):
    assert cli.run(["compare", str(folder), "--out", str(tmp_path / "page.html"), *arguments]) == 1
    said = capsys.readouterr()
    assert sentence in said.err and said.err.count("\n") == 1 and said.out == ""


def test_charts_and_decisions_call_machines_alike(folder):
    """`0.1` is machine 1 of rack 0 in both, also in runs that were kept."""
    (section,) = load.load([folder]).sections
    found = episodes.chosen(section, ("las", "fifo"))
    line = found.timelines[0]
    assert [line.machine_name(machine) for machine in range(4)] == ["0.0", "0.1", "0.2", "0.3"]
    _, gantt, _ = figures.of_episodes(found, page.page_styles(load.Material((section,), (), ()))[0])
    assert [label.text for label in gantt.rows] == ["0.0", "0.1", "0.2", "0.3"]
    places = {one.place.partition(" ")[0] for run in found.runs for one in episodes.decisions_of(run)}
    assert places <= {label.text for label in gantt.rows}
