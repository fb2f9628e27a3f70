"""Where chance is: code that draws for a run says so there, and evaluations play every seed of a run that is drawn.

CASES has one command for every place in the sources that takes a run's seed, so a new place needs a new one.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from clustergym.experiments import cli
from clustergym.experiments.playing.evaluation import evaluate, simulator_of
from clustergym.experiments.settings.evaluation_setting import Setting, may_draw, workload_of
from clustergym.experiments.tuning.subjects import PolicyParameters
from clustergym.experiments.tuning.trial_search import Search
from clustergym.policies import make

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("simulator", "policies", "envs", "agents")
NO_RECORDS = ("self", "config", "view", "env")  # what else has a `seed`
TAKERS = ("seed_of", "draw_seed")
SEEDS = range(6)
JOBS = "job_id,arrival_s,gpus,duration_s,model,batch_size\n"
FEW = JOBS + "a,0,4,100,half,32\nb,3,4,50,light,32\nc,5,2,60,half,32\n"
CROWD = JOBS + "a,0,6,100,half,32\nb,0,6,100,half,32\nc,0,4,60,half,32\n"  # two share links
MANY = JOBS + "".join(f"j{n},{7 * n},{1 + n % 4},{300 + 40 * (n % 5)},resnet50,32\n" for n in range(12))
PHASES = {
    "models": {
        "half": [{"iteration_s": 0.18, "phases": [{"start_s": 0.1, "duration_s": 0.08, "gbps": 50}]}],
        "light": [{"iteration_s": 0.2, "local_s": 0.2, "phases": [{"start_s": 0.05, "duration_s": 0.04, "gbps": 20}]}],
    }
}
DELAY = "Delay --topology flat:machines=2 --workload {many} --network none --policies "
LINKS = "Delay --topology fat-tree:k=4 --workload {few} --policies fifo --network contention:models={phases},"
SHIFTS = "TimeShift --topology cassini-testbed --workload cassini-poisson:jobs=6,seed=3 --policies "
REGIONS = "Geo --topology mast:regions=2,gpus=64 --workload mast-like:regions=2,gpus=64,jobs=30,tables=10,seed=3 "
GROUPS = "Grouping --topology flat:machines=32 --workload harmony-like:jobs=4,seed=3 --policies "
# Where the seed is taken, by file -> commands that play there; what is none of `evaluate` has none.
CASES: dict[str, tuple[str, ...]] = {
    "simulator/rules/orders.py": (DELAY + "random:placer=count",),
    "simulator/running/placers.py": (
        DELAY + "fifo:placer=random",
        "Delay --topology dally:racks=1,machines=2 --workload {many} --network allreduce --policies gandiva",
    ),
    "simulator/jobs/estimates.py": (DELAY + "sjf --set estimates=lognormal:sigma=2",),
    "simulator/lifecycle/outages.py": (
        DELAY + "fifo --set mtbf_s=500",
        REGIONS + "--policies mast --set region_mtbf_s=20000",
    ),
    "simulator/lifecycle/fault_groups.py": (DELAY + "fifo --set fault_groups={sets} --set group_mtbf_s=500",),
    "simulator/flows/cable_failures.py": (LINKS + "link_mtbf_s=60,link_mttr_s=20",),
    "simulator/flows/iterations.py": (LINKS + "jitter=0.3",),
    "simulator/contention/entering.py": (LINKS + "offsets=random",),
    "simulator/contention/averages.py": (
        LINKS.replace("few", "crowd") + "mode=averaged,offsets=random",
        LINKS.replace("few", "crowd") + "mode=averaged,jitter=0.3",
    ),
    "simulator/regions/copy_times.py": (REGIONS + "--policies mast --set copy_time=published",),
    "simulator/groups/kernels/group_clock.py": (GROUPS + "harmony --set mtbf_s=9000",),
    "simulator/groups/kernels/subtasks.py": (GROUPS + "harmony --set jitter=0.3",),
    "simulator/groups/initialise_groups.py": (GROUPS + "harmony --set model_error=0.3",),
    "simulator/record/record_view.py": (
        SHIFTS + "random",
        SHIFTS + "pollux",
        REGIONS + "--policies random",
        REGIONS + "--policies random-start",
        GROUPS + "random",
        "Sharing --topology flat:machines=2 --workload {shared} --network none --policies pollux",
    ),
    "simulator/engine/view.py": (),  # a copy of a run; what is drawn there is drawn by the places above
    "agents/playing/player.py": (),  # of agents whose mode is `sampled`, see below
    "agents/training/validation.py": (),
    "envs/reference.py": (),
}
NOT_DRAWN = (
    DELAY + "fifo",
    DELAY + "zoo:Delay",
    LINKS + "jitter=0",
    REGIONS + "--policies mast",
    GROUPS + "harmony",
)


def trees() -> list[tuple[str, ast.Module]]:
    paths = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())) for path in paths]


def name_of(node: ast.expr) -> str:
    """The last name of `one.two`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_no_code_takes_the_seed_of_a_run_but_by_saying_so():
    """`s.seed` and `record["seed"]` are read in numerics/random.py alone; `view.seed` says so too."""
    found = []
    for place, tree in trees():
        for node in ast.walk(tree):
            by_name = isinstance(node, ast.Attribute) and node.attr == "seed" and name_of(node.value) not in NO_RECORDS
            by_item = (
                isinstance(node, ast.Subscript)
                and isinstance(node.slice, ast.Constant)
                and node.slice.value == "seed"
                and name_of(node.value) in ("s", "state", "record")
            )
            if (by_name or by_item) and isinstance(node.ctx, ast.Load):
                found.append(place)
    assert set(found) == {"simulator/numerics/random.py"}


