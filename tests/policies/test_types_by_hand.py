"""Workloads that accept several types of GPUs, from their files to their ends, by what docs/concepts/regions.md says.

In every case east has 8 H100 and 8 A100, west 8 A100; a workload's duration is that at speed 1, and its run on a type
of speed v takes its container time, then duration / v. A pass over the queue is made at every event.
"""

from __future__ import annotations

import pytest

from clustergym.tests.support.played_files import Files, Played

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
CHECKPOINT_S = 7.0
FILES = Files(
    REGIONS,
    speeds=["*,H100,2", "*,A100,0.5", "sharp,H100,4"],
    tables=["home,0.1,east,", "both,0.1,east,west"],
    gpu_types=["H100", "A100"],
    checkpoint_s=CHECKPOINT_S,
)
BUSY_EAST = ["z,0,8,400,H100:8,home,6,0,0,", "v,0,8,100,A100:8,home,6,0,0,"]  # both until 200 s


def play(folder, rows, **options):
    return Played(FILES, folder, rows, "mast:slow=none,scan_s=0", **options)


def test_a_job_that_finds_two_types_free_gets_the_faster(tmp_path):
    """1,000 s are 30 + 1,000 / 2 on H100, and 30 + 1,000 / 4 for a model that says so: `*` is for all others."""
    played = play(tmp_path, ["x,100,8,1000,A100|H100:8,home,6,30,0,", "y,900,8,1000,H100|A100:8,home,6,30,0,sharp"])
    assert played.of("x") == [("east", "H100", 100.0, 630.0)]
    assert played.of("y") == [("east", "H100", 900.0, 1180.0)]


def test_a_job_that_finds_one_type_free_takes_it_and_stays(tmp_path):
    """H100 are held until 20 / 2 = 10 s; x is on A100 from 0 on, 30 + 1,000 / 0.5, and is not stopped for speed.

    Slowdown is over the fastest that a workload accepts: z has 1, x 2,030 / (1,000 / 2).
    """
    played = play(tmp_path, ["z,0,8,20,H100:8,home,6,0,0,", "x,0,8,1000,A100|H100:8,home,6,30,0,"])
    assert played.of("z") == [("east", "H100", 0.0, 10.0)]
    assert played.of("x") == [("east", "A100", 0.0, 2030.0)]
    assert played.metrics["slowdown_mean"] == pytest.approx((1.0 + 4.06) / 2.0, rel=1e-12)


def test_no_type_free_is_a_wait_for_the_first_that_is(tmp_path):
    """z holds the H100 for 400 / 2 s, v the A100 for 60 / 0.5, x wants data at home: it starts on A100 at 120 s."""
    rows = ["z,0,8,400,H100:8,home,6,0,0,", "v,0,8,60,A100:8,home,6,0,0,", "x,1,8,1000,A100|H100:8,home,6,30,0,"]
    assert play(tmp_path, rows).of("x") == [("east", "A100", 120.0, 120.0 + 30.0 + 2000.0)]


def test_work_is_kept_from_type_to_type(tmp_path):
    """x has 1,000 s to do; v, y and u, of a higher priority, are on A100, H100 and A100.

    On H100 from 0 to 200: 30 s of container, then (200 - 30) x 2 = 340 s done. y takes the H100: 7 s to save x, 20 s of
    container, 300 / 2. v ends at 120 / 0.5 = 240: x goes on on A100, 30 s of container, then 0.5 a second, until u
    takes these at 400: (400 - 270) x 0.5 = 65 s done. The H100 have been free since 200 + 7 + 20 + 150 = 377, so x is
    there from 400 on: 30 + (1,000 - 340 - 65) / 2. u needs 7 s for x and 100 / 0.5.
    """
    rows = [
        "v,0,8,120,A100:8,home,0,0,0,",
        "x,0,8,1000,A100|H100:8,home,6,30,0,",
        "y,200,8,300,H100:8,home,0,20,0,",
        "u,400,8,100,A100:8,home,0,0,0,",
    ]
    played = play(tmp_path, rows)
    assert played.of("x") == [
        ("east", "H100", 0.0, 200.0),
        ("east", "A100", 240.0, 400.0),
        ("east", "H100", 400.0, 400.0 + 30.0 + 297.5),
    ]
    assert played.of("y") == [("east", "H100", 200.0, 200.0 + CHECKPOINT_S + 20.0 + 150.0)]
    assert played.of("u") == [("east", "A100", 400.0, 400.0 + CHECKPOINT_S + 200.0)]
    assert played.metrics["preemptions"] == 2.0


def test_parts_on_two_types_go_as_the_slower_does(tmp_path):
    """8 H100 and 8 A100 together: 1,000 / 0.5; slowdown is over the fastest that x accepts, the slower of its parts."""
    played = play(tmp_path, ["x,0,16,1000,A100|H100:8 A100:8,home,6,0,0,"])
    assert played.of("x") == [("east", "H100+A100", 0.0, 2000.0)]
    assert played.metrics["slowdown_mean"] == 1.0


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
    """x comes at 50 s, reads `both`, and could run in the west at once, on A100 alone."""
    options = {} if lag_s is None else {"replica_lag_s": lag_s}
    played = play(tmp_path, [*BUSY_EAST, f"x,50,8,100,A100|H100:8,both,6,0,{fresh},"], **options)
    end_s = start_s + 100.0 / {"H100": 2.0, "A100": 0.5}[kind]
    assert played.of("x") == [(region, kind, start_s, end_s)]


def test_a_lag_is_that_of_the_time_since_a_workload_came(tmp_path):
    """Replicas are 90 s behind: x of 50 s is in the west from 140 to 200, y of 120 might be from 210, not from 200.

    The east is free at 200.
    """
    rows = [*BUSY_EAST, "x,50,8,30,A100:8,both,6,0,1,", "y,120,8,30,A100:8,both,6,0,1,"]
    played = play(tmp_path, rows, replica_lag_s=90.0)
    assert played.of("x") == [("west", "A100", 140.0, 200.0)]
    assert played.of("y") == [("east", "A100", 200.0, 260.0)]
