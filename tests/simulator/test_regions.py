"""Regions in the simulator: where a job may run, what its start costs, copies on the way, outages, metrics."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from clustergym.experiments.playing.recording import WORDS, decisions, timeline
from clustergym.simulator.base.codes import LANES
from clustergym.simulator.base.decisions import Advance, Drop, Migrate, Move, Preempt, Replicate, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision, Stalled
from clustergym.simulator.cluster.region_network import CPU_TYPE
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.events.journal import logged
from clustergym.simulator.record.state import Capacity, empty_state
from clustergym.simulator.regions.region_metrics import type_seconds
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import geo_small, outage_player
from clustergym.tests.support.geo_player import (
    DRAWN,
    Anything,
    FirstCome,
    check_regions,
    find_units,
    played,
    random_run,
)
from clustergym.tests.support.geo_small import A100, CPU, V100
from clustergym.tests.support.paths import ROOT, SUPPORT

EAST, WEST, SOUTH = range(3)
CLICKS, USERS, ADS, LOGS, VIDEOS = range(5)
NEVER = 1e9


def laid(
    rows,
    arrival_s=None,
    duration_s=1000.0,
    failures=None,
    every_s=math.inf,
    rule=None,
    topology=None,
    lag=None,
    **changes,
):
    """A simulator at its first decision point; `rows` as `geo_small.demands` has them."""
    geo = geo_small.demands(rows, **changes)
    arrival = np.zeros(len(rows)) if arrival_s is None else np.array(arrival_s, float)
    workload = Workload.from_arrays("rows", arrival, geo.units, np.full(len(rows), duration_s)).with_geo(geo)
    simulator = Simulator(
        topology or geo_small.small_topology(),
        failures=failures,
        tables_every_s=every_s,
        rule=rule or Rule("fifo"),
        replica_lag_s=lag,
    )
    simulator.reset(workload)
    return simulator


def started(simulator, job, region):
    """Start it in the first cluster with room."""
    units = find_units(simulator.view, job, region)
    simulator.apply(Start(job, units))
    return units


def to_end(simulator):
    while not simulator.ended:
        while not isinstance(decision := simulator.ask(FirstCome()), Advance):
            simulator.apply(decision)
        simulator.advance()


def said(simulator, decision):
    """The sentence with which it is refused; the record is as before."""
    before = simulator.state.tobytes()
    with pytest.raises(InvalidDecision) as error:
        simulator.apply(decision)
    assert simulator.state.tobytes() == before
    return str(error.value)


ONE = [([(A100, 8)], [CLICKS], 6, 0, 10.0)]
PAIR = [([(A100, 16), (CPU, 4)], [CLICKS], 6, 0, 10.0)]
LATER = [*ONE, ([(CPU, 1)], [], 6, 0, 0.0)]  # with a job that waits, every event is a decision point


def test_a_job_of_several_parts_holds_their_units_in_one_region():
    simulator = laid(PAIR)
    view = simulator.view
    assert view.parts(0) == [("A100", 16), (CPU_TYPE, 4)]
    assert view.regions_of(0) == [EAST] and view.hosts_of(0) == [EAST, WEST]  # the west has no table
    free = view.free_by_cluster
    units = started(simulator, 0, EAST)
    clusters = simulator.topology.gpu_cluster[units]
    assert view.region_of(0) == EAST and view.clusters_of(0) == [clusters[0], clusters[-1]]
    assert (free - view.free_by_cluster == np.bincount(clusters, minlength=len(free))).all()
    check_regions(simulator)
    simulator.advance()
    assert simulator.done and view.region_of(0) is None and (view.free_by_cluster == free).all()


WRONG_UNITS = {
    "a part asks 16 A100": lambda view: [*units_of(view, "east", CPU_TYPE, 16), *units_of(view, "east", "A100", 4)],
    "a part of 16 units lies in clusters": lambda view: [
        *units_of(view, "east", "A100", 8, 0),
        *units_of(view, "east", "A100", 8, 1),
        *units_of(view, "east", CPU_TYPE, 4),
    ],
    "its parts lie in regions east and west": lambda view: [
        *units_of(view, "east", "A100", 16),
        *units_of(view, "west", CPU_TYPE, 4),
    ],
    "region west has no copy of table clicks": lambda view: [
        *units_of(view, "west", "A100", 16),
        *units_of(view, "west", CPU_TYPE, 4),
    ],
    "19 GPUs given, its gang needs 20": lambda view: [
        *units_of(view, "east", "A100", 16),
        *units_of(view, "east", CPU_TYPE, 3),
    ],
    "there is no GPU 100000": lambda view: [*units_of(view, "east", "A100", 16), 100_000, 60, 61, 62],
    "a GPU is named twice": lambda view: [*units_of(view, "east", "A100", 16), *[90] * 4],
}


def units_of(view, region, kind, size, which=0):
    """The first units of the `which`th cluster of a type in a region."""
    topology = view.topology
    clusters = [
        cluster
        for cluster in range(topology.num_clusters)
        if topology.region_names[topology.cluster_region[cluster]] == region
        and topology.cluster_gpu_type[cluster] == kind
    ]
    return np.flatnonzero(topology.gpu_cluster == clusters[which])[:size].tolist()


@pytest.mark.parametrize("sentence", WRONG_UNITS)
def test_units_that_are_not_those_of_the_parts_are_refused(sentence):
    simulator = laid(PAIR)
    assert sentence in said(simulator, Start(0, WRONG_UNITS[sentence](simulator.view)))


def test_units_that_are_held_are_refused():
    simulator = laid(PAIR * 2)
    units = started(simulator, 0, EAST)
    assert "is held by job 0" in said(simulator, Start(1, units))


def test_every_start_takes_its_containers_and_the_checkpoint_of_jobs_it_takes_units_from():
    rows = [([(A100, 32)], [CLICKS], 6, 0, 10.0), ([(A100, 32)], [CLICKS], 0, 0, 20.0)]
    simulator = laid(rows, arrival_s=[0, 100])
    started(simulator, 0, EAST)
    assert simulator.state.since_s[0] == 10.0
    simulator.advance()
    simulator.apply(Preempt(0))
    started(simulator, 1, EAST)
    assert simulator.state.since_s[1] == 100.0 + 20.0 + 30.0  # containers, and 30 s to save job 0
    simulator.advance()
    assert simulator.view.now_s == 1150.0  # its 1,000 s
    started(simulator, 0, EAST)
    assert simulator.state.since_s[0] == 1150.0 + 10.0  # no job was stopped for it
    simulator.advance()
    assert simulator.jobs()["finish_s"].tolist() == [1160.0 + 1000.0 - 90.0, 1150.0]
    assert simulator.jobs()["restore_s"].tolist() == [20.0, 50.0]


def test_a_restart_costs_what_the_rule_says_too():
    simulator = laid(LATER, arrival_s=[0, 100], rule=Rule("fifo", preemption_cost=(7.0,)))
    started(simulator, 0, EAST)
    simulator.advance()
    units = simulator.view.gpus_of(0)
    simulator.apply(Migrate(0, [unit + 8 for unit in units]))
    assert simulator.state.since_s[0] == 117.0
    simulator.apply(Migrate(0, units))  # back where it was: it never left
    assert simulator.state.since_s[0] == 10.0 and simulator.metrics()["migrations"] == 0


def test_a_job_that_starts_and_moves_at_one_instant_pays_for_its_last_place():
    rows = [([(A100, 32)], [CLICKS], 6, 0, 10.0), ([(A100, 16)], [CLICKS], 0, 0, 20.0)]
    simulator = laid(rows, arrival_s=[0, 100])
    first = started(simulator, 0, EAST)
    simulator.advance()
    simulator.apply(Preempt(0))
    simulator.apply(Start(1, first[:16]))
    assert simulator.state.since_s[1] == 150.0
    simulator.apply(Migrate(1, units_of(simulator.view, "east", "A100", 16, 1)))
    assert simulator.state.since_s[1] == 120.0  # there was none


def test_a_copy_takes_its_bytes_over_the_rate_of_the_link():
    simulator = laid(LATER, arrival_s=[0, 0], every_s=NEVER)
    view, table = simulator.view, USERS  # 200 GB at 1 GB/s
    simulator.apply(Replicate(table, WEST))
    assert view.transfers == [(table, EAST, WEST, 200e9)] and view.copies(table) == [EAST]
    assert view.stored_bytes[WEST] == 450e9 + 200e9
    started(simulator, 0, EAST)
    simulator.advance()
    assert view.now_s == 200.0 and view.copies(table) == [EAST, WEST] and not view.transfers
    assert simulator.metrics()["bytes_moved"] == 200e9 and view.home(table) == EAST


def test_copies_on_one_link_share_it_equally_and_other_links_do_not_care():
    simulator = laid(LATER, arrival_s=[0, 0])
    view = simulator.view
    for table, region in ((CLICKS, WEST), (USERS, WEST), (ADS, EAST), (CLICKS, SOUTH)):
        simulator.apply(Replicate(table, region))
    ends = []
    while view.transfers:
        before = {transfer[:3] for transfer in view.transfers}
        simulator.advance()
        ends += [(view.now_s, *gone) for gone in sorted(before - {transfer[:3] for transfer in view.transfers})]
    # west to east alone: 50 s. East to south alone: 100 s. East to west: 100 GB at half the rate until 200 s, then
    # the other has 100 GB left at the whole.
    assert ends == [
        (50.0, ADS, WEST, EAST),
        (100.0, CLICKS, EAST, SOUTH),
        (200.0, CLICKS, EAST, WEST),
        (300.0, USERS, EAST, WEST),
    ]


def test_a_move_deletes_the_old_copy_when_all_of_the_table_is_there_and_no_job_reads_it():
    simulator = laid(LATER, arrival_s=[0, 0], duration_s=500.0)
    view = simulator.view
    started(simulator, 0, EAST)
    simulator.apply(Move(CLICKS, WEST))
    assert view.home(CLICKS) == EAST and view.moving_to(CLICKS) == WEST and view.copies(CLICKS) == [EAST]
    simulator.advance()
    assert view.now_s == 100.0 and view.home(CLICKS) == WEST and view.moving_to(CLICKS) is None
    assert view.copies(CLICKS) == [EAST, WEST] and view.doomed(CLICKS) == [EAST]  # job 0 reads it
    assert view.stored_bytes.tolist() == [300e9, 550e9, 1000e9]
    assert view.warehouse().tables.copies[CLICKS].tolist() == [False, True, False]
    simulator.advance()
    assert view.now_s == 510.0 and view.copies(CLICKS) == [WEST] and view.stored_bytes[EAST] == 200e9


def test_a_copy_that_is_to_be_deleted_has_no_new_readers():
    simulator = laid([*ONE, *ONE, *ONE], arrival_s=[0, 0, 0])
    view = simulator.view
    started(simulator, 0, EAST)
    assert view.regions_of(1) == [EAST]
    simulator.apply(Move(CLICKS, WEST))
    simulator.advance()
    assert view.regions_of(1) == [WEST]
    units = units_of(view, "east", "A100", 16)[8:]
    assert "table clicks in region east is about to be deleted" in said(simulator, Start(1, units))
    # a job that has it may be stopped and go on at the same instant
    held = view.gpus_of(0)
    simulator.apply(Preempt(0))
    simulator.apply(Start(0, held))
    assert simulator.metrics()["preemptions"] == 0 and view.copies(CLICKS) == [EAST, WEST]
    simulator.apply(Replicate(CLICKS, EAST))
    assert view.regions_of(1) == [EAST, WEST] and view.doomed(CLICKS) == []


def test_a_replica_of_the_old_home_stays():
    simulator = laid(LATER, arrival_s=[0, 0])
    simulator.apply(Replicate(CLICKS, EAST))  # whatever becomes of its home
    simulator.apply(Move(CLICKS, WEST))
    simulator.advance()
    assert simulator.view.copies(CLICKS) == [EAST, WEST] and simulator.view.doomed(CLICKS) == []
    simulator.apply(Move(CLICKS, EAST))  # its data lies there: at once
    assert simulator.view.home(CLICKS) == EAST and simulator.view.copies(CLICKS) == [EAST]


@pytest.mark.parametrize("is_spared", [False, True])
def test_at_a_look_the_old_home_of_a_table_may_still_be_asked_to_be_a_replica(is_spared):
    simulator = laid(LATER, arrival_s=[0, 0], every_s=100.0)
    view = simulator.view
    simulator.apply(Replicate(CLICKS, WEST))
    simulator.advance()
    assert view.tables_due and view.now_s == 100.0 and view.copies(CLICKS) == [EAST, WEST]
    simulator.apply(Move(CLICKS, WEST))
    assert view.home(CLICKS) == WEST and view.copies(CLICKS) == [EAST, WEST] and view.doomed(CLICKS) == [EAST]
    if is_spared:
        simulator.apply(Replicate(CLICKS, EAST))
        assert not view.doomed(CLICKS) and not view.transfers
    simulator.advance()
    assert view.copies(CLICKS) == ([EAST, WEST] if is_spared else [WEST])
    check_regions(simulator)


def test_a_replica_has_the_partitions_that_jobs_read_and_a_move_copies_the_rest():
    tables = replace(geo_small.small_tables(), read_share=np.array([0.25, 1, 1, 1, 1]))
    simulator = laid(LATER, arrival_s=[0, 0], tables=tables)
    view = simulator.view
    simulator.apply(Replicate(CLICKS, WEST))
    assert view.transfers == [(CLICKS, EAST, WEST, 25e9)]
    simulator.advance()
    assert view.now_s == 25.0 and view.stored_bytes[WEST] == 475e9
    simulator.apply(Move(CLICKS, WEST))
    assert view.transfers == [(CLICKS, EAST, WEST, 75e9)] and view.stored_bytes[WEST] == 550e9
    simulator.apply(Replicate(CLICKS, EAST))
    simulator.advance()
    assert view.now_s == 100.0 and view.home(CLICKS) == WEST and view.copies(CLICKS) == [EAST, WEST]
    assert view.stored_bytes[EAST] == 225e9 and simulator.metrics()["bytes_moved"] == 100e9
    check_regions(simulator)


def test_a_whole_replica_has_all_partitions_and_keeps_them_wherever_the_home_goes():
    tables = replace(geo_small.small_tables(), read_share=np.array([0.25, 1, 1, 1, 1]))
    simulator = laid(LATER, arrival_s=[0, 0], tables=tables)
    view = simulator.view
    simulator.apply(Replicate(CLICKS, WEST))
    simulator.apply(Replicate(CLICKS, WEST, whole=True))
    assert view.transfers == [(CLICKS, EAST, WEST, 100e9)] and view.stored_bytes[WEST] == 550e9
    with pytest.raises(InvalidDecision, match="on the way there already"):
        simulator.apply(Replicate(CLICKS, WEST, whole=True))
    simulator.advance()
    assert view.now_s == 100.0 and view.warehouse().tables.held_bytes[CLICKS].tolist() == [100e9, 100e9, 0]
    simulator.apply(Move(CLICKS, WEST))
    simulator.apply(Move(CLICKS, SOUTH))
    simulator.advance()
    assert view.home(CLICKS) == SOUTH and view.copies(CLICKS) == [WEST, SOUTH] and view.stored_bytes[WEST] == 550e9
    check_regions(simulator)


def test_a_replica_that_is_completed_sends_what_it_lacks_and_goes_with_that_when_it_is_dropped():
    tables = replace(geo_small.small_tables(), read_share=np.array([0.25, 1, 1, 1, 1]))
    simulator = laid(LATER, arrival_s=[0, 0], tables=tables)
    view = simulator.view
    simulator.apply(Replicate(CLICKS, WEST))
    simulator.advance()
    simulator.apply(Replicate(CLICKS, WEST, whole=True))
    assert view.transfers == [(CLICKS, EAST, WEST, 75e9)] and view.stored_bytes[WEST] == 550e9
    check_regions(simulator)
    simulator.apply(Drop(CLICKS, WEST))
    assert not view.transfers and view.copies(CLICKS) == [EAST] and view.stored_bytes[WEST] == 450e9
    check_regions(simulator)


def test_a_move_takes_over_a_copy_on_its_way_and_may_be_given_up():
    simulator = laid(LATER, arrival_s=[0, 0])
    view = simulator.view
    simulator.apply(Replicate(CLICKS, WEST))
    simulator.apply(Move(CLICKS, WEST))
    assert len(view.transfers) == 1 and view.moving_to(CLICKS) == WEST
    simulator.apply(Move(CLICKS, SOUTH))
    assert [transfer[2] for transfer in view.transfers] == [SOUTH, WEST]  # the replica is wanted all the same
    simulator.apply(Move(CLICKS, EAST))
    assert view.moving_to(CLICKS) is None and [transfer[2] for transfer in view.transfers] == [WEST]
    simulator.apply(Drop(CLICKS, WEST))
    assert not view.transfers and view.stored_bytes.tolist() == [300e9, 450e9, 1000e9]
    check_regions(simulator)


@pytest.mark.parametrize("last", [Drop(CLICKS, WEST), Replicate(CLICKS, SOUTH)])
def test_a_move_that_is_given_up_leaves_no_unwanted_copy(last):
    """A quarter of the table lies in the west when its home no longer moves there: that wish is gone."""
    tables = replace(geo_small.small_tables(), read_share=np.array([0.25, 1, 1, 1, 1]))
    simulator = laid(LATER, arrival_s=[0, 0], tables=tables)
    view = simulator.view
    simulator.apply(Replicate(CLICKS, WEST))
    simulator.advance()
    simulator.apply(Move(CLICKS, WEST))
    simulator.apply(last)
    simulator.apply(Move(CLICKS, EAST))
    kept = isinstance(last, Replicate)
    assert view.copies(CLICKS) == ([EAST, WEST] if kept else [EAST]) and view.doomed(CLICKS) == []
    assert view.stored_bytes[WEST] == 450e9 + 25e9 * kept
    check_regions(simulator)


def test_a_doomed_copy_that_a_move_spared_is_doomed_again_when_that_is_given_up():
    tables = replace(geo_small.small_tables(), read_share=np.array([0.25, 1, 1, 1, 1]))
    simulator = laid([*ONE, *ONE], arrival_s=[0, 0], duration_s=500.0, tables=tables)
    view = simulator.view
    simulator.apply(Replicate(CLICKS, WEST))
    simulator.advance()
    started(simulator, 0, WEST)
    simulator.apply(Drop(CLICKS, WEST))
    assert view.doomed(CLICKS) == [WEST]  # job 0 reads it
    simulator.apply(Move(CLICKS, WEST))
    assert view.doomed(CLICKS) == [] and view.moving_to(CLICKS) == WEST
    simulator.apply(Move(CLICKS, SOUTH))
    assert view.doomed(CLICKS) == [WEST] and view.moving_to(CLICKS) == SOUTH
    check_regions(simulator)
    to_end(simulator)
    assert view.copies(CLICKS) == [SOUTH]


def test_a_move_is_given_up_while_its_home_is_down():
    simulator = laid([*ONE, *ONE], arrival_s=[0, 0], failures=Failures(region_mtbf_s=NEVER, region_mttr_s=5e5))
    view = simulator.view
    simulator.apply(Move(CLICKS, WEST))
    fail_at(simulator, EAST, 40.0)
    simulator.advance()
    assert view.up_regions == [WEST, SOUTH] and view.moving_to(CLICKS) == WEST
    simulator.apply(Move(CLICKS, EAST))
    assert view.moving_to(CLICKS) is None and not view.transfers and view.home(CLICKS) == EAST
    assert "that is its home already" in said(simulator, Move(CLICKS, EAST))
    check_regions(simulator)


TABLE_SENTENCES = {
    "replicate table clicks, region east: a copy is there already": [Replicate(CLICKS, EAST), Replicate(CLICKS, EAST)],
    "replicate table clicks, region west: a copy is on the way there already": [Replicate(CLICKS, WEST)] * 2,
    "move table clicks, region east: that is its home already": [Move(CLICKS, EAST)],
    "move table clicks, region west: that is its home to be": [Move(CLICKS, WEST)] * 2,
    "region south: 200,000,000,000 bytes of storage are left there, 400,000,000,000 are needed": [Move(LOGS, SOUTH)],
    "drop table clicks, region east: that is its home; move it first": [Drop(CLICKS, EAST)],
    "drop table clicks, region west: its home moves there": [Move(CLICKS, WEST), Drop(CLICKS, WEST)],
    "drop table clicks, region west: there is no copy": [Drop(CLICKS, WEST)],
    "there are tables 0 to 4": [Replicate(5, EAST)],
    "there are regions 0 to 2": [Move(0, -1)],
}


@pytest.mark.parametrize("sentence", TABLE_SENTENCES)
def test_what_cannot_be_decided_about_a_table_says_why(sentence):
    simulator = laid(ONE)
    *before, last = TABLE_SENTENCES[sentence]
    for decision in before:
        simulator.apply(decision)
    assert sentence in said(simulator, last)


def test_a_job_waits_for_data_until_its_copy_is_there():
    simulator = laid([*ONE, ([(V100, 8)], [CLICKS], 0, 0, 0.0)], arrival_s=[0, 50])
    view = simulator.view
    started(simulator, 0, EAST)
    simulator.advance()
    assert view.now_s == 50.0 and view.regions_of(1) == [] and view.hosts_of(1) == [WEST]
    simulator.apply(Replicate(CLICKS, WEST))
    simulator.advance()
    assert view.now_s == 150.0 and view.regions_of(1) == [WEST]
    started(simulator, 1, WEST)
    metrics = simulator.metrics()
    assert metrics["data_wait_rate"] == 0.5 and metrics["data_wait_mean"] == 100.0


def test_a_job_that_needs_fresh_data_runs_at_home_only_and_waits_until_the_home_is_where_its_gpus_are():
    """Job 0 may run at any copy, job 1 at home alone, job 2 nowhere: V100 are in the west, its table's home is not."""
    rows = [([(A100, 8)], [CLICKS], 0, 0, 0.0), ([(A100, 8)], [CLICKS], 0, 0, 0.0), ([(V100, 8)], [CLICKS], 0, 0, 0.0)]
    simulator = laid(rows, fresh=np.array([False, True, True]))
    view = simulator.view
    simulator.apply(Replicate(CLICKS, WEST))
    simulator.advance()
    assert view.now_s == 100.0
    assert [view.regions_of(job) for job in range(3)] == [[EAST, WEST], [EAST], []]
    refused = said(simulator, Start(1, find_units(view, 1, WEST)))
    assert refused.endswith("it needs fresh data, and region west is not the home of table clicks")
    started(simulator, 0, WEST)
    assert simulator.metrics()["home_start_rate"] == 0.0
    started(simulator, 1, EAST)
    assert simulator.metrics()["home_start_rate"] == 0.5
    simulator.apply(Move(CLICKS, WEST))
    assert [view.regions_of(job) for job in range(3)][2] == [WEST] and view.copies(CLICKS) == [EAST, WEST]
    started(simulator, 2, WEST)
    metrics = simulator.metrics()
    assert metrics["home_start_rate"] == pytest.approx(2 / 3) and metrics["data_wait_mean"] == 100.0
    check_regions(simulator)


