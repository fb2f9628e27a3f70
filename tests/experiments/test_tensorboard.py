"""TensorBoard, started on a log, shows agents and heuristics under the same tags; a resumed log has no orphans."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

pytest.importorskip("tensorboard")

from clustergym.experiments.comparing.intervals import by_policy
from clustergym.experiments.learning.tensorboard_log import (
    AgentLog,
    applying,
    extend_heuristics,
    flattened,
    write_evaluation,
    write_heuristics,
)
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing.event_file import EventFile, events, files, scalars_of
from clustergym.simulator.engine.metric_registry import METRICS
from clustergym.tests.support.tensorboard_rows import parameters_of, row_of

SETTING = Setting.of("clustergym/Delay-v0", "flat:machines=4", "poisson:jobs=20,backlog=10", "none")
LAST = 3000
STARTS_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def runs():
    return evaluate(SETTING, ["fifo", "las"], [0, 1], record="first")


def as_agent(runs, step: int):
    """Runs of an agent that gets faster with every step."""
    factor = 2.0 - step / LAST
    return [
        dataclasses.replace(run, policy="agent", metrics={name: factor * value for name, value in run.metrics.items()})
        for run in runs
        if run.policy == "las"
    ]


def mean(runs, policy: str, metric: str = "jct_mean") -> float:
    return by_policy(runs)[policy][metric].mean


@pytest.fixture(scope="module")
def logdir(runs, tmp_path_factory):
    """A training of 3000 steps that was killed at 2000 and resumed from its checkpoint at 1000."""
    folder = tmp_path_factory.mktemp("training")
    log = AgentLog(folder / "agent")
    for step in (0, 1000, 2000):
        log.evaluation(step, as_agent(runs, step), beside=runs)
        log.scalars(step, {"train/loss": 1.0, "ratio": float("nan")})
    log.scalars(2000, {"train/orphan": 1.0})  # never written again
    log = AgentLog(folder / "agent", resume_at=1000)  # the killed one was never closed
    log.evaluation(LAST, as_agent(runs, LAST), beside=runs)
    log.hparams({"algo": "maskable-ppo", "ppo": {"gamma": 1.0, "layers": [64, 64]}}, {"jct_mean": 123.0})
    log.close()
    write_heuristics(runs, folder, LAST)
    return folder


@pytest.fixture(scope="module")
def board(logdir):
    """A function that asks a TensorBoard on `logdir`."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0", "--host", "127.0.0.1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    address = next((found[1] for line in process.stderr if (found := re.search(r" at (http://\S+?)/? ", line))), None)
    assert address is not None, "TensorBoard did not start"

    def ask(path: str, body=None, **query: str):
        url = f"{address}/data/{path}?{urllib.parse.urlencode(query)}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"} if data else {})
        with urllib.request.urlopen(request, timeout=20) as answer:
            content = answer.read()
            return json.loads(content) if "json" in answer.headers["Content-Type"] else content

    def is_read() -> bool:
        runs = ask("plugin/scalars/tags")
        last = [ask("plugin/scalars/scalars", run=run, tag="jct/mean_s")[-1][1] for run in runs]
        return last == [LAST] * 3 and "outcome/jct/mean_s" in runs["agent"]

    until_s = time.monotonic() + STARTS_WITHIN_S
    while not is_read():
        assert time.monotonic() < until_s, "TensorBoard did not read the log"
        time.sleep(0.2)
    yield ask
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=20)


def test_agents_and_heuristics_have_the_same_tags(board, runs):
    tags = board("plugin/scalars/tags")
    metrics = {METRICS[name].tag for name in applying(runs)}
    assert {"jct/mean_s", "jct/p99_s", "makespan_s", "queueing_delay/mean_s", "gpu_utilisation"} <= metrics
    assert set(tags["fifo"]) == set(tags["las"]) == metrics
    assert set(tags["agent"]) == metrics | {"train/loss", "outcome/jct/mean_s"}


