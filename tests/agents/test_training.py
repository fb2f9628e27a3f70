"""Training: it learns, it goes on after a kill with the very same weights, and says what is wrong in one sentence."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra agents")
pytest.importorskip("sb3_contrib", reason="needs the extra agents")

from clustergym.agents.files.checkpoint import Checkpoint  # noqa: E402
from clustergym.agents.files.saved import load_agent  # noqa: E402
from clustergym.agents.training.config import Config, assign, default_config, make_config  # noqa: E402
from clustergym.agents.training.groups import Episodes, rows_of_rollout  # noqa: E402
from clustergym.agents.training.learners import make_env, make_learner  # noqa: E402
from clustergym.agents.training.starting import starting_agent, what_differs  # noqa: E402
from clustergym.agents.training.trainer import Training  # noqa: E402
from clustergym.agents.training.validation import Validation, ratios  # noqa: E402
from clustergym.experiments import cli  # noqa: E402
from clustergym.policies import make  # noqa: E402
from clustergym.simulator.base.errors import InputError  # noqa: E402

WORD = "poisson:jobs=12,backlog=6,load=1.2,median_s=600"
SMALL = {
    "training": [{"name": "own", "topology": "dally:racks=1,machines=2", "network": "none", "workloads": [WORD]}],
    "validation_seeds": 2,
    "num_envs": 8,
    "n_steps": 16,
    "batch_size": 64,
    "n_epochs": 2,
    "timesteps": 1024,
    "evaluations": 3,
    "variance": "reference",
    "imitate": None,
}


def options(**changes: int) -> list[str]:
    """`SMALL` with `changes`, as typed."""
    values = {key: value for key, value in (SMALL | changes).items() if key != "training"}
    words = ("--topology", "dally:racks=1,machines=2", "--network", "none", "--workload", WORD)
    return [*words, *(f"--set={key}={'null' if value is None else value}" for key, value in values.items())]


class Quiet:
    """A listener that remembers evaluations."""

    def __init__(self) -> None:
        self.evaluations: list = []

    def scalars(self, step, values):
        pass

    def imitated(self, imitated):
        pass

    def evaluated(self, evaluated, agent):
        self.evaluations.append(evaluated)

    def progressed(self, step):
        pass


def small(**changes) -> Config:
    values = default_config("Delay") | SMALL
    return make_config(values | {"validation": values["training"]} | changes, "test")


def weights_of(training: Training) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in training.learner.policy.state_dict().items()}


def run_command(*arguments: str) -> subprocess.Popen:
    code = "import sys; from clustergym.experiments.cli import main; main()"
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"algo": "ppo", "net": "mlp"},
        {"variance": "group", "replicas": 4},
        {"variance": "none", "normalise": True},
        {"imitate": "greedy", "imitation_steps": 200, "imitation_epochs": 2},
    ],
    ids=str,
)
def test_every_kind_of_training_runs_and_repeats_bit_for_bit(tmp_path, changes):
    outcomes = []
    for number in range(2):
        listener = Quiet()
        training = Training(small(**changes), tmp_path / str(number), listener)
        before = weights_of(training)
        best = training.run()
        after = weights_of(training)
        assert any(not torch.equal(before[name], after[name]) for name in before)
        assert listener.evaluations[0].step == 0 and len(listener.evaluations) >= 3
        assert best["score"] == min(one.score for one in listener.evaluations)
        outcomes.append((after, [one.ratios for one in listener.evaluations]))
    assert all(torch.equal(outcomes[0][0][name], outcomes[1][0][name]) for name in outcomes[0][0])
    assert outcomes[0][1] == outcomes[1][1]


def test_the_learning_rate_is_never_below_0(tmp_path):
    """The least rollout is an episode of two rows, 12 jobs each: the one update lies beyond the end, at 20 decisions.

    SB3's share of the training that is left is negative there, and Adam would climb.
    """
    training = Training(small(variance="group", replicas=4, timesteps=20), tmp_path, Quiet())
    training.run()
    assert training.step > 20
    rates = [group["lr"] for group in training.learner.policy.optimizer.param_groups]
    assert rates == [0.0]


@pytest.mark.parametrize(
    ("env", "reference"),
    [
        ({"preemption": False}, "greedy"),
        ({}, "greedy:preempt=on,preemption_cost=0"),
        ({"preemption_cost": [40, 60]}, "greedy:preempt=on,preemption_cost=40/60"),
        ({"semantics": "artist-sim"}, "greedy"),
    ],
)
def test_agents_are_measured_against_the_better_greedy_that_plays_by_the_same_rules(env, reference):
    assert small(env=env).reference == reference
    assert small(env=env, reference="fifo").reference == "fifo"


@pytest.mark.parametrize(
    "env",
    [{"mtbf_s": 4000.0, "mttr_s": 900.0}, {"estimates": "lognormal:sigma=2"}, {"horizon_s": 3000.0}],
    ids=["failures", "estimates", "horizon"],
)
def test_a_heuristic_meets_in_a_validation_what_an_agent_meets_there(env):
    """Row 1 of it, played decision by decision in an environment of the same seed."""
    crowded = {**SMALL["training"][0], "workloads": ["poisson:jobs=24,backlog=16,load=1.5,median_s=600"]}
    validation = Validation(small(env={"slots": 24, **env}, validation=[crowded]))
    scenario, _, workload = validation.cases[1]
    of_scenario = {"topology": scenario.topology, "network": scenario.network, "workload": workload}
    alone = gymnasium.make("clustergym/Delay-v0", **of_scenario, slots=24, **env).unwrapped
    alone.reset(seed=1)
    policy, over, info = make("sjf:placer=tier"), False, {}
    while not over:
        *_, terminated, truncated, info = alone.step(policy.act(alone))
        over = terminated or truncated
    assert validation.play_heuristic("sjf:placer=tier")[1].metrics == pytest.approx(info["metrics"], nan_ok=True)


def test_slices_that_are_trained_on_are_named_where_validation_plays_them(tmp_path):
    """Seeds go round: of two slices, validation's 10,000 and 10,001 are 0 and 1, which training draws too."""
    path = tmp_path / "log.csv"
    path.write_text("job_id,arrival_s,gpus,duration_s\na,0,1,5\nb,4000,1,5\nc,7000,1,5\n")
    sliced = [{**SMALL["training"][0], "workloads": [f"slices:file={path},hours=1"]}]
    with pytest.warns(UserWarning, match="validation plays jobs of a log that training plays"):
        cases = Validation(small(training=sliced, validation=sliced)).cases
    assert [workload.job_id.tolist() for _, _, workload in cases] == [["a"], ["b", "c"]]