def test_replicas_have_what_fresh_workloads_need_once_the_lag_has_passed_since_they_came():
    """Clicks lies in the west, where V100 are, at 100 s; job 1, which came at 40 s, may read that copy at 240 s."""
    rows = [([(A100, 8)], [CLICKS], 0, 0, 0.0), ([(V100, 8)], [CLICKS], 0, 0, 0.0), ([(A100, 8)], [CLICKS], 0, 0, 0.0)]
    simulator = laid(rows, [0.0, 40.0, 90.0], every_s=10_000.0, lag=200.0, fresh=np.array([False, True, True]))
    view, times, before = simulator.view, [], []
    simulator.apply(Replicate(CLICKS, WEST))
    while not simulator.ended and view.now_s < 400.0:
        times.append(view.now_s)
        before.append([view.regions_of(job) for job in (1, 2)])
        simulator.advance()
    assert times == [0.0, 40.0, 90.0, 100.0, 240.0, 290.0]
    assert before == [[[], [EAST]]] * 4 + [[[WEST], [EAST]], [[WEST], [EAST, WEST]]]
    assert simulator.metrics()["data_wait_mean"] == 200.0
    started(simulator, 1, WEST)
    assert simulator.metrics()["home_start_rate"] == 0.0
    check_regions(simulator)


