"""What can be given, where: help on a screen, `options ENV`, `policies ENV`, an environment that says its values."""

import inspect
import json

import gymnasium
import pytest

from clustergym import policies
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.cli import run

DELAY, SHARING, GEO, GROUPING = (f"clustergym/{name}-v0" for name in ("Delay", "Sharing", "Geo", "Grouping"))


def test_help_of_evaluate_fits_a_screen(capsys, monkeypatch):
    """At most 45 lines of 80 columns, and no option without a word about it."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["evaluate", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80


def listed(capsys, *command: str) -> dict[str, dict]:
    assert run([*command, "--json"]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_options_lists_every_key_of_set_once_with_its_summary(env_id, capsys):
    from clustergym.experiments.commands.options import keys_of

    rows = listed(capsys, "options", env_id)
    assert [*rows] == keys_of(env_id)
    assert [name for name, row in rows.items() if not row["summary"] or ".py)" in row["summary"]] == []


def test_options_shows_defaults_as_they_are_in_the_environment(capsys):
    """Sharing-v0 has 2 jobs a GPU of 11 GiB where the option itself has none; tables move daily in Geo-v0."""
    sharing = listed(capsys, "options", "Sharing")
    assert (sharing["jobs_per_gpu"]["default"], sharing["memory_gb"]["default"]) == ("2", "11")
    assert listed(capsys, "options", "Geo")["tables_every_s"]["default"] == "86400"
    assert listed(capsys, "options", "Delay")["mtbf_s"]["default"] == "inf"
    assert "jobs_per_gpu" not in listed(capsys, "options", "Delay")


def test_policies_shows_parameters_that_act_in_the_environment(capsys):
    """theta of `sjf` weighs stops in regions only; that of `greedy` on GPUs only; disks are of job groups."""
    on_gpus, in_regions = (listed(capsys, "policies", env) for env in ("Delay", "Geo"))
    assert [*on_gpus["greedy"]["parameters"]] == [
        *("margin", "placer", "preemption_cost", "round", "preempt", "theta", "exponent")
    ]
    assert [*on_gpus["sjf"]["parameters"]] == ["head", "placer", "preemption_cost", "round", "lease"]
    assert [*in_regions["greedy"]["parameters"]] == ["levels", "preempts", "slow", "scan_s"]
    assert [*in_regions["random"]["parameters"]] == []
    assert "disk" in listed(capsys, "policies", "Grouping")["greedy"]["parameters"]
    assert "packing" not in on_gpus["gandiva"]["parameters"]
    assert "packing" in listed(capsys, "policies", "Sharing")["gandiva"]["parameters"]
    assert len(policies.describe()) == len(policies.list())


def test_a_wrong_policy_name_lists_those_of_the_environment(capsys):
    assert run(["evaluate", "Delay", "--policies", "gredy"]) == 2
    error = capsys.readouterr().err
    assert "did you mean 'greedy'?" in error
    assert " fifo, " in error
    assert "mast" not in error
    assert "zoo" in error


def test_an_environment_as_text_has_every_value_that_it_was_made_with():
    env = gymnasium.make(DELAY, topology="flat:machines=4", slots=5, mtbf_s=7200).unwrapped
    lines = [line.strip(" <>") for line in str(env).splitlines()]
    assert lines[0] == DELAY
    for line in ("slots = 5", "mtbf_s = 7200.0", "workload = poisson:jobs=128,backlog=48,load=1.3", "skip_idle = True"):
        assert line in lines
    assert [line for line in lines if line.startswith("topology = flat (")]
    assert [line for line in lines if line.startswith("network = penalty:table=chronus")]
    assert lines[1] == "start: 3 candidates of a row of queue"
    families = len(env.interface.families)
    assert len(lines) == 1 + families + len(inspect.signature(type(env)).parameters)
