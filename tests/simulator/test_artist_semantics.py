"""`semantics=artist-sim` against its reference on random workloads, and both against logs of the authors' simulator."""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustergym import policies
from clustergym.experiments.playing.recording import decisions
from clustergym.simulator.base.decisions import Migrate, Preempt, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.network_choice import load_network
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.network.collectives import flatten, fresh_fraction
from clustergym.simulator.record.state import Capacity, empty_state
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.rules.semantics import load_semantics
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support.artist_reference import Artist, Job, cluster
from clustergym.tests.support.drawn import some

NETWORK = "allreduce:calibration=artist"
MODELS = ("VGG", "AlexNet", "MobileNetV3", "ResNet50", "ResNet18", "BERT")
PEER = "dally:history=24,floors=6/12,deviation=population"
LOGS = {"tiresias": "tiresias", "dauto24": PEER, "dnowait": "dally-nowait"}
WORDS: dict[str, dict[str, Any]] = {  # policies in the words of the reference
    "tiresias": {"policy": "tiresias"},
    PEER: {"policy": "dally"},
    "dally:history=3,floors=1/2,deviation=sample": {
        "policy": "dally", "history": 3, "floors": (1, 2), "deviation": "sample",
    },
    "dally:history=6,floors=1/1,deviation=population": {"policy": "dally", "history": 6, "floors": (1, 1)},
    "dally-manual:timers=7200/18000": {"policy": "dally", "timers": (2.0, 5.0)},
    "dally-nowait": {"policy": "dally", "timers": (0.0, 0.0)},
    "dally-consolidated": {"policy": "dally", "timers": (math.inf, math.inf)},
}  # fmt: skip

Granted = list[tuple[float, int, list[int]]]  # time, job (index), GPUs (indices)


class Fractions:
    """Compute over duration of an iteration on a gang, from the kernels of the network; the reference asks for it."""

    def __init__(self) -> None:
        network = load_network(NETWORK)
        self.scratch = empty_state(Capacity.fitting(1, 1, layered=True))[0]
        network.write_models(self.scratch, [network.layers_of(model) for model in MODELS])
        self.known: dict[tuple, float] = {}

    def __call__(self, job: Any, gang: list[tuple[int, ...]]) -> float:
        shape = (len(gang), *(len({gpu[:depth] for gpu in gang}) for depth in (3, 2, 1)))
        if (job.model, shape) not in self.known:
            flatten(self.scratch, *shape)
            self.known[job.model, shape] = float(fresh_fraction(self.scratch, MODELS.index(job.model)))
        return self.known[job.model, shape]


@pytest.fixture(scope="module")
def fractions() -> Fractions:
    return Fractions()


@dataclass(frozen=True)
class Case:
    """A random run: a cluster of `racks` racks of `machines` machines, and jobs whose ids are their order."""

    racks: int
    machines: int
    machine_order: str
    jobs: list[Any]

    @property
    def topology(self) -> Topology:
        order = self.machine_order
        return Topology.load(f"dally:racks={self.racks},machines={self.machines},machine_order={order}")

    @property
    def workload(self) -> Workload:
        """Iteration times of the gang: they earn as many iterations at once as they have GPUs."""
        _, arrival_s, gpus, iteration_s, iterations, models = zip(*self.jobs, strict=True)
        per_gang_s = np.array(iteration_s) / gpus
        return Workload.from_arrays(
            "random", arrival_s, gpus, per_gang_s * iterations, iterations=iterations, iteration_s=per_gang_s,
            model=models,
        )  # fmt: skip

    @property
    def scan(self) -> list[tuple[int, int]]:
        return [divmod(int(machine), self.machines) for machine in self.topology.machine_scan]