def test_a_lag_without_end_is_none_and_a_bad_one_is_refused():
    rows = [([(V100, 8)], [CLICKS], 0, 0, 0.0)]
    ends = []
    for lag in (None, math.inf):
        simulator = laid(rows, lag=lag, fresh=np.array([True]))
        simulator.apply(Replicate(CLICKS, WEST))
        with pytest.raises(Stalled):
            to_end(simulator)
        ends.append(simulator.state.tobytes())
    assert ends[0] == ends[1]
    with pytest.raises(InputError, match="replica_lag_s = -1: expected seconds > 0"):
        Simulator(geo_small.small_topology(), replica_lag_s=-1)


def test_tables_are_due_every_so_often_whether_a_job_waits_or_not():
    simulator = laid(ONE, arrival_s=[10], duration_s=250.0, every_s=100.0)
    seen = []
    while not simulator.ended:
        if simulator.view.tables_due:
            seen.append(simulator.view.now_s)
        if len(simulator.view.queue):
            started(simulator, 0, EAST)
        simulator.advance()
        assert not simulator.view.tables_due or simulator.view.now_s > 10.0
    assert seen == [10.0, 110.0, 210.0]
    simulator = laid(ONE, every_s=100.0)
    with pytest.raises(Stalled):  # nothing is decided: it would go on for ever
        simulator.advance()
    simulator.apply(Replicate(CLICKS, WEST))
    simulator.advance()
    assert simulator.view.now_s == 100.0 and simulator.view.tables_due and not simulator.view.transfers
    with pytest.raises(Stalled):
        simulator.advance()