@pytest.mark.parametrize("env", [{}, {"mtbf_s": 90000.0}, {"horizon_s": 3000.0}])
def test_no_agent_looks_better_in_a_validation_for_leaving_jobs(env):
    """An agent that never starts the last jobs, the long ones, may have the better mean over those that finish."""
    validation = Validation(small(env={**env, "max_decisions": 3}))
    patient = SimpleNamespace(_predict=lambda seen, deterministic: torch.zeros((len(seen), 3), dtype=torch.int64))
    reference = validation.play_heuristic("fifo")
    played = validation.play(patient, "argmax")
    assert any(one.metrics["jobs_finished"] < 12 for one in played)
    assert all(one.jct_s > 0.0 for one in [*played, *reference])
    assert ratios(played, reference)["own"] > 1.0


def test_the_best_agent_is_saved_with_what_it_reached(tmp_path):
    training = Training(small(), tmp_path, Quiet(), command="clustergym train ...")
    best = training.run()
    description = load_agent(tmp_path / "best").description
    assert description.evaluation["validation"] == best
    assert (description.mode, description.command) == (best["mode"], "clustergym train ...")
    assert description.config["timesteps"] == 1024
    with pytest.raises(InputError, match=r"did you mean .*best\?"):
        load_agent(tmp_path)