def random_case(seed: int, powers: bool = True) -> Case:
    """5 to 60 jobs on 8 to 96 GPUs: many ties, and gangs are powers of two, where division by them is exact.

    Without `powers`: at most 30 jobs, no two of one gang size, so that none come to the same slowdown but for rounding.
    """
    rng = np.random.default_rng(seed)
    racks, machines, n = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(5, 61))
    total = 8 * racks * machines
    gpus = np.minimum(2 ** rng.integers(0, rng.integers(1, 7), n), 2 ** int(math.log2(total)))
    if not powers:
        gpus = rng.permutation(np.arange(1, min(total, 30) + 1))[:n]
        n = len(gpus)
    chunk_s = rng.choice([4.0, 7.0, 11.8, 60.0, 599.9, 4000.0], n)
    chunk_s *= np.where(rng.random(n) < 0.5, 1.0, rng.uniform(0.5, 1.0, n))
    iterations = np.ceil(rng.lognormal(9.5, 1.3, n) * 1000 / chunk_s)
    arrival_s = np.zeros(n)
    if rng.random() < 0.6:
        arrival_s = np.sort(rng.uniform(0, rng.choice([100.0, 1e4, 1e5]), n))
    if rng.random() < 0.5:
        arrival_s = np.floor(arrival_s / 10) * 10
    columns = (arrival_s, gpus, chunk_s / 1000, iterations.astype(int), rng.choice(MODELS, n))
    jobs = [Job(i, *row) for i, row in enumerate(zip(*(column.tolist() for column in columns), strict=True))]
    return Case(racks, machines, str(rng.choice(["natural", "1", "7"])), jobs)


def by_kernels(
    policy: str, topology: Topology, workload: Workload, semantics: str = "artist-sim"
) -> tuple[Granted, Any]:
    """The grants of the compiled rule (`Granted`), and the simulator at its end."""
    simulator = Simulator(topology, NETWORK, semantics=semantics)
    simulator.use(policies.make(policy).rule_under(simulator.semantics))
    simulator.reset(workload)
    granted = [(row.time_s, row.job, list(row.gpus)) for row in decisions(simulator)]
    return granted, simulator


def by_reference(run: Any, gpus: list[tuple[int, ...]]) -> Granted:
    index = {gpu: i for i, gpu in enumerate(gpus)}
    return [(time_s, job, [index[gpu] for gpu in gang]) for time_s, job, _, gang in run.grants]


@pytest.mark.parametrize("policy", WORDS)
def test_kernels_make_the_grants_of_the_reference(policy, fractions):
    for seed in range(some(50)):
        case = random_case(seed)
        gpus = cluster(case.racks, case.machines)
        run = Artist(case.jobs, gpus, fractions, scan=case.scan, **WORDS[policy]).run()
        granted, simulator = by_kernels(policy, case.topology, case.workload)
        assert granted == by_reference(run, gpus), seed
        assert simulator.jobs()["finish_s"].tolist() == [run.end_s[job.job_id] for job in case.jobs], seed


@pytest.mark.parametrize("policy", WORDS)
def test_gangs_of_any_size(policy, fractions):
    """Times agree to rounding: the kernels divide an iteration among the gang before they multiply it again."""
    for seed in range(100, 110):
        case = random_case(seed, powers=False)
        gpus = cluster(case.racks, case.machines)
        run = Artist(case.jobs, gpus, fractions, scan=case.scan, **WORDS[policy]).run()
        granted, simulator = by_kernels(policy, case.topology, case.workload)
        expected = by_reference(run, gpus)
        assert [row[1:] for row in granted] == [row[1:] for row in expected], seed
        assert [row[0] for row in granted] == pytest.approx([row[0] for row in expected], rel=1e-9), seed
        ends_s = [run.end_s[job.job_id] for job in case.jobs]
        assert simulator.jobs()["finish_s"].tolist() == pytest.approx(ends_s, rel=1e-9), seed


def test_other_leases_chunks_and_pauses(fractions):
    for seed in range(200, 200 + some(20)):
        case = random_case(seed)
        gpus = cluster(case.racks, case.machines)
        options = {"lease_s": 600.0, "chunk": 250, "pause_s": 2.5}
        run = Artist(case.jobs, gpus, fractions, scan=case.scan, policy="tiresias", **options).run()
        semantics = "artist-sim:lease_s=600,chunk=250,release_s=2.5"
        granted, _ = by_kernels("tiresias", case.topology, case.workload, semantics)
        assert granted == by_reference(run, gpus), seed


