"""Saved agents: what comes back, and what is refused before it could run anything."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError

torch = pytest.importorskip("torch", reason="needs the extra `agents`")
pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from safetensors.torch import load_file, save_file  # noqa: E402

from clustergym import policies  # noqa: E402
from clustergym.agents.files import saved  # noqa: E402
from clustergym.agents.files.saved import DESCRIPTION, WEIGHTS, load_agent, save_agent  # noqa: E402
from clustergym.agents.files.tensors import write_tensors  # noqa: E402
from clustergym.tests.support.small_agents import agent, description  # noqa: E402


class Marks:
    """A pickle of this creates a file when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (os.fspath(self.path), "w")


@pytest.fixture
def folder(tmp_path):
    """A saved agent."""
    one = agent()
    save_agent(tmp_path / "agent", one.policy, one.description)
    return tmp_path / "agent"


def refused(folder) -> str:
    """The one sentence with which an agent is refused."""
    with pytest.raises(InputError) as refusal:
        load_agent(folder)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def edit(folder, **changes):
    """Change keys of the description."""
    path = folder / DESCRIPTION
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("network", ["candidates", "mlp"])
@pytest.mark.parametrize("algo", ["maskable-ppo", "ppo"])
def test_an_agent_comes_back_to_the_bit(tmp_path, algo, network):
    one = agent(algo=algo, network=network, mode="sampled", seed=3, steps=7, command="train", evaluation={"jct": 1 / 3})
    save_agent(tmp_path / "runs" / "a", one.policy, one.description)
    again = load_agent(tmp_path / "runs" / "a")
    assert type(again.policy) is type(one.policy)
    before, after = one.policy.state_dict(), again.policy.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert again.description.versions.keys() >= {"python", "torch", "clustergym"}
    assert again.description.model_copy(update={"versions": {}}) == one.description
    observation = np.random.default_rng(0).random(one.policy.observation_space.shape, np.float32)
    masks = {} if algo == "ppo" else {"action_masks": np.ones((1, one.policy.action_space.nvec.sum()), np.int8)}
    said = [who.policy.predict(observation, deterministic=True, **masks)[0] for who in (one, again)]
    assert np.array_equal(*said)
    assert [path.name for path in again.files] == [DESCRIPTION, WEIGHTS]


def test_saving_takes_the_place_of_what_was_there(folder):
    other = agent(seed=1, network="mlp")
    (folder / "left-over").write_text("of another version")
    save_agent(folder, other.policy, other.description)
    assert sorted(path.name for path in folder.iterdir()) == [DESCRIPTION, WEIGHTS]
    assert load_agent(folder).description.network == "mlp"
    assert [path.name for path in folder.parent.iterdir()] == ["agent"]


def test_saving_and_loading_draw_no_random_numbers(folder):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    one = load_agent(folder)
    save_agent(folder, one.policy, one.description)
    assert torch.equal(torch.rand(3), expected)


def test_a_description_of_another_policy_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="describes another policy"):
        save_agent(tmp_path / "a", agent(network="mlp").policy, description(network="candidates"))
    assert list(tmp_path.iterdir()) == []


def test_a_pickle_in_place_of_the_weights_is_refused_and_not_opened(folder, tmp_path):
    marker = tmp_path / "it ran"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (folder / WEIGHTS).write_bytes(pickle.dumps(Marks(marker), protocol))
        sentence = refused(folder)
        assert "pickle" in sentence if protocol > 1 else "safetensors" in sentence
    torch.save({"weights": Marks(marker)}, folder / WEIGHTS)
    assert "zip" in refused(folder)
    torch.save({"weights": Marks(marker)}, folder / WEIGHTS, _use_new_zipfile_serialization=False)
    assert "pickle" in refused(folder)
    assert not marker.exists()


def test_weights_that_are_no_safetensors_file(folder):
    whole = (folder / WEIGHTS).read_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(WEIGHTS, whole)
    huge_header = (2**62).to_bytes(8, "little") + whole[8:]
    for content in (b"", b"\0", whole[:-1], whole[: len(whole) // 2], whole + b"\0", archive.getvalue(), huge_header):
        (folder / WEIGHTS).write_bytes(content)
        assert WEIGHTS in refused(folder)
    (folder / WEIGHTS).unlink()
    assert WEIGHTS in refused(folder)


def _rename(tensors, name):
    tensors["other"] = tensors.pop(name)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (_rename, "missing"),
        (lambda tensors, name: tensors.update(other=torch.zeros(1)), "unknown"),
        (lambda tensors, name: tensors.update({name: tensors[name][:-1].clone()}), "is ["),
        (lambda tensors, name: tensors.update({name: tensors[name].double()}), "float64"),
        (lambda tensors, name: tensors[name].view(-1)[:1].fill_(float("nan")), "not finite"),
        (lambda tensors, name: tensors[name].view(-1)[-1:].fill_(float("inf")), "not finite"),
    ],
)
def test_weights_that_do_not_fit(folder, change, word):
    tensors = load_file(folder / WEIGHTS)
    name = "network.cluster.weight"
    change(tensors, name)
    save_file(tensors, folder / WEIGHTS)
    assert word in refused(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema_version": 2}, ["schema_version = 2", "newer"]),
        ({"schema_version": None}, ["schema_version"]),
        ({"schema_version": "1"}, ["schema_version"]),
        ({"algo": "os.system"}, ["algo", "known: maskable-ppo, ppo"]),
        ({"network": "torch.nn.Linear"}, ["network", "known: candidates, mlp"]),
        ({"mode": "best"}, ["mode", "argmax"]),
        ({"steps": "many"}, ["steps"]),
        ({"surprise": 1}, ["surprise", "unknown key"]),
        ({"normalisation": {"mean": [0.0], "var": [1.0]}}, ["normalisation"]),
        ({"normalisation": {"mean": [0.0], "var": [-1.0]}}, ["normalisation.var"]),
        ({"normalisation": {"mean": [0.0], "var": [1.0], "what": 1}}, ["what", "unknown key"]),
        ({"policy_kwargs": {"features_extractor_class": "os.system"}}, ["features_extractor_class"]),
        ({"policy_kwargs": {"optimizer_class": "torch.optim.Adam"}}, ["optimizer_class"]),
        ({"policy_kwargs": {}}, ["tables"]),
        ({"policy_kwargs": {"tables": {"cluster": 1}}}, ["tables", "hold_column"]),
        ({"policy_kwargs": []}, ["policy_kwargs"]),
    ],
)
def test_descriptions_that_are_not_as_they_should_be(folder, changes, words):
    edit(folder, **changes)
    sentence = refused(folder)
    assert all(word in sentence for word in words), sentence


