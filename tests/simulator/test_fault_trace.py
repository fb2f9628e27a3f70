"""Lists of faults: InfiniteHBD's form read, what it says of the servers, and the list of outages that it becomes."""

from __future__ import annotations

import json

import pytest

from clustergym.experiments.cli import run
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.fault_trace import as_outages, machines_of, read_events, read_faults, summary
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.jobs.workload import WorkloadWarning
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.paths import ROOT

DAY_S = 86400.0
PUBLISHED = ROOT.parent / "shared" / "traces" / "infinitehbd" / "fault_trace.json"
HEADER = "start_s,duration_s,what,name"
# a is down from day 1 to 3 and from 2 to 4, at once; b from 5 to 6; c at day 7 for no time; a from 9 to 10
FAULTS = [("a", 1, 3, "GPU"), ("a", 2, 4, "Cable"), ("b", 5, 6, "GPU"), ("c", 7, 7, "GPU"), ("a", 9, 10, "GPU")]


def event(server, day, what, kind="GPU"):
    return {"node_id": server, "event_time": day, "event_type": f"fault_{what}", "fault_type": {"Class": kind}}


def listed(tmp_path, events, name="faults.json"):
    path = tmp_path / name
    path.write_text(json.dumps(events))
    return path


def written(tmp_path, faults=FAULTS):
    starts = [event(server, day, "start", kind) for server, day, _, kind in faults]
    ends = [event(server, day, "end", kind) for server, _, day, kind in faults]
    return listed(tmp_path, sorted(starts + ends, key=lambda one: one["event_time"]))


def test_events_are_paired_by_server_and_type(tmp_path):
    """Two faults of server a overlap: the end at day 3 is the GPU's, which began first."""
    faults = read_events(written(tmp_path))
    assert faults.server == ["a", "a", "b", "c", "a"]
    assert (faults.start_s / DAY_S).tolist() == [1.0, 2.0, 5.0, 7.0, 9.0]
    assert (faults.duration_s / DAY_S).tolist() == [2.0, 2.0, 1.0, 0.0, 1.0]


def test_an_earlier_start_of_the_same_type_ends_first(tmp_path):
    events = [event("a", 1, "start"), event("a", 2, "start"), event("a", 5, "end"), event("a", 9, "end")]
    assert (read_events(listed(tmp_path, events)).duration_s / DAY_S).tolist() == [4.0, 7.0]


def test_events_without_a_partner_are_left_out_and_counted_by_reason(tmp_path):
    events = [event("a", 1, "end"), event("a", 2, "start"), event("a", 3, "end"), event("b", 4, "start")]
    with pytest.warns(WorkloadWarning, match="1 fault_start without a fault_end, 1 fault_end without a fault_start"):
        assert (read_events(listed(tmp_path, events)).start_s / DAY_S).tolist() == [2.0]


def test_a_summary_counts_overlaps_once(tmp_path):
    """20 servers for 10 days: a is down on days 1 to 4 and 9 to 10, b on one: 5 of 200 days. 5 faults: one in 40 days.

    The worst two servers, a tenth, have 4 of 5 faults. Repairs take 0, 1, 1, 2 and 2 days.
    """
    found = summary(read_faults(written(tmp_path)), 20)
    assert (found["faults"], found["of_no_duration"], found["servers_hit"]) == (5, 1, 3)
    assert found["period_s"] == 10 * DAY_S
    assert found["down_share"] == pytest.approx(5 / 200)
    assert found["between_faults_s"] == pytest.approx(40 * DAY_S)
    assert found["worst_tenth_share"] == pytest.approx(4 / 5)
    repair = [found[f"repair_{name}_s"] / DAY_S for name in ("p50", "mean", "longest")]
    assert repair == pytest.approx([1.0, 1.2, 2.0])


def test_without_the_number_of_servers_shares_are_not_known(tmp_path):
    found = summary(read_faults(written(tmp_path)), None)
    assert [found[name] for name in ("down_share", "between_faults_s", "worst_tenth_share")] == [None] * 3


def test_servers_of_other_names_are_spread_evenly_over_the_machines(tmp_path):
    """Three servers over 10 machines, in the order of their first faults: 0, 10 / 3 and 20 / 3, rounded down."""
    assert machines_of(read_events(written(tmp_path)), 10) == [0, 0, 3, 6, 0]


def test_servers_that_are_numbers_are_those_machines(tmp_path):
    faults = read_events(written(tmp_path, [("7", 1, 2, "GPU"), ("2", 3, 4, "GPU")]))
    assert machines_of(faults, 8) == [7, 2]
    assert machines_of(faults, 7) == [0, 3]  # there is no machine 7: they are names


