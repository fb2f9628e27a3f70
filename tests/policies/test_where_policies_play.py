"""Where policies play: what they require of what environments offer."""

from __future__ import annotations

import gymnasium
import pytest

from clustergym import Setting, evaluate, policies
from clustergym.envs import registration
from clustergym.envs.delay.env import DelayEnv
from clustergym.policies import registry
from clustergym.simulator.base.errors import InputError
from clustergym.tests.support.paths import ROOT

PLAYS_IN = {
    "random": "Delay Sharing TimeShift Geo Grouping",
    "random-start": "Geo",
    "greedy": "Delay Geo Grouping",
    "fifo": "Delay Sharing",
    "sjf": "Delay Sharing Geo",
    "edf": "Delay Sharing",
    "replay": "Delay Sharing",
    "srtf": "Delay Geo",
    "srsf": "Delay Geo",
    "las": "Delay",
    "tiresias": "Delay Sharing",
    "sjf-ffs": "Sharing",
    "sjf-bsbf": "Sharing",
    "pollux": "Sharing TimeShift",
    "tiresias-rounds": "Sharing",
    "themis": "TimeShift",
    "themis+cassini": "TimeShift",
    "themis+crux": "TimeShift",
    "themis+mltcp": "TimeShift",
    "pollux+cassini": "TimeShift",
    "dally+cassini": "TimeShift",
    "sjf-bsbf+cassini": "TimeShift",
    "least-shared": "TimeShift",
    "ideal": "TimeShift",
    "best-rotations": "TimeShift",
    "lookahead": "TimeShift",
    "mast": "Geo",
    "federated": "Geo",
    "global": "Geo",
    "scope": "Geo",
    "bring": "Geo",
    "static": "DataPlacement",
    "tetris-v1": "DataPlacement",
    "tetris-v2": "DataPlacement",
    "milp": "DataPlacement",
    "everywhere": "Geo DataPlacement",
    "gandiva": "Delay Sharing",
    "dally": "Delay",
    "dally-manual": "Delay",
    "dally-nowait": "Delay",
    "dally-consolidated": "Delay",
    "isolated": "Grouping",
    "naive-colocation": "Grouping",
    "harmony": "Grouping",
    "oracle": "Grouping",
    "muri": "Grouping",
}
COMPOSED = {"dally+crux:levels=4": "TimeShift", "themis+cassini+mltcp": "TimeShift", "mast+crux": "TimeShift"}
SHORT = {env_id: env_id.removeprefix("clustergym/").removesuffix("-v0") for env_id in registration.ENVIRONMENTS}


@pytest.mark.parametrize("env_id", SHORT)
def test_the_list_of_an_environment(env_id):
    expected = [name for name, places in PLAYS_IN.items() if SHORT[env_id] in places.split()]
    assert policies.list(env_id) == policies.list(SHORT[env_id]) == expected
    assert [row["name"] for row in policies.describe(SHORT[env_id])] == expected


def test_the_environments_of_a_policy():
    assert policies.list() == list(PLAYS_IN)
    for word, places in (PLAYS_IN | COMPOSED).items():
        assert [SHORT[env_id] for env_id in policies.environments_of(word)] == places.split()


def test_all_that_policies_require_is_offered_somewhere():
    """Every alternative, so that none is misspelt."""
    for name, entry in registry.POLICIES.items():
        assert all(registry.environments_with(way) for way in entry.requires.split("|")), name


def test_write_a_policy_has_what_each_environment_offers():
    page = (ROOT / "docs" / "tutorials" / "write-a-policy.md").read_text()
    for env_id, offer in registration.ENVIRONMENTS.items():
        decisions, features = (", ".join(sorted(names)) for names in (offer.decisions, offer.features))
        assert f"| {SHORT[env_id]} | {decisions} | {features} |" in page


def test_an_unknown_environment_is_one_sentence():
    with pytest.raises(InputError, match="did you mean 'Delay'"):
        policies.list("Dealy")


class SmallDelayEnv(DelayEnv):
    """Delay-v0 under another name."""

    part = "SmallDelay-v0"


@pytest.fixture
def small_delay(monkeypatch):
    """The id of an environment that offers to start and to hold jobs, which no policy names."""
    env_id = "clustergym/SmallDelay-v0"
    entry = registration.Entry(
        summary="for tests",
        paper="dally",
        entry_point=f"{__name__}:SmallDelayEnv",
        vector_entry_point="clustergym.envs.delay.env:DelayVectorEnv",
        defaults={"topology": "flat:machines=4", "workload": "poisson:jobs=12", "network": "none"},
        decisions=frozenset({"start", "hold"}),
    )
    monkeypatch.setitem(registration.ENVIRONMENTS, env_id, entry)
    registration.register()
    yield env_id
    del gymnasium.registry[env_id]


def test_fifo_plays_in_an_environment_that_no_policy_names(small_delay):
    """Action by action, and evaluated as in Delay-v0; policies that stop jobs or make room do not play there."""
    assert policies.list("SmallDelay") == ["random", "fifo", "sjf", "edf", "replay"]
    assert small_delay in policies.environments_of("fifo:head=strict")
    env, fifo = gymnasium.make(small_delay), policies.make("fifo")
    env.reset(seed=0)
    ended = False
    while not ended:
        *_, terminated, truncated, info = env.step(fifo.act(env))
        ended = terminated or truncated
    assert terminated and info["finished_jobs"] == 12
    there = registration.ENVIRONMENTS[small_delay].defaults
    (here,), (other,) = (evaluate(Setting.of(name, **there), ["fifo"], [0]) for name in ("SmallDelay", "Delay"))
    assert here.metrics["jct_mean"] == other.metrics["jct_mean"] > 0.0


MINE = """
class Mine:
    def decide(self, view):
        raise NotImplementedError

class Stops(Mine):
    requires = "start, preempt"

class Shares(Mine):
    requires = "start; sharing | group"

class StopsInDelay(Stops):
    environments = ("Delay", "Geo")

class Elsewhere(Stops):
    environments = ("Geo",)

class Misspelt(Mine):
    requires = "start, prempt"

class NoText(Mine):
    requires = ("start",)
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return f"py:{tmp_path / 'mine.py'}"


@pytest.mark.parametrize(
    ("name", "places"),
    [("Stops", "Delay Sharing"), ("Shares", "Sharing Grouping"), ("StopsInDelay", "Delay"), ("Mine", "all")],
)
def test_a_policy_of_ones_own_says_what_it_requires(mine, name, places):
    expected = list(SHORT.values()) if places == "all" else places.split()
    assert [SHORT[env_id] for env_id in policies.environments_of(f"{mine}:{name}")] == expected


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Elsewhere", "requires = 'start, preempt': no environment that it names offers that"),
        ("Misspelt", "unknown decision or feature that .* requires: 'prempt'; did you mean 'preempt'"),
        ("NoText", r"requires = \('start',\): expected text, such as 'start, preempt; sharing'"),
    ],
)
def test_what_no_environment_offers_is_refused_in_a_sentence(mine, name, sentence):
    with pytest.raises(InputError, match=sentence):
        policies.make(f"{mine}:{name}")
