"""The referee of checkouts finds what differs, and only that: tests/support/digests.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.tests.support import digest_plays, digests, face
from clustergym.tests.support.digest_plays import PARTS, STEPPED, Account, Play, episode, played, plays_of, spelt
from clustergym.tests.support.paths import ROOT
from clustergym.tests.support.settings import SETTINGS, SMALL

GROUPING = [Play(SETTINGS["isolated-batched"], "played", seed, f"Grouping played isolated {seed}") for seed in (0, 1)]


def record(**changes: object) -> dict[str, object]:
    """A play of two steps."""
    steps = {kind: ["1", "2"] for kind in STEPPED}
    return {"play": "a", "seconds": 1.0, "error": "", "metric": {"x": "1.0"}, **steps, **changes}


def told(here: dict[str, object], there: dict[str, object]) -> list[str]:
    return [str(one) for one in digests.differences(here, there)]


def test_every_environment_has_parts_and_every_policy_is_played_there():
    """Agents that are shipped too; both by the command line, and in the environment."""
    assert {name for name in gymnasium.registry if name.startswith("clustergym/")} == {
        f"clustergym/{env}-v0" for env in SMALL
    }
    for env in SMALL:
        names = {play.name for play in plays_of(f"{env}-policies")}
        for word in [*policies.list(env), f"zoo:{env}"]:
            assert {f"{env} {how} {word} 0" for how in ("evaluated", "played")} <= names
        assert len({play.name for play in plays_of(f"{env}-drawn")}) == 200
    assert len(PARTS) == 2 * len(SMALL)


def test_names_of_plays_are_names_of_one():
    names = [play.name for part in PARTS for play in plays_of(part)]
    assert len(names) == len(set(names))


def test_infos_are_digested_whole():
    """All that `info` ever has but the mask and the metrics, which are digested by themselves, by name or together."""
    env = face.environment("Grouping", {**SMALL["Grouping"][0], "max_decisions": 1})
    _, begun = env.reset(seed=0)
    *_, info = env.step(np.zeros(len(face.parts_of(env)), np.int64))
    assert {*begun, *info} - info["metrics"].keys() == {*face.OF_INFO, "action_mask", "metrics"}


def test_a_text_does_not_depend_on_the_order_of_a_dict_and_does_on_the_last_bit():
    one = {"b": np.zeros(3, np.float32), "a": (1.0, True, None)}
    other = {"a": [1.0, np.True_, None], "b": np.zeros(3, np.float32)}
    assert spelt(one) == spelt(other)
    assert spelt(1.0) != spelt(np.nextafter(1.0, 2.0))
    assert spelt(np.zeros(3)) != spelt(np.zeros(3, np.float32))
    assert spelt(np.zeros((1, 3))) != spelt(np.zeros(3))


def test_what_differs_first_is_said_of_each_kind_in_the_order_of_steps():
    here = record(mask=["1", "3"], reward=["0", "2"], decision=["1", "2", "3"])
    assert told(here, record()) == ["reward at step 0", "mask at step 1", "decision at step 2"]
    assert told(record(), record(seconds=2.0)) == []


def test_a_metric_that_has_moved_or_gone_is_said_and_a_new_one_is_no_difference():
    assert told(record(metric={"x": "2.0", "y": "1"}), record()) == ["metric x: 1.0 there, 2.0 here"]
    assert told(record(metric={}), record()) == ["metric x: 1.0 there, none here"]
    assert told(record(metric={"x": "1.0", "y": "1"}), record()) == []


def test_an_error_that_only_one_of_two_ends_in_is_said():
    assert told(record(error="InputError: no"), record()) == ["error: none there, InputError: no here"]
    assert told(record(error="InputError: no"), record(error="InputError: no")) == []


def test_plays_that_are_gone_differ_and_new_ones_do_not(capsys):
    assert digests.compared({}, {"a": record()}).differ == 1
    assert "DIFFERS a: is not played here" in capsys.readouterr().out
    assert digests.compared({"a": record(), "b": record()}, {"a": record()}).differ == 0
    assert "new plays, not compared: b" in capsys.readouterr().out


def test_a_play_that_is_written_whole_shows_the_numbers_that_differ(capsys):
    """[0, 2, 0] and [0, 3, 0] differ at place 1 of the list, as `spelt` writes it."""
    here, there = (record(observation=[spelt(np.array([0, value, 0]), whole=True)]) for value in (3, 2))
    digests.compared({"a": here}, {"a": there}, whole=True)
    assert "\n    1: 2 there, 3 here\n" in capsys.readouterr().out


def test_the_same_play_gives_the_same_record_and_another_seed_another():
    one, again, other = (played(GROUPING[seed]) for seed in (0, 0, 1))
    assert one["error"] == "" and len(one["decision"]) == len(one["reward"]) == len(one["observation"]) - 1 > 10
    assert digests.differences(one, again) == []
    assert {"observation", "metric"} <= {one.kind for one in digests.differences(one, other)}


def test_a_changed_reward_is_found_in_rewards_and_nowhere_else():
    plain, changed = Account(), Account()
    episode(GROUPING[0], plain)
    setting = SETTINGS["isolated-batched"]
    altered = replace(setting, own={"reward": "makespan"})
    episode(Play(altered, "played", 0, "a"), changed)
    assert {kind for kind in STEPPED if plain.steps[kind] != changed.steps[kind]} == {"reward"}
    assert plain.metrics == changed.metrics


def test_a_killed_run_goes_on_behind_the_last_whole_line(tmp_path, monkeypatch):
    path, names = tmp_path / "plays.jsonl", []
    monkeypatch.setattr(digest_plays, "played", lambda play, whole: names.append(play.name) or {"play": play.name})
    digest_plays.write(path, GROUPING[:1])
    with path.open("a") as lines:
        lines.write('{"play": "Grouping pl')
    digest_plays.write(path, GROUPING)
    assert names == [play.name for play in GROUPING] == list(digest_plays.kept(path))


@pytest.fixture
def both() -> Iterator[tuple[digests.Side, digests.Side]]:
    """The sides of the last commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("no repository")
    with digests.sides("HEAD") as found:
        yield found


def test_each_side_plays_its_own_code(both, capsys):
    """The other's default reward is changed: a play there and here differs in its rewards."""
    with (both[1].folder / "__init__.py").open("a") as module:
        module.write('\n__import__("gymnasium").registry["clustergym/Grouping-v0"].kwargs["reward"] = "makespan"\n')
    assert digests.one_play(both, "Grouping played setting=isolated-batched 1") == 1
    assert ": reward at step 1\n" in capsys.readouterr().out


def test_a_process_that_would_play_another_checkout_ends(both, tmp_path):
    wrong = replace(both[0], folder=tmp_path / "clustergym")
    (failed,) = digests.play([wrong], "Grouping-drawn", [tmp_path / "out" / "plays.jsonl"])
    assert failed.startswith("FAILED Grouping-drawn here: exit status 2 after 0 plays: `import clustergym` finds ")


def test_a_commit_that_is_none_is_a_sentence():
    with pytest.raises(SystemExit, match="git rev-parse: fatal: Needed a single revision"), digests.sides("nowhere"):
        pass
