"""A warm start: every lesson is another one, and what is no lesson is told."""

import json

import pytest

torch = pytest.importorskip("torch", reason="needs the extra agents")
pytest.importorskip("sb3_contrib", reason="needs the extra agents")

from clustergym.agents.training.config import default_config, make_config  # noqa: E402
from clustergym.agents.training.imitation import Imitated, _Lessons, clone  # noqa: E402
from clustergym.agents.training.learners import make_env, make_learner  # noqa: E402
from clustergym.experiments import cli  # noqa: E402
from clustergym.simulator.base.errors import InputError  # noqa: E402

WORD = "poisson:jobs=12,backlog=6,load=1.2,median_s=600"
SMALL = {"topology": "dally:racks=1,machines=2", "network": "none", "workloads": [WORD], "name": "own"}
OWN = {"training": [SMALL], "validation": [SMALL]}
MODELS = {
    "Delay": "greedy",
    "Delay-preemptive": "greedy:preempt=on,preemption_cost=30",
    "Sharing": "sjf-bsbf",
    "TimeShift": "themis+cassini:workers=fixed,equal=locality",
    "Geo": "bring:slow=none",
    "DataPlacement": "static",
    "Grouping": "harmony",
}


def cloned(name: str, word: str, **changes) -> Imitated:
    torch.set_num_threads(1)  # as a training does
    few = {"num_envs": 16, "imitation_steps": 400, "imitation_epochs": 1, "imitate": word, "batch_size": 16}
    config = make_config(default_config(name) | few | changes, "test")
    return clone(make_learner(config, make_env(config)).policy, config)


def count(imitated: Imitated, fate: str) -> int:
    return sum(imitated.decisions[fate].values())


@pytest.mark.parametrize("name", MODELS)
def test_replicas_do_not_repeat_lessons(name):
    """Rows that are seeded alike would all tell the same: with 8 replicas 350 decisions of 400 are repeated."""
    numbers = {"env": {"slots": 8, "running_slots": 12, "group_slots": 4}} if name == "Grouping" else {}
    imitated = cloned(name, MODELS[name], replicas=8, **numbers)
    assert count(imitated, "lessons") == 400
    assert count(imitated, "repeated") <= 0.05 * 400 and count(imitated, "untaken") == 0


def test_a_trace_that_all_rows_play_alike_is_told_once(tmp_path):
    """16 rows, one trace, a model that draws nothing: 15 of 16 decisions teach nothing, a second episode neither."""
    path = tmp_path / "own.csv"
    path.write_text("job_id,arrival_s,gpus,duration_s\n" + "".join(f"{i},{60 * i},1,600\n" for i in range(20)))
    own = [SMALL | {"workloads": [str(path)]}]
    imitated = cloned("Delay", "fifo", training=own, validation=own, variance="none")
    lessons = count(imitated, "lessons")
    assert 20 <= lessons < 100 and count(imitated, "repeated") >= 15 * lessons


def test_a_clone_decides_as_its_model():
    assert cloned("Delay", "greedy", **OWN, imitation_steps=1000, imitation_epochs=100).agreement > 0.8


class Waits:
    """A player that starts nothing by itself."""

    def _predict(self, seen):
        return torch.zeros((len(seen), 3), dtype=torch.int64)


def test_lessons_are_of_the_states_that_a_player_reaches():
    """An agent that only waits has more jobs in the queue than `greedy`, which says there what it would start."""
    config = make_config(default_config("Delay") | OWN | {"num_envs": 16}, "test")
    env = make_env(config.model_copy(update={"variance": "none"}))
    policy = make_learner(config, make_env(config)).policy
    tables = env.envs[0].tables
    queued = tables.tables[0]
    waiting = []
    for player in (None, Waits()):
        lessons = _Lessons(env, config)
        lessons.record(300, player)
        observations, _ = lessons.possible(policy)
        assert len(observations) == 300
        rows = observations[:, tables.cluster : tables.cluster + queued.rows * queued.columns]
        waiting.append(float(rows.reshape(300, queued.rows, queued.columns)[:, :, 0].sum(1).mean()))
    assert waiting[1] > 1.2 * waiting[0]


def test_a_share_of_the_lessons_is_of_the_clone_s_own_states(monkeypatch):
    """Half of 400 are the model's; the others are asked for where the clone of these plays."""
    record, asked = _Lessons.record, []

    def recorded(self, count, player=None):
        asked.append((count, player is None))
        record(self, count, player)

    monkeypatch.setattr(_Lessons, "record", recorded)
    imitated = cloned("Delay", "greedy", **OWN, imitation_own=0.5)
    assert asked == [(200, True), (400, False)] and count(imitated, "lessons") == 400


HOLDS = """
from clustergym.policies import Policy
from clustergym.simulator.base.decisions import Advance, Hold, Start


class Holds(Policy):
    def decide(self, view):
        if not len(view.queue):
            return Advance()
        job = int(view.queue[0])
        return Hold(job) if len(view.running) else Start(job, view.free_gpus[: int(view.workload.gpus[job])])
"""


def test_what_an_agent_never_takes_is_told(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(HOLDS)
    imitated = cloned("Delay", f"py:{path}:Holds", **OWN)
    assert set(imitated.decisions["untaken"]) == {"hold"} and "hold" not in imitated.decisions["lessons"]
    assert "that this agent never takes (hold " in str(imitated)
    assert "hold" in cloned("Delay", f"py:{path}:Holds", **OWN, holds=True).decisions["lessons"]


def test_what_no_action_says_is_no_lesson_and_told():
    """In its own configuration Grouping-v0 offers no numbers of machines; `greedy` asks for them, and joins beside."""
    imitated = cloned("Grouping", "greedy", imitation_steps=50)
    assert {"AssignGroup", "SetMachines"} & set(imitated.decisions["unsaid"])
    assert count(imitated, "lessons") == 50 < count(imitated, "unsaid")


def test_a_model_that_no_action_follows_is_one_sentence(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from clustergym.policies import Policy\nfrom clustergym.simulator.base.decisions import Shift\n\n\n"
        "class Turns(Policy):\n    def decide(self, view):\n        return Shift(0, 0.5)\n"
    )
    with pytest.raises(
        InputError, match=r"^imitate: no lesson for an agent \(.*\); .*cannot see or say \(Shift [\d,]+\)$"
    ):
        cloned("Delay", f"py:{path}:Turns", **OWN)


def test_the_command_tells_of_the_lessons(tmp_path, capfd):
    words = ["--topology", SMALL["topology"], "--network", "none", "--workload", WORD, "--timesteps", "16"]
    sets = "num_envs=8 replicas=4 batch_size=16 validation_seeds=1 evaluations=1 imitation_steps=100 imitation_epochs=1"
    words += ["--imitate", "greedy", "--set", sets, "--logdir", str(tmp_path / "run"), "--json"]
    assert cli.run(["train", "Delay", *words]) == 0
    told = capfd.readouterr()
    imitation = json.loads(told.out)["imitation"]
    assert imitation["model"] == "greedy" and sum(imitation["decisions"]["lessons"].values()) == 100
    described = json.loads((tmp_path / "run" / "best" / "agent.json").read_text())
    assert described["evaluation"]["imitation"] == imitation
    assert "decisions of greedy: 100 lessons (" in told.err and imitation["score"] > 0.0
