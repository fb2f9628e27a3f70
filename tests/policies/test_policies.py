"""Policies: by name, one decision at a time, and written by a user; all of them against the compiled run."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym import policies
from clustergym.simulator.base.decisions import Advance, Hold, Migrate, Preempt, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.rules.semantics import load_semantics
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support.random_workloads import random_case

DALLY = "dally:racks=2,machines=3"
MODELS = ("VGG11", "ResNet50", "BERT-large", "")
ORDERED = ("random", "fifo", "sjf", "edf", "srtf", "srsf", "las", "tiresias")
NETWORK_SENSITIVE = (
    "greedy",
    "greedy:margin=0,placer=first,preemption_cost=20/30",
    "greedy:margin=1.2,round=120",
    "greedy:preempt=on,preemption_cost=30",
    "greedy:preempt=on,margin=0,placer=first,preemption_cost=20/30,round=120,theta=0.8,exponent=1",
    "dally",
    "dally:lease=100,history=3,initial=0.5/2,placer=first,preemption_cost=20/30",
    "dally:lease=100,floors=1/3,history=6,deviation=population",
    "dally:round=300",
    "dally-manual:timers=200/900,lease=300,placer=first",
    "dally-nowait:lease=200",
    "dally-consolidated:lease=200",
    "gandiva",
    "gandiva:fallback=last,lease=300,preemption_cost=15/25",
    "gandiva:slicing=120,preemption_cost=15/25",
)
BACKFILLING = (
    "fifo:head=reserve",
    "fifo:head=conservative,placer=consolidated",
    "sjf:head=reserve,placer=consolidated,preemption_cost=40/60",
    "sjf:head=conservative,placer=tier,round=300",
)
AT_AUCTIONS = (  # where leases and rounds are those of the semantics
    *("greedy", "greedy:margin=0,placer=first,preemption_cost=20/30", "greedy:margin=1.2"),
    *("dally", "dally:history=3,initial=0.5/2,placer=first,preemption_cost=20/30"),
    *("dally:floors=1/3,history=6,deviation=population", "dally-manual:timers=200/900,placer=first"),
    *("dally-nowait", "dally-consolidated", "gandiva", "gandiva:fallback=last,preemption_cost=15/25"),
)
VARIANTS = (
    "head=skip",
    "head=strict",
    "placer=consolidated",
    "placer=tier,preemption_cost=30",
    "placer=random",
    "placer=skew,preemption_cost=40/60,head=strict",
    "round=300",
    "lease=600,placer=count",
    "lease=300,round=120,placer=tier,preemption_cost=40/60",
)


def crowded(seed: int, jobs: int = 60, gpus: int = 48) -> Workload:
    """Jobs of 1 to `gpus` GPUs with models of either skew, at a load of 1.2, with ties; iterations of 1 s."""
    rng = np.random.default_rng(seed)
    gang = np.minimum(2 ** rng.integers(0, 7, jobs), gpus)
    duration_s = np.ceil(rng.lognormal(6, 1.2, jobs))
    arrival_s = np.floor(np.sort(rng.uniform(0, (gang * duration_s).sum() / gpus / 1.2, jobs)))
    deadline_s = np.where(gang > 1, arrival_s + np.floor(gang / 2) * duration_s, np.inf)  # jobs of one GPU have none
    columns = {"iterations": duration_s, "model": rng.choice(MODELS, jobs), "deadline_s": deadline_s}
    return Workload.from_arrays(f"crowded {seed}", arrival_s, gang, duration_s, **columns)


def outcome(simulator: Simulator, metrics: dict[str, float]) -> str:
    """Finish times, first starts and all metrics, exactly (as text: nan equals itself)."""
    table = simulator.jobs()
    return repr([metrics, table["finish_s"].tolist(), table["first_start_s"].tolist(), table["tier"].tolist()])


def compiled(rule: Rule, workload: Workload, seed: int, topology: str = DALLY, **options) -> str:
    simulator = Simulator(topology, "penalty:default=1/1.2/1.5", rule=rule, **options)
    simulator.reset(workload, seed)
    return outcome(simulator, simulator.run())


def played(policy, workload: Workload, seed: int, topology: str = DALLY, **options) -> str:
    simulator = Simulator(topology, "penalty:default=1/1.2/1.5", **options)
    simulator.reset(workload, seed)
    return outcome(simulator, simulator.run(policy))


@pytest.mark.parametrize(
    "word", [*(f"{name}:{v}" for name in ORDERED for v in VARIANTS), *NETWORK_SENSITIVE, *BACKFILLING]
)
def test_one_decision_at_a_time_is_the_compiled_run(word):
    policy = policies.make(word)
    workload = crowded(7)
    assert played(policy, workload, 3) == compiled(policy.rule, workload, 3)


@pytest.mark.parametrize("word", [*ORDERED, *AT_AUCTIONS])
def test_one_decision_at_a_time_is_the_compiled_run_at_auctions(word):
    """Semantics of ArtISt-sim: leases of 400 s, chunks of 20 iterations per GPU."""
    policy = policies.make(word)
    semantics = load_semantics("artist-sim:lease_s=400,chunk=20")
    workload = crowded(9)
    whole = compiled(policy.rule_under(semantics), workload, 3, semantics=semantics)
    assert played(policy, workload, 3, semantics=semantics) == whole


@pytest.mark.parametrize(
    "word", [*(f"{name}:placer=tier,preemption_cost=30" for name in ORDERED), *NETWORK_SENSITIVE, *BACKFILLING]
)
def test_one_decision_at_a_time_is_the_compiled_run_with_failures(word):
    """Machines fail every 5,000 s or so, for 1,000 s; a checkpoint every 300 s."""
    policy = policies.make(word)
    failures = Failures(5000.0, 1000.0, 300.0)
    workload = crowded(8)
    whole = compiled(policy.rule, workload, 5, failures=failures)
    assert played(policy, workload, 5, failures=failures) == whole
    assert "'failures': 0.0" not in whole


@pytest.mark.parametrize("seed", range(40))
def test_one_decision_at_a_time_is_the_compiled_run_on_random_workloads(seed):
    """Any order, head, placer, costs, thresholds, quantum and rounds."""
    case = random_case(seed)
    policy = policies.RulePolicy("any", case.rule)
    assert played(policy, case.workload, 0, case.topology) == compiled(case.rule, case.workload, 0, case.topology)


@pytest.mark.parametrize("thresholds", ["", "3250/7200", "500"])
@pytest.mark.parametrize("quantum", [0, 1, 60])
def test_las_with_its_own_parameters_too(thresholds, quantum):
    policy = policies.make(f"las:thresholds={thresholds},quantum={quantum},preemption_cost=30")
    workload = crowded(9)
    assert played(policy, workload, 3) == compiled(policy.rule, workload, 3)


class FirstComeFirstServed(policies.Policy):
    """As a user writes it: see docs/tutorials/write-a-policy.md."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict

    def decide(self, view):
        for job in view.queue.tolist():
            gpus = view.find_gpus(job, "count")
            if gpus is not None:
                return Start(job, gpus)
            if self.strict:
                break
        return Advance()


