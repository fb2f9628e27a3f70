"""Outages of a list, with notice and without, and fault groups: hand-worked cases, invariants, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.policies import make
from clustergym.simulator.base.codes import NOTICE
from clustergym.simulator.base.decisions import Advance, Migrate, Move, Preempt, Replicate, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.warehouse.warehouse import Tables
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import geo_small, outage_player
from clustergym.tests.support.geo_player import Anything, FirstCome, check_regions, find_units
from clustergym.tests.support.geo_small import A100, CPU
from clustergym.tests.support.invariants import check_gangs, check_gpu_seconds
from clustergym.tests.support.outage_player import HEADER, random_rows, written
from clustergym.tests.support.paths import ROOT, SUPPORT

pytestmark = pytest.mark.usefixtures("run_by_python")

EAST, WEST, SOUTH = range(3)
CLICKS = 0
ONE = [([(A100, 8)], [0], 6, 0, 10.0)]
LATER = [*ONE, ([(CPU, 1)], [], 6, 0, 0.0)]  # with a job that waits, every event is a decision point


def alone(tmp_path, *rows, checkpoint_s=150.0, topology="flat:machines=1,gpus_per_machine=4", **groups):
    """When a job of 1,000 s on four GPUs ends, which starts at 0 s, and the metrics."""
    failures = Failures(outages=written(tmp_path, rows), checkpoint_s=checkpoint_s, **groups)
    simulator = Simulator(topology, failures=failures)
    simulator.reset(Workload.from_arrays("one", [0.0], [4], [1000.0]))
    metrics = simulator.run()
    check_gangs(simulator)
    check_gpu_seconds(simulator)
    return float(simulator.state.finish_s[0]), metrics


def test_a_listed_failure_loses_the_work_since_the_last_checkpoint(tmp_path):
    end_s, metrics = alone(tmp_path, "400,50,machine,0,")  # of 400 s 300 are kept: from 450 s on 700 are left
    assert end_s == 1150.0 and metrics["gpu_hours_lost"] == pytest.approx(4 * 100 / 3600)
    assert (metrics["outages"], metrics["stopped_for_outages"], metrics["preemptions"]) == (1.0, 0.0, 0.0)


def test_machines_go_by_their_name_where_the_topology_has_names(tmp_path):
    (tmp_path / "hosts.csv").write_text("host,rack\ngpu01,r1\ngpu02,r1\n")
    topology = f"hosts:gpus=4,file={tmp_path / 'hosts.csv'}"
    ends_s = [alone(tmp_path, f"400,50,machine,{name},", topology=topology)[0] for name in ("0", "gpu01", "gpu02")]
    assert ends_s == [1100.0, 1100.0, 1000.0]  # from checkpoint 300 s on it runs on the other machine
    with pytest.raises(InputError, match=r"machine of topology 'hosts': 0, 1, gpu01, gpu02$"):
        alone(tmp_path, "400,50,machine,gpu03,", topology=topology)


def test_maintenance_loses_nothing(tmp_path):
    end_s, metrics = alone(tmp_path, "400,50,machine,0,0")
    assert end_s == 1050.0 and metrics["gpu_hours_lost"] == 0.0
    assert (metrics["outages"], metrics["stopped_for_outages"], metrics["preemptions"]) == (1.0, 1.0, 1.0)


def test_what_is_down_for_two_reasons_is_up_when_both_are_over(tmp_path):
    assert alone(tmp_path, "400,50,machine,0,0", "420,80,rack,0,0")[0] == 1100.0
    assert alone(tmp_path, "400,100,machine,0,0", "420,10,machine,0,")[0] == 1100.0


def test_an_outage_before_the_first_job_keeps_it_waiting(tmp_path):
    failures = Failures(outages=written(tmp_path, ["10,90,machine,0,"]))
    simulator = Simulator("flat:machines=1,gpus_per_machine=4", failures=failures)
    simulator.reset(Workload.from_arrays("one", [50.0], [4], [1000.0]))
    simulator.run()
    assert simulator.state.first_start_s[0] == 100.0 and simulator.state.finish_s[0] == 1100.0


def test_clusters_and_groups_are_named_too(tmp_path):
    groups = tmp_path / "groups.csv"
    groups.write_text("group,what,name\npower,machine,0\npower,machine,1\nother,rack,0\n")
    two = "flat:machines=2,gpus_per_machine=2"
    assert alone(tmp_path, "400,50,group,power,0", topology=two, fault_groups=str(groups))[0] == 1050.0
    assert alone(tmp_path, "400,50,machine,1,0", topology=two)[0] == 1050.0
    assert alone(tmp_path, "400,50,region,region0,0", topology=two)[0] == 1050.0
    assert alone(tmp_path, "400,50,cluster,cluster0,0", topology=two)[0] == 1050.0


def test_machines_of_a_group_fail_and_come_back_at_the_same_instants():
    failures = Failures(fault_groups="racks", group_mtbf_s=3000.0, group_mttr_s=400.0)
    simulator = Simulator({"racks": 3, "machines": 4, "gpus_per_slot": 4}, failures=failures)
    rng = np.random.default_rng(3)
    arrival_s = np.cumsum(rng.exponential(60.0, 80))
    simulator.reset(Workload.from_arrays("many", arrival_s, rng.choice([1, 2, 4, 8], 80), rng.exponential(900, 80)), 3)
    racks = simulator.topology.machine_rack
    seen = set()
    while not simulator.ended:
        simulator.schedule()
        simulator.advance()
        down = simulator.state.machine_down[: simulator.topology.num_machines] > 0
        shares = np.bincount(racks, down) / np.bincount(racks)
        assert set(shares.tolist()) <= {0.0, 1.0}
        seen.add(tuple(shares.tolist()))
        check_gangs(simulator)
    assert len(seen) >= 3 and simulator.metrics()["outages"] > 3


def test_fault_groups_fail_as_often_as_is_said():
    failures = Failures(fault_groups="racks", group_mtbf_s=1000.0, group_mttr_s=250.0)
    simulator = Simulator({"racks": 18, "machines": 1, "gpus_per_slot": 4}, failures=failures)
    simulator.reset(Workload.from_arrays("none", [0.0, 50_000.0], [1, 1], [1.0, 1.0]), 1)
    metrics = simulator.run()
    assert metrics["outages"] == pytest.approx(18 * 50_000 / 1250, rel=0.08)
    assert simulator.state.down_integral / (72 * 50_000) == pytest.approx(0.2, rel=0.08)


def laid(tmp_path, rows, outages, duration_s=1000.0, read_share=1.0, **groups):
    """A simulator of the small regions at its first decision point."""
    tables = Tables.at(geo_small.SIZE_BYTES, geo_small.HOME, len(geo_small.REGIONS), read_share)
    geo = geo_small.demands(rows, tables=tables)
    workload = Workload.from_arrays("rows", np.zeros(len(rows)), geo.units, np.full(len(rows), duration_s))
    failures = Failures(outages=written(tmp_path, outages), checkpoint_s=300.0, **groups)
    simulator = Simulator(geo_small.small_topology(), failures=failures)
    simulator.reset(workload.with_geo(geo))
    return simulator


def started(simulator, job, region):
    simulator.apply(Start(job, find_units(simulator.view, job, region)))


def test_with_notice_no_job_starts_there_and_running_jobs_go_on_until_the_outage(tmp_path):
    """The job works from 10 s on. Notice at 300 s; at 500 s it is stopped with 490 s done, and starts anew at 800 s."""
    simulator = laid(tmp_path, LATER, ["500,300,region,east,200"])
    view, s = simulator.view, simulator.state
    first = find_units(view, 0, EAST)
    started(simulator, 0, EAST)
    simulator.advance()
    assert view.now_s == 300.0 and view.running.tolist() == [0] and view.up_regions == [EAST, WEST, SOUTH]
    assert view.free_by_cluster[:3].tolist() == [0, 0, 0] and find_units(view, 1, EAST) is None
    check_regions(simulator)
    cpu = int(np.flatnonzero(simulator.topology.gpu_cluster == 2)[0])
    assert "about to go down" in refusal(simulator, Start(1, [cpu]))
    assert "about to go down" in refusal(simulator, Migrate(0, [*first[1:], first[-1] + 1]))
    simulator.advance()
    assert view.now_s == 500.0 and view.running.tolist() == [] and view.up_regions == [WEST, SOUTH]
    assert s.iterations_left[0] * s.base_iteration_s[0] == pytest.approx(510.0) and s.preempted[0] == 1
    check_regions(simulator)
    simulator.advance()
    assert view.now_s == 800.0 and view.up_regions == [EAST, WEST, SOUTH]
    assert s.down_gpus == 0 and s.closing_machines == 0
    for job in range(2):
        started(simulator, job, EAST)
    simulator.advance()
    assert simulator.ended
    assert s.finish_s[0] == pytest.approx(800.0 + 10.0 + 510.0) and s.lost_gpu_s == 0.0


def refusal(simulator, decision):
    """The sentence with which it is refused; the record is as before."""
    before = simulator.state.tobytes()
    with pytest.raises(InvalidDecision) as error:
        simulator.apply(decision)
    assert simulator.state.tobytes() == before
    return str(error.value)


def test_a_job_that_leaves_a_machine_about_to_go_down_leaves_it_to_none(tmp_path):
    simulator = laid(tmp_path, LATER, ["500,300,machine,0,200", "500,300,machine,1,200"])
    s = simulator.state
    simulator.apply(Start(0, [0, 1, 2, 3, 8, 9, 16, 17]))  # machines 0, 1 and 2
    simulator.advance()
    assert simulator.view.now_s == 300.0 and s.down_gpus == 4 + 6
    simulator.apply(Preempt(0))
    assert s.down_gpus == 16 and s.gpu_job[16] == -1
    check_regions(simulator)
    started(simulator, 0, EAST)
    assert min(simulator.view.gpus_of(0)) >= 16
    check_regions(simulator)


def test_a_failure_in_the_time_of_notice_undoes_work(tmp_path):
    simulator = laid(tmp_path, LATER, ["500,300,region,east,200", "400,20,region,east,"])
    view, s = simulator.view, simulator.state
    started(simulator, 0, EAST)
    simulator.advance()
    simulator.advance()
    assert view.now_s == 400.0 and s.iterations_left[0] * s.base_iteration_s[0] == pytest.approx(700.0)
    simulator.advance()
    assert view.now_s == 420.0 and view.up_regions == [EAST, WEST, SOUTH]
    assert view.free_by_cluster[:3].tolist() == [0, 0, 0]  # notice holds
    while view.now_s < 800.0:
        simulator.advance()
    assert view.free_by_cluster[:3].tolist() == [32, 16, 16] and (s.machine_down == 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_invariants_hold_whatever_is_decided_and_whatever_fails(tmp_path, seed):
    simulator = outage_player.random_run(seed, tmp_path)
    player = Anything(seed, check=check_all)
    player.play(simulator)
    assert simulator.metrics()["outages"] > 0
    assert simulator.ended and simulator.state.done == simulator.state.n_jobs


def check_all(simulator):
    check_regions(simulator)
    s, topology = simulator.state, simulator.topology
    down = s.machine_down[: topology.num_machines]
    owner = s.gpu_job[: topology.num_gpus].reshape(-1)
    assert (owner[(down % NOTICE > 0)[topology.gpu_machine]] == -2).all()  # nothing runs where an outage is
    assert (owner[(down > 0)[topology.gpu_machine]] != -1).all()  # nothing is free where one is to come
    assert ((owner == -2) <= (down > 0)[topology.gpu_machine]).all()
    assert s.closing_machines == (down // NOTICE).sum()


@pytest.mark.parametrize("word", ["mast", "federated", "global", "srtf:preempts=any", "greedy", "random"])
def test_every_policy_of_regions_gets_through(tmp_path, word):
    simulator = outage_player.random_run(len(word), tmp_path, span_s=1500)
    policy = make(word if word == "random" else joined(word))
    while not simulator.ended:
        for decision in simulator.asked(policy):
            simulator.apply(decision)
        check_all(simulator)
        simulator.advance()
    assert simulator.state.done == simulator.state.n_jobs and simulator.state.outages > 0


def joined(word):
    return f"{word}{',' if ':' in word else ':'}slow=none"


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_rows_in_any_order_make_the_same_run(tmp_path_factory, seed):
    folder, rng = tmp_path_factory.mktemp("orders"), np.random.default_rng(seed)
    rows = random_rows(rng, 3000)
    first = finish_times(folder, rows, seed)
    assert first == finish_times(folder, [rows[i] for i in rng.permutation(len(rows))], seed)


def finish_times(folder, rows, seed):
    simulator = Simulator(geo_small.small_topology(), failures=Failures(outages=written(folder, rows)))
    simulator.reset(geo_small.random_workload(seed, jobs=12), seed)
    simulator.run(make("mast:slow=none"))
    return simulator.jobs()["finish_s"].tolist()


def test_a_list_of_outages_that_come_too_late_changes_nothing(tmp_path):
    workload = geo_small.random_workload(2)
    plain, late = (
        Simulator(geo_small.small_topology(), failures=failures)
        for failures in (None, Failures(outages=written(tmp_path, ["1e9,5,region,east,100"])))
    )
    found = []
    for simulator in (plain, late):
        simulator.reset(workload, 2)
        metrics = simulator.run(make("mast:slow=none"))
        found.append({name: metrics[name] for name in plain.metrics()})
    assert found[0] == found[1]


def test_it_is_the_same_compiled_or_not(tmp_path):
    mode = "0" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "1"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": mode}
    script = [sys.executable, str(SUPPORT / "outage_player.py"), str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, cwd=ROOT, env=environment, check=True, timeout=900)
    assert json.loads(done.stdout) == json.loads(json.dumps(outage_player.played(tmp_path)))


@pytest.mark.parametrize("env_id", ["Geo", "DataPlacement"])
def test_environments_play_through_outages_and_in_batches_as_alone(tmp_path, env_id):
    rows = ["3600,3600,region,region0,1800", "9000,900,rack,0,", "20000,4000,region,region1,"]
    options = {"outages": written(tmp_path, rows), "fault_groups": "racks", "group_mtbf_s": 90_000.0}
    options["topology"] = "mast:regions=3,gpus=96"
    options["workload"] = "mast-like:regions=3,gpus=96,jobs=25,longest_h=3,tables=20,days=1"
    env = gymnasium.make(f"clustergym/{env_id}-v0", **options).unwrapped
    envs = gymnasium.make_vec(f"clustergym/{env_id}-v0", num_envs=2, vectorization_mode="vector_entry_point", **options)
    rng = np.random.default_rng(1)
    _, info = env.reset(seed=5)
    _, infos = envs.reset(seed=[5, 6])
    downs = 0
    for _ in range(150):
        mask = info["action_mask"]
        assert np.array_equal(mask, infos["action_mask"][0])
        action = int(rng.choice(np.flatnonzero(mask)))
        _, reward, over, cut, info = env.step(action)
        _, rewards, overs, cuts, infos = envs.step(np.array([action, 0]))
        downs += int(env.simulator.state.down_gpus) > 0
        assert (reward, over, cut) == (rewards[0], overs[0], cuts[0])
        if over or cut:
            break
    assert downs > 0


BAD = {
    "start": ("-1,5,machine,0,", "line 2, column 'start_s': '-1'; expected a number"),
    "duration": ("1,0,machine,0,", "line 2, column 'duration_s': '0'; expected a number above 0"),
    "endless": ("1,inf,machine,0,", "line 2, column 'duration_s': 'inf'"),
    "notice": ("1,5,machine,0,-2", "line 2, column 'notice_s': '-2'; expected a number from 0"),
    "what": ("1,5,switch,0,", "line 2, column 'what': 'switch'; expected region, cluster, rack, machine or group"),
    "machine": ("1,5,machine,7,", "line 2, column 'name': '7'; expected the number of a machine of topology"),
    "region": ("1,5,region,north,", "line 2, column 'name': 'north'; expected a region of topology"),
    "group": ("1,5,group,power,", "line 2, column 'name': 'power'; expected no group, as fault_groups names none"),
    "fields": ("1,5,machine,0", "line 2: 4 fields; expected 5"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_get_a_sentence(tmp_path, case):
    row, told = BAD[case]
    with pytest.raises(InputError) as error:
        Simulator("flat:machines=2", failures=Failures(outages=written(tmp_path, [row])))
    assert told in str(error.value) and "outages.csv" in str(error.value) and "\n" not in str(error.value)


def test_other_mistakes_get_a_sentence(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("group,what,name\npower,group,other\n")
    cases = [
        ({"outages": "nowhere.csv"}, "nowhere.csv: there is no such file"),
        ({"fault_groups": "zones", "group_mtbf_s": 5.0}, "zones: there is no such file; expected racks, regions"),
        ({"fault_groups": str(path), "group_mtbf_s": 5.0}, "column 'what': 'group'; expected region, cluster, rack or"),
    ]
    for options, told in cases:
        with pytest.raises(InputError, match=told):
            Simulator("flat:machines=2", failures=Failures(**options))
    with pytest.raises(InputError, match="group_mtbf_s is given without fault_groups"):
        Failures(group_mtbf_s=5.0)
    with pytest.raises(InputError, match="group_mttr_s = 0"):
        Failures(fault_groups="racks", group_mtbf_s=5.0, group_mttr_s=0.0)
    short = tmp_path / "short.csv"
    short.write_text(f"{HEADER.replace(',what', '')}\n")
    with pytest.raises(InputError, match="column 'what' is missing"):
        Simulator("flat:machines=2", failures=Failures(outages=str(short)))


def test_notice_is_for_regions(tmp_path):
    simulator = Simulator("flat:machines=1", failures=Failures(outages=written(tmp_path, ["5,5,machine,0,1"])))
    with pytest.raises(InputError, match="notice is given only there"):
        simulator.reset(Workload.from_arrays("plain", [0.0], [1], [10.0]))


def test_job_groups_have_no_outages_of_a_list():
    with pytest.raises(InputError, match="outages: machines of clustergym/Grouping-v0 fail each by itself"):
        gymnasium.make("clustergym/Grouping-v0", outages="x.csv")


def test_a_policy_that_waits_finds_the_end_of_an_outage(tmp_path):
    simulator = laid(tmp_path, ONE, ["0,400,region,east,", "0,500,region,west,", "0,600,region,south,"])
    while not simulator.ended:
        for decision in simulator.asked(FirstCome()):
            assert not isinstance(decision, Advance)
            simulator.apply(decision)
        simulator.advance()
    assert simulator.state.first_start_s[0] == 400.0


def test_a_copy_that_waits_to_be_whole_and_need_not_be_any_more_comes_from_a_replica(tmp_path):
    """East, which has all 100 GB of a table, fails at 500 s; the replica of 30 GB in the south serves one in the west.

    West was to become its home, for which all of the table is needed; then the home is to move south instead.
    """
    simulator = laid(tmp_path, LATER, ["500,5000,region,east,"], read_share=0.3)
    view = simulator.view
    simulator.apply(Replicate(CLICKS, SOUTH))
    while view.now_s < 500.0:
        simulator.advance()
    simulator.apply(Move(CLICKS, WEST))
    simulator.apply(Replicate(CLICKS, WEST))
    assert (CLICKS, None, WEST, 100e9) in view.transfers
    simulator.apply(Move(CLICKS, SOUTH))
    assert (CLICKS, SOUTH, WEST, 30e9) in view.transfers
    check_regions(simulator)