def test_gandiva_with_gangs_of_whole_machines(fractions):
    """What of Gandiva draws nothing at random and moves nothing: its order, its affinity, leases."""
    for seed in range(300, 300 + some(30)):
        case = random_case(seed)
        jobs = [job._replace(gpus=8, iterations=8 * job.iterations) for job in case.jobs]
        case = Case(case.racks, case.machines, case.machine_order, jobs)
        gpus = cluster(case.racks, case.machines)
        run = Artist(jobs, gpus, fractions, scan=case.scan, policy="gandiva", fallback=False).run()
        granted, _ = by_kernels("gandiva", case.topology, case.workload)
        in_order = [(time_s, job, sorted(gang)) for time_s, job, gang in granted]
        assert in_order == by_reference(run, gpus), seed


# the authors' simulator


def peer_log(folder: Path, name: str) -> list[tuple[float, str, list[int]]]:
    """Time, job id and GPUs (indices, 8 a machine, 8 machines a rack) of every grant."""
    with gzip.open(folder / "dally" / "peer" / f"batch_r2_{name}_g1000_fixtrue.csv.grants.gz", "rt") as file:
        rows = [line.strip().split(",") for line in file][1:]
    numbers = [[tuple(map(int, word.split("."))) for word in row[3].split()] for row in rows]
    gpus = [[64 * r + 8 * m + 4 * s + g for r, m, s, g in gang] for gang in numbers]
    return [(float(row[0]), row[1], gang) for row, gang in zip(rows, gpus, strict=True)]


def peer_ends(folder: Path, name: str) -> dict[str, float]:
    """When each job ended, by id."""
    with open(folder / "dally" / "peer" / f"batch_r2_{name}_g1000_fixtrue.csv") as file:
        return {row["job_id"]: float(row["end"]) for row in csv.DictReader(line for line in file if line[0] != "#")}


@pytest.mark.reproduction
@pytest.mark.parametrize("name", LOGS)
def test_kernels_make_the_grants_of_the_authors_simulator(name, shared_traces):
    """All of some 10,000 grants, the same GPUs in the same order at the same instant to the last bit."""
    workload = open_workload(f"{shared_traces}/dally/batch_500.csv", format="artist-sim:scale=gang,caps=batch")
    granted, simulator = by_kernels(LOGS[name], Topology.load("dally:racks=2"), workload)
    ids = workload.job_id
    assert [(time_s, ids[job], gang) for time_s, job, gang in granted] == peer_log(shared_traces, name)
    assert dict(zip(ids, simulator.jobs()["finish_s"].tolist(), strict=True)) == peer_ends(shared_traces, name)


def reference_of_log(folder: Path, name: str, fractions: Fractions, stop_after: float) -> Any:
    """The reference's run of the batch set, up to the instant at which it has made so many grants."""
    workload = open_workload(f"{folder}/dally/batch_500.csv", format="artist-sim:caps=batch")
    columns = (
        workload.job_id,
        workload.arrival_s,
        workload.gpus,
        workload.iteration_s,
        workload.iterations.astype(int),
    )
    rows = zip(*(column.tolist() for column in (*columns, workload.model)), strict=True)
    jobs = [Job(int(job_id), *rest) for job_id, *rest in rows]
    return Artist(jobs, cluster(2, 8), fractions, **WORDS[LOGS[name]]).run(stop_after)


def check_against_log(run: Any, log: list[tuple[float, str, list[int]]]) -> None:
    granted = [(time_s, str(job), gang) for time_s, job, gang in by_reference(run, cluster(2, 8))]
    assert granted == log[: len(granted)]


@pytest.mark.reproduction
@pytest.mark.parametrize("name", LOGS)
def test_reference_begins_as_the_authors_simulator(name, fractions, shared_traces):
    run = reference_of_log(shared_traces, name, fractions, stop_after=1000)
    assert len(run.grants) >= 1000
    check_against_log(run, peer_log(shared_traces, name))