def test_a_region_that_fails_stops_its_jobs_and_copies_begin_again_from_another():
    simulator = laid([*ONE, *ONE], arrival_s=[0, 0], failures=Failures(region_mtbf_s=NEVER, region_mttr_s=100.0))
    view, s = simulator.view, simulator.state
    simulator.apply(Replicate(CLICKS, WEST))
    started(simulator, 0, EAST)
    simulator.advance()
    simulator.apply(Replicate(CLICKS, SOUTH))
    assert view.transfers[0][1] == EAST and view.now_s == 100.0
    fail_at(simulator, EAST, 130.0)
    simulator.advance()
    assert view.now_s == 130.0 and view.up_regions == [WEST, SOUTH] and view.running.tolist() == []
    assert view.transfers == [(CLICKS, WEST, SOUTH, 100e9)] and s.bytes_wasted == 30e9
    assert view.regions_of(0) == [WEST] and view.free_by_cluster[:3].tolist() == [0, 0, 0]
    assert "region is down" in said(simulator, Replicate(USERS, EAST))
    check_regions(simulator)
    started(simulator, 1, WEST)
    while not simulator.ended:
        simulator.advance()
        check_regions(simulator)
        if len(view.queue) and 0 in view.queue and find_units(view, 0, WEST) and WEST in view.regions_of(0):
            started(simulator, 0, WEST)
    assert view.copies(CLICKS) == [EAST, WEST, SOUTH] and s.region_failures.sum() == 1


