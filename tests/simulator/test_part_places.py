"""`view.find_gpus` over regions hands out what `Start` accepts: parts, types, one region; and finds it where it is."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from clustergym.simulator.base.decisions import Advance, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support import geo_small


def region(name: str, *clusters: tuple[str, str, int, int]) -> dict[str, Any]:
    """Clusters of (name, type, machines, GPUs each), one machine a rack."""
    keys = ("name", "gpu_type", "gpu_machines", "gpus_per_machine")
    made = [{**dict(zip(keys, cluster, strict=True)), "machines_per_rack": 1} for cluster in clusters]
    return {"name": name, "storage_tb": 1, "clusters": made}


LAB = Topology.from_spec({"wan_gbps": 1, "regions": [region("lab", ("a", "A100", 2, 4), ("b", "V100", 2, 4))]})
TWO = Topology.from_spec({"wan_gbps": 1, "regions": [region(name, ("c", "A100", 2, 2)) for name in ("east", "west")]})
HEAD = "job_id,arrival_s,gpus,duration_s,parts\n"


class Shortest:
    """The policy of the how-to: shortest first, wherever `find_gpus` finds room."""

    def decide(self, view: Any) -> Any:
        for job in sorted(view.queue, key=lambda job: (view.isolated_s(job), job)):
            if (gpus := view.find_gpus(job, "tier")) is not None:
                return Start(job, gpus)
        return Advance()


def begun(topology: Topology, workload: Workload) -> Simulator:
    simulator = Simulator(topology)
    simulator.reset(workload)
    return simulator


@pytest.fixture
def lab(tmp_path):
    def read(*parts: str) -> Simulator:
        units = [sum(int(part.split(":")[1]) for part in row.split()) for row in parts]
        rows = [f"j{i},0,{n},{100 + i},{row}\n" for i, (n, row) in enumerate(zip(units, parts, strict=True))]
        (tmp_path / "lab.csv").write_text(HEAD + "".join(rows))
        return begun(LAB, open_workload(tmp_path / "lab.csv"))

    return read


@pytest.mark.parametrize(
    ("parts", "gpus"),
    [
        ("V100:2", [8, 9]),  # not 0 and 1, which are free too, but A100
        ("V100|A100:2", [0, 1]),  # both types are equally fast and free: the first cluster
        ("A100:2 V100:2", [0, 1, 8, 9]),
        ("V100:2 A100:2", [8, 9, 0, 1]),  # part after part
        ("A100:2 A100:4", [0, 1, 4, 5, 6, 7]),  # each inside one machine
        ("A100:6", [0, 1, 2, 3, 4, 5]),
        ("A100|V100:6 A100:6", [8, 9, 10, 11, 12, 13, 0, 1, 2, 3, 4, 5]),  # the first part makes room for the other
        ("A100:8 V100|A100:8", [*range(16)]),
    ],
)
def test_units_lie_part_after_part_in_clusters_of_an_accepted_type(lab, parts, gpus):
    """Cluster a has A100 0 to 3 and 4 to 7, b V100 8 to 11 and 12 to 15; every machine is a rack."""
    simulator = lab(parts)
    assert simulator.view.find_gpus(0) == gpus
    simulator.apply(Start(0, gpus))


def test_a_part_lies_inside_the_tier_that_is_asked(lab):
    simulator = lab("A100:2", "A100:4 V100:6")
    simulator.apply(Start(0, [1, 2]))
    view = simulator.view
    assert view.find_gpus_within(1, MACHINE) is None and view.find_gpus_within(1, RACK) is None
    assert view.find_gpus_within(1, NETWORK) == [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]


def test_the_faster_type_goes_first(tmp_path):
    """V100 here are twice as fast as A100, so a part that accepts both takes V100 while some are free."""
    (tmp_path / "lab.csv").write_text(HEAD + "a,0,8,9,A100|V100:8\nb,0,8,9,A100|V100:8\n")
    (tmp_path / "speeds.csv").write_text("model,type,speed\n*,V100,2\n")
    simulator = Simulator(LAB, speeds=str(tmp_path / "speeds.csv"))
    simulator.reset(open_workload(tmp_path / "lab.csv"))
    for job, first in ((0, 8), (1, 0)):
        gpus = simulator.view.find_gpus(job)
        assert gpus == [*range(first, first + 8)]
        simulator.apply(Start(job, gpus))


def test_an_own_policy_plays_jobs_of_parts_without_tables(lab):
    """No job reads a table, so there is no file of tables. j0: V100 0 to 100 s, j1: A100 to 101 s, j2 waits for j1."""
    simulator = lab("V100:8", "A100:8", "A100:4")
    assert simulator.workload.geo.regions == ("lab",) and len(simulator.workload.geo.tables) == 0
    found = simulator.run(Shortest())
    assert found["jobs_finished"] == 3 and found["jct_mean"] == pytest.approx((100 + 101 + 203) / 3)
    assert found["placement_cost"] == found["home_rate"] == 0.0


def test_placers_that_know_no_parts_are_refused(lab):
    with pytest.raises(InputError, match="placer 'count': it knows no parts of jobs; over regions expected tier"):
        lab("V100:2").view.find_gpus(0, "count")


def room_by_brute_force(view: Any, job: int) -> bool:
    """Whether some choice of clusters, one a part, has room, in a region where the job may run."""
    topology, free = view.topology, view.free_by_cluster
    for home in view.regions_of(job):
        here = [cluster for cluster, its in enumerate(topology.cluster_region) if its == home]
        parts = [(words.split("|"), units) for words, units in view.parts(job)]
        for chosen in itertools.product(here, repeat=len(parts)):
            asked = np.zeros(len(free), np.int64)
            np.add.at(asked, list(chosen), [units for _, units in parts])
            fits = all(topology.cluster_gpu_type[one] in part[0] for one, part in zip(chosen, parts, strict=True))
            if fits and (asked <= free).all():
                return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_all_that_is_found_may_start_and_room_is_always_found(seed):
    """Drawn workloads of several parts on three regions, all tables in each; `apply` refuses what may not start."""
    drawn = geo_small.random_workload(seed)
    simulator = begun(geo_small.small_topology(), drawn.with_geo(drawn.geo.everywhere()))
    starts = waits = 0
    while not simulator.done:
        for job in simulator.view.queue.tolist():
            gpus = simulator.view.find_gpus(job)
            assert (gpus is not None) == room_by_brute_force(simulator.view, job)
            starts, waits = starts + (gpus is not None), waits + (gpus is None)
            if gpus is not None:
                simulator.apply(Start(job, gpus))
        simulator.advance()
    assert starts == len(simulator.workload) and waits > 0


def test_gangs_that_may_not_span_regions_get_gpus_of_one():
    """East has 0, 1 and 2, 3, west 4, 5 and 6, 7. With 0 taken two racks of both regions would do: those of west do."""
    jobs = Workload.from_arrays("plain", [0.0, 0.0, 0.0], [1, 4, 3], [9.0, 9.0, 9.0])
    simulator = begun(TWO, jobs)
    simulator.apply(Start(0, [0]))
    view = simulator.view
    assert sorted(view.find_gpus(1)) == [4, 5, 6, 7] and sorted(view.find_gpus(1, "count")) == [4, 5, 6, 7]
    simulator.apply(Start(1, view.find_gpus(1)))
    assert sorted(simulator.view.find_gpus(2)) == [1, 2, 3]