@pytest.mark.parametrize("head", ["strict", "skip"])
def test_fifo_written_in_python_is_the_compiled_fifo(head):
    workload = crowded(10)
    assert played(FirstComeFirstServed(head == "strict"), workload, 0) == compiled(Rule("fifo", head), workload, 0)


class ShortestRemainingFirst:
    """SRTF by counting GPUs: the jobs that fit, in order of what is left, run; the others are stopped.

    Placement is by index, so a job that goes on keeps its GPUs. It needs no base class.
    """

    def decide(self, view):
        jobs = sorted([*view.queue.tolist(), *view.running.tolist()], key=lambda job: (view.remaining_s(job), job))
        room, wanted = view.topology.num_gpus, []
        for job in jobs:
            if view.gpus(job) <= room:
                room -= view.gpus(job)
                wanted.append(job)
        running = set(view.running.tolist())
        for job in running - set(wanted):
            return Preempt(job)
        for job in wanted:
            if job not in running:
                return Start(job, view.find_gpus(job, "count"))
        return Advance()


def test_srtf_written_in_python_is_the_compiled_srtf():
    """Without a network, so that what is left does not depend on the placement; whole seconds, so no rounding."""
    workload = crowded(11)
    results = []
    for policy in (ShortestRemainingFirst(), None):
        simulator = Simulator("flat:machines=48,gpus_per_machine=1", rule=Rule("srtf", preemption_cost=(30.0,)))
        simulator.reset(workload)
        metrics = simulator.run(policy)
        results.append((simulator.jobs()["finish_s"].tolist(), metrics["preemptions"], metrics["jct_mean"]))
    assert results[0] == results[1]
    assert results[0][1] > 20