def fail_at(simulator, region, time_s):
    """Modify the run: the next failure of a region comes at a time; returns it."""
    s = simulator.state
    item = int(s.first_region_event + region)
    place = int(s.event_position[item])
    s.event_key[place] = time_s
    while place > 0:  # towards the root of the heap of four children
        parent = (place - 1) // 4
        if s.event_key[parent] <= time_s:
            break
        for field in (s.event_key, s.event_item):
            field[[place, parent]] = field[[parent, place]]
        place = parent
    items = s.event_item[: s.event_count]
    s.event_position[items] = np.arange(len(items))
    return time_s


def test_a_copy_from_a_region_that_is_down_waits_for_it():
    simulator = laid([*ONE, *LATER], arrival_s=[0, 0, 0], failures=Failures(region_mtbf_s=NEVER, region_mttr_s=50.0))
    view = simulator.view
    simulator.apply(Move(CLICKS, WEST))
    fail_at(simulator, EAST, 40.0)
    simulator.advance()
    assert (
        view.transfers == [(CLICKS, None, WEST, 100e9)] and view.home(CLICKS) == EAST and view.copies(CLICKS) == [EAST]
    )
    check_regions(simulator)
    simulator.advance()
    up_s = view.now_s
    assert view.up_regions == [EAST, WEST, SOUTH] and view.transfers == [(CLICKS, EAST, WEST, 100e9)]
    while view.transfers:
        simulator.advance()
    assert view.now_s == pytest.approx(up_s + 100.0) and view.copies(CLICKS) == [WEST]