def step_of(folder: Path) -> int:
    """Of the checkpoint in the folder of a training; -1 before there is one, and while it is replaced."""
    try:
        return json.loads((folder / "checkpoint" / "checkpoint.json").read_text())["step"]
    except OSError:
        return -1


@pytest.mark.parametrize("kills", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_training_ends_with_the_weights_of_one_that_was_not(tmp_path, kills):
    """`kill -9` at random moments after a checkpoint that was not there before; then --resume."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    steps = 2048 * kills
    begin = ["train", "Delay", *options(timesteps=steps, evaluations=4 * kills), "--seed", "3", "--logdir"]
    assert cli.run([*begin, str(whole), "--quiet"]) == 0
    process = run_command(*begin, str(killed))
    for _ in range(kills):
        before = step_of(killed)
        deadline = time.monotonic() + 240
        while step_of(killed) <= before and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(random.uniform(0.0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.returncode == -signal.SIGKILL and before < step_of(killed) < steps
        process = run_command("train", "Delay", "--logdir", str(killed), "--resume")
    _, complaint = process.communicate(timeout=240)
    assert process.returncode == 0, complaint.decode()
    for name in ("checkpoint/tensors.safetensors", "best/weights.safetensors"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes(), name
    assert curves(whole) == curves(killed)
    command = load_agent(killed / "best").description.command
    assert command.startswith("clustergym train Delay --topology") and "--resume" not in command


def test_a_training_that_is_interrupted_keeps_the_last_rollout_and_says_how_to_go_on(tmp_path):
    """Ctrl-C long after the first checkpoint and before the next one would be due; then what it says to type."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    begin = ["train", "Delay", *options(timesteps=6144, evaluations=1), "--seed", "3", "--logdir"]
    assert cli.run([*begin, str(whole), "--quiet"]) == 0
    process = run_command(*begin, str(parts))
    deadline = time.monotonic() + 240
    while step_of(parts) < 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    first = step_of(parts)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and time.monotonic() - began < 10.0  # a second, but machines may be loaded
    assert f"Go on with: clustergym train Delay --logdir {parts} --resume" in said.decode()
    assert first < step_of(parts) < 6144
    assert run_command("train", "Delay", "--logdir", str(parts), "--resume").wait(240) == 0
    for name in ("checkpoint/tensors.safetensors", "best/weights.safetensors"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes(), name


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows of the agent's evaluations."""
    from clustergym.experiments.storing.event_file import scalars_of

    others = ("time/", "train/", "rollout/")
    return {tag: curve for tag, curve in scalars_of(folder / "agent").items() if not tag.startswith(others)}


@pytest.mark.parametrize("changes", [{"normalise": True}, {"variance": "group", "replicas": 4}], ids=str)
def test_resuming_in_the_middle_changes_nothing(tmp_path, changes):
    """A stop after every third rollout: what the next process needs is all in the checkpoint."""
    config = small(timesteps=1280, **changes)
    whole = Training(config, tmp_path / "whole", Quiet())
    whole.run()

    class Stops(Quiet):
        rollouts = -1

        def progressed(self, step):
            self.rollouts += 1
            if self.rollouts == 3:
                self.training.checkpoint()
                raise InterruptedError

    stops = 0
    while True:
        listener = Stops()
        training = listener.training = Training(config, tmp_path / "parts", listener)
        try:
            training.run(resume=stops > 0)
            break
        except InterruptedError:
            stops += 1
    assert stops >= 2 and training.step == whole.step
    assert all(torch.equal(tensor, weights_of(training)[name]) for name, tensor in weights_of(whole).items())


@pytest.mark.parametrize("after_the_end", [False, True])
def test_a_training_made_longer_ends_with_the_weights_of_one_begun_as_long(tmp_path, capfd, after_the_end):
    """1,536 decisions at a constant rate, ended or killed by `kill -9`, then --resume --timesteps 2304; 18 rollouts."""
    whole, longer = tmp_path / "whole", tmp_path / "longer"
    begin = ["train", "Delay", *options(evaluations=3), "--set=lr_schedule=constant", "--seed", "3", "--logdir"]
    assert cli.run([*(word.replace("1024", "2304") for word in begin), str(whole), "--quiet"]) == 0
    shorter = [*(word.replace("1024", "1536") for word in begin), str(longer), "--quiet"]
    if after_the_end:
        assert cli.run(shorter) == 0
    else:
        process = run_command(*shorter)
        deadline = time.monotonic() + 240
        while step_of(longer) < 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait(240) == -signal.SIGKILL
    again = ["train", "Delay", "--logdir", str(longer), "--resume", "--timesteps"]
    capfd.readouterr()
    assert cli.run([*again, "2304"]) == 0
    said = capfd.readouterr().err
    assert "it goes on to the weights of a training of 2,304 decisions that was not begun as one of 1,536" in said
    tensors = "checkpoint/tensors.safetensors"
    assert (whole / tensors).read_bytes() == (longer / tensors).read_bytes()
    assert json.loads((longer / "config.json").read_text())["timesteps"] == 2304
    assert [row["timesteps"] for row in hparams(longer / "agent")] == [2304.0]
    if after_the_end:
        assert f" && clustergym {' '.join(again)} 2304" in load_agent(longer / "best").description.command
    assert cli.run([*again, "2303"]) == 2
    assert "expected more than the 2,304 decisions of the training there" in capfd.readouterr().err


def hparams(folder: Path) -> list[dict[str, float]]:
    """Numbers of the rows of the HParams page that the log of an agent has."""
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    from clustergym.experiments.storing.event_file import events, files

    found = []
    for event in [one for path in files(folder) for one in events(path)]:
        for value in event.summary.value:
            if value.tag == "_hparams_/session_start_info":
                row = HParamsPluginData.FromString(value.metadata.plugin_data.content).session_start_info.hparams
                found.append({key: one.number_value for key, one in row.items()})
    return found


@pytest.mark.parametrize(
    ("changes", "step", "expected"),
    [
        (
            {},
            1024,
            "other weights than a training of 4,096 decisions that was not begun as one of 1,024: the learning rate"
            " fell to 0 over 1,024 decisions until step 1,024, and goes on at 0.0015 (lr_schedule=constant keeps it)",
        ),
        ({"lr_schedule": "constant"}, 512, "goes on to the weights of a training of 4,096 decisions"),
        ({"lr_schedule": "constant", "n_steps": 256}, 1024, "rollouts were cut to 1,024 decisions"),
        ({"lr_schedule": "constant", "variance": "group", "replicas": 4}, 1000, "rollouts were cut to 1,024 decisions"),
        ({"lr_schedule": "constant", "variance": "group", "replicas": 4}, 500, "goes on to the weights of a training"),
    ],
    ids=str,
)
def test_a_sentence_says_what_differs_in_a_training_made_longer(changes, step, expected):
    """From 1,024 to 4,096 decisions, 2e-3 at first. A rollout is 8 rows x 16 or 256 steps, or 8 episodes of 30."""
    config = small(timesteps=4096, learning_rate=2e-3, **changes)
    saved = Checkpoint(step, data={"config": {"timesteps": 1024}, "each": 30.0})
    assert expected in what_differs(config, saved)


def test_a_training_starts_from_the_weights_of_an_agent(tmp_path):
    """Before its first update it plays the validation as that agent did, and imitates nothing."""
    listener = Quiet()
    first = Training(small(timesteps=256), tmp_path / "first", listener)
    first.run()
    config = small(start_from=f"maskable-ppo:{first.best}", seed=7, timesteps=256, imitate="fifo")
    assert config.imitate is None
    second = Training(config, tmp_path / "second", Quiet())
    second.run()
    found = second.listener.evaluations[0]
    best = first.loop_state.best
    assert (found.step, found.ratios[best["mode"]]) == (0, best["ratios"])
    assert load_agent(second.best).description.config["start_from"] == f"maskable-ppo:{first.best}"


def test_a_training_starts_from_a_shipped_agent_whose_file_leaves_defaults_out():
    config = make_config(default_config("Delay") | {"start_from": "zoo:Delay", "squash": False}, "test")
    assert starting_agent(config).description.steps == 5_649_026


def test_group_advantages_by_hand():
    """Two replicas of one workload. Row 0 decides at 0 s and 10 s and gets -1, -3; row 1 at 0 s and 20 s: -2, -2.

    What row 1 still gets at 10 s lies half way between -4 at 0 s and -2 at 20 s: -3. Row 0 gets -3 from 10 s on. What
    row 0 still gets at 20 s lies half way between -3 at 10 s and 0 at its end, 30 s: -1.5, while row 1 gets -2. So the
    differences are 0, 0, 0, -0.5, and their spread is 0.5 sqrt(3) / 4. A second group, in which everything is a hundred
    times as large, has the same advantages.
    """
    episodes = Episodes(masked=False)
    for rewards, after_s in (((-1.0, -2.0), (10.0, 20.0)), ((-3.0, -2.0), (30.0, 40.0))):
        reward = np.array([*rewards, *(100.0 * one for one in rewards)])
        episodes.add(row=np.arange(4), reward=reward, after_s=np.array([*after_s, *after_s]))
    episodes.finish(replicas=2)
    assert episodes.columns["row"].tolist() == [0, 1, 2, 3] * 2
    assert episodes.columns["return"][[0, 4, 1, 5]].tolist() == [-4.0, -3.0, -4.0, -2.0]
    expected = [0.0, 0.0, 0.0, 0.0, 0.0, -4.0 / 3**0.5, 0.0, -4.0 / 3**0.5]
    assert episodes.columns["advantage"].tolist() == pytest.approx(expected, rel=1e-5)


def test_a_row_that_has_ended_waits_for_the_others():
    config = small(variance="group", replicas=4)
    env = make_env(config)
    learner = make_learner(config, env)
    learner.learn(1, reset_num_timesteps=False)
    episodes = learner.rollout_buffer
    last = {int(row): step for step, row in enumerate(episodes.columns["row"])}
    assert sorted(last) == list(range(env.num_envs))
    assert env.batch.terminated.all()
    assert episodes.count == learner.num_timesteps
    lengths = np.bincount(episodes.columns["row"])
    assert len(set(lengths)) > 1  # some ended before others
    assert sorted(info["l"] for info in learner.ep_info_buffer) == sorted(lengths)


def test_memory_of_a_rollout_is_used_again():
    episodes = Episodes(masked=False)
    for rewards in ((1.0, 2.0), (3.0,)):
        episodes.clear()
        episodes.add(row=np.zeros(len(rewards), np.int64), reward=np.array(rewards))
        assert episodes.count == len(rewards)
        assert episodes.columns["reward"].tolist() == list(rewards)


def test_a_rollout_may_be_longer_than_those_before_it():
    episodes = Episodes(masked=False)
    for steps in (3, 5000, 20_000):  # beyond the room of the one before
        episodes.clear()
        for row in range(2):
            times_s = np.arange(1.0, steps + 1.0)
            episodes.add(row=np.full(steps, row), reward=np.full(steps, -1.0 - row), after_s=times_s)
        episodes.finish(replicas=2)
        assert episodes.columns["return"][[0, steps]].tolist() == [-steps, -2.0 * steps]


def test_replicas_of_a_group_play_the_same_workload():
    config = small(variance="group", replicas=4)
    env = make_env(config)
    env.reset()
    arrivals = [env.envs[row].simulator.workload.arrival_s for row in range(8)]
    assert all(np.array_equal(arrivals[0], arrivals[row]) for row in range(4))
    assert not np.array_equal(arrivals[0], arrivals[4])


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("gama", 1.0, ["unknown key", "gama", "gamma"]),
        ("gamma", 2.0, ["gamma = 2.0"]),
        ("num_envs", 0, ["num_envs = 0"]),
        ("batch_size", 100000, ["batch_size = 100000", "128"]),
        ("variance", "some", ["variance = 'some'"]),
        ("training", [], ["training"]),
    ],
)
def test_a_bad_configuration_is_refused_in_one_sentence(key, value, words):
    with pytest.raises(InputError) as caught:
        make_config(default_config("Delay") | SMALL | {key: value}, "my.yaml")
    text = str(caught.value)
    assert text.startswith("my.yaml") or "my.yaml" in text
    assert "\n" not in text and all(word in text for word in words)