def test_curves_of_agents_and_level_lines_of_heuristics(board, runs):
    def curve(run):
        return [(step, value) for _, step, value in board("plugin/scalars/scalars", run=run, tag="jct/mean_s")]

    level = mean(runs, "fifo")
    assert curve("fifo") == [(0, pytest.approx(level)), (LAST, pytest.approx(level))]
    wanted = [(step, pytest.approx(mean(as_agent(runs, step), "agent"))) for step in (0, 1000, LAST)]
    assert curve("agent") == wanted  # without 2000, which the killed training had reached


def test_one_chart_shows_both(board):
    layout = board("plugin/custom_scalars/layout")
    charts = {chart["title"]: chart["multiline"]["tag"] for chart in layout["category"][0]["chart"]}
    assert [group["title"] for group in layout["category"]][:2] == ["Agents and heuristics", "Learning"]
    for group in layout["category"]:
        titles = [chart["title"] for chart in group["chart"]]
        assert len(set(titles)) == len(titles), "merged from three runs, each chart once"
    for run in ("agent", "fifo"):
        answer = board("plugin/custom_scalars/scalars", run=run, tag=charts["mean JCT [s]"][0])
        assert list(answer["tag_to_events"]) == ["jct/mean_s"]


def merged_layout(logdir) -> dict[str, dict[str, str]]:
    """Category -> chart -> tags, as TensorBoard's own plugin merges the layouts of all runs of a folder."""
    from tensorboard import context
    from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
    from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
    from tensorboard.plugins.base_plugin import TBContext
    from tensorboard.plugins.custom_scalar.custom_scalars_plugin import CustomScalarsPlugin

    read = EventMultiplexer().AddRunsFromDirectory(str(logdir))
    read.Reload()
    plugin = CustomScalarsPlugin(TBContext(data_provider=MultiplexerDataProvider(read, str(logdir))))
    layout = json.loads(plugin.layout_impl(context.RequestContext(), ""))
    return {
        group["title"]: {chart["title"]: chart["multiline"]["tag"][0] for chart in group["chart"]}
        for group in layout["category"]
    }


def test_every_tag_of_a_chart_is_found_whichever_run_comes_first(runs, tmp_path):
    """README's folders: `runs/evaluation` before `runs/first`, in which `agent` without a critic comes before the rest.

    The evaluation has no training's charts, the first agent none of a critic and none of a reference: TensorBoard 2.21
    keeps of a category that the first run lacks only what the first run that has it shows.
    """
    write_evaluation(runs, tmp_path / "evaluation")
    AgentLog(tmp_path / "first" / "agent", critic=False).close()
    write_heuristics(runs, tmp_path / "first", LAST, {"las": {"against_greedy/mean": 1.5}})
    AgentLog(tmp_path / "second" / "agent").close()
    groups = [dataclasses.replace(run, metrics=run.metrics | {"moves": 3.0}) for run in runs]
    write_heuristics(groups, tmp_path / "third")
    found = merged_layout(tmp_path)
    charts = [(title, tags) for group in found.values() for title, tags in group.items()]
    for tag in ("against_greedy/mean", "train/value_loss", "by_seed/jct/mean_s", "test/more/preemptions", "moves"):
        assert sum(re.match(tags, tag) is not None for _, tags in charts) == 1, tag
    alone = [merged_layout(folder) for folder in sorted(tmp_path.iterdir())]
    assert all(one == found for one in alone), "whichever runs there are"


def test_the_page_of_parameters_has_agents_and_heuristics(board, runs):
    columns = {one["name"] for one in board("plugin/hparams/experiment", {})["hparamInfos"]}
    assert columns == {"about/kind", "about/policy", "about/played_on", "algo", "ppo/gamma", "ppo/layers"}
    asked = {"allowedStatuses": [f"STATUS_{word}" for word in ("UNKNOWN", "SUCCESS", "FAILURE", "RUNNING")]}
    rows = board("plugin/hparams/session_groups", asked | {"startIndex": 0, "sliceSize": 10, "colParams": []})
    found = {row["hparams"]["about/policy"]: row for row in rows["sessionGroups"]}
    assert {name: row["hparams"]["about/kind"] for name, row in found.items()} == {
        "agent": "agent",
        "fifo": "heuristic",
        "las": "heuristic",
    }
    assert found["agent"]["hparams"]["ppo/layers"] == "64 64" and found["agent"]["hparams"]["ppo/gamma"] == 1.0
    value = {name: {one["name"]["tag"]: one["value"] for one in row["metricValues"]} for name, row in found.items()}
    assert value["agent"]["outcome/jct/mean_s"] == 123.0
    assert value["fifo"]["jct/mean_s"] == pytest.approx(mean(runs, "fifo"))