def test_every_place_that_takes_the_seed_of_a_run_has_a_case():
    found = set()
    for place, tree in trees():
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
        if any(call.func.id in TAKERS for call in calls):
            found.add(place)
    assert found == set(CASES)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    written = {
        "few": ("few.csv", FEW),
        "crowd": ("crowd.csv", CROWD),
        "shared": ("shared.csv", MANY.replace("resnet50", "cifar10")),
        "many": ("many.csv", MANY),
        "phases": ("phases.json", json.dumps(PHASES)),
        "sets": ("sets.csv", "group,what,name\nleft,machine,0\nright,machine,1\n"),
    }
    for name, text in written.values():
        (tmp_path / name).write_text(text)
    return {key: str(tmp_path / name) for key, (name, _) in written.items()}


def rows(capsys: Any, command: str, files: dict[str, str], seeds: str) -> list[dict[str, Any]]:
    assert cli.run(["evaluate", *command.format(**files).split(), "--seeds", seeds, "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow  # a minute each where nothing is compiled yet
@pytest.mark.parametrize("command", [command for commands in CASES.values() for command in commands])
def test_many_seeds_are_each_of_them_alone(capsys, files, command):
    """Seed 0's numbers stood for all seeds where the network drew: 178.2 s for 178.2, 151.9, 244.0, 253.9."""
    together = rows(capsys, command, files, "0-5")
    alone = [row for seed in SEEDS for row in rows(capsys, command, files, str(seed))]
    assert json.dumps(together) == json.dumps(alone)
    assert len({json.dumps(row["metrics"]) for row in alone}) > 1, "nothing was drawn"


@pytest.mark.slow
@pytest.mark.parametrize("command", NOT_DRAWN)
def test_where_nothing_is_drawn_one_run_stands_for_all_seeds(capsys, monkeypatch, files, command):
    from clustergym.experiments.playing import evaluation

    played = []
    once = evaluation.play
    monkeypatch.setattr(evaluation, "play", lambda *given: played.append(given[2]) or once(*given))
    together = rows(capsys, command, files, "0-5")
    assert played == [0]
    assert json.dumps(together) == json.dumps([rows(capsys, command, files, str(seed))[0] for seed in SEEDS])


def setting(files: dict[str, str], network: str) -> Setting:
    return Setting.of("Delay", "fat-tree:k=4", files["few"], f"contention:models={files['phases']},{network}")


def test_links_that_fail_are_drawn_by_each_seed(capsys, files):
    """By the reports of users, of three jobs on links that fail every 60 s for 20 s; likewise jitter."""
    for network, wanted in (
        ("link_mtbf_s=60,link_mttr_s=20", [178.2, 151.9, 244.0, 253.9]),
        ("jitter=0.3", [71.2, 69.8, 69.4, 69.2]),
    ):
        runs = evaluate(setting(files, network), ["fifo"], range(4))
        assert [round(run.metrics["jct_mean"], 1) for run in runs] == wanted
        assert all(run.is_drawn for run in runs)


def test_tuning_plays_every_seed_of_what_is_drawn(files):
    pytest.importorskip("optuna", reason="needs the extra tune")
    drawn, fixed = (
        Search(PolicyParameters(setting(files, network), "fifo", (0, 1, 2, 3), prunes=False), (), None)
        for network in ("jitter=0.3", "jitter=0")
    )
    found = [next(search.run([0], lambda done: None)).user_attrs["per_seed"] for search in (drawn, fixed)]
    assert [round(value, 1) for value in found[0]] == [71.2, 69.8, 69.4, 69.2]
    assert len(found[1]) == 1


def test_an_agent_draws_where_its_decisions_are_sampled(files):
    """The likeliest decisions hang on no seed."""
    pytest.importorskip("torch")
    told = Setting.of("Delay", "flat:machines=2", files["many"], "none")
    for mode, draws in (("argmax", False), ("sampled", True)):
        agent = make("zoo:Delay", mode=mode)
        simulator = simulator_of(told.config, agent)
        simulator.reset(workload_of(told, 0), seed=1)
        simulator.run(agent.decider(simulator))
        assert simulator.is_drawn is draws


@pytest.mark.parametrize(
    ("player", "may"),
    [
        ("fifo", False),
        ("everywhere:scheduler=mast", False),
        ("py:mine.py:Mine", True),
        ("everywhere:scheduler=py:mine.py:Mine", True),
        (object(), True),
    ],
)
def test_parts_of_a_users_own_count_as_drawing(files, player, may):
    told = setting(files, "jitter=0")
    assert may_draw(told, player) is may
    assert may_draw(told.copy_with(workload="poisson:jobs=3"), player)
    assert may_draw(told.copy_with(workload="poisson:jobs=3,seed=1"), player) is may
    assert may_draw(told.copy_with(topology="py:mine.py:cluster"), player)


def test_a_policy_of_ones_own_is_played_on_every_seed(files):
    import random

    class Coin:
        """It asks no view for the seed."""

        def __init__(self) -> None:
            self.rng = random.Random()

        def decide(self, view: Any) -> Any:
            return view.next_decision()

    runs = evaluate(setting(files, "jitter=0"), [Coin()], range(2))
    assert all(run.is_drawn for run in runs)
