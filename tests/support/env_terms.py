"""What the contract of environments (tests/envs/test_env_contract.py) has to know of each; a new one joins by id."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np

from clustergym import policies
from clustergym.simulator.elastic.applications import fitted_applications
from clustergym.simulator.elastic.elastic import TrainingRates
from clustergym.simulator.engine.simulator import Simulator
from clustergym.tests.support import geo_small
from clustergym.tests.support.paths import ROOT

Options = dict[str, Any]
UNIT_SPEEDS = str(ROOT / "tests" / "data" / "unit_speeds.csv")


@dataclass(frozen=True)
class Terms:
    """Small settings of an environment, and what it says of itself.

    Attributes:
        folder: of its module of columns, in envs/.
        small: options with which it is made, under those of a variant or setting.
        action: what a refused action is told to be.
        tables: names in the module of columns of the columns of each table.
        candidates: how many there are with `small`.
        variants: options under which random legal actions are played.
        unmasked: options under which any actions are, and how many steps.
        settings: options under which every policy plays as the simulator does alone; `words`: others than by name.
        alone: (simulator of the environment, policy) -> one like it that this policy may play.
        left_out: whether a policy cannot play in a setting.
        columns: of the jobs, that have to be equal; None: all.
        baseline: the policy that plays, and whose rewards count; None: a test of its own does that.
        terminates: every episode of the variants ends by itself.
        played: options under `settings`; None: `small`.
        is_ruled: `alone` has the compiled rule of a policy that has one.
    """

    folder: str
    small: Options
    action: str
    tables: tuple[str, ...]
    candidates: int
    variants: dict[str, Options]
    unmasked: tuple[Options, int]
    settings: dict[str, Options]
    alone: Callable[[Any, Any], Any]
    words: tuple[str, ...] = ()
    left_out: Callable[[Any, Options], bool] = lambda policy, options: False
    columns: tuple[str, ...] | None = None
    baseline: tuple[str, str, Options] | None = None
    terminates: bool = True
    played: Options | None = None
    is_ruled: bool = True
    random: Options = field(default_factory=dict)  # of all variants

    @property
    def described(self) -> Any:
        """The module that names the columns."""
        return importlib.import_module(f"clustergym.envs.{self.folder}.columns")


def of_delay(own: Any, policy: Any) -> Any:
    rule = policy.rule_under(own.semantics)
    return Simulator(own.topology, own.network, rule=rule, semantics=own.semantics, failures=own.config.failures)


def of_sharing(own: Any, policy: Any) -> Any:
    rate_provider = TrainingRates(fitted_applications("2080ti")) if own.rate_provider is not None else None
    rule = policy.rule or policies.make("sjf").rule
    return own.twin(rule, rate_provider=rate_provider)


def of_links(own: Any, policy: Any) -> Any:
    return Simulator(own.topology, own.network, rule=policy.rule, sharing=own.sharing, failures=own.config.failures)


def of_regions(own: Any, policy: Any) -> Any:
    return own.config.build()


def of_tables(own: Any, policy: Any) -> Any:
    """With the clock before the first look at tables, which waits for a pass, as in the environment."""
    alone = own.config.build()
    alone.use(own.rule)
    return alone


def of_groups(own: Any, policy: Any) -> Any:
    return own.twin()


FLAT = {"default": {}, "flat": {"observation": "flat"}}
EQUAL_PATHS = "leaf-spine:leaves=4,spines=2,machines=6,gpus_per_machine=1"
FEW_JOBS = {"workload": "cassini-poisson:jobs=8,load=1.2,iteration_s=0.8"}
TERMS: dict[str, Terms] = {
    "clustergym/Delay-v0": Terms(
        folder="delay",
        small={
            "topology": "dally:racks=2,machines=2",
            "workload": "poisson:jobs=40,backlog=12,load=1.2",
            "slots": 8,
            "running_slots": 8,
        },
        action="three whole numbers",
        tables=("QUEUE", "RUNNING"),
        candidates=1 + 5 * 8 + 3 * 8,
        variants={
            **FLAT,
            "small window": {"slots": 2, "running_slots": 0},
            "without preemption": {"preemption": False, "order": "smallest"},
            "costs and failures": {"preemption_cost": (40.0, 60.0), "mtbf_s": 20_000.0, "order": "shortest"},
            "random placer": {"placer": "random", "reward": "slowdown"},
            "count, every instant": {"placer": "count", "skip_idle": False, "reward": "makespan"},
        },
        unmasked=({"mtbf_s": 30_000.0, "preemption_cost": 30.0}, 2000),
        settings={},  # those of test_delay_policies.py
        played={},
        alone=of_delay,
        columns=("first_start_s", "finish_s", "tier", "preemptions", "queueing_delay_s"),
        terminates=False,
    ),
    "clustergym/Sharing-v0": Terms(
        folder="sharing",
        small={"workload": "philly-sample:jobs=24,hours=1", "slots": 8, "running_slots": 8},
        action=r"expected two whole numbers, \(candidate, sub-batch exponent\)",
        tables=("QUEUE", "RUNNING"),
        candidates=1 + 6 * 8 + 2 * 8,
        variants={
            **FLAT,
            "small window": {"slots": 2, "running_slots": 0, "partners": 0},
            "without memory": {"memory_gb": None, "preemption": False, "order": "shortest"},
            "three a GPU, failing": {"jobs_per_gpu": 3, "mtbf_s": 20_000.0, "preemption_cost": 30.0},
            "every instant": {
                "skip_idle": False,
                "placer": "random",
                "reward": "slowdown",
                "partners": 5,
                "exponents": 4,
            },
        },
        unmasked=({"mtbf_s": 30_000.0, "preemption_cost": 30.0}, 3000),
        settings={
            "default": {"workload": "philly-sample:jobs=64,hours=2"},
            "without memory": {"memory_gb": None, "interference": "light", "slots": 2, "running_slots": 1},
            "three a GPU": {"jobs_per_gpu": 3, "interference": "constant:xi=1.2", "partners": 0},
            "exclusive": {"jobs_per_gpu": 1},
            "failing": {"mtbf_s": 5000.0, "mttr_s": 1000.0, "checkpoint_s": 300.0},
        },
        alone=of_sharing,
        left_out=lambda policy, options: policy.elastic,
        columns=("first_start_s", "finish_s", "tier", "preemptions", "interference_s"),
        baseline=("sjf-bsbf", "sjf", {}),
    ),
    "clustergym/TimeShift-v0": Terms(
        folder="timeshift",
        small={"workload": "cassini-poisson:jobs=16,load=1.0,iteration_s=0.8", "slots": 8, "running_slots": 12},
        action=r"expected two whole numbers, \(candidate, rotation bucket\)",
        tables=("QUEUE", "RUNNING"),
        candidates=11,
        variants={
            **FLAT,
            "small window": {"slots": 1, "running_slots": 0, "candidates": 3},
            "two a GPU, failing": {"jobs_per_gpu": 2, "interference": "constant:xi=1.2", "mtbf_s": 50_000.0},
            "every instant": {"skip_idle": False, "reward": "slowdown", "order": "shortest"},
            "drifting": {"network": "contention:offsets=random,jitter=0.01,adjust=0.05", "scheduler": "least-shared"},
            "failing links": {"network": "contention:link_mtbf_s=2000,link_mttr_s=100"},
            "turned by CASSINI": {"shifts": "cassini"},
            "least congested paths": {"topology": EQUAL_PATHS, "network": "contention:routes=least,rates=crux"},
        },
        unmasked=({"mtbf_s": 100_000.0}, 250),
        settings={
            "default": {},
            "few candidates": {
                "candidates": 3,
                "scheduler": "least-shared",
                "slots": 1,
                "running_slots": 1,
                **FEW_JOBS,
            },
            "drifting": {"network": "contention:offsets=random,jitter=0.01,adjust=0.05,collective=tree", **FEW_JOBS},
            "two a server, failing": {
                "topology": "cassini-two-gpu",
                "mtbf_s": 20_000.0,
                "checkpoint_s": 300.0,
                **FEW_JOBS,
            },
            "failing links": {"network": "contention:link_mtbf_s=20000,link_mttr_s=300", **FEW_JOBS},
            "least congested paths": {"topology": EQUAL_PATHS, "network": "contention:routes=least", **FEW_JOBS},
        },
        alone=of_links,
        left_out=lambda policy, options: (
            # It has a network of its own, or takes so long that one setting must do.
            ((policy.dedicated or policy.on_links) and "network" in options)
            or (policy.name in ("best-rotations", "lookahead") and "candidates" not in options)
            or (policy.name.startswith("pollux") and bool(options))
        ),
        baseline=("themis", "random", {}),
    ),
    "clustergym/Geo-v0": Terms(
        folder="geo",
        small={
            "topology": geo_small.small_topology(),
            "workload": geo_small.small_workload(),
            "tables": None,
            "round": 0.0,
            "slots": 4,
            "running_slots": 4,
            "clusters": 3,
        },
        action="expected a whole number, the candidate",
        tables=("QUEUE", "RUNNING", "REGIONS"),
        candidates=1 + 9 * 4,
        variants={
            **FLAT,
            "small window": {"slots": 1, "running_slots": 0, "clusters": 1, "brings": 0, "region_slots": 3},
            "failing": {"mtbf_s": 20_000.0, "region_mtbf_s": 5_000.0, "region_mttr_s": 600.0, "checkpoint_s": 300.0},
            "every instant": {"skip_idle": False, "reward": "slowdown", "order": "shortest", "round": 34.0},
            "any workload leaves": {"preempts": "any", "order": "shortest", "brings": 3, "reward": "queueing"},
            "tables move": {"tables": "tetris-v2", "tables_every_s": 600.0, "reward": "makespan"},
            "drawn copies": {
                "topology": geo_small.small_topology(egress_bytes_per_s=np.full(3, 1e7)),
                "tables": "tetris-v2",
                "tables_every_s": 600.0,
                "copy_time": "published",
                "copy_order": "urgent",
            },
            "types of other speeds": {"speeds": UNIT_SPEEDS},
        },
        random={"workload": geo_small.random_workload(3)},
        unmasked=({"workload": geo_small.random_workload(7), "mtbf_s": 30_000.0}, 1500),
        settings={
            "default": {"workload": geo_small.random_workload(11, jobs=60)},
            "drawn copies": {
                "topology": geo_small.small_topology(egress_bytes_per_s=np.full(3, 1e7)),
                "workload": geo_small.random_workload(15),
                "copy_time": "published",
                "copy_order": "urgent",
            },
            "several types": {"workload": geo_small.choosing_workload(3, share=0.8), "speeds": UNIT_SPEEDS},
            "replicas that lag": {"workload": geo_small.fresh_workload(16), "replica_lag_s": 500.0},
            "another slow half": {
                "workload": geo_small.random_workload(12, jobs=60),
                "tables": "tetris-v2",
                "tables_every_s": 900.0,
            },
            "small window": {
                "workload": geo_small.random_workload(13, jobs=60),
                "slots": 1,
                "running_slots": 1,
                "clusters": 1,
            },
            "failing": {
                "workload": geo_small.random_workload(14),
                "mtbf_s": 20_000.0,
                "region_mtbf_s": 5_000.0,
                "checkpoint_s": 300.0,
            },
        },
        alone=of_regions,
        is_ruled=False,
        left_out=lambda policy, options: policy.name == "scope" or policy.tables_everywhere,
        baseline=(
            "federated:slow=none,scan_s=0",
            "mast:slow=none,scan_s=0",
            {"workload": geo_small.random_workload(3)},
        ),
    ),
    "clustergym/DataPlacement-v0": Terms(
        folder="dataplacement",
        small={
            "topology": geo_small.small_topology(),
            "workload": geo_small.small_workload(),
            "region_slots": 4,
            "tables_every_s": 612.0,
            "quota": 5.0,
        },
        action="expected a whole number, the candidate",
        tables=("QUEUE", "RUNNING", "REGIONS"),
        candidates=14,
        variants={
            **FLAT,
            "small window": {"slots": 1, "running_slots": 0},
            "failing": {"mtbf_s": 50_000.0, "region_mtbf_s": 2_000.0, "region_mttr_s": 300.0, "reward": "slowdown"},
            "another scheduler": {"scheduler": "federated", "reward": "placement"},
        },
        random={"quota": 0.5},
        unmasked=({}, 200),
        settings={"default": {}},
        played={
            "topology": "mast:regions=4,gpus=256",
            "workload": "mast-like:jobs=120,scale=1,longest_h=6,tables=24",
            "tables_every_s": 20_000.0,
        },
        alone=of_tables,
        left_out=lambda policy, options: policy.tables_everywhere,
        is_ruled=False,
    ),
    "clustergym/Grouping-v0": Terms(
        folder="grouping",
        small={},
        action=r"expected three whole numbers, \(candidate, machines, spill\)",
        tables=("QUEUE", "RUNNING", "GROUP"),
        candidates=235,
        variants={
            "default": {},
            "flat": {"observation": "flat", "slots": 4},
            "small window": {"slots": 1, "running_slots": 0, "group_slots": 1, "machine_choices": 4},
            "profiled, blind": {"profile_iterations": 3, "estimates": "none", "model_error": 0.2},
            "failing, split": {
                "mtbf_s": 200_000.0,
                "comm": "split",
                "busy": 0.8,
                "jitter": 0.1,
                "estimates": "lognormal:sigma=1",
            },
            "every instant": {"skip_idle": False, "order": "shortest", "reward": "slowdown", "ram_gb": 8.0},
        },
        random={"workload": "harmony-like:jobs=10,gap_min=15"},
        unmasked=({"mtbf_s": 200_000.0}, 3000),
        settings={
            "default": {},
            "small window": {"slots": 1, "running_slots": 1, "group_slots": 1},
            "profiled": {"profile_iterations": 3, "comm": "split", "busy": 0.8},
            "failing": {"mtbf_s": 300_000.0, "mttr_s": 3000.0},
        },
        alone=of_groups,
        is_ruled=False,
        words=("greedy:remaining=known",),
        columns=("first_start_s", "finish_s", "preemptions", "moves", "spill", "restore_s"),
        terminates=False,
    ),
}


def made(env_id: str, **options: Any) -> Any:
    """The environment with its small options and these."""
    return gymnasium.make(env_id, **{**TERMS[env_id].small, **options}).unwrapped


def differences(
    env_id: str, player: Callable[[], Any], look: Callable[[Any, Any], Any] = lambda env, action: None, **options: Any
) -> tuple[list[str], set[Any]]:
    """Names of metrics and columns in which a policy through `env.step` and in the simulator alone differ.

    And what `look` sees at each action, before it is played. None of the actions may be illegal or made another.
    """
    policy, terms = player(), TERMS[env_id]
    if getattr(policy, "dedicated", False):
        options["network"] = "contention:mode=dedicated"
    if getattr(policy, "on_links", {}):
        options["network"] = "contention:" + ",".join(f"{key}={value}" for key, value in policy.on_links.items())
    first = terms.small if terms.played is None else terms.played
    env = gymnasium.make(env_id, **{**first, **options}).unwrapped
    env.reset(seed=11)
    ended, seen, info = False, set(), {}
    while not ended:
        action = policy.act(env)
        assert env.action_masks()[action[0] if isinstance(env.action_space, gymnasium.spaces.MultiDiscrete) else action]
        seen.add(look(env, action))
        *_, terminated, truncated, info = env.step(action)
        assert not (info["invalid_action"] or info.get("adjusted_action"))
        ended = terminated or truncated
    own = env.simulator
    alone = terms.alone(own, policy)
    alone.reset(own.workload, int(own.state.seed))
    expected = alone.run(None if terms.is_ruled and policy.rule else player())
    table, jobs = alone.jobs(), own.jobs()
    names = [name for name in expected if repr(info["metrics"][name]) != repr(expected[name])]
    columns = terms.columns or tuple(table)
    return names + [name for name in columns if repr(jobs[name].tolist()) != repr(table[name].tolist())], seen