def test_the_last_copy_in_a_region_that_is_up_is_not_deleted():
    simulator = laid([*ONE, *ONE], arrival_s=[0, 0], failures=Failures(region_mtbf_s=NEVER, region_mttr_s=5e5))
    simulator.apply(Replicate(CLICKS, WEST))
    started(simulator, 0, EAST)
    simulator.advance()
    fail_at(simulator, EAST, 120.0)
    simulator.advance()
    assert "no other copy lies in a region that is up" in said(simulator, Drop(CLICKS, WEST))
    check_regions(simulator)


def test_slos_are_by_level_and_count_jobs_that_still_wait():
    rows = [([(A100, 32)], [CLICKS], 0, 0, 0.0)] * 3 + [([(A100, 32)], [CLICKS], 6, 0, 0.0)]
    simulator = laid(rows, arrival_s=[0, 0, 0, 0], duration_s=1000.0)  # level 0 may wait 300 s, level 6 for ever
    started(simulator, 0, EAST)
    assert simulator.metrics()["slo_violation_rate"] == 0.0
    simulator.advance()
    assert simulator.metrics()["slo_violation_rate"] == pytest.approx(2 / 3)  # two wait, 1,000 s by now
    started(simulator, 1, EAST)
    assert simulator.state.late_starts == 1
    simulator.apply(Preempt(1))  # it never started
    assert simulator.state.late_starts == 0
    assert np.isnan(simulator.jobs()["first_start_s"][1])
    assert simulator.metrics()["slo_violation_rate"] == pytest.approx(2 / 3)
    to_end(simulator)
    assert simulator.state.late_starts == 2 and simulator.metrics()["slo_violation_rate"] == pytest.approx(2 / 3)