def test_a_converted_list_leaves_out_faults_that_take_no_time(tmp_path):
    faults = read_events(written(tmp_path))
    with pytest.warns(WorkloadWarning, match="1 of 5 faults are left out, as they last no time"):
        rows = as_outages(faults, 10).splitlines()
    assert rows[:3] == [HEADER, "86400,172800,machine,0", "172800,172800,machine,0"]
    assert len(rows) == 5


@pytest.mark.usefixtures("run_by_python")
def test_a_job_meets_the_faults_of_a_converted_list(tmp_path):
    """A job of 5 days on the one machine, which loses no work: two days of outage, so it ends on day 7."""
    text = as_outages(read_events(written(tmp_path, [("a", 1, 3, "GPU")])), 1)
    (tmp_path / "outages.csv").write_text(text)
    failures = Failures(outages=str(tmp_path / "outages.csv"), checkpoint_s=0.0)
    simulator = Simulator("flat:machines=1,gpus_per_machine=4", failures=failures)
    simulator.reset(Workload.from_arrays("one", [0.0], [4], [5 * DAY_S]))
    assert simulator.run()["outages"] == 1.0
    assert float(simulator.state.finish_s[0]) == 7 * DAY_S


def test_a_csv_of_outages_is_inspected_without_maintenance_and_racks(tmp_path):
    path = tmp_path / "outages.csv"
    path.write_text(f"{HEADER},notice_s\n50,10,machine,1,\n0,100,machine,0,\n0,9,rack,0,\n0,9,machine,1,60\n")
    with pytest.warns(WorkloadWarning, match="2 of 4 rows are left out"):
        found = summary(read_faults(path), 2)
    assert (found["faults"], found["servers_hit"], found["down_share"]) == (2, 2, pytest.approx(110 / 200))


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "an empty list; expected at least one event"),
        ([1], "event 1: 1 is not an object"),
        ([event("a", "soon", "start")], "event 1, field 'event_time': 'soon'; expected a number"),
        ([event("a", -1, "start")], "event 1, field 'event_time': '-1'"),
        ([event("", 1, "start")], "event 1, field 'node_id': ''; expected the name of a server"),
        (
            [event("a", 1, "start"), event("a", 2, "stop")],
            "event 2, field 'event_type': 'fault_stop'; expected fault_s",
        ),
        ([event("a", 1, "end")], "no fault; expected at least one"),
    ],
)
@pytest.mark.filterwarnings("ignore::clustergym.simulator.jobs.workload.WorkloadWarning")
def test_a_bad_list_is_refused_in_a_sentence(tmp_path, events, said):
    with pytest.raises(InputError) as caught:
        read_events(listed(tmp_path, events))
    assert said in str(caught.value)


def test_fewer_servers_than_the_list_has_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"2 servers: .* has faults of 3; expected at least as many"):
        summary(read_faults(written(tmp_path)), 2)


def test_the_commands_print_and_write(tmp_path, capsys):
    source, to = str(written(tmp_path)), str(tmp_path / "outages.csv")
    assert run(["outages", "inspect", source, "--servers", "20"]) == 0
    assert "down: 2.5 % of the servers' time" in capsys.readouterr().out
    assert run(["outages", "convert", source, "--topology", "flat:machines=10", "--to", to, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": to, "outages": 4, "servers": 10}
    assert run(["outages", "convert", source, "--topology", "flat:machines=10", "--servers", "11", "--to", to]) == 2
    assert run(["outages", "inspect", to, "--servers", "10", "--json"]) == 0
    assert run(["outages"]) == 0


@pytest.mark.skipif(not PUBLISHED.exists(), reason="InfiniteHBD's list is not here")
def test_infinitehbd_says_what_was_published():
    """584 faults of 231 of 400 servers, 2.3 % of the time down, a tenth has 41 % of the faults; repair P50 20 h."""
    found = summary(read_faults(PUBLISHED), 400)
    assert (found["faults"], found["servers_hit"]) == (584, 231)
    assert found["down_share"] == pytest.approx(0.023, abs=5e-4)
    assert found["worst_tenth_share"] == pytest.approx(0.41, abs=5e-3)
    assert found["between_faults_s"] / DAY_S == pytest.approx(239, abs=0.5)
    assert found["repair_p50_s"] / 3600 == pytest.approx(20.4, abs=0.05)
    assert found["repair_mean_s"] / 3600 == pytest.approx(132.8, abs=0.05)