@pytest.mark.parametrize(
    "options",
    [
        {"width": 10**9},
        {"width": 0},
        {"width": -8},
        {"width": 2.5},
        {"width": "8"},
        {"width": [8]},
        {"heads": 0},
        {"heads": 3},
        {"hold_logit": "-3"},
        {"hold_logit": float("nan")},
        {"tables": {}},
        {"nobody": 1},
    ],
)
def test_options_that_no_network_takes(folder, options):
    kwargs = json.loads((folder / DESCRIPTION).read_text())["policy_kwargs"]
    edit(folder, policy_kwargs={**kwargs, "options": options})
    assert refused(folder)


def test_layouts_that_would_fill_the_memory(folder):
    kwargs = json.loads((folder / DESCRIPTION).read_text())["policy_kwargs"]
    for rows, columns, kinds in ((10**12, 1, 1), (4096, 0, 4096), (4096, 4096, 1), (-1, 12, 4)):
        table = {"rows": rows, "columns": columns, "kinds": kinds}
        edit(folder, policy_kwargs={**kwargs, "tables": {**kwargs["tables"], "tables": [table]}})
        assert "policy_kwargs" in refused(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "\x00", '{"schema_version": 1e999}'])
def test_descriptions_that_are_no_json(folder, text):
    (folder / DESCRIPTION).write_text(text)
    assert DESCRIPTION in refused(folder)


def test_no_agent_there(tmp_path):
    assert "no such folder" in refused(tmp_path / "nothing")
    assert DESCRIPTION in refused(tmp_path)
    (tmp_path / "file").write_text("x")
    assert "expected the folder of an agent" in refused(tmp_path / "file")


@pytest.fixture
def zipped(tmp_path):
    """An agent that stable-baselines3 saved, and one whose pickle leaves a mark."""
    import gymnasium
    from stable_baselines3 import PPO

    from clustergym.tests.support.small_agents import WINDOW

    env = gymnasium.make("clustergym/Delay-v0", observation="flat", **WINDOW)
    PPO("MlpPolicy", env, n_steps=2, batch_size=2, device="cpu", seed=0).save(tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as good, zipfile.ZipFile(tmp_path / "bad.zip", "w") as bad:
        for name in good.namelist():
            content = good.read(name)
            if name == "data":
                data = json.loads(content)
                marks = base64.b64encode(pickle.dumps(Marks(tmp_path / "it ran"))).decode()
                data["observation_space"][":serialized:"] = marks
                content = json.dumps(data).encode()
            bad.writestr(name, content)
    return tmp_path


def test_a_zip_of_stable_baselines3_is_opened_only_where_that_is_allowed(zipped):
    for name in ("good.zip", "bad.zip"):
        with pytest.raises(InputError, match=r"run any code.*--trust-sb3-zip"):
            policies.make(f"ppo:{zipped / name}")
    assert not (zipped / "it ran").exists()
    one = policies.make(f"sb3:{zipped / 'good.zip'}", allow_pickle=True)
    assert one.algo == "ppo" and one.files == (zipped / "good.zip",)
    with contextlib.suppress(InputError):
        policies.make(f"sb3:{zipped / 'bad.zip'}", allow_pickle=True)
    assert (zipped / "it ran").exists(), "the test's own pickle does nothing: it would pass without a refusal"


def test_files_that_are_no_agents_of_stable_baselines3(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match=r"no \.zip of stable-baselines3"):
        policies.make(f"sb3:{tmp_path / 'a.zip'}", allow_pickle=True)
    assert "sb3:FILE.zip" in refused(tmp_path / "a.zip")


def test_versions_are_those_of_this_installation(folder):
    assert load_agent(folder).description.versions["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert json.loads((folder / DESCRIPTION).read_text())["schema_version"] == saved.SCHEMA_VERSION


@pytest.mark.parametrize("name", [DESCRIPTION, WEIGHTS])
def test_a_pipe_or_a_device_is_not_read(folder, name):
    """A pipe would be waited for without end; the size of /dev/zero is 0, what it gives is without end."""
    path = folder / name
    for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        path.unlink()
        make(path)
        assert refused(folder) == f"{path}: is a pipe or a device, which can be read only once; expected a file"


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    from safetensors import SafetensorError

    def full(*arguments):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("clustergym.agents.files.tensors.save_file", full)
    with pytest.raises(InputError, match=r"w.safetensors: it cannot be written \(.*No space left on device"):
        write_tensors(tmp_path / "w.safetensors", agent().policy.state_dict())