def test_an_undone_start_is_no_start_where_it_would_have_been_in_time():
    simulator = laid([([(A100, 32)], [CLICKS], 0, 0, 0.0)] * 2, arrival_s=[0, 0], duration_s=1000.0)
    started(simulator, 1, EAST)
    simulator.apply(Preempt(1))
    assert np.isnan(simulator.jobs()["first_start_s"]).all()
    started(simulator, 0, EAST)
    simulator.advance()
    assert simulator.metrics()["slo_violation_rate"] == 0.5  # job 1 waits, 1,000 s by now


def test_a_job_that_waits_for_another_to_be_saved_waits_for_its_start():
    """Level 0 may wait 300 s. The second comes at 100 s and takes the first one's units at 390 s, saved in 30 s."""
    rows = [([(A100, 32)], [CLICKS], 6, 0, 0.0), ([(A100, 16)], [CLICKS], 0, 0, 0.0), ([(CPU, 1)], [], 6, 0, 0.0)]
    simulator = laid(rows, arrival_s=[0, 100, 390], duration_s=1000.0)
    taken = started(simulator, 0, EAST)
    simulator.advance()
    simulator.advance()
    assert simulator.view.now_s == 390.0 and simulator.metrics()["slo_violation_rate"] == 0.0
    simulator.apply(Preempt(0))
    simulator.apply(Start(1, taken[:16]))
    assert simulator.state.late_starts == 1 and simulator.metrics()["slo_violation_rate"] == 1.0
    assert simulator.jobs()["first_start_s"][1] == 390.0
    simulator.apply(Migrate(1, units_of(simulator.view, "east", "A100", 16, 1)))  # no job was stopped for it there
    assert simulator.state.late_starts == 0 and simulator.metrics()["slo_violation_rate"] == 0.0
    simulator.apply(Migrate(1, taken[:16]))
    simulator.apply(Preempt(1))
    assert simulator.state.late_starts == 0 and simulator.metrics()["slo_violation_rate"] == 0.0
    simulator.apply(Start(1, taken[:16]))
    to_end(simulator)
    assert simulator.state.late_starts == 1 and simulator.metrics()["slo_violation_rate"] == 1.0


def test_gpus_and_cpu_machines_have_their_own_rates():
    simulator = laid(PAIR, duration_s=990.0)
    started(simulator, 0, EAST)
    simulator.advance()
    metrics, seconds = simulator.metrics(), type_seconds(simulator.state)
    assert metrics["allocation_rate"] == pytest.approx(16 / 112) and metrics["makespan"] == 1000.0
    assert metrics["cpu_allocation_rate"] == pytest.approx(4 / 24)
    assert metrics["gpu_utilisation"] == pytest.approx(0.99 * 16 / 112)
    assert seconds["held"].tolist() == [16_000.0, 0.0, 4_000.0, 0.0]


def test_decisions_about_tables_are_logged():
    simulator = laid(LATER, arrival_s=[0, 0])
    simulator.state.log_on = 1
    made = [Replicate(CLICKS, WEST), Move(USERS, SOUTH), Drop(CLICKS, WEST)]
    for decision in made:
        simulator.apply(decision)
    assert [decision for _, decision in logged(simulator.state)] == made


def test_a_recorded_run_has_decisions_about_tables_and_a_timeline_without_them():
    class CopyFirst(FirstCome):
        def decide(self, view):
            return Replicate(CLICKS, WEST) if view.now_s == 0.0 and not view.transfers else super().decide(view)

    simulator = laid(LATER, arrival_s=[0, 50])
    kept = list(decisions(simulator, CopyFirst()))
    assert [WORDS[entry.kind] for entry in kept] == ["replicate", "start", "start"]
    assert (kept[0].job, kept[0].gpus) == (CLICKS, (WEST,))
    assert timeline(simulator, kept).job.tolist() == [0, 1]