@pytest.mark.slow
@pytest.mark.reproduction
@pytest.mark.parametrize("name", LOGS)
def test_reference_makes_the_grants_of_the_authors_simulator(name, fractions, shared_traces):
    run = reference_of_log(shared_traces, name, fractions, stop_after=math.inf)
    log = peer_log(shared_traces, name)
    assert len(run.grants) == len(log)
    check_against_log(run, log)
    assert {str(job): end_s for job, end_s in run.end_s.items()} == peer_ends(shared_traces, name)


@pytest.mark.parametrize(("chunk_s", "again_s"), [(10.0, 3601.0), (7.0, 3598.0)], ids=["expired", "early"])
def test_reference_by_hand(chunk_s, again_s):
    """Two jobs take turns on one GPU.

    Chunks of 10 s fill a lease of 3,600 s, and the GPU is auctioned a second later; of 7 s, the 515th has no room left,
    and it is auctioned at once.
    """
    jobs = [Job(number, 0.0, 1, chunk_s / 1000, 10_000_000, "BERT") for number in (0, 1)]
    grants = Artist(jobs, cluster(1, 1, 1, 1), lambda job, gang: 1.0, policy="tiresias").run(stop_after=3).grants
    assert [grant.job_id for grant in grants] == [0, 1, 0]
    assert [grant.time_s for grant in grants] == pytest.approx([0.0, again_s, 2 * again_s])


def test_a_job_stopped_started_elsewhere_and_moved_at_one_instant_holds_one_gang():
    """A job of 3 of 8 GPUs, at 5 s to (3, 4, 5) and on to (5, 6, 7): it holds these and no others."""
    simulator = Simulator("flat:machines=1", semantics="artist-sim:lease_s=0,chunk=0")
    simulator.reset(Workload.from_arrays("two", np.array([0.0, 5.0]), np.array([3, 1]), np.array([100.0, 10.0])))
    simulator.apply(Start(0, (0, 1, 2)))
    simulator.advance()
    for decision in (Preempt(0), Start(0, (3, 4, 5)), Migrate(0, (5, 6, 7))):
        simulator.apply(decision)
    assert sorted(simulator.view.gpus_of(0)) == [5, 6, 7]
    assert simulator.view.free_gpus.tolist() == [0, 1, 2, 3, 4]
    simulator.run()
    assert simulator.done and simulator.view.free_gpus.tolist() == list(range(8))


@pytest.mark.parametrize("field", ["slicing=60", "lease=60", "round=30", "packing=on"])
def test_a_simulator_refuses_a_rule_whose_fields_its_semantics_set_aside(field):
    """In one sentence, whether a policy is asked before it plays, as commands do, or a rule is handed over."""
    policy = policies.make(f"gandiva:{field}")
    sentence = f"semantics=artist-sim sets {field.partition('=')[0]} aside"
    with pytest.raises(InputError, match=f"policy gandiva:{field}: {sentence}"):
        policy.rule_under(load_semantics("artist-sim"))
    with pytest.raises(InputError, match=f"the rule order=.*: {sentence}"):
        Simulator("flat:machines=1", semantics="artist-sim", rule=policy.rule)
    simulator = Simulator("flat:machines=1", semantics="artist-sim")
    with pytest.raises(InputError, match=sentence):
        simulator.use(policy.rule)


def test_a_lease_that_was_not_asked_for_is_that_of_the_semantics():
    """Dally's own is 3,600 s; under another it has that of the semantics, and a lease that was asked for is refused."""
    semantics = load_semantics("artist-sim:lease_s=1800")
    Simulator("flat:machines=1", semantics=semantics, rule=policies.make("dally").rule_under(semantics))
    with pytest.raises(InputError, match="sets lease aside"):
        policies.make("dally:lease=3600").rule_under(semantics)
    with pytest.raises(InputError, match="sets lease aside"):
        Simulator("flat:machines=1", semantics=semantics, rule=Rule("fifo", lease=3600.0))