def test_pictures_of_each_evaluation(board):
    pytest.importorskip("matplotlib")
    assert set(board("plugin/images/tags")["agent"]) == {"pictures/jct_cdf", "pictures/gantt"}
    for tag in ("pictures/jct_cdf", "pictures/gantt"):
        found = board("plugin/images/images", run="agent", tag=tag, sample="0")
        assert [one["step"] for one in found] == [0, 1000, LAST]
        png = board("plugin/images/individualImage?" + found[-1]["query"] + "&")
        assert png.startswith(b"\x89PNG")


def test_a_log_that_goes_on_at_a_step_keeps_what_lies_before_it(logdir):
    scalars = scalars_of(logdir / "agent")
    assert [step for step, _ in scalars["train/loss"]] == [0, 1000]
    assert "train/orphan" not in scalars and "ratio" not in scalars
    assert len(files(logdir / "agent")) == 1


def test_resuming_where_nothing_was_logged_is_starting(tmp_path):
    log = AgentLog(tmp_path / "agent", resume_at=500)
    log.scalars(600, {"a": 1.0})
    log.close()
    assert scalars_of(tmp_path / "agent") == {"a": [(600, 1.0)]}
    AgentLog(tmp_path / "agent").close()
    assert scalars_of(tmp_path / "agent") == {}, "a new training replaces an old one's log"


def test_a_record_that_a_kill_cut_off_is_left_out(tmp_path):
    log = AgentLog(tmp_path)
    for step in range(5):
        log.scalars(step, {"a": float(step)})
    (path,) = files(tmp_path)
    os.truncate(path, path.stat().st_size - 7)
    log = AgentLog(tmp_path, resume_at=100)
    log.scalars(9, {"a": 9.0})
    assert [step for step, _ in scalars_of(tmp_path)["a"]] == [0, 1, 2, 3, 9]


def test_a_kill_between_copying_and_removing_doubles_nothing(tmp_path):
    log = AgentLog(tmp_path)
    log.scalars(1, {"a": 1.0})
    (old,) = files(tmp_path)
    content = old.read_bytes()
    AgentLog(tmp_path, resume_at=1).close()
    old.write_bytes(content)
    AgentLog(tmp_path, resume_at=1).close()
    (path,) = files(tmp_path)
    assert [value.tag for event in events(path) for value in event.summary.value].count("a") == 1


def test_every_record_is_on_disk_when_the_call_returns(tmp_path):
    file = EventFile(tmp_path)
    before = file.path.stat().st_size
    AgentLog.scalars(AgentLog(tmp_path / "agent"), 1, {"a": 1.0})
    file.write(3)
    assert file.path.stat().st_size > before
    assert file.last_step == 3


def test_files_of_others_in_the_folder_stay(tmp_path):
    other = tmp_path / "events.out.tfevents.123.host"
    other.write_bytes(b"")
    AgentLog(tmp_path, resume_at=0).close()
    AgentLog(tmp_path).close()
    assert other.exists() and len(files(tmp_path)) == 2


def test_heuristics_written_again_are_replaced(runs, tmp_path):
    write_heuristics(runs, tmp_path, 10)
    write_heuristics([run for run in runs if run.seed == 0], tmp_path, 20)
    assert [step for step, _ in scalars_of(tmp_path / "fifo")["jct/mean_s"]] == [0, 20]
    assert len(files(tmp_path / "fifo")) == 1