IMITATED = {
    "Delay": "greedy",
    "Delay-preemptive": "greedy:preempt=on,preemption_cost=30",
    "Sharing": "sjf-bsbf",
    "TimeShift": "themis+cassini:workers=fixed,equal=locality",
    "Geo": "bring:slow=none",
    "DataPlacement": "static",
    "Grouping": None,
}


@pytest.mark.parametrize("name", IMITATED)
def test_a_good_rule_is_imitated_where_actions_say_what_it_does_unless_none_shall_be(name):
    values = default_config(name)
    assert make_config(values, "test").imitate == IMITATED[name]
    assert make_config(values | {"imitate": "none"}, "test").imitate is None


def test_a_changed_game_imitates_the_rule_that_plays_it():
    """The reference stops jobs at the environment's cost, and so does the imitated policy."""
    values = default_config("Delay-preemptive")
    config = make_config(values | {"env": values["env"] | {"preemption_cost": 60}}, "test")
    assert config.imitate == config.reference == "greedy:preempt=on,preemption_cost=60"


def test_a_training_that_goes_on_imitates_no_policy_again(tmp_path):
    """Its weights come from the checkpoint; a second clone would undo what PPO has learnt."""
    changes = {"imitate": "greedy", "imitation_steps": 200, "imitation_epochs": 2, "timesteps": 256}
    told, weights = [], []
    for resume in (False, True):
        training = Training(small(**changes), tmp_path, Quiet())
        training.listener.imitated = told.append
        training.run(resume=resume)
        weights.append(weights_of(training))
    before, after = weights
    assert len(told) == 1 and all(torch.equal(before[name], after[name]) for name in after)


