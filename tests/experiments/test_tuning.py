"""Tuning a policy: the defaults first, bad trials stopped, unseen seeds at the end, the same trials after a kill."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
import warnings
from pathlib import Path

import pytest

optuna = pytest.importorskip("optuna", reason="needs the extra tune")
from optuna.distributions import FloatDistribution, IntDistribution  # noqa: E402
from sqlalchemy import event  # noqa: E402
from sqlalchemy.engine import Engine  # noqa: E402

from clustergym.envs.registration import resolve  # noqa: E402
from clustergym.experiments.cli import run  # noqa: E402
from clustergym.experiments.tuning import trial_search as searching  # noqa: E402
from clustergym.experiments.tuning.space import Parameter, parse, read_space, shipped  # noqa: E402
from clustergym.experiments.tuning.subjects import PolicyParameters, direction_of  # noqa: E402
from clustergym.policies import list as policies_of  # noqa: E402

WORKLOAD = "poisson:jobs=20,backlog=10"
SEEDS = ("--seeds", "1000-1005", "--judge-seeds", "0-5", "--quiet")
SMALL = ("--workload", WORKLOAD, *SEEDS)
GREEDY = ("Delay", "--policy", "greedy", *SMALL)
OWN = """
from clustergym.policies import Policy
from clustergym.simulator.base.decisions import Advance, Start


class Mine(Policy):
    def __init__(self, patience=3, bias: float = 1.0):
        self.patience, self.bias = patience, bias

    def decide(self, view):
        for job in sorted(view.queue, key=lambda job: view.gpus(job) ** self.bias):
            gpus = view.find_gpus(job, "tier")
            if gpus is not None:
                return Start(job, gpus)
        return Advance()
