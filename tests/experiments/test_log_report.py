"""What `workload inspect` says of a log."""

from __future__ import annotations

import json

import numpy as np
import pytest

from clustergym import Workload
from clustergym.experiments.cli import run
from clustergym.experiments.inspecting.log_report import log_facts
from clustergym.simulator.cluster.topology import Topology

WEEK_S = 7 * 86400.0
TYPES = {
    "regions": [
        {
            "clusters": [
                {"gpu_type": "A100", "racks": [{"machines": [{"slots": 1, "gpus_per_slot": 4}]}]},
                {"gpu_type": "V100", "racks": [{"machines": [{"slots": 1, "gpus_per_slot": 2}]}]},
            ]
        }
    ]
}


def log(**columns):
    """Four jobs of 4, 4, 2, 1 GPUs, 100, 100, 10, 10 s, that came at 0, 0, 5, 6 and started at 10, 20, 30, 40."""
    given = {"start_s": [10.0, 20.0, 30.0, 40.0], **columns}
    return Workload.from_arrays("log", [0.0, 0.0, 5.0, 6.0], [4, 4, 2, 1], [100.0, 100.0, 10.0, 10.0], **given)


def test_waits_as_they_were():
    """10, 20, 25, 34: mean 22.25, median 22.5, 95 % quantile 25 + 0.85 x 9 = 32.65."""
    assert log_facts(log())["waits"] == {"jobs": 4, "mean": 22.25, "p50": 22.5, "p95": pytest.approx(32.65)}
    assert log_facts(log(start_s=None)) == {}


def test_most_gpus_held_at_once_and_what_does_not_fit():
    """a and b hold 8 from 20 on, with c 10 from 30 to 40, then d in its place 9. On 8 GPUs c and d find too few."""
    assert log_facts(log())["held"] == {"gpus": 10, "at_s": 30.0}
    facts = log_facts(log(), Topology.load("flat:machines=2,gpus_per_machine=4"))
    assert (facts["held"]["jobs_over"], facts["held"]["first_over_s"], facts["too_large"]) == (2, 30.0, 0)
    assert log_facts(log(), Topology.load("flat:machines=1,gpus_per_machine=3"))["too_large"] == 2


def test_a_job_that_starts_when_another_ends_holds_nothing_beside_it():
    """0.1 + 0.2 is above 0.3, by rounding."""
    back_to_back = Workload.from_arrays("b", [0.0, 0.0], [4, 4], [0.2, 1.0], start_s=[0.1, 0.3])
    assert log_facts(back_to_back)["held"]["gpus"] == 4


def test_quality_of_estimates():
    """Estimates over run times 2, 0.9, unknown, 6: median 2, two of three within a factor of 2, one under 1."""
    found = log_facts(log(estimate_s=[200.0, 90.0, np.inf, 60.0]))["estimates"]
    assert found == {"jobs": 3, "median": 2.0, "within_2x": pytest.approx(2 / 3), "under": pytest.approx(1 / 3)}


def test_load_by_week_and_type():
    """On 4 A100 and 2 V100, two weeks W. The second job asks 4 x W / 2 of A100 in week 1: 0.5 of them, 1/3 of all.

    The third, at the end of week 2, 2 x W of V100: all of them, 1/3 of all. The first came first, and does not count.
    """
    jobs = Workload.from_arrays(
        "w", [0.0, WEEK_S / 2, 2 * WEEK_S], [1, 4, 2], [9.0, WEEK_S / 2, WEEK_S], gpu_type=["", "A100", "V100"]
    )
    facts = log_facts(jobs, Topology.from_spec(TYPES))
    third = pytest.approx(1 / 3)
    assert facts["load"] == [
        {"from_s": 0.0, "to_s": WEEK_S, "all": third, "A100": 0.5, "V100": 0.0},
        {"from_s": WEEK_S, "to_s": 2 * WEEK_S, "all": third, "A100": 0.0, "V100": 1.0},
    ]
    assert facts["unknown_types"] == []
    other = Workload.from_arrays("o", [0.0, 1.0], [1, 1], [1.0, 1.0], gpu_type=["H100", "A100|H100"])
    assert log_facts(other, Topology.from_spec(TYPES))["unknown_types"] == ["H100"]


def test_the_command_prints_it_and_writes_json(tmp_path, capsys):
    path = tmp_path / "log.csv"
    log(estimate_s=[200.0, 90.0, 20.0, 60.0]).save(path)
    words = ["workload", "inspect", str(path), "--topology", "flat:machines=2,gpus_per_machine=4"]
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert "waits as they were, 4 jobs: mean 22 s, median 22 s, 95 % at most 33 s" in printed
    assert "held at once by the log's starts: at most 10 GPUs, at 30 s" in printed
    assert "does not fit: 2 jobs start when too few GPUs are left, first at 30 s" in printed
    assert "estimates over run times, 4 jobs: median 2, within a factor of 2 75%, under 1 25%" in printed
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["waits"]["mean"] == 22.25
