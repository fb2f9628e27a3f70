"""Workloads that accept several types of GPUs, from their files to their ends, by what docs/concepts/regions.md says.

In every case east has 8 H100 and 8 A100, west 8 A100; a workload's duration is that at speed 1, and its run on a type of
speed v takes its container time, then duration / v. A pass over the queue is made at every event.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from clustergym import Setting, Topology, Workload, evaluate, open_workload

REGIONS = """
wan_gbps: 8
regions:
  - name: east
    storage_tb: 10
    clusters:
      - {name: h, gpu_type: H100, gpu_machines: 1, gpus_per_machine: 8}
      - {name: a, gpu_type: A100, gpu_machines: 1, gpus_per_machine: 8}
  - name: west
    storage_tb: 10
    clusters:
      - {name: a, gpu_type: A100, gpu_machines: 1, gpus_per_machine: 8}
"""
SPEEDS = "model,type,speed\n*,H100,2\n*,A100,0.5\nsharp,H100,4\n"
CHECKPOINT_S = 7
MAST = "mast:slow=none,scan_s=0"


class Played:
    """A run of one policy: what the rows of a file came to.

    `rows`: "job_id,arrival_s,gpus,duration_s,parts,tables,level,container_s,fresh,model". Of the tables `home` lies in
    the east alone, `both` has a replica in the west.
    """

    def __init__(self, folder, rows, policy=MAST, **options):
        for name, text in {
            "regions.yaml": REGIONS,
            "speeds.csv": SPEEDS,
            "w.csv": "\n".join(["job_id,arrival_s,gpus,duration_s,parts,tables,level,container_s,fresh,model", *rows]),
            "w.tables.csv": "table,size_tb,home,replicas\nhome,0.1,east,\nboth,0.1,east,west\n",
            "w.regions.json": json.dumps(
                {"regions": ["east", "west"], "gpu_types": ["H100", "A100"], "checkpoint_s": CHECKPOINT_S}
            ),
        }.items():
            (folder / name).write_text(text)
        topology, workload = str(folder / "regions.yaml"), str(folder / "w.csv")
        setting = Setting.of("Geo", topology, workload, speeds=str(folder / "speeds.csv"), **options)
        (run,) = evaluate(setting, [policy], [0], record="all")
        self.metrics, self.timeline = run.metrics, run.timeline
        self.names, self.topology = list(open_workload(workload).job_id), Topology.load(topology)

    def end_s(self, job):
        return float(self.timeline.leave_s[self.names.index(job)])

    def stretches(self, job):
        """(region, types, from, until) of each stretch in which a workload held units."""
        told, clusters = self.timeline, self.topology
        found = []
        for row in np.flatnonzero(told.job == self.names.index(job)):
            held = sorted({int(clusters.gpu_cluster[unit]) for unit in told.gpus[row]})
            region = clusters.region_names[clusters.cluster_region[held[0]]]
            types = "+".join(clusters.cluster_gpu_type[cluster] for cluster in held)
            found.append((region, types, float(told.start_s[row]), float(told.end_s[row])))
        return found


def test_who_finds_two_types_free_gets_the_faster(tmp_path):
    """1,000 s are 30 + 1,000 / 2 on H100; of a model that says so 30 + 1,000 / 4, as a row of `*` is for all others."""
    played = Played(tmp_path, ["x,100,8,1000,A100|H100:8,home,6,30,0,", "y,900,8,1000,H100|A100:8,home,6,30,0,sharp"])
    assert played.stretches("x") == [("east", "H100", 100.0, 630.0)]
    assert played.stretches("y") == [("east", "H100", 900.0, 1180.0)]


def test_who_finds_one_type_free_takes_it_and_stays(tmp_path):
    """H100 are held until 0 + 20 / 2 = 10 s; from 0 on x is on A100, 30 + 1,000 / 0.5, and nobody stops it for speed."""
    played = Played(tmp_path, ["z,0,8,20,H100:8,home,6,0,0,", "x,0,8,1000,A100|H100:8,home,6,30,0,"])
    assert played.stretches("z") == [("east", "H100", 0.0, 10.0)]
    assert played.stretches("x") == [("east", "A100", 0.0, 2030.0)]


def test_no_type_free_is_a_wait_for_the_first_that_is(tmp_path):
    """z holds the H100 for 400 / 2, v the A100 for 60 / 0.5: x starts on A100 at 120 s."""
    rows = ["z,0,8,400,H100:8,home,6,0,0,", "v,0,8,60,A100:8,home,6,0,0,", "x,1,8,1000,A100|H100:8,home,6,30,0,"]
    assert Played(tmp_path, rows).stretches("x") == [("east", "A100", 120.0, 120.0 + 30.0 + 2000.0)]


def test_work_is_kept_from_type_to_type(tmp_path):
    """x has 1,000 s to do, v and w hold the A100 first, y and u take the H100 from x.

    0 to 200 on H100: 30 s of container, then (200 - 30) x 2 = 340 done. y comes and takes the H100: it saves x for 7 s,
    then its container, then 300 / 2. v ends at 120 / 0.5 = 240: x goes on on A100, 30 s of container, then 0.5 a second.
    u, which asks A100, takes them at 400: (400 - 270) x 0.5 = 65 done. The H100 are free at 200 + 7 + 20 + 150 = 377, so
    x is there from 400 on: 30 + (1,000 - 340 - 65) / 2.
    """
    rows = [
        "v,0,8,120,A100:8,home,0,0,0,",
        "x,0,8,1000,A100|H100:8,home,6,30,0,",
        "y,200,8,300,H100:8,home,0,20,0,",
        "u,400,8,100,A100:8,home,0,0,0,",
    ]
    played = Played(tmp_path, rows)
    assert played.stretches("x") == [
        ("east", "H100", 0.0, 200.0),
        ("east", "A100", 240.0, 400.0),
        ("east", "H100", 400.0, 400.0 + 30.0 + (1000.0 - 340.0 - 65.0) / 2.0),
    ]
    assert played.end_s("y") == 200.0 + CHECKPOINT_S + 20.0 + 150.0
    assert played.end_s("u") == 400.0 + CHECKPOINT_S + 100.0 / 0.5
    assert played.metrics["preemptions"] == 2.0


def test_parts_on_two_types_go_as_the_slower_does(tmp_path):
    """8 H100 and 8 A100 together: 1,000 / 0.5; slowdown is over the fastest that it accepts, the slower of its parts."""
    played = Played(tmp_path, ["x,0,16,1000,A100|H100:8 A100:8,home,6,0,0,"])
    assert played.stretches("x") == [("east", "H100+A100", 0.0, 2000.0)]
    assert played.metrics["slowdown_mean"] == 1.0


def test_slowdown_is_over_the_fastest_accepted(tmp_path):
    """z is alone on its type: 1. x runs 1,000 / 0.5 s and would on H100 in 500: 4."""
    played = Played(tmp_path, ["z,0,8,20,H100:8,home,6,0,0,", "x,0,8,1000,A100|H100:8,home,6,0,0,"])
    assert played.metrics["slowdown_mean"] == (1.0 + 4.0) / 2.0


BUSY_EAST = ["z,0,8,400,H100:8,home,6,0,0,", "v,0,8,100,A100:8,home,6,0,0,"]  # until 200 s both


@pytest.mark.parametrize(
    ("fresh", "lag_s", "start_s", "region", "kind"),
    [
        (0, None, 50.0, "west", "A100"),  # any copy does
        (1, None, 200.0, "east", "H100"),  # at home alone, where the faster is free as soon as the slower
        (1, 250.0, 200.0, "east", "H100"),  # the home is free before the replica is fresh, at 300 s
        (1, 90.0, 140.0, "west", "A100"),  # the replica has at 140 s what was at home at 50
    ],
)
def test_fresh_data_are_at_home_and_in_replicas_after_their_lag(tmp_path, fresh, lag_s, start_s, region, kind):
    """x comes at 50 s, reads `both`, and could run in the west at once."""
    options = {} if lag_s is None else {"replica_lag_s": lag_s}
    played = Played(tmp_path, [*BUSY_EAST, f"x,50,8,100,A100|H100:8,both,6,0,{fresh},"], **options)
    end_s = start_s + 100.0 / {"H100": 2.0, "A100": 0.5}[kind]
    assert played.stretches("x") == [(region, kind, start_s, end_s)]


def test_a_lag_is_that_of_the_time_since_a_workload_came(tmp_path):
    """Beside a replica that is 90 s behind: x of 50 s may start at 140, y of 120, in whose way it is, not before 210.

    x holds west for 30 / 0.5 = 60 s, until 200, when the east becomes free.
    """
    rows = [*BUSY_EAST, "x,50,8,30,A100:8,both,6,0,1,", "y,120,8,30,A100:8,both,6,0,1,"]
    played = Played(tmp_path, rows, replica_lag_s=90.0)
    assert played.stretches("x") == [("west", "A100", 140.0, 200.0)]
    assert played.stretches("y") == [("east", "A100", 200.0, 260.0)]