def test_only_metrics_that_say_something_are_written(runs, tmp_path):
    """No CPUs, no deadlines, no failures, no tables, and las alone stops jobs: its 0 of fifo is worth a line."""
    write_heuristics(runs, tmp_path, 10)
    fifo, las = scalars_of(tmp_path / "fifo"), scalars_of(tmp_path / "las")
    assert set(fifo) == set(las) and len(fifo) < 20
    empty = ("cpu_allocation_rate", "slo_violation_rate", "failures", "data_wait_rate", "jobs_finished")
    assert not set(fifo) & {METRICS[name].tag for name in empty}
    assert fifo["more/preemptions"][0][1] == 0.0 < las["more/preemptions"][0][1]
    cut = [dataclasses.replace(run, metrics=run.metrics | {"jobs_finished": 3.0}) for run in runs]
    assert "jobs_finished" in applying(cut)


def test_an_agents_metric_is_written_from_when_it_says_something(runs, tmp_path):
    """Preemptions 0, 0, 5, 0: from the third evaluation on, also in a log that was opened again."""
    alone = [run for run in runs if run.policy == "fifo"]
    log = AgentLog(tmp_path)
    for step, number in enumerate((0.0, 0.0, 5.0)):
        log.evaluation(step, [dataclasses.replace(r, metrics=r.metrics | {"preemptions": number}) for r in alone])
    log = AgentLog(tmp_path, resume_at=2)
    log.evaluation(3, alone)
    assert scalars_of(tmp_path)["more/preemptions"] == [(2, 5.0), (3, 0.0)]


def test_level_lines_reach_as_far_as_the_agent_learned(runs, tmp_path):
    """Meant for 10 steps, ended after 14: the lines end there too, however often that is said; nothing is doubled."""
    write_heuristics(runs, tmp_path, 10, {"fifo": {"against_las/mean": 1.5}})
    for last in (14, 14, 12):
        extend_heuristics(tmp_path, last)
    found = scalars_of(tmp_path / "fifo")
    assert [step for step, _ in found["jct/mean_s"]] == [0, 10, 14]
    assert found["against_las/mean"] == [(0, 1.5), (10, 1.5), (14, 1.5)]
    assert len(files(tmp_path / "fifo")) == 1


def test_without_a_critic_there_is_nothing_of_one(tmp_path):
    figures = {"train/loss": 1.0, "train/explained_variance": 0.0, "train/value_loss": 3.0}
    for critic in (True, False):
        log = AgentLog(tmp_path / str(critic), critic=critic)
        log.scalars(1, figures)
    assert set(scalars_of(tmp_path / "True")) == set(figures)
    assert set(scalars_of(tmp_path / "False")) == {"train/loss"}


def test_an_evaluation_shares_no_chart_and_no_row_with_a_training(runs, tmp_path):
    """Both in one folder, as the demo leaves them: other tags, and other names of rows, which TensorBoard averages."""
    write_heuristics(runs, tmp_path / "training", 10)
    write_evaluation(runs, tmp_path / "evaluation")
    trained, evaluated = (scalars_of(tmp_path / folder / "fifo") for folder in ("training", "evaluation"))
    assert not set(trained) & set(evaluated)
    assert set(evaluated) == {"by_seed/jct/mean_s", *(f"test/{name}" for name in trained)}
    assert min(evaluated) == "by_seed/jct/mean_s", "the first chart"
    assert evaluated["by_seed/jct/mean_s"] == [
        (run.seed, pytest.approx(run.metrics["jct_mean"])) for run in runs if run.policy == "fifo"
    ]
    assert [step for step, _ in evaluated["test/jct/mean_s"]] == [0, 1]
    names = [
        row_of(tmp_path / folder / policy).group_name
        for folder in ("training", "evaluation")
        for policy in ("fifo", "las")
    ]
    assert len(set(names)) == 4


def test_rows_of_an_evaluation_say_what_was_played_on(runs, tmp_path):
    write_evaluation(runs, tmp_path, {"workload": "poisson:jobs=20", "topology": "flat:machines=4", "network": "none"})
    wanted = {"about/workload": "poisson:jobs=20", "about/topology": "flat:machines=4", "about/network": "none"}
    assert parameters_of(tmp_path / "fifo").items() >= wanted.items()


def test_nested_parameters_become_flat():
    nested = {"a": {"b": {"c": 1}, "d": None}, "e": [1, "x"], "f": True}
    assert flattened(nested) == {"a/b/c": 1, "a/d": "none", "e": "1 x", "f": True}
