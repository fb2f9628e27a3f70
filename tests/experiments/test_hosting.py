"""Environments that a simulator other than that of GPU clusters plays: evaluate, --set, decisions, logs, reports."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from clustergym.envs import registration
from clustergym.experiments.cli import run
from clustergym.experiments.commands.options import described_setting
from clustergym.experiments.console.terminal import BadArgument
from clustergym.experiments.playing.evaluation import simulator_of
from clustergym.experiments.playing.group_timeline import group_timeline
from clustergym.experiments.playing.recording import Recorded, Timeline
from clustergym.experiments.report import load, numbers
from clustergym.experiments.settings.describing import describe_topology
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing import store
from clustergym.policies import Policy, make, registry
from clustergym.simulator.base.codes import ASSIGN, JOINED, LEFT, SIZED
from clustergym.simulator.base.decisions import Advance, AssignGroup, Preempt, SetMachines, SetSpill
from clustergym.simulator.base.errors import InvalidDecision
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.groups.group_config import GroupTerms
from clustergym.simulator.groups.group_simulator import GroupSimulator
from clustergym.simulator.groups.use import UseMeter
from clustergym.simulator.workloads import Workload

HOSTED = "clustergym/Hosted-v0"


class OneGroup(Policy):
    """Every job joins one group of all machines."""

    name = "one-group"
    clock = GroupTerms()

    def decide(self, view):
        if not len(view.queue):
            return Advance()
        job = int(view.queue[0])
        if len(view.groups):
            return AssignGroup(job, int(view.groups[0]))
        return AssignGroup(job, machines=view.free_machines)


@pytest.fixture
def hosted(monkeypatch):
    """An environment of job groups, of which only the command line knows, and a policy that plays in it."""
    entry = registration.Entry(
        summary="for tests",
        paper="harmony",
        entry_point="nowhere:Nothing",
        vector_entry_point="nowhere:Nothing",
        defaults={
            "topology": "harmony:machines=16",
            "workload": "harmony-like:jobs=3,mean_hours=0.1",
            "network": "none",
        },
        options={"move_s": 30.0},
        decisions=frozenset({"one group"}),
        features=frozenset({"run times"}),
        config="clustergym.simulator.groups.group_config:GroupClusterConfig",
    )
    monkeypatch.setitem(registration.ENVIRONMENTS, HOSTED, entry)
    monkeypatch.setitem(registry.POLICIES, "one-group", registry.Entry(OneGroup, "for tests", "one group"))


@pytest.mark.usefixtures("hosted")
def test_a_setting_has_the_configuration_of_the_environment_and_of_set():
    """move_s is the environment's 30, not the class's 60; busy=1.0 is the class's, so it is nothing unusual."""
    setting = described_setting("Hosted", assignments=["comm=split busy=1.0 horizon_s=500"])
    assert setting.config.unusual() == {"horizon_s": 500.0, "comm": "split", "move_s": 30.0}
    simulator = simulator_of(setting.config, make("one-group"))
    assert isinstance(simulator, GroupSimulator)
    groups = simulator.config.groups
    assert (groups.comm, groups.move_s, simulator.config.horizon_s) == ("split", 30.0, 500.0)
    assert describe_topology(setting.topology, setting.config.unit) == "harmony:machines=16 (16 machines, 1 rack)"


