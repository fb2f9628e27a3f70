"""CPU machines are no members of a gang and hold no GPU job; a topology without GPUs is none for GPU jobs."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from clustergym.envs.delay.env import DelayEnv
from clustergym.experiments.cli import app
from clustergym.policies import make
from clustergym.simulator.base.decisions import Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.cluster.region_network import CPU_TYPE
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.cluster.unit_types import gpus_of
from clustergym.simulator.configuration.offered_load import isolated_s, offered_load
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.groups.group_simulator import GroupSimulator
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_player import FirstCome
from clustergym.tests.support.geo_small import A100, CPU, V100, small_topology, small_world

PENALTY = "penalty:default=1/1.5/2"
RINGS = pytest.param("allreduce:default=VGG", marks=pytest.mark.slow)  # a class of records that nothing else compiles
NETWORKS = ("none", PENALTY, f"{PENALTY},duration=compute", RINGS)
PARTS = {
    "GPUs": [(A100, 8)],
    "GPUs and CPU machines": [(A100, 8), (CPU, 4)],
    "CPU machines first": [(CPU, 4), (A100, 8)],
    "CPU machines alone": [(CPU, 4)],
    "a part on each of two types": [(A100, 8), (V100, 8), (CPU, 1)],
    "of any type": [((A100, V100), 8), (CPU, 2)],
}


def of_parts(*rows, duration_s=1000.0, tables=()):
    """A workload whose jobs are there at once, without containers."""
    geo = geo_small.demands([(parts, list(tables), 6, 0, 0.0) for parts in rows])
    columns = [0.0] * len(rows), geo.units, [duration_s] * len(rows)
    return Workload.from_arrays("parts", *columns, model=["VGG"] * len(rows), batch_size=[256] * len(rows)).with_geo(
        geo
    )


def units(topology, kind, *machines):
    """Of each (machine, count) the first units, machines counted among those of a type."""
    own = [
        machine
        for machine in range(topology.num_machines)
        if topology.cluster_gpu_type[topology.rack_cluster[topology.machine_rack[machine]]] == kind
    ]
    return [int(topology.machine_first_gpu[own[m]]) + i for m, count in machines for i in range(count)]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_a_workload_that_is_alone_takes_its_duration_under_every_network(parts, network):
    """Each part lies on one machine, where nothing slows it down: 1,000 s, with `compute` too, as the best factor is 1.

    `allreduce` exchanges inside a machine as well, which is in the isolated time.
    """
    workload = of_parts(parts)
    simulator = Simulator(small_topology(), network)
    simulator.reset(workload)
    metrics = simulator.run(FirstCome())
    assert metrics["makespan"] == pytest.approx(1000.0, rel=1e-12)
    assert metrics["slowdown_mean"] == pytest.approx(1.0, rel=1e-12)
    assert isolated_s(workload, simulator.topology, network) == pytest.approx([1000.0], rel=1e-12)


def test_a_part_on_two_machines_pays_for_them_and_its_cpu_machines_pay_nothing():
    """8 A100 as 4 + 4 on two machines of a rack: x 1.5. Its CPU machines lie in another rack, which is x 2."""
    topology = small_topology()
    simulator = Simulator(topology, PENALTY)
    simulator.reset(of_parts([(A100, 8), (CPU, 4)]))
    gang = units(topology, "A100", (0, 4), (1, 4)) + units(topology, CPU_TYPE, (0, 1), (1, 1), (2, 1), (3, 1))
    simulator.apply(Start(0, tuple(gang)))
    assert simulator.view.tier_of(0) == 2
    assert simulator.run(FirstCome())["makespan"] == 1500.0


@pytest.mark.parametrize("network", [PENALTY, RINGS])
def test_a_workload_takes_as_long_as_its_slowest_part(network):
    """A trainer of 8 on two machines beside an evaluator of 4 on one: as long as the trainer alone takes there."""
    topology = small_topology()
    trainer = units(topology, "A100", (0, 4), (1, 4))
    alone, both = Simulator(topology, network), Simulator(topology, network)
    alone.reset(of_parts([(A100, 8)]))
    alone.apply(Start(0, tuple(trainer)))
    both.reset(of_parts([(A100, 4), (A100, 8), (CPU, 2)]))
    gang = [*units(topology, "A100", (2, 4)), *trainer, *units(topology, CPU_TYPE, (0, 1), (5, 1))]
    both.apply(Start(0, tuple(gang)))
    expected = alone.run(FirstCome())["makespan"]
    assert expected > 1200.0 and both.run(FirstCome())["makespan"] == pytest.approx(expected, rel=1e-12)


def test_the_best_placement_is_on_the_types_that_a_part_accepts():
    """16 V100 lie on two machines of a rack at best, 16 A100 too; were V100 machines of 4, 8 of them lay on two.

    Then 1,000 s of 8 V100 on two machines of a rack are 1,000 s, not 1,500, although 8 A100 fit one machine.
    """
    world = small_world()
    clusters = replace(
        world.clusters,
        gpus_per_machine=np.array([8, 8, 4, 8, 8]),
        gpu_machines=np.array([4, 2, 8, 2, 2]),
    )
    topology = replace(world, clusters=clusters).topology()
    workload = of_parts([(V100, 8)], [(A100, 8)])
    simulator = Simulator(topology, PENALTY)
    simulator.reset(workload)
    assert simulator.run(FirstCome())["makespan"] == 1000.0
    assert isolated_s(workload, topology, PENALTY).tolist() == [1000.0, 1000.0]


@pytest.mark.parametrize("regions", [1, 3])
@pytest.mark.parametrize("network", ["none", PENALTY])
def test_gangs_of_eight_beside_cpu_machines_run_in_two_waves(regions, network):
    """12 gangs of 8 for 100 s on 8 machines of 8 GPUs: 8, then 4; the 64 CPU machines hold none of them."""
    workload = Workload.from_arrays("gangs", [0.0] * 12, [8] * 12, [100.0] * 12)
    topology = f"mast:regions={regions},gpus=64"
    simulator = Simulator(topology, network)
    simulator.reset(workload)
    metrics = simulator.run(make("fifo").decider(simulator))
    assert metrics["makespan"] == 200.0
    assert metrics["gpu_utilisation"] == 12 * 8 * 100.0 / (64 * 200.0)
    assert simulator.view.topology.num_gpus == 64


def one_region(cpus):
    world = small_world()
    clusters = replace(
        world.clusters,
        **{
            name: getattr(world.clusters, name)[:3]
            for name in ("names", "gpu_type", "gpu_machines", "gpus_per_machine", "machines_per_rack")
        },
        region=np.zeros(3, np.int64),
        cpu_machines=np.array(cpus),
    )
    one = {"names": ("a", "b", "c")}
    return replace(
        world,
        regions=("east",),
        clusters=replace(clusters, **one),
        storage_bytes=world.storage_bytes[:1],
        wan_bytes_per_s=np.zeros((1, 1)),
        fault_group=np.zeros(1, np.int64),
        egress_bytes_per_s=np.zeros(0),
        ingress_bytes_per_s=np.zeros(0),
    ).topology()


@pytest.mark.parametrize("policy", ["fifo", "greedy", "dally", "tiresias", "gandiva", "sjf:head=reserve,placer=tier"])
def test_for_plain_jobs_cpu_machines_change_nothing(policy):
    """All metrics, on random workloads, with failures: a region with 16 and 5 CPU machines, and without."""
    for seed in range(3):
        workload = open_workload("poisson:jobs=40,load=1.2,gpus=1/2/8/16,cluster_gpus=80", seed=seed)
        found = []
        for cpus in ((0, 0, 0), (0, 16, 0), (5, 16, 3)):
            simulator = Simulator(one_region(cpus), PENALTY, failures=Failures(mtbf_s=500_000.0))
            simulator.use(make(policy).rule)
            simulator.reset(workload, seed)
            found.append(simulator.run())
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("policy", ["mast:slow=none", "greedy:slow=none", "federated:slow=none"])
@pytest.mark.parametrize("network", [PENALTY, RINGS])
def test_for_workloads_without_cpu_parts_cpu_machines_change_nothing(policy, network):
    """All metrics but those of CPU machines: no cluster has any, or each has some that no job asks for."""
    world = small_world()
    for seed in range(3):
        drawn = geo_small.random_workload(seed)
        kept = np.flatnonzero((drawn.geo.part_type != CPU).all(axis=1))
        workload = replace(drawn.take(kept), model=np.full(len(kept), "VGG", object))
        found = []
        for cpus in ((0, 0, 0, 0, 0), (3, 1, 40, 2, 7)):
            topology = replace(world, clusters=replace(world.clusters, cpu_machines=np.array(cpus))).topology()
            simulator = Simulator(topology, network)
            simulator.reset(workload, seed)
            found.append(simulator.run(make(policy).decider(simulator)))
        assert found[0] == found[1]


def test_a_gang_that_would_span_regions_is_refused():
    """40 GPUs of 64 in three regions lie in two at least: said of a compiled rule, of a decision, of an environment."""
    simulator = Simulator("mast:regions=3,gpus=64")
    simulator.reset(Workload.from_arrays("wide", [0.0], [40], [100.0]))
    with pytest.raises(InvalidDecision, match="its GPUs lie in regions region0 and region1; expected GPUs of one, "):
        simulator.apply(Start(0, tuple(range(40))))
    with pytest.raises(InvalidDecision, match="expected GPUs of one, a workload for regions, as mast-like, or a"):
        simulator.run(make("fifo:placer=random"))
    with pytest.raises(InputError, match="job 0 got GPUs in several, which no gang may span; expected a workload for"):
        simulator.run()
    env = DelayEnv(topology="mast:regions=3,gpus=64", network="none", workload="poisson:jobs=5,gpus=1/2")
    with pytest.raises(InputError, match="gangs of several GPUs could span them"):
        env.reset(seed=0)
    env = DelayEnv(topology="mast:regions=3,gpus=64", network="none", workload="poisson:jobs=5,gpus=1")
    env.reset(seed=0)
    assert env.simulator.state.n_gpus == 64


@pytest.mark.parametrize("topology", ["harmony:machines=8", {"regions": [{"clusters": [{"gpu_type": "CPU"}]}]}])
def test_a_topology_without_gpus_refuses_gpu_jobs(topology):
    if isinstance(topology, dict):
        topology = Topology.from_counts(
            "own", slot_gpus=[1] * 4, machine_slots=[1] * 4, rack_machines=[4], cluster_gpu_type=[CPU_TYPE]
        )
    simulator = Simulator(topology)
    with pytest.raises(InputError, match="has no GPUs, but CPU machines; GPU jobs need some"):
        simulator.reset(Workload.from_arrays("one", [0.0], [1], [100.0]))
    with pytest.raises(InputError, match="has no GPUs, but CPU machines; GPU jobs need some"):
        DelayEnv(topology=topology, workload="poisson:jobs=3", network="none")


def test_cpu_machines_of_several_units_are_refused_in_every_topology():
    with pytest.raises(InputError, match="cluster 'cluster0' has CPU machines of 8 units; expected 1"):
        Topology.from_counts("own", slot_gpus=[8], machine_slots=[1], rack_machines=[1], cluster_gpu_type=[CPU_TYPE])


def test_lists_of_outages_are_refused_where_their_numbers_count_machines_that_are_left_out(tmp_path):
    (tmp_path / "outages.csv").write_text("start_s,duration_s,what,name\n10,20,machine,0\n")
    failures = Failures(outages=str(tmp_path / "outages.csv"))
    simulator = Simulator("mast:regions=1,gpus=64", failures=failures)
    with pytest.raises(InputError, match="outages and fault_groups number the machines of topology 'mast'"):
        simulator.reset(Workload.from_arrays("one", [0.0], [1], [100.0]))


def test_load_is_drawn_and_told_over_the_gpus():
    """`load=0.9` is of the GPUs: on 64 GPUs beside 64 CPU machines as on 64 GPUs alone."""
    with_cpus = DelayEnv(topology="mast:regions=1,gpus=64", network="none", workload="poisson:jobs=300,load=0.9")
    alone = DelayEnv(topology="flat:machines=8", network="none", workload="poisson:jobs=300,load=0.9")
    for env in (with_cpus, alone):
        env.reset(seed=1)
    found = [env.simulator.workload.offered_load(64) for env in (with_cpus, alone)]
    assert found[0] == found[1]
    assert offered_load(with_cpus.simulator.workload, Topology.load("mast:regions=1,gpus=64")) == pytest.approx(
        found[0]
    )


def test_the_table_of_stretches_names_the_gpus_that_plain_jobs_held(tmp_path):
    """Clusters of GPUs and of CPU machines take turns in the topology; jobs are on GPUs alone, 64 of three types."""
    table = tmp_path / "jobs.csv"
    where = ["--topology", "mast:regions=1,gpus=64", "--network", "none", "--workload", "poisson:jobs=20,gpus=16"]
    found = CliRunner().invoke(
        app, ["evaluate", "Delay", *where, "--policies", "fifo", "--seeds", "0", "--stretches-table", str(table)]
    )
    assert found.exit_code == 0, found.output
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["gpu_type"] for row in rows} == {"V100", "A100", "H100"}
    assert sum(int(row["gpus"]) for row in rows) == 20 * 16


def test_a_workload_for_regions_may_ask_more_units_than_there_are_gpus():
    """8 GPUs and 30 CPU machines, 38 units, of 8 GPUs and 32 CPU machines: what is too large goes by its GPUs."""
    workload = of_parts([(A100, 8), (CPU, 16)], [(A100, 16)])
    assert workload.largest_gang == 16
    assert workload.oversize(16) is workload
    with pytest.warns(UserWarning, match="ask more than 8 GPUs"):
        assert len(workload.oversize(8, "drop")) == 1


def test_what_is_left_of_a_topology_is_its_gpus_in_their_order():
    whole = small_topology()
    left = gpus_of(whole)
    assert left.num_gpus == 112 and left.num_cpu_machines == 0 and left.cluster_names == ("a", "b", "a", "b", "a")
    assert left.cluster_gpu_type == ("A100", "A100", "V100", "A100", "A100")
    assert gpus_of(whole) is left and gpus_of(left) is left


def test_job_groups_refuse_what_is_not_their_kind(tmp_path):
    (tmp_path / "outages.csv").write_text("start_s,duration_s,what,name\n10,20,machine,0\n")
    for given, sentence in (
        ({"topology": "mast:regions=1,gpus=64"}, "topology 'mast': job groups run on equal machines"),
        ({"failures": Failures(outages=str(tmp_path / "outages.csv"))}, "outages: machines of .* fail each by itself"),
        ({"failures": Failures(fault_groups="racks", group_mtbf_s=1000.0)}, "fail each by itself"),
        ({"failures": Failures(region_mtbf_s=1000.0)}, "region_mtbf_s: .* has no regions"),
        ({"failures": Failures(1000.0, checkpoint_s=60.0)}, "checkpoint_s = 60: job groups write one at each end"),
        ({"semantics": "artist-sim"}, "semantics: .* has no leases"),
    ):
        with pytest.raises(InputError, match=sentence):
            GroupSimulator(given.pop("topology", "harmony:machines=8"), **given)
    with pytest.raises(InputError, match="its jobs are no parameter-server jobs"):
        GroupSimulator("harmony:machines=8").reset(of_parts([(CPU, 4)]))
    GroupSimulator("flat:machines=4,gpus_per_machine=1", failures=Failures(1000.0))