def test_values_are_assigned_by_dotted_names():
    values = default_config("Delay")
    assign(values, "env.slots", "8")
    assign(values, "gamma", "0.5")
    assert (values["env"]["slots"], values["gamma"]) == (8, 0.5)
    with pytest.raises(InputError, match="unknown key"):
        assign(values, "evn.slots", "8")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["train", "Delay"], 2, ["--logdir"]),
        (["train", "Dealy", "--logdir", "{dir}/a"], 2, ["Dealy", "Delay"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--algo", "dqn"], 2, ["algo", "dqn"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--imitate", "nobody"], 2, ["nobody"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--imitate", "none", "--set", "soften=2"], 2, ["soften=2", "none"]),
        (["train", "Geo", "--logdir", "{dir}/a", "--set", "imitation_own=0.5"], 2, ["imitation_own = 0.5", "Geo"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--imitate", "fifo", "--set", "imitate=sjf"], 2, ["fifo", "sjf"]),
        (["train", "Delay", "--logdir", "{dir}/none", "--resume", "--imitate", "none"], 2, ["--resume", "--imitate"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--workload", "poison"], 2, ["poison"]),
        (
            ["train", "Delay", "--logdir", "{dir}/a", "--start-from", "greedy"],
            2,
            ["greedy", "folder of a trained agent"],
        ),
        (["train", "Delay", "--logdir", "{dir}/a", "--start-from", "maskable-ppo:none"], 2, ["none: there is no such"]),
        (
            ["train", "Delay", "--logdir", "{dir}/a", "--start-from", "zoo:Delay"],
            2,
            ["squash = False, this training True"],
        ),
        (
            ["train", "Delay", "--logdir", "{dir}/a", "--start-from", "zoo:Geo"],
            2,
            ["Geo-v0", "Delay-v0", "both the same"],
        ),
        (
            ["train", "Delay", "--logdir", "{dir}/a", "--start-from", "zoo:Delay", "--imitate", "fifo"],
            2,
            ["--start-from", "leave --imitate out"],
        ),
        (
            ["train", "Delay", "--logdir", "{dir}/a", "--start-from", "zoo:Delay", "--set", "soften=2"],
            2,
            ["soften=2", "--start-from"],
        ),
        (["train", "Delay", "--logdir", "{dir}/a", "--set", "env.slots=0"], 2, ["slots"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--set", "env.slot=8"], 2, ["slot", "slots"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--set", "env.observation=dict"], 2, ["observation"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--set", "net_options.width=0"], 2, ["width = 0"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--set", "net_options.wide=9"], 2, ["wide", "width"]),
        (["train", "Grouping", "--logdir", "{dir}/a", "--set", "holds=true"], 2, ["holds", "Grouping"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--set", "reference=nobody"], 2, ["nobody"]),
        (["train", "Delay", "--logdir", "{dir}/a", "--config", "{dir}/none.yaml"], 1, ["none.yaml"]),
        (["train", "Delay", "--logdir", "{dir}/none", "--resume"], 1, ["none"]),
        (["train", "Delay", "--logdir", "{dir}/none", "--resume", "--algo", "ppo"], 2, ["--resume", "--algo"]),
    ],
    ids=lambda value: " ".join(value[2:]) if isinstance(value, list) else None,
)
def test_mistakes_on_the_command_line_are_one_sentence(tmp_path, capfd, arguments, status, words):
    assert cli.run([word.format(dir=tmp_path) for word in arguments]) == status
    said = capfd.readouterr().err
    assert "Traceback" not in said and said.count("\n") == 1 and all(word in said for word in words)
    assert not list(tmp_path.iterdir())


def test_the_command_trains_and_says_where_everything_is(tmp_path, capfd):
    folder = tmp_path / "run"
    assert cli.run(["train", "Delay", "--logdir", str(folder), *options(), "--quiet"]) == 0
    said = capfd.readouterr().out
    assert "greedy" in said and str(folder / "best") in said
    assert {"agent", "best", "checkpoint", "config.json", "command.json", "greedy"} <= {
        p.name for p in folder.iterdir()
    }
    assert cli.run(["train", "Delay", "--logdir", str(folder), *options(), "--quiet"]) == 2
    assert "--resume" in capfd.readouterr().err
    assert cli.run(["evaluate", "Delay", "--policies", "fifo", "--seed", "0", "--logdir", str(folder), "--quiet"]) == 2
    assert "a training is there" in capfd.readouterr().err


def test_a_training_leaves_evaluations_alone(tmp_path, capfd):
    evaluate = ["evaluate", "Delay", "--workload", WORD, "--network", "none", "--policies", "fifo", "--seed", "0"]
    assert cli.run([*evaluate, "--logdir", str(tmp_path), "--quiet"]) == 0
    before = sorted(tmp_path.iterdir())
    assert cli.run(["train", "Delay", "--logdir", str(tmp_path), *options(), "--quiet"]) == 2
    assert "an evaluation is there" in capfd.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


OWN = """
from clustergym.agents.networks import DenseNetwork


def waiting(before, after, weight: float = 1.0):
    return -weight * after.waiting_jobs


class Narrow(DenseNetwork):
    def __init__(self, tables, width: int = 4, *, critic=True):
        super().__init__(tables, width, critic=critic)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a reward and a network of one's own, in which the command runs."""
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_reward_and_a_network_of_ones_own_are_trained_with(own):
    """The agent plays in this process, which was asked for them; another one must be told to trust its folder."""
    changes = {"net": "py:mine.py:Narrow,width=6", "env": {"reward": "py:mine.py:waiting,weight=2"}}
    training = Training(small(**changes, variance="group", replicas=4), own / "run", Quiet())
    training.run()
    assert training.learner.policy.network.score.in_features == 6
    agent = load_agent(own / "run" / "best")
    assert agent.description.network == changes["net"] and own / "mine.py" in agent.files
    assert "reward" not in agent.description.env_kwargs
    code = "import sys; from clustergym.agents.files.saved import load_agent; load_agent(sys.argv[1])"
    other = subprocess.run([sys.executable, "-c", code, "run/best"], capture_output=True, text=True, check=False)
    assert "--trust-py" in other.stderr


def test_a_training_does_not_go_on_with_other_code_than_it_began_with(own):
    config = small(env={"reward": "py:mine.py:waiting"}, variance="none", timesteps=256)
    Training(config, own / "run", Quiet()).run()
    (own / "mine.py").write_text(OWN.replace("-weight", "-2 * weight"))
    with pytest.raises(InputError, match=r"reads has changed since it began \(reward\)"):
        Training(config, own / "run", Quiet()).run(resume=True)


def test_a_reference_is_compared_in_mean_jct_only():
    with pytest.raises(InputError, match="compares mean JCTs"):
        small(env={"reward": "slowdown"}, variance="reference")


def test_networks_are_named_or_ones_own():
    with pytest.raises(InputError, match=r"net.*did you mean 'mlp'"):
        small(net="mpl")


@pytest.mark.parametrize(
    ("left", "is_first", "rows"),
    [
        (10_000, True, 32),  # all of 32 rows x 100 decisions
        (3_200, False, 32),
        (3_199, False, 24),  # 31 fit: three groups of 8
        (1_000, True, 8),
        (799, False, 0),  # not one group
        (799, True, 7),  # the first is played in any case, by a part of one
        (10, True, 2),
    ],
)
def test_a_rollout_has_no_more_rows_than_decisions_are_left_for(left, is_first, rows):
    """Groups of 8 rows, 100 decisions an episode."""
    assert rows_of_rollout(32, 8, 100.0, left, is_first) == rows


@pytest.mark.parametrize(
    ("changes", "trained"),
    [
        ({"variance": "none", "timesteps": 100}, 96),  # 8 rows: 12 steps of each instead of 16
        ({"variance": "none", "timesteps": 300}, 256),  # two rollouts of 128; a third would go past
        ({"variance": "none", "timesteps": 3}, 8),  # one step of every row is the least
    ],
)
def test_no_more_decisions_are_trained_on_than_are_asked_for(tmp_path, changes, trained):
    training = Training(small(**changes), tmp_path, Quiet())
    training.run()
    assert training.step == trained
    assert f"{changes['timesteps']:,} are asked for" in training.about


def test_groups_train_no_more_than_asked_once_they_know_how_long_an_episode_is(tmp_path):
    """12 jobs take 24 decisions an episode, as one thinks at first: 8 rows take some 192, in truth about 400."""
    training = Training(small(variance="group", replicas=4, timesteps=1000), tmp_path, Quiet())
    assert training.about.startswith("a rollout is one whole episode of each of 8 rows, some 192 decisions; 1,000")
    training.run()
    assert 600 < training.step <= 1000


def test_what_the_command_prints_judges_the_agent_where_it_was_trained(tmp_path, capfd):
    folder = tmp_path / "run"
    words = [*options(timesteps=128, evaluations=1), "--set", "env.estimates=none", "--set", "env.mtbf_s=90000"]
    words += ["--set", "reference=fifo"]
    assert cli.run(["train", "Delay", "--logdir", str(folder), *words]) == 0
    told = capfd.readouterr()
    line = next(line for line in told.out.splitlines() if line.startswith("compare it"))
    for part in (f"--workload {WORD}", "--topology dally:racks=1,machines=2", "--network none"):
        assert part in line
    assert "--set estimates=none" in line and "--set mtbf_s=90000" in line
    assert "128 decisions were trained on, 128 were asked for" in told.out
    assert "a rollout is 16 steps of 8 rows, 128 decisions" in told.err
