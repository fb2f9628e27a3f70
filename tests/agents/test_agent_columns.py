"""Agents find their columns by name: where an environment has gained some, or others stand elsewhere, they play on."""

from __future__ import annotations

import json

import gymnasium
import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError

torch = pytest.importorskip("torch", reason="needs the extra `agents`")
pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from clustergym import policies  # noqa: E402
from clustergym.agents import shipped  # noqa: E402
from clustergym.agents.files.saved import DESCRIPTION, WEIGHTS, load_agent, read_description, save_agent  # noqa: E402
from clustergym.agents.playing.player import AgentPolicy  # noqa: E402
from clustergym.agents.playing.windows import INTERFACES, Window  # noqa: E402
from clustergym.envs.columns import names_of  # noqa: E402
from clustergym.experiments.cli import run  # noqa: E402
from clustergym.tests.support.small_agents import DELAY, WINDOW, agent, description  # noqa: E402

SMALL = {"topology": "dally:racks=2,machines=2", "workload": "poisson:jobs=16,backlog=8"}


def of_fewer_columns():
    """The description of an agent that knows no timers, and reads the other columns of the queue backwards."""
    described = description()
    columns = {part: list(names) for part, names in described.columns.items()}
    columns["queue"] = columns["queue"][:1] + columns["queue"][-3:0:-1]
    tables = json.loads(json.dumps(described.policy_kwargs["tables"]))
    tables["tables"][0]["columns"] -= 2
    kwargs = described.policy_kwargs | {"tables": tables}
    return described.model_copy(update={"policy_kwargs": kwargs, "columns": columns})


def test_an_agent_reads_its_own_columns_wherever_they_stand():
    described = of_fewer_columns()
    window = Window(DELAY, WINDOW, "agent")
    numbers = np.arange(len(window.features))
    seen = numbers[window.places(described.columns, "agent")]
    place, width = window.interface.places["queue"], len(window.interface.columns["queue"])
    rows = numbers[place].reshape(-1, width)
    expected = [numbers[: place.start], rows[:, [0, *range(width - 3, 0, -1)]].ravel(), numbers[place.stop :]]
    assert np.array_equal(seen, np.concatenate(expected))
    assert window.places(names_of(window.interface.columns), "agent") is None


def test_an_agent_of_fewer_columns_plays(monkeypatch):
    """Its policy is asked about the columns that it knows, and no others."""
    described = of_fewer_columns()
    one = agent(policy_kwargs=described.policy_kwargs, columns=described.columns)
    player, asked, score = AgentPolicy(one), [], one.policy.action_logits

    def action_logits(seen, masks):
        asked.append(seen[0].numpy().copy())
        return score(seen, masks)

    monkeypatch.setattr(one.policy, "action_logits", action_logits)
    env = gymnasium.make(DELAY, **SMALL, **WINDOW).unwrapped
    env.reset(seed=0)
    window = Window(DELAY, WINDOW, "agent")
    for _ in range(20):
        window.interface.attach(env.simulator)
        window.look()
        env.step(player.act(env))
        assert np.array_equal(asked[-1], window.features[window.places(described.columns, "agent")])


def test_a_column_that_is_gone_is_named():
    columns = names_of(INTERFACES[DELAY].columns)
    columns["running"][3] = "mood"
    with pytest.raises(InputError, match="it reads the column 'mood' of running, which its environment lacks"):
        AgentPolicy(agent(columns=columns))


def test_an_agent_without_names_is_refused_with_the_command_that_gives_them(tmp_path, capsys):
    one = agent()
    save_agent(tmp_path / "agent", one.policy, one.description)
    path = tmp_path / "agent" / DESCRIPTION
    content, weights = json.loads(path.read_text()), (tmp_path / "agent" / WEIGHTS).read_bytes()
    before = {key: value for key, value in content.items() if key != "columns"}
    path.write_text(json.dumps(before))
    with pytest.raises(InputError, match="clustergym name-columns") as refusal:
        policies.make(f"maskable-ppo:{tmp_path / 'agent'}")
    command = str(refusal.value).partition("clustergym name-columns ")[2]
    assert run(["name-columns", command]) == 0 and "columns have names" in capsys.readouterr().out
    assert json.loads(path.read_text()) == content and (tmp_path / "agent" / WEIGHTS).read_bytes() == weights
    load_agent(tmp_path / "agent")
    assert run(["name-columns", command]) == 2 and "have names already" in capsys.readouterr().err
    before["policy_kwargs"]["tables"]["cluster"] += 1
    path.write_text(json.dumps(before))
    assert run(["name-columns", command]) == 2 and "train it anew" in capsys.readouterr().err


@pytest.mark.parametrize("name", list(shipped.shipped()))
def test_shipped_agents_know_all_columns_of_their_environments(name):
    described = read_description(shipped.shipped()[name])
    assert described.columns == names_of(INTERFACES[described.environment].columns)
