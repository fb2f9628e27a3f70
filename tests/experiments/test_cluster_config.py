"""One description of a simulated cluster: an option that it declares is an option everywhere."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from dataclasses import dataclass, field

import gymnasium
import numpy as np
import pytest

from clustergym.envs import registration
from clustergym.envs.delay.env import DelayEnv
from clustergym.experiments.cli import run
from clustergym.experiments.commands.options import described_setting
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing import evaluation_file
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.configuration.cluster_config import ClusterConfig
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.groups.group_config import GroupClusterConfig
from clustergym.simulator.sharing.sharing_model import Sharing

DELAY = "clustergym/Delay-v0"
SMALL = ("evaluate", "Delay", "--policies", "fifo", "--seed", "0", "--quiet", "--topology", "flat:machines=1")
WORKLOAD = ("--workload", "batch:jobs=4", "--network", "none")


@dataclass(frozen=True)
class CooledCluster(ClusterConfig):
    """A cluster that is cooled.

    Args:
        cooling_kw: what its cooling takes, kilowatts.
    """

    cooling_kw: float = field(default=0.0)


@pytest.fixture
def cooled(monkeypatch):
    """Delay-v0 on a cluster that is described by one field more."""
    entry = dataclasses.replace(registration.ENVIRONMENTS[DELAY], config=f"{__name__}:CooledCluster")
    monkeypatch.setitem(registration.ENVIRONMENTS, DELAY, entry)


@pytest.mark.usefixtures("cooled")
def test_a_declared_field_is_a_key_of_set_with_its_type():
    assert described_setting("Delay", assignments=["cooling_kw=7"]).config.values()["cooling_kw"] == 7.0
    with pytest.raises(InputError, match="cooling_kw = 'warm': expected a number"):
        described_setting("Delay", assignments=["cooling_kw=warm"])
    with pytest.raises(InputError, match="did you mean 'cooling_kw'"):
        described_setting("Delay", assignments=["coling_kw=7"])
    with pytest.raises(InputError, match="clustergym/Geo-v0 has nothing of the kind; clustergym/Delay-v0 has"):
        described_setting("Geo", assignments=["cooling_kw=7"])


@pytest.mark.usefixtures("cooled")
def test_options_says_what_a_declared_field_is(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["options", "Delay"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "cooling_kw 0 what its cooling takes, kilowatts." in text


@pytest.mark.usefixtures("cooled")
def test_an_environment_takes_a_declared_field_and_owns_it():
    env = gymnasium.make(DELAY, cooling_kw=7.0, workload="batch:jobs=4").unwrapped
    assert env.config.cooling_kw == 7.0
    assert env.simulator.twin().config == env.config
    assert env.terms["cooling_kw"] == "7.0"


@pytest.mark.usefixtures("cooled")
def test_stored_runs_are_told_apart_by_a_declared_field(tmp_path, capsys):
    """Runs at 7 kW are kept under another identity than those at none, and a folder of the one refuses the other."""
    folders = tmp_path / "none", tmp_path / "seven"
    for folder, more in zip(folders, ((), ("--set", "cooling_kw=7")), strict=True):
        assert run([*SMALL, *WORKLOAD, *more, "--logdir", str(folder)]) == 0
    told = [json.loads((folder / evaluation_file.NAME).read_text()) for folder in folders]
    assert [one["setting"]["cooling_kw"] for one in told] == [0.0, 7.0]
    assert told[0]["policies"]["fifo"] != told[1]["policies"]["fifo"]
    assert evaluation_file.setting_of(told[1]).config.cooling_kw == 7.0
    capsys.readouterr()
    assert run([*SMALL, *WORKLOAD, "--logdir", str(folders[1])]) == 2
    assert "cooling_kw 7.0, not 0.0" in capsys.readouterr().err


def test_options_are_told_flat_or_in_their_groups():
    flat = ClusterConfig.of("flat", mtbf_s=1000.0, mttr_s=50.0, jobs_per_gpu=2, memory_gb=16.0)
    grouped = ClusterConfig("flat", failures=Failures(1000.0, 50.0), sharing=Sharing(memory_gb=16.0))
    assert flat == grouped and hash(flat) == hash(grouped)
    assert flat.copy_with(mttr_s=60.0).failures == Failures(1000.0, 60.0)
    assert flat.copy_with(mtbf_s=0.0).failures is None


@pytest.mark.parametrize("value", [np.array([1.0, 2.0]), np.zeros((2, 1)), np.zeros(0), [1, 2], {}], ids=repr)
@pytest.mark.parametrize("made", [ClusterConfig.of, GroupClusterConfig.of])
def test_an_option_that_is_given_an_array_is_refused_in_one_sentence(made, value):
    """Every option there is, whether it would be heeded or not."""
    for key in made.__self__.options():
        with pytest.raises(InputError, match=rf"^{key} = .*: expected one value, found a \w+$"):
            made("flat", **{key: value})


def test_what_is_made_apart_refuses_arrays_too():
    for make in (Failures, lambda value: Failures(outages=value), Sharing, lambda value: Sharing(memory_gb=value)):
        with pytest.raises(InputError, match="expected one value, found a ndarray"):
            make(np.array([1.0, 2.0]))
    with pytest.raises(InputError, match=r"network = array.*: expected 'none'"):
        GroupClusterConfig("flat", network=np.array([1.0, 2.0]))
    with pytest.raises(InputError, match=r"jobs_per_gpu = .*: expected one value"):
        gymnasium.make("clustergym/TimeShift-v0", jobs_per_gpu=np.array([1, 2]))


def test_what_is_made_apart_refuses_what_is_no_number_and_what_is_no_such_object():
    for field_ in dataclasses.fields(Failures):
        if isinstance(field_.default, float):
            for value in ("5", None):
                with pytest.raises(InputError, match=rf"failures: {field_.name} = {value!r}: expected a number"):
                    Failures(**{field_.name: value})
    for made in (ClusterConfig, GroupClusterConfig):
        with pytest.raises(InputError, match=r"failures = 'outages': expected Failures\(...\) or None"):
            made("flat", failures="outages")
    with pytest.raises(InputError, match=r"groups = 3: expected GroupConfig\(...\)"):
        GroupClusterConfig("flat", groups=3)


def test_words_bring_a_setting_back():
    setting = Setting.of(
        "Sharing", estimates="lognormal:sigma=1", horizon_s=500.0, mtbf_s=1e6, memory_gb=None, window="0/100"
    )
    words = {key: None if value == math.inf else value for key, value in setting.words().items()}
    assert Setting.from_words(json.loads(json.dumps(words))) == setting


def test_a_cluster_builds_its_simulator_and_the_simulator_says_what_it_is():
    config = ClusterConfig("flat:machines=2", horizon_s=70.0, semantics="artist-sim:lease_s=1800")
    simulator = config.build()
    assert isinstance(simulator, Simulator)
    assert simulator.config.unusual() == {"horizon_s": 70.0, "semantics": "artist-sim:lease_s=1800"}
    assert simulator.twin(horizon_s=80.0).config.horizon_s == 80.0


def test_every_option_says_what_it_is():
    """In the Args of the class that declares it."""
    assert [key for key, option in ClusterConfig.options().items() if len(option.summary) < 5] == []


def test_an_environment_names_all_its_arguments():
    """Those of its window are its own; those of all environments and of the cluster come from their descriptions."""
    known = inspect.signature(DelayEnv).parameters
    assert known["slots"].default == 32 and known["max_decisions"].default is None
    assert known["checkpoint_s"].default == 1800.0 and known["estimates"].default == "exact"
    assert "tables_every_s" not in known  # there are no regions
    with pytest.raises(InputError, match="did you mean 'slots'"):
        DelayEnv(slot=3)