@pytest.mark.usefixtures("hosted")
@pytest.mark.parametrize(
    ("env", "options", "says"),
    [
        ("Delay", {"assignments": ["busy=0.9"]}, "busy: clustergym/Delay-v0 has nothing of the kind"),
        ("Hosted", {"assignments": ["bussy=0.9"]}, "did you mean 'busy'"),
        ("Hosted", {"assignments": ["busy=2"]}, "busy = 2"),
        ("Hosted", {"assignments": ["jobs_per_gpu=2"]}, "has nothing of the kind; clustergym/Delay-v0 has"),
        ("Hosted", {"assignments": ["semantics=artist-sim"], "network": "none"}, "has no leases"),
        ("Hosted", {"network": "penalty"}, "network = 'penalty': expected 'none'"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(env, options, says):
    with pytest.raises(BadArgument, match=says):
        described_setting(env, **options)


@pytest.mark.usefixtures("hosted")
def test_evaluate_writes_runs_decisions_and_pictures_of_groups(tmp_path, capsys):
    """Three jobs, one group: a decision opens it on 16 machines, two join; each machine is held until the last ends."""
    words = ("evaluate", "Hosted", "--seeds", "0-1", "--json", "--quiet")
    assert run([*words, "--logdir", str(tmp_path / "log"), "--decisions", str(tmp_path / "made.csv")]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in rows] == ["one-group"] * 2
    assert rows[0]["setting"]["move_s"] == 30.0
    assert rows[0]["semantics"] == {"execution": "subtasks", "spills": True}
    with open(tmp_path / "made.csv", encoding="utf-8") as file:
        made = [row for row in csv.DictReader(file) if row["seed"] == "0"]
    assert [row["decision"] for row in made] == ["assign"] * 3
    assert [row["gpus"] for row in made] == ["group=0 machines=16", "group=0", "group=0"]
    found = store.read(tmp_path / "log")
    line = found.runs[0].timeline
    assert (line.unit, line.num_gpus, len(line.job)) == ("machine", 16, 3)
    assert max(line.busy_gpus()[1]) == 16
    for use, metric in zip(line.in_use(), ("cpu_utilisation", "network_utilisation"), strict=True):
        mean = float((use.share[:-1] * np.diff(use.time_s)).sum()) / found.runs[0].metrics["makespan"]
        assert mean == pytest.approx(found.runs[0].metrics[metric])
    assert found.setting.config.groups.move_s == 30.0
    section = load.load([tmp_path / "log"]).sections[0]
    assert ("CPU use", "%") in numbers.headers(section)
    assert ("GPU use", "%") not in numbers.headers(section)
    assert run(["compare", str(tmp_path / "log"), "--out", str(tmp_path / "report.html"), "--quiet"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "one row a machine" in page
    assert all(f"{what} over time" in page for what in ("CPU use", "Network use", "Queue"))
    assert "Machines in use" not in page


def test_machines_of_groups_have_numbers():
    """Group 7 gets machines 0 and 1, group 9 machine 2; 7 gives 1 back when 9 takes two more: 1 and 3. A job that comes
    and goes within an instant was not there, and one that goes on in another group is on other machines."""

    class Ended:
        topology = type("Four", (), {"num_machines": 4})
        state = np.zeros(
            1,
            [(name, "f8") for name in ("now_s", "start_s")]
            + [("n_jobs", "i8")]
            + [(name, "f8", 2) for name in ("arrival_s", "status", "finish_s")],
        ).view(np.recarray)[0]

    Ended.meter = UseMeter(Ended)
    Ended.state.now_s, Ended.state.n_jobs = 50.0, 2
    log = [
        Recorded(0.0, 0, ASSIGN, (7, 2)),
        Recorded(0.0, -1, SIZED, (7, 2)),
        Recorded(0.0, 0, JOINED, (7, 0)),
        Recorded(0.0, 1, JOINED, (7, 0)),
        Recorded(0.0, 1, LEFT, (7, 0)),
        Recorded(5.0, -1, SIZED, (9, 1)),
        Recorded(5.0, 1, JOINED, (9, 0)),
        Recorded(20.0, -1, SIZED, (9, 3)),
        Recorded(20.0, -1, SIZED, (7, 1)),
        Recorded(30.0, 1, LEFT, (9, 0)),
        Recorded(30.0, -1, SIZED, (9, 0)),
    ]
    line = group_timeline(Ended, log)
    found = zip(line.job.tolist(), line.start_s.tolist(), line.end_s.tolist(), line.gpus, strict=True)
    assert list(found) == [
        (0, 0.0, 20.0, (0, 1)),
        (1, 5.0, 20.0, (2,)),
        (0, 20.0, 50.0, (0,)),
        (1, 20.0, 30.0, (2, 1, 3)),
    ]


def test_a_gpu_that_jobs_share_is_held_once():
    """Two jobs on GPU 0 from 0 to 10 and from 4 to 12, a third on GPU 1 from 5 to 6: 1, 2, 1, none at last."""
    line = Timeline(
        job=np.array([0, 1, 2]),
        start_s=np.array([0.0, 4.0, 5.0]),
        end_s=np.array([10.0, 12.0, 6.0]),
        gpus=((0,), (0,), (1,)),
        arrival_s=np.zeros(3),
        leave_s=np.array([10.0, 12.0, 6.0]),
        begin_s=0.0,
        stop_s=12.0,
        gpu_machine=np.zeros(2, np.int64),
    )
    times, held = line.busy_gpus()
    assert held[np.searchsorted(times, [0.0, 4.5, 5.5, 7.0, 11.0, 12.0], side="right") - 1].tolist() == [
        1,
        1,
        2,
        1,
        1,
        0,
    ]


def test_a_twin_is_made_of_the_same():
    one = Simulator("flat:machines=2", "penalty", horizon_s=70.0, estimates="none")
    other = one.twin(horizon_s=80.0)
    assert (other.topology, other.network, other.estimates) == (one.topology, one.network, one.estimates)
    assert (one.config.horizon_s, other.config.horizon_s) == (70.0, 80.0)
    groups = GroupSimulator("harmony:machines=4", "busy=0.9", rule=GroupTerms("naive"))
    assert (groups.twin().config, groups.twin().rule) == (groups.config, GroupTerms("naive"))


@pytest.mark.parametrize("decision", [AssignGroup(0, machines=1), SetMachines(0, 1), SetSpill(0, 0.5)])
def test_gangs_on_gpus_join_no_groups(decision):
    simulator = Simulator("flat:machines=1")
    simulator.reset(Workload.from_arrays("one", [0.0], [1], [1.0]))
    with pytest.raises(InvalidDecision, match="expected Start, Hold, Preempt, Migrate, Resize, Shift or Advance"):
        simulator.apply(decision)
    assert simulator.state.waiting == 1
    with pytest.raises(InvalidDecision, match="is waiting"):
        simulator.apply(Preempt(0))


@pytest.mark.usefixtures("hosted")
def test_defaults_are_the_entrys():
    assert Setting.of("Hosted").topology == "harmony:machines=16"
