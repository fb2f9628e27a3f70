"""The agents that ship: they load, say where they come from, and reach what docs/tutorials/training.md says."""

import pytest

pytest.importorskip("torch", reason="needs the extra agents")
pytest.importorskip("sb3_contrib", reason="needs the extra agents")

from clustergym.agents.files.saved import read_description
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.comparing.intervals import paired_ratio
from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.settings.describing import semantics_of
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.policies import make, shipped

TOPOLOGY = "dally:racks=2,machines=4"
SETTINGS = {
    "congested": ("penalty:table=chronus", "poisson:jobs=128,backlog=48,load=1.3"),
    "dally-like": (
        "allreduce:calibration=artist,duration=compute",
        "dally-like:jobs=128,arrivals=poisson,jobs_per_day=40",
    ),
    "low load": ("penalty:table=chronus", "poisson:jobs=128,load=0.84"),
}


def test_its_results_say_what_a_stop_costs_it():
    setting = Setting.of("clustergym/Delay-v0", TOPOLOGY, *reversed(SETTINGS["congested"]))
    assert semantics_of(make("zoo:Delay-preemptive"), setting) == {
        "preemption_cost": (30.0,), "round": 0.0, "lease": 0.0,
    }  # fmt: skip


def ratio_to_greedy(name: str, seeds: range):
    network, workload = SETTINGS[name]
    setting = Setting.of("clustergym/Delay-v0", TOPOLOGY, workload, network)
    means = {
        word: {seed: play(setting, word, seed).metrics["jct_mean"] for seed in seeds}
        for word in ("zoo:Delay", "greedy")
    }
    return paired_ratio(list(means["zoo:Delay"].values()), list(means["greedy"].values()))


@pytest.mark.parametrize(
    ("environment", "further"),
    [("Delay", {"dally-like", "poisson-256"}), ("Delay-preemptive", set()), ("Sharing", {"bsbf-physical"})],
)
def test_it_is_listed_and_says_how_it_was_trained(environment, further):
    assert f"zoo:{environment}" in [agent["name"] for agent in shipped()]
    files = make(f"zoo:{environment}").files
    description = read_description(files[0].parent)
    assert description.command.startswith(f"clustergym train {environment} ")
    assert 0.9 * description.config["timesteps"] <= description.steps
    assert set(description.evaluation["validation"]["ratios"]) == {"congested", "low-load", *further}


def ratio(word: str, reference: str, setting: Setting, seeds: range) -> float:
    """Of mean JCTs on the same workloads."""
    means = {one: [play(setting, one, seed).metrics["jct_mean"] for seed in seeds] for one in (word, reference)}
    return paired_ratio(means[word], means[reference]).mean


def test_stopping_jobs_is_better_than_waiting():
    """0.917 of `greedy` over 50 seeds, 1.003 of the greedy that makes room."""
    network, workload = SETTINGS["congested"]
    setting = Setting.of("clustergym/Delay-v0", TOPOLOGY, workload, network)
    assert ratio("zoo:Delay-preemptive", "greedy", setting, range(8)) < 0.95
    assert ratio("zoo:Delay-preemptive", "greedy:preempt=on,preemption_cost=30", setting, range(8)) < 1.02


def test_the_same_weights_are_at_home_on_a_larger_cluster():
    """0.986 of `greedy` on 4 racks of 64 GPUs over 5 seeds."""
    workload = "poisson:jobs=512,backlog=192,load=1.3,cluster_gpus=256"
    setting = Setting.of("clustergym/Delay-v0", "dally:racks=4", workload, "penalty:table=chronus")
    assert ratio("zoo:Delay", "greedy", setting, range(2)) < 1.01


def test_sharing_well_is_better_than_sjf_bsbf():
    """0.54 over 20 seeds."""
    setting = Setting.of(
        "clustergym/Sharing-v0",
        "bsbf-physical",
        "philly-sample:jobs=64,hours=2",
        "allreduce:calibration=measured,gpu=2080ti",
        jobs_per_gpu=2,
        memory_gb=11.0,
    )
    means = {
        word: [play(setting, word, seed).metrics["jct_mean"] for seed in range(5)]
        for word in ("zoo:Sharing", "sjf-bsbf")
    }
    assert paired_ratio(means["zoo:Sharing"], means["sjf-bsbf"]).mean < 0.9


IMITATED = {
    "TimeShift": "lookahead:workers=fixed,equal=locality",
    "Geo": "bring:slow=none",
    "DataPlacement": "static",
}


@pytest.mark.parametrize("environment", IMITATED)
def test_one_that_began_as_a_clone_says_how_it_was_trained(environment):
    assert f"zoo:{environment}" in [agent["name"] for agent in shipped()]
    description = read_description(make(f"zoo:{environment}").files[0].parent)
    assert description.command.startswith(f"clustergym train {environment} ")
    assert description.config["imitate"] == IMITATED[environment]


def test_choosing_regions_well_is_better_than_mast():
    """About half over 20 seeds, shorter on each of them."""
    entry = ENVIRONMENTS["clustergym/Geo-v0"]
    defaults = [entry.defaults[key] for key in ("topology", "workload", "network")]
    setting = Setting.of("clustergym/Geo-v0", *defaults, **entry.options)
    means = {word: [play(setting, word, seed).metrics["jct_mean"] for seed in range(5)] for word in ("zoo:Geo", "mast")}
    assert paired_ratio(means["zoo:Geo"], means["mast"]).mean < 0.8


def test_placing_well_is_better_than_chance_where_cassini_shifts():
    """0.63 over 20 seeds."""
    defaults = ENVIRONMENTS["clustergym/TimeShift-v0"].defaults
    setting = Setting.of("clustergym/TimeShift-v0", *(defaults[key] for key in ("topology", "workload", "network")))
    means = {
        word: [play(setting, word, seed).metrics["jct_mean"] for seed in range(3)]
        for word in ("zoo:TimeShift", "random")
    }
    assert paired_ratio(means["zoo:TimeShift"], means["random"]).mean < 0.8


def test_placing_tables_well_is_better_than_the_best_baseline():
    """0.82 over 20 seeds; it imitated `static`."""
    entry = ENVIRONMENTS["clustergym/DataPlacement-v0"]
    defaults = [entry.defaults[key] for key in ("topology", "workload", "network")]
    setting = Setting.of("clustergym/DataPlacement-v0", *defaults, **entry.options)
    means = {
        word: [play(setting, word, seed).metrics["jct_mean"] for seed in range(5)]
        for word in ("zoo:DataPlacement", "static")
    }
    assert paired_ratio(means["zoo:DataPlacement"], means["static"]).mean < 0.95


def test_it_is_better_than_greedy_where_placement_matters_most():
    """0.80 over 50 seeds; eight seeds are enough to tell it from 1."""
    assert ratio_to_greedy("dally-like", range(8)).mean < 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("name", "limit"), [("congested", 1.0), ("dally-like", 0.95), ("low load", 1.02)])
def test_it_reaches_what_the_docs_say_on_fifty_workloads_that_it_never_saw(name, limit):
    ratio = ratio_to_greedy(name, range(50))
    assert ratio.mean < limit
    if limit <= 1.0:
        assert ratio.high < 1.0


def test_grouping_well_is_better_than_machines_of_ones_own():
    """0.63 of `isolated` and 0.83 of `harmony` over 20 seeds."""
    setting = Setting.of("clustergym/Grouping-v0")
    assert ratio("zoo:Grouping", "isolated", setting, range(4)) < 0.8