"""


def call(capsys, *arguments: object) -> tuple[int, str, str]:
    """(status, stdout, stderr) of `clustergym tune`."""
    status = run(["tune", *map(str, arguments)])
    said = capsys.readouterr()
    return status, said.out, said.err


def call_json(capsys, *arguments: object):
    status, out, err = call(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def tried(document) -> list[tuple]:
    """What a trial was and what it gave, without how long it took."""
    return [tuple(value for key, value in row.items() if key != "seconds") for row in document["trials"]]


def a_space(folder: Path, text: str) -> Path:
    path = folder / "space.yaml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """The first run after a change of the kernels says on stderr that it compiles them; not in these tests."""
    run(["evaluate", "Delay", "--workload", WORKLOAD, "--seeds", "0", "--policies", "greedy", "--quiet"])


def test_the_first_trial_has_the_defaults_and_every_ratio_is_to_them(capsys):
    found = call_json(capsys, *GREEDY, "--trials", 4)
    first = found["trials"][0]
    assert (first["trial"], first["word"], first["value"], first["state"]) == (0, "greedy", 1.0, "played")
    assert len(found["trials"]) == 4 and found["best"]["value"] <= 1.0
    assert found["judged"]["seeds"] == list(range(6))


def test_a_killed_search_goes_on_with_the_trials_that_an_uninterrupted_one_has(capsys, tmp_path, monkeypatch):
    """Trial 5 is killed while it is played: it is played anew, with the very same values."""
    whole = call_json(capsys, *GREEDY, "--trials", 14, "--logdir", tmp_path / "whole")
    play = PolicyParameters.play

    def killed(self, trial, progress):
        if trial.number == 5:
            raise KeyboardInterrupt
        return play(self, trial, progress)

    monkeypatch.setattr(PolicyParameters, "play", killed)
    assert call(capsys, *GREEDY, "--trials", 14, "--logdir", tmp_path / "parts")[0] == 130
    monkeypatch.setattr(PolicyParameters, "play", play)
    assert len(call_json(capsys, *GREEDY, "--trials", 8, "--logdir", tmp_path / "parts")["trials"]) == 8
    parts = call_json(capsys, *GREEDY, "--trials", 14, "--logdir", tmp_path / "parts")
    assert tried(parts) == tried(whole)


def test_processes_change_nothing(capsys):
    assert tried(call_json(capsys, *GREEDY, "--trials", 3)) == tried(call_json(capsys, *GREEDY, "--trials", 3, "-j", 2))


def test_seeds_of_the_sampler_try_different_values(capsys):
    found = [tried(call_json(capsys, *GREEDY, "--trials", 3, "--seed", seed)) for seed in (0, 1)]
    assert found[0] != found[1]


def test_a_clearly_worse_trial_is_stopped_after_a_few_seeds(capsys, tmp_path):
    """`margin=0` waits for the best tier as long as it takes: on a congested cluster that shows soon."""
    space = a_space(tmp_path, "margin: [0, 0.9]\nplacer: [tier, first]\n")
    arguments = ("Delay", "--policy", "greedy", "--workload", "poisson:jobs=60,backlog=30,load=1.3", *SEEDS)
    arguments += ("--seeds", "1000-1011", "--space", space, "--trials", 8)
    found = call_json(capsys, *arguments)
    stopped = [row for row in found["trials"] if row["state"] == "stopped"]
    assert stopped and {row["margin"] for row in stopped} == {"0"}
    assert {row["seeds"] for row in stopped} <= {5, 10} and all(row["value"] > 1.0 for row in stopped)
    assert "clearly worse than the best" in stopped[0]["why"]
    whole = call_json(capsys, *arguments, "--no-prune")
    assert {row["state"] for row in whole["trials"]} == {"played"}


def test_a_space_names_the_sampler_of_optuna(capsys, tmp_path):
    """The same seed, another sampler: other values."""
    words = ("", "optuna: {sampler: {name: TPESampler, n_startup_trials: 1}}\n")
    spaces = (a_space(tmp_path, f"{word}margin: {{low: 0.4, high: 1.3}}\n") for word in words)
    rows = [call_json(capsys, *GREEDY, "--space", space, "--trials", 3)["trials"][2] for space in spaces]
    assert rows[0]["margin"] != rows[1]["margin"]


def test_what_the_word_gives_stays(capsys):
    found = call_json(capsys, "Delay", "--policy", "greedy:preempt=on,preemption_cost=30", *SMALL, "--trials", 3)
    assert all(row["word"].startswith("greedy:preempt=on,preemption_cost=30") for row in found["trials"])
    assert "preempt" not in found["trials"][1] and found["trials"][1]["theta"] is not None


def test_a_parameter_is_asked_only_where_it_applies(capsys):
    rows = call_json(capsys, *GREEDY, "--trials", 9)["trials"][1:]
    assert {row["preempt"] for row in rows} == {"on", "off"}
    assert all((row["theta"] is None) == (row["preempt"] == "off") for row in rows)


def test_values_that_go_not_together_are_refused_and_the_search_goes_on(capsys, tmp_path):
    """theta without preempt=on is refused by the policy; each end alone is fine with the `preempt` of the word."""
    space = a_space(tmp_path, "preempt: [on, off]\ntheta: {low: 1, high: 2, when: {preempt: [on, off]}}\n")
    rows = call_json(capsys, *GREEDY, "--space", space, "--trials", 8)["trials"]
    refused = [row for row in rows if row["state"] == "refused"]
    assert refused and {row["preempt"] for row in refused} == {"off"}
    assert "preempt=on" in refused[0]["why"] and refused[0]["value"] is None


def test_a_larger_utilisation_is_better(capsys):
    assert direction_of("gpu_utilisation") == "maximize" and direction_of("jct_p99") == "minimize"
    found = call_json(capsys, *GREEDY, "--trials", 4, "--metric", "gpu_utilisation", "--no-prune")
    assert found["best"]["value"] == max(row["value"] for row in found["trials"])


def test_the_folder_has_a_table_and_the_runs_of_the_judges(capsys, tmp_path):
    found = call_json(capsys, *GREEDY, "--trials", 6, "--logdir", tmp_path)
    with (tmp_path / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["trial"] for row in rows] == [str(number) for number in range(6)]
    assert list(rows[0])[:2] == ["trial", "state"] and list(rows[0])[-4:] == ["margin", "preempt", "theta", "exponent"]
    if found["best"]["trial"]:
        assert len(list((tmp_path / "judged" / "runs").glob("*.parquet"))) == 12


def test_the_words_to_copy_say_what_was_played_on(capsys):
    status, out, _ = call(capsys, *GREEDY, "--trials", 12, "--set", "horizon_s=1e9")
    assert status == 0
    assert "95 % interval" in out and f"evaluate Delay --workload {WORKLOAD}" in out and "horizon_s=1e9" in out


def test_where_nothing_depends_on_the_seed_one_run_is_one_run(capsys, tmp_path):
    trace = tmp_path / "trace.csv"
    lines = (f"j{number},{number * 100},{1 + number % 8},{500 + 300 * (number % 5)}" for number in range(40))
    trace.write_text("\n".join(("job_id,arrival_s,gpus,duration_s", *lines)))
    places = ("--workload", trace, "--topology", "dally:racks=1,machines=1", "--network", "none")
    found = call_json(capsys, "Delay", "--policy", "greedy", *places, *SEEDS, "--trials", 6)
    assert {row["seeds"] for row in found["trials"]} == {1}
    assert found["judged"]["verdict"] in ("one run", "the defaults are the best")


@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
def test_two_commands_do_not_tune_in_one_folder(capsys, tmp_path):
    with searching.alone(tmp_path):
        status, _, err = call(capsys, *GREEDY, "--trials", 2, "--logdir", tmp_path)
    assert status == 2 and "another command is tuning there" in err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--seeds", "1000-1006", "seeds [1000, 1001, 1002, 1003, 1004, 1005], not"),
        ("--topology", "dally:racks=1", "topology 'dally:racks=2,machines=4', not 'dally:racks=1'"),
        ("--policy", "greedy:placer=first", "what 'policy greedy', not 'policy greedy:placer=first'"),
        ("--seed", "7", "seed 0, not 7"),
        ("--metric", "makespan", "metric 'jct_mean', not 'makespan'"),
    ],
)
def test_a_folder_of_something_else_is_refused(capsys, tmp_path, option, value, message):
    assert call(capsys, *GREEDY, "--trials", 1, "--logdir", tmp_path)[0] == 0
    status, _, err = call(capsys, *GREEDY, "--trials", 1, "--logdir", tmp_path, option, value)
    assert status == 2 and message in err and "give another folder" in err


def test_a_file_that_is_no_database_is_named(capsys, tmp_path):
    (tmp_path / "study.db").write_text("no")
    status, _, err = call(capsys, *GREEDY, "--logdir", tmp_path)
    assert (status, err.count("\n")) == (
        1,
        1,
    ) and "study.db: trials cannot be kept there (file is not a database)" in err


@pytest.fixture(scope="module")
def thirty() -> list[tuple]:
    """Thirty trials in one go."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert run(["tune", *GREEDY, "--trials", "30", "--json"]) == 0
    return tried(json.loads(said.getvalue()))