class Anything:
    """Random legal decisions of every kind, from a seed; it always starts something where it must."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def decide(self, view):
        kind = self.rng.integers(6)
        queue, running = view.queue.tolist(), view.running.tolist()
        job = int(self.rng.choice(queue)) if queue else -1
        if queue and (kind < 3 or not running):
            gpus = view.find_gpus(job, str(self.rng.choice(["count", "tier", "random"])))
            if gpus:
                return Start(job, gpus)
        if kind == 3 and running and self.rng.random() < 0.3:
            return Preempt(int(self.rng.choice(running)))
        if kind == 4 and running and self.rng.random() < 0.3:
            moved = int(self.rng.choice(running))
            pool = [*view.free_gpus.tolist(), *view.gpus_of(moved)]
            gpus = self.rng.choice(pool, view.gpus(moved), replace=False).tolist()
            if set(gpus) != set(view.gpus_of(moved)):
                return Migrate(moved, gpus)
        if kind == 5 and queue and running and len(queue) > 1:
            return Hold(job, None if self.rng.random() < 0.5 else view.now_s + float(self.rng.uniform(1, 900)))
        return Advance() if running else self.decide(view) if view.queue.size else Advance()


@pytest.mark.parametrize("seed", range(6))
def test_random_decisions_of_every_kind_finish_all_jobs_and_gpu_seconds_add_up(seed):
    """The work done is exactly the iterations of all jobs, however often they were stopped and moved."""
    workload = crowded(20 + seed, jobs=40)
    simulator = Simulator(DALLY, "penalty:default=1/1.2/1.5", rule=Rule("fifo", preemption_cost=(20.0, 50.0)))
    simulator.reset(workload, seed)
    metrics = simulator.run(Anything(seed))
    assert metrics["jobs_finished"] == 40
    assert min(metrics["preemptions"], metrics["migrations"]) > 0
    s, parts = simulator.state, gpu_seconds(simulator.state)
    work = float((workload.gpus * s.iterations[:40] * s.compute_iteration_s[:40]).sum())
    assert parts["compute"] == pytest.approx(work, rel=1e-9)
    assert parts["held"] == pytest.approx(parts["compute"] + parts["comm"] + parts["restore"] + parts["lost"], rel=1e-9)


def test_a_plan_is_made_anew_when_something_else_was_decided():
    """4 GPUs; sjf would start 1 (1 s), 2 (2 s), but not 0. Asked once; 2 is started instead: now it is 1's turn."""
    simulator = Simulator("flat:machines=1,gpus_per_machine=4", rule=Rule("sjf"))
    simulator.reset(Workload.from_arrays("three", [0.0] * 3, [4, 1, 1], [9.0, 1.0, 2.0]))
    policy = policies.make("sjf")
    assert simulator.ask(policy) == Start(1, [0])
    simulator.apply(Start(2, [3]))
    assert simulator.ask(policy) == Start(1, [0])


def test_a_plan_is_made_anew_after_a_snapshot_was_restored():
    """As above, but the state goes back to the snapshot after the first start."""
    simulator = Simulator("flat:machines=1,gpus_per_machine=4", rule=Rule("sjf"))
    simulator.reset(Workload.from_arrays("three", [0.0] * 3, [4, 1, 1], [9.0, 1.0, 2.0]))
    kept = simulator.snapshot()
    policy = policies.make("sjf")
    simulator.apply(simulator.ask(policy))
    simulator.restore(kept)
    simulator.apply(Start(2, [0]))
    assert simulator.ask(policy) == Start(1, [1])


def test_asking_twice_gives_the_same_decision_and_changes_nothing():
    on_tiers, on_links = Simulator(DALLY), Simulator("cassini-testbed", "contention:workers=elastic")
    on_tiers.reset(crowded(12), 1)
    on_links.reset(open_workload("cassini-poisson:jobs=20"), 1)
    elsewhere = {*policies.list("Geo"), *policies.list("DataPlacement"), *policies.list("Grouping")}
    for name in [name for name in policies.list() if name not in elsewhere - {"random", "greedy"}]:
        policy = policies.make(name)
        simulator = on_links if policies.environments_of(name) == ("clustergym/TimeShift-v0",) else on_tiers
        first = simulator.ask(policy)
        before = simulator.snapshot().tobytes()
        assert simulator.ask(policy) == first
        assert simulator.snapshot().tobytes() == before