def test_compiled_rules_place_nothing_in_regions():
    simulator = laid(ONE)
    for play in (simulator.run, simulator.schedule, simulator.next_decision):
        with pytest.raises(InputError, match="a compiled rule places no jobs in regions"):
            play()


def test_a_job_that_no_region_could_hold_is_refused():
    with pytest.raises(InputError, match="job 0 asks 33 A100; no region of topology 'small' has clusters"):
        laid([([(A100, 33)], [], 6, 0, 0.0)])


def test_tables_that_do_not_fit_their_regions_are_refused():
    tables = replace(geo_small.small_tables(), size_bytes=np.array([100, 200, 50, 400, 1300]) * 10**9)
    with pytest.raises(InputError, match=r"region 'south' .* it stores 1,200,000,000,000 bytes"):
        laid(ONE, tables=tables)


def test_regions_fail_only_where_there_are_some():
    simulator = Simulator("flat:machines=1", failures=Failures(region_mtbf_s=1000.0))
    with pytest.raises(InputError, match="asks nothing of regions"):
        simulator.reset(Workload.from_arrays("plain", [0.0], [1], [10.0]))


def test_a_run_goes_on_the_same_from_a_snapshot():
    simulator = random_run(1)
    Anything(1).play(simulator, 25)
    snapshot = simulator.snapshot()
    Anything(2).play(simulator)
    found = simulator.metrics()
    simulator.restore(snapshot)
    Anything(2).play(simulator)
    assert simulator.metrics() == pytest.approx(found, nan_ok=True, abs=0, rel=0)


def events_to_come(s) -> list[tuple[float, str, tuple[int, ...]]]:
    """When what happens: kinds of events by the field with their first id, and which of a kind."""
    regions = len(s["stored_bytes"])
    kinds = {
        "first_machine_event": (len(s["gpu_slot"]),),
        "round_event": (1,),
        "outage_event": (1,),
        "first_region_event": (regions,),
        "first_link_event": (LANES, regions, regions),
        "tables_event": (2,),
    }
    if s["n_outages"] + s["failing_groups"] == 0:
        del kinds["outage_event"]
    else:
        kinds["first_group_event"] = (len(s["group_down"]),)
    found = []
    for time_s, item in zip(s["event_key"], s["event_item"][: s["event_count"]], strict=False):
        kind = max((kind for kind in kinds if s[kind] <= item), key=lambda kind: s[kind], default="")
        first, shape = (s[kind], kinds[kind]) if kind else (0, (len(s["arrival_s"]),))
        which = np.unravel_index(item - first, shape)
        found.append((float(time_s), kind, tuple(int(one) for one in which)))
    return sorted(found)


@pytest.mark.parametrize("outages", [False, True])
def test_what_is_to_come_is_the_same_in_a_record_with_more_room(tmp_path, outages):
    """Of jobs, GPUs, regions and outages; links have two numbers, and lanes, which the room for regions spaces out."""
    kinds = set()
    for seed in range(6):
        simulator = outage_player.random_run(seed, tmp_path) if outages else random_run(seed, **DRAWN)
        Anything(seed).play(simulator, 25)
        old = simulator.records[0]
        larger = replace(simulator.capacity.large, outages=2 * simulator.capacity.outages)
        simulator.move_to(empty_state(larger), larger)
        assert events_to_come(simulator.records[0]) == events_to_come(old)
        kinds |= {kind for _, kind, _ in events_to_come(old)}
    assert kinds >= {"first_link_event", "first_region_event", "tables_event", "first_machine_event"}


@pytest.mark.slow
def test_a_run_goes_on_the_same_in_a_larger_record():
    for seed in range(4):
        copies = DRAWN if seed % 2 else {}
        simulator, larger = random_run(seed, **copies), Capacity.with_regions(600, 600, 3, 5, 200, 60)
        Anything(seed).play(simulator, 25)
        snapshot = simulator.snapshot()
        Anything(seed + 1).play(simulator, 150)
        found = simulator.metrics()
        simulator.restore(snapshot)
        simulator.move_to(empty_state(larger), larger)
        check_regions(simulator)
        Anything(seed + 1).play(simulator, 150)
        assert simulator.metrics() == found


@pytest.mark.parametrize(
    "flags", [{"NUMBA_DISABLE_JIT": "1"}, pytest.param({"NUMBA_BOUNDSCHECK": "1"}, marks=pytest.mark.slow)]
)
def test_the_bits_are_those_of_interpreted_and_of_checked_code(flags):
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_") or key.endswith("_DIR")}
    said = subprocess.run(
        [sys.executable, "-P", str(SUPPORT / "geo_player.py"), "3"],
        check=False,
        capture_output=True,
        text=True,
        env=quiet | flags,
        cwd=ROOT,
        timeout=900,
    )
    assert said.returncode == 0, said.stderr[-2000:]
    assert json.loads(said.stdout) == [played(seed) for seed in range(3)]