@pytest.mark.parametrize("pages", [0, 1], ids=["no page more", "one page more"])
def test_a_full_disk_is_told_in_one_sentence_and_the_trials_before_it_stay(capsys, tmp_path, thirty, pages):
    """A database that must not grow stands for the disk; with room again the trials are those of a folder with room."""
    assert call(capsys, *GREEDY, "--trials", 2, "--logdir", tmp_path / "parts")[0] == 0
    most = (tmp_path / "parts" / "study.db").stat().st_size // 4096 + pages

    def limit(connection, _) -> None:
        connection.execute(f"PRAGMA max_page_count={most}")

    event.listen(Engine, "connect", limit)
    try:
        status, out, err = call(capsys, *GREEDY, "--trials", 30, "--logdir", tmp_path / "parts")
    finally:
        event.remove(Engine, "connect", limit)
    place = tmp_path / "parts" / "study.db"
    assert (status, out) == (1, "")
    assert err == f"clustergym: {place}: trials cannot be kept there (database or disk is full)\n"
    assert tried(call_json(capsys, *GREEDY, "--trials", 30, "--logdir", tmp_path / "parts")) == thirty


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ("margn: {low: 0, high: 1}", "unknown parameter of policy greedy: 'margn'; did you mean 'margin'?"),
        ("margin: {low: 1, high: 1}", "there is nothing to choose"),
        ("theta: {low: 0, high: 8, log: true}", "theta: `low > 0` must hold for `log=True`"),
        ("margin: {low: a, high: 1}", "margin: low = 'a': expected a number"),
        ("margin: {low: nan, high: 1}", "margin: low = 'nan': expected a number"),
        ("margin: {low: 0}", "margin: parameter 'high' is required"),
        ("margin: {low: 0, high: 1, stp: 1}", "did you mean 'step'?"),
        ("margin: {low: 1, high: 2, step: 0.1, log: true}", "`step` is not supported when `log` is true"),
        ("margin: {choices: [0, 1], low: 1}", "unknown parameter 'low'; known: choices"),
        ("margin: {choices: 3}", "margin: '3': expected a list of words"),
        ("margin: [0.5, 0.5]", "a choice is there twice"),
        ("margin: [0.5, x]", "margin: x: policy greedy: margin = 'x': expected a number"),
        ("margin: {low: -1, high: 1}", "margin: -1: "),
        ("placer: {low: 0, high: 1}", "placer: it takes words"),
        ("placer: [tier, frist]", "did you mean 'first'?"),
        ("margin: 0.5", "there is nothing to choose"),
        ("theta: {low: 1, high: 2, when: {preempt: on}}", "when: 'preempt' does not stand above it"),
        ("preempt: [on, off]\nexponent: {low: 0, high: 9}", "exponent: "),
        ("steps: {low: 1.5, high: 9}", "steps: low = '1.5': expected a whole number"),
        ("margin: {low: 0, high: 1, log: maybe}", "log = 'maybe': expected true or false"),
        ("margin: [0.5, 1]\noptuna: {sampler: TPESamplr}", "did you mean 'TPESampler'?"),
        ("margin: [0.5, 1]\noptuna: TPESampler", "optuna: expected sampler and pruner"),
        ("margin: [0.5, 1]\noptuna: {sampler: {name: TPESampler, x: 1}}", "unexpected keyword argument 'x'"),
        ("[1, 2", "line 1, column 6: not YAML"),
        ("- 1", "expected parameters and their ranges"),
        ("", "is empty"),
    ],
)
def test_a_bad_space_is_told_in_one_sentence(capsys, tmp_path, space, message):
    status, out, err = call(capsys, *GREEDY, "--space", a_space(tmp_path, space))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Delay",), "expected --policy NAME or --train"),
        (("Delay", "--policy", "greedy", "--train"), "not both"),
        (("Delay", "--policy", "fifo"), "no space comes with it; give --space FILE with ranges of: head, placer"),
        (("Delay", "--policy", "greedy las"), "expected one policy"),
        (("Delay", "--policy", "greedyy"), "did you mean 'greedy'?"),
        (("Sharing", "--policy", "greedy"), "does not play in"),
        (("Delay", "--policy", "zoo:Delay"), "has no parameters of a policy"),
        (("Delay", "--policy", "greedy", "--space", "gredy"), "did you mean 'greedy'?"),
        (("Delay", "--policy", "greedy", "--space", "nowhere.yaml"), "there is no such file"),
        (("Delay", "--policy", "greedy", "--trials", "0"), "'0' is not a whole number"),
        (("Delay", "--policy", "greedy", "--seeds", "0-9"), "0 is among --seeds, which is tuned on"),
        (("Delay", "--policy", "greedy", "--judge-seeds", "x"), "--judge-seeds 'x'"),
        (("Delay", "--policy", "greedy", "--timesteps", "5"), "--timesteps goes with --train"),
        (("Delay", "--policy", "greedy", "--workload", "a", "--workload", "b"), "--workload is given twice"),
    ],
)
def test_bad_arguments_are_told_in_one_sentence(capsys, arguments, message):
    status, out, err = call(capsys, *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_an_unknown_metric_is_told_with_those_there_are(capsys):
    status, _, err = call(capsys, *GREEDY, "--metric", "jct")
    assert status == 1 and "unknown metric 'jct'; did you mean 'jct_" in err


def test_whole_numbers_of_the_same_range_are_another_space(capsys, tmp_path):
    (tmp_path / "mine.py").write_text(OWN.replace("patience=3", "patience=None"))
    words = ("Delay", "--policy", f"py:{tmp_path}/mine.py:Mine", *SMALL, "--logdir", tmp_path / "out")
    whole = a_space(tmp_path, "patience: {low: 1, high: 3}")
    assert call(capsys, *words, "--space", whole, "--trials", "2")[0] == 0
    whole.write_text("patience: {low: 1.0, high: 3.0}")
    status, _, err = call(capsys, *words, "--space", whole, "--trials", "3")
    assert status == 2 and "space ['patience low 1, high 3'], not ['patience low 1.0, high 3.0']" in err


def test_no_cell_of_the_table_is_a_formula(capsys, tmp_path):
    (tmp_path / "mine.py").write_text(OWN.replace("patience=3", "patience: str = ''"))
    space = a_space(tmp_path, "patience: [=1+1, -2]")
    words = ("Delay", "--policy", f"py:{tmp_path}/mine.py:Mine", "--space", space, *SMALL)
    assert call(capsys, *words, "--trials", "3", "--logdir", tmp_path / "out")[0] == 0
    with open(tmp_path / "out" / "trials.csv", newline="") as file:
        found = {row["patience"] for row in csv.DictReader(file)}
    assert found <= {"", "'=1+1", "-2"} and "'=1+1" in found


def test_without_optuna_one_sentence_names_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    status, _, err = call(capsys, *GREEDY)
    assert status == 1 and 'pip install "clustergym[tune]"' in err and err.count("\n") == 1


def test_ones_own_policy_is_tuned_by_its_word(capsys, tmp_path):
    """A parameter without annotation takes whole numbers where both ends are; the word has them after a comma."""
    (tmp_path / "mine.py").write_text(OWN)
    space = a_space(tmp_path, "patience: {low: 1, high: 9}\nbias: {low: -1, high: 1}\n")
    word = f"py:{tmp_path}/mine.py:Mine"
    rows = call_json(capsys, "Delay", "--policy", word, *SMALL, "--space", space, "--trials", 3)["trials"]
    assert rows[0]["word"] == word
    assert rows[1]["word"].startswith(f"{word},patience=") and rows[1]["patience"].isdigit()


@pytest.mark.parametrize("name", sorted(set(shipped()) - {"training"}))
def test_every_shipped_space_fits_its_policy(name):
    policy, _, env = name.partition("-")
    env_id = resolve(env.capitalize() or ("Grouping" if policy == "harmony" else "Delay"))
    assert policy in policies_of(env_id)
    from clustergym.experiments.settings.evaluation_setting import Setting

    subject = PolicyParameters(Setting.of(env_id), policy, (0,))
    said, source = read_space(name)
    assert parse(said, source, subject)


@pytest.mark.parametrize(
    ("distribution", "value", "text"),
    [
        (FloatDistribution(0.5, 1.2), 0.87312948, "0.873129"),
        (FloatDistribution(1e-6, 1.0, log=True), 1e-5, "1.0e-05"),
        (FloatDistribution(0.0, 1.0, step=0.125), 0.375, "0.375"),
        (IntDistribution(1, 9), 3, "3"),
        (FloatDistribution(0.1, 0.9999999), 0.9999999, "0.9999999"),
    ],
)
def test_numbers_have_six_digits_and_stay_in_their_range(distribution, value, text):
    assert Parameter("a", distribution, {}, "").text(value) == text


def test_warnings_of_optuna_are_kept_from_users(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", optuna.exceptions.ExperimentalWarning)
        assert run(["tune", *GREEDY, "--trials", "12", "--logdir", str(tmp_path)]) == 0