@pytest.mark.parametrize(("before", "after"), [("fifo", "srtf"), ("las", "sjf"), ("srtf", "tiresias")])
def test_a_policy_can_take_over_in_the_middle(before, after):
    """At half time; every job still finishes, and the work adds up."""
    workload = crowded(13)
    simulator = Simulator(DALLY)
    simulator.reset(workload, 1)
    first, second = policies.make(before), policies.make(after)
    while not simulator.ended:
        policy = first if simulator.state.done < 30 else second
        decision = simulator.ask(policy)
        simulator.apply(decision)
    assert simulator.rule == second.rule
    compute = gpu_seconds(simulator.state)["compute"]
    assert compute == pytest.approx(float((workload.gpus * workload.duration_s).sum()), rel=1e-9)


def test_tiresias_consolidates_skewed_models_only():
    """2 machines of 4, each with 3 GPUs taken until 10. A gang of 2 of ResNet50 spills at 1, one of VGG11 waits."""
    for model, start_s in (("ResNet50", 1.0), ("VGG11", 10.0)):
        simulator = Simulator("flat:machines=2,gpus_per_machine=4", rule=policies.make("tiresias").rule)
        simulator.reset(Workload.from_arrays("skew", [0, 0, 1], [3, 3, 2], [10, 10, 5], model=["VGG11"] * 2 + [model]))
        simulator.run()
        assert simulator.jobs()["first_start_s"].tolist() == [0.0, 0.0, start_s]


def test_shorter_first_beats_first_come_on_a_real_kind_of_workload():
    """Mean JCT of 300 jobs at a load of 1.1: random and fifo above sjf; srtf is not worse than sjf by much."""
    workload = open_workload("poisson:jobs=300,load=1.1", seed=1, cluster_gpus=48)
    jct = {}
    for name in ("random", "fifo", "sjf", "srtf"):
        simulator = Simulator(DALLY, rule=policies.make(name, placer="count").rule)
        simulator.reset(workload, 1)
        jct[name] = simulator.run()["jct_mean"]
    assert jct["sjf"] < min(jct["random"], jct["fifo"])
    assert jct["srtf"] < 1.1 * jct["sjf"]


def test_every_policy_is_described():
    described = {entry["name"]: entry for entry in policies.describe()}
    assert list(described) == policies.list()
    assert described["las"]["parameters"]["thresholds"] == (3250.0, 7200.0)
    assert all(entry["summary"] and "\n" not in entry["summary"] for entry in described.values())


def test_parameters_come_in_the_name_or_as_keywords():
    by_name, by_keyword = policies.make("sjf:head=strict,round=60"), policies.make("sjf", head="strict", round=60.0)
    assert by_name.rule == by_keyword.rule == Rule("sjf", "strict", round=60.0)
    assert policies.make("las:thresholds=1/2,preemption_cost=40/60").rule.preemption_cost == (40.0, 60.0)
    assert by_name.name == "sjf:head=strict,round=60"


BAD = {
    "unknown policy": ("sfj", "sjf"),
    "empty name": ("", "empty"),
    "unknown parameter": ("sjf:haed=skip", "head"),
    "unknown head": ("sjf:head=stict", "strict"),
    "unknown placer": ("fifo:placer=best", "count"),
    "not a number": ("fifo:round=often", "a number"),
    "nan": ("fifo:round=nan", "number"),
    "negative": ("fifo:lease=-1", "lease"),
    "infinite": ("fifo:lease=inf", "finite"),
    "three costs": ("srtf:preemption_cost=1/2/3", "SMALL/LARGE"),
    "negative cost": ("srtf:preemption_cost=-30", "preemption_cost"),
    "descending thresholds": ("las:thresholds=7200/3250", "ascending"),
    "equal thresholds": ("las:thresholds=5/5", "ascending"),
    "too many thresholds": ("las:thresholds=" + "/".join(map(str, range(1, 17))), "at most 15"),
    "no value": ("sjf:head", "key=value"),
    "a parameter twice": ("sjf:head=skip,head=skip", "twice"),
    "a parameter of another policy": ("sjf:thresholds=5", "thresholds"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_in_a_policys_name_is_one_sentence(name):
    text, hint = BAD[name]
    with pytest.raises(InputError) as caught:
        policies.make(text)
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_policy_without_decide_says_so():
    simulator = Simulator(DALLY)
    simulator.reset(crowded(1))
    with pytest.raises(InputError, match="define decide"):
        simulator.run(policies.Policy())


def test_a_policy_that_decides_the_impossible_stops_with_the_reason():
    class Wrong:
        def decide(self, view):
            return Start(int(view.queue[0]), [0] * 99)

    simulator = Simulator(DALLY)
    simulator.reset(crowded(1))
    with pytest.raises(InvalidDecision, match="99 GPUs given"):
        simulator.run(Wrong())
