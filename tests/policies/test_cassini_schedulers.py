"""CASSINI on top of schedulers, in the simulator: candidates of all of them, the choice among them, the shifts."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.policies import make
from clustergym.policies.cassini.cassini_schedulers import RuleSource
from clustergym.policies.cassini.compatibility import bucket_s
from clustergym.policies.dally import dally
from clustergym.policies.equivalent_placements import locality
from clustergym.policies.planning import PlacementPolicy
from clustergym.policies.pollux.pollux_fixed_size import AskedSearch
from clustergym.policies.pollux.pollux_search import Problem
from clustergym.simulator.base.decisions import Advance, Migrate, Shift, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.routes import sharing
from clustergym.simulator.configuration.network_choice import load_network, network_for
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload
from clustergym.simulator.workloads import open_workload

TIME_SHIFT = ["random", "pollux", "themis", "themis+cassini", "pollux+cassini", "dally+cassini", "sjf-bsbf+cassini"]
FIXED = ["themis:workers=fixed,equal=locality", "themis+cassini:workers=fixed", "least-shared:workers=fixed"]
AUGMENTED = [word for word in TIME_SHIFT if "+" in word]


def simulator_on(seed: int, jobs: int = 16, policy=None) -> Simulator:
    """A run on contention, as the policy needs it."""
    simulator = Simulator("cassini-testbed", network_for(policy, load_network("contention")))
    simulator.reset(open_workload(f"cassini-poisson:jobs={jobs},load=1.0", seed=seed), seed)
    return simulator


def setting(workload: str, topology: str = "cassini-testbed", network: str = "contention") -> Setting:
    return Setting.of("clustergym/TimeShift-v0", topology, workload, network)


def metrics(word: str, seed: int, workload: str = "cassini-poisson:jobs=16,load=1.0", **more) -> dict[str, float]:
    return play(setting(workload, **more), word, seed).metrics


def two_vggs() -> Workload:
    """Two VGG16 of three workers, alike: 181 ms of computing, 131 ms of sending."""
    from clustergym.simulator.profiles.cassini_models import phases_of

    seconds = phases_of("VGG16", 3, 1800).iteration_s
    more = {"iterations": np.full(2, 100.0), "model": ["VGG16"] * 2, "batch_size": [5400, 5400]}
    return Workload.from_arrays("two", np.zeros(2), [3, 3], np.full(2, 100 * seconds), **more)


def iteration_s(word: str) -> float:
    """Mean over two such jobs on three racks of two servers: both cross the one uplink of the rack in the middle."""
    simulator = Simulator("leaf-spine:leaves=3,spines=1,machines=2", "contention")
    simulator.reset(two_vggs())
    return simulator.run(make(f"{word}:workers=fixed"))["iteration_time_mean"]


def test_two_jobs_on_one_link_are_interleaved():
    """In lockstep 45 Gbps each want 90 of 50: sending takes 1.8 times as long. Interleaved, both run as if alone.

    The second begins up to an iteration later, which is no part of any iteration's duration but the first's.
    """
    from clustergym.simulator.profiles.cassini_models import phases_of

    alone = phases_of("VGG16", 3, 1800)
    assert iteration_s("themis") == pytest.approx(alone.iteration_s + 0.8 * alone.up_s, rel=1e-3)
    assert iteration_s("themis+cassini") == pytest.approx(alone.iteration_s, rel=0.01)


def test_scores_are_of_what_links_carry_now(tmp_path):
    """Of cables at half, 25 Gbps, each job exceeds 20 while it sends at 45, even where the two never meet."""
    from clustergym.simulator.profiles.cassini_models import phases_of

    rows = [f"0,{leaf},spine0,0.5\n0,spine0,{leaf},0.5\n" for leaf in ("leaf0", "leaf1", "leaf2")]
    (tmp_path / "links.csv").write_text("time_s,from,to,scale\n" + "".join(rows))
    alone, told = phases_of("VGG16", 3, 1800), []
    for words in "", f":degraded={tmp_path / 'links.csv'}":
        policy = make("themis+cassini:workers=fixed,shifts=always")
        simulator = Simulator("leaf-spine:leaves=3,spines=1,machines=2", f"contention{words}")
        simulator.reset(two_vggs())
        while not isinstance(decision := simulator.ask(policy), Shift):
            simulator.apply(decision)
        told.append(policy.why(simulator.view, decision))
    assert "compatibility 1 " in told[0]
    assert f"compatibility {1 - 2 * alone.up_s / alone.iteration_s * 20 / 25:.2g}" in told[1]


@pytest.mark.parametrize("word", [*AUGMENTED, "themis+cassini:shifts=always"])
def test_shifts_are_whole_buckets_and_only_for_jobs_in_the_network(word):
    policy = make(word)
    simulator = simulator_on(1, policy=policy)
    shifts = 0
    while not simulator.ended:
        while not isinstance(decision := simulator.ask(policy), Advance):
            if isinstance(decision, Shift) and decision.seconds is not None:
                period_s = simulator.view.period_s(decision.job)
                assert any(decision.seconds == bucket_s(bucket, period_s) for bucket in range(72))
                shifts += 1
            simulator.apply(decision)
        for job in simulator.view.running.tolist():
            assert simulator.view.shift_period_s(job) in (None, simulator.view.period_s(job))
        simulator.advance()
    assert simulator.done and shifts > 0


@pytest.mark.parametrize("word", [*TIME_SHIFT, "least-shared", "ideal", "ideal:workers=fixed", *FIXED])
def test_every_job_ends_and_gangs_are_whole(word):
    policy = make(word)
    simulator = simulator_on(2, policy=policy)
    while not simulator.ended:
        while not isinstance(decision := simulator.ask(policy), Advance):
            if isinstance(decision, Start | Migrate):
                is_asked = len(set(decision.gpus)) == simulator.workload.gpus[decision.job]
                assert is_asked or (policy.tunes_workers and simulator.view.may_resize(decision.job))
            simulator.apply(decision)
        simulator.advance()
    assert simulator.done


@pytest.mark.parametrize("word", AUGMENTED)
def test_the_same_seed_gives_the_same_run(word):
    assert repr(metrics(word, 3)) == repr(metrics(word, 3))


def test_ideal_is_a_bound():
    """No job is faster than without company, and nothing is congested then.

    Where the number of workers is tuned, iterations are of other numbers of them, but the jobs are through earlier.
    """
    for seed in range(3):
        ideal, themis = metrics("ideal:workers=fixed", seed), metrics("themis:workers=fixed", seed)
        assert ideal["congestion_bytes"] == 0.0 < themis["congestion_bytes"]
        assert ideal["iteration_time_mean"] < themis["iteration_time_mean"]
        ideal, themis = metrics("ideal", seed), metrics("themis", seed)
        assert ideal["congestion_bytes"] == 0.0 < themis["congestion_bytes"]
        assert ideal["jct_mean"] < themis["jct_mean"]


def test_ideal_needs_links():
    with pytest.raises(InputError, match="policy ideal: network 'none', expected contention"):
        metrics("ideal", 0, network="none")


@pytest.mark.parametrize("word", ["themis+cassini", "least-shared"])
def test_policies_that_look_at_links_need_them(word):
    with pytest.raises(InputError, match=r"network 'none', expected contention, .* or workers=fixed"):
        metrics(word, 0, network="none")
    with pytest.raises(InputError, match="network 'none' knows no links"):
        metrics(f"{word}:workers=fixed", 0, network="none")


def test_least_shared_takes_the_candidate_with_the_fewest_shared_links():
    policy = make("least-shared:workers=fixed,equal=locality")
    simulator = simulator_on(4)
    chosen = 0
    while not simulator.ended:
        view = simulator.view
        plans = policy.candidates(view, 10)
        links = [len(sharing({job: view.links_of(job, gpus) for job, gpus in plan.gangs.items()})) for plan in plans]
        assert policy.choose(view).placement == plans[links.index(min(links))].placement
        chosen += links.index(min(links)) > 0
        while not isinstance(decision := simulator.ask(policy), Advance):
            simulator.apply(decision)
        simulator.advance()
    assert chosen > 0


class AsPlanned(PlacementPolicy):
    """A compiled rule by way of its first candidate."""

    def __init__(self, rule):
        super().__init__("as planned", rule)

    def candidates(self, view, n):
        return RuleSource(self.clock).candidates(view, n)


@pytest.mark.parametrize(
    "word", ["dally", "dally-manual", "gandiva:preemption_cost=30", "srtf:preemption_cost=30", "fifo"]
)
@pytest.mark.parametrize("seed", range(3))
def test_the_first_candidate_of_a_rule_is_what_it_does(word, seed):
    """Played plan by plan, a rule gives the run that it gives compiled.

    A job that it stops and starts elsewhere at the same instant has moved, in a plan.
    """
    rule = make(word).rule
    workload = open_workload("poisson:jobs=60,load=1.3,cluster_gpus=128", seed=seed)
    runs = []
    for policy in (None, AsPlanned(rule)):
        simulator = Simulator("dally:racks=2", "penalty:default=1/1.2/1.5", rule=rule)
        simulator.reset(workload, seed)
        found = simulator.run(policy)
        moved = found.pop("preemptions") + found.pop("migrations")
        runs.append((moved, found, simulator.jobs()["finish_s"].tolist()))
    assert runs[0][::2] == runs[1][::2]
    assert runs[0][1] == pytest.approx(runs[1][1], rel=1e-9, nan_ok=True)


def test_candidates_of_a_rule_move_no_job_that_goes_on():
    simulator, source = simulator_on(5), RuleSource(dally().rule)
    simulator.use(source.rule)
    policy, several = AsPlanned(source.rule), 0
    while not simulator.ended:
        view = simulator.view
        plans = source.candidates(view, 10)
        several += len(plans) > 1
        for plan in plans[1:]:
            for job, gpus in plans[0].gangs.items():
                assert locality(view.topology, plan.gangs[job]) == locality(view.topology, gpus)
                if list(gpus) == view.gpus_of(job):
                    assert plan.gangs[job] == gpus
        while not isinstance(decision := simulator.ask(policy), Advance):
            simulator.apply(decision)
        simulator.advance()
    assert several > 3


def problem(asked: list[int], machines: int = 8, gpus: int = 1) -> Problem:
    jobs, most = len(asked), np.array(asked)
    speedups = np.zeros((jobs, 2, max(asked) + 1))
    speedups[np.arange(jobs), 0, most] = 1.0
    speedups[np.arange(jobs), 1, most] = 0.9
    held, room = np.zeros((jobs, machines), np.int8), np.full(machines, gpus, np.int8)
    return Problem(held, room, most, speedups, np.ones(jobs))


@pytest.mark.parametrize("seed", range(5))
def test_pollux_with_sizes_as_asked_gives_all_or_nothing(seed):
    """8 GPUs; 3 + 3 + 2 fit, and all three run: no speed-up is 0."""
    one = problem([3, 3, 2])
    for found in AskedSearch(np.random.default_rng(seed)).best_few(one, [0, 1, 2], 10):
        assert found.sum(axis=1).tolist() == [3, 3, 2]
        assert (found.sum(axis=0) <= 1).all()
    for found in AskedSearch(np.random.default_rng(seed)).best_few(problem([5, 4, 4]), [0, 1, 2], 10):
        assert sorted(found.sum(axis=1).tolist()) == [0, 4, 4]


def test_pollux_keeps_small_gangs_on_a_machine_and_large_ones_apart():
    """Servers of two GPUs: a gang of two is faster on one; no two gangs that span servers meet on any."""
    for found in AskedSearch(np.random.default_rng(1)).best_few(problem([2, 2, 3], 4, 2), [0, 1, 2], 5):
        assert found.sum(axis=1).tolist() == [2, 2, 3]
        assert found.max(axis=1).tolist()[:2] == [2, 2]
    for found in AskedSearch(np.random.default_rng(1)).best_few(problem([3, 3], 3, 2), [0, 1], 5):
        assert (found > 0).sum(axis=1).max() == 2 and sorted(found.sum(axis=1).tolist()) == [0, 3]


def test_candidates_of_pollux_are_as_good_and_distinct():
    simulator, policy = simulator_on(6), make("pollux")
    most = 0
    while not simulator.ended:
        view = simulator.view
        plans = policy.candidates(view, 10)
        most = max(most, len(plans))
        assert len({plan.placement for plan in plans}) == len(plans)
        assert len({frozenset(plan.gangs) for plan in plans}) >= 1
        assert [plan.gangs for plan in make("pollux").candidates(view, 10)] == [plan.gangs for plan in plans]
        while not isinstance(decision := simulator.ask(policy), Advance):
            simulator.apply(decision)
        simulator.advance()
    assert most > 3


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("themis+cassini:candidates=0", "candidates = 0: expected a whole number of at least 1"),
        ("themis+cassini:ranking=best", "value of policy themis\\+cassini: ranking"),
        ("pollux+cassini:shifts=never", "shifts"),
        ("dally+cassini:degrees=7", "degrees = 7.0, expected a divisor of 360"),
        ("themis+casini", "did you mean 'themis\\+cassini'"),
    ],
)
def test_bad_parameters_are_one_sentence(word, said):
    with pytest.raises(InputError, match=said):
        make(word)
