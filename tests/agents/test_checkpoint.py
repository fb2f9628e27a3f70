"""Checkpoints of a training: exact to the bit, whole after a kill, refused where torn or edited, never a pickle."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError

torch = pytest.importorskip("torch", reason="needs the extra `agents`")
pytest.importorskip("safetensors", reason="needs the extra `agents`")

from clustergym.agents.files import checkpoint as module  # noqa: E402
from clustergym.agents.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint  # noqa: E402


def example(step=3) -> Checkpoint:
    """Dtypes, shapes and numbers that are easily lost on the way."""
    dtype = np.dtype([("a", "i1"), ("b", "f8", (3,)), ("c", "u4")], align=True)
    records = np.zeros(4, dtype)
    records["b"] = np.random.default_rng(step).normal(size=(4, 3))
    weights = torch.randn(3, 5, generator=torch.Generator().manual_seed(step))
    numbers = np.array([np.nan, -0.0, np.inf])
    return Checkpoint(
        step,
        {
            "w": weights,
            "t": weights.t(),
            "n": torch.tensor(7),
            "e": torch.zeros(0),
        },
        {
            "records": records,
            "bits": numbers,
            "flags": np.array([True, False]),
            "x": np.int64(3),
        },
        {"seed": 2**127 + 1, "third": 1 / 3, "inf": float("inf"), "list": [1, [2]], "none": None, "text": "ü"},
    )


def assert_same(a: Checkpoint, b: Checkpoint) -> None:
    assert (a.step, a.data) == (b.step, b.data)
    assert a.tensors.keys() == b.tensors.keys() and a.arrays.keys() == b.arrays.keys()
    for name, tensor in a.tensors.items():
        assert tensor.dtype == b.tensors[name].dtype and torch.equal(tensor, b.tensors[name])
    for name, array in a.arrays.items():
        array, other = np.asarray(array), b.arrays[name]
        assert array.shape == other.shape and array.tobytes() == other.tobytes()
        assert array.dtype.fields is None or array.dtype.fields.keys() == other.dtype.fields.keys()


def test_everything_comes_back_to_the_bit(tmp_path):
    write_checkpoint(tmp_path / "run" / "checkpoint", example())
    assert_same(example(), read_checkpoint(tmp_path / "run" / "checkpoint"))


def test_records_of_a_cluster_come_back(tmp_path):
    """The largest dtype that there is: its header is longer than numpy reads unless told to."""
    from clustergym.simulator.record.state import Capacity, empty_state

    records = empty_state(Capacity.fitting(100, 64))
    records.view(np.uint8)[:] = np.random.default_rng(0).integers(0, 255, records.view(np.uint8).shape)
    write_checkpoint(tmp_path / "c", Checkpoint(1, arrays={"records": records}))
    again = read_checkpoint(tmp_path / "c").arrays["records"]
    copy = empty_state(Capacity.fitting(100, 64))
    copy[...] = again
    assert all(np.array_equal(copy[n], records[n], equal_nan=copy[n].dtype.kind == "f") for n in records.dtype.names)


def test_objects_are_refused_not_pickled(tmp_path):
    with pytest.raises(ValueError, match="Object arrays"):
        write_checkpoint(tmp_path / "c", Checkpoint(1, arrays={"o": np.array([{}], object)}))
    assert list(tmp_path.iterdir()) == []


def test_the_new_one_takes_the_place_of_the_old(tmp_path):
    for step in (1, 2):
        write_checkpoint(tmp_path / "c", example(step))
        assert_same(example(step), read_checkpoint(tmp_path / "c"))
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


MOMENTS = range(1, 9)
DYING = """
    import os, sys
    from clustergym.agents.files.checkpoint import Checkpoint, write_checkpoint
    for moment in map(int, sys.argv[2:]):
        child = os.fork()
        if child:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            continue
        calls = 0
        def dying(call):
            def maybe(*arguments):
                global calls
                calls += 1
                if calls == moment:
                    os._exit(9)
                return call(*arguments)
            return maybe
        os.rename, os.fsync, os.mkdir = dying(os.rename), dying(os.fsync), dying(os.mkdir)
        write_checkpoint(f"{sys.argv[1]}/{moment}/c", Checkpoint(2))
        os._exit(0)
"""


@pytest.fixture(scope="module")
def deaths(tmp_path_factory):
    """A folder of checkpoints that were written over by processes that died, and how each of these ended, by moment."""
    folder = tmp_path_factory.mktemp("deaths")
    for moment in MOMENTS:
        (folder / str(moment)).mkdir()
        write_checkpoint(folder / str(moment) / "c", example(1))
    words = [sys.executable, "-P", "-c", textwrap.dedent(DYING), os.fspath(folder), *map(str, MOMENTS)]
    ends = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return folder, dict(zip(MOMENTS, map(int, ends), strict=True))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_between_any_two_calls_to_the_system_leaves_a_whole_one(deaths, moment):
    """The process dies, without any clean-up, just before its n-th rename or flush; the next write clears up."""
    folder, status = deaths[0] / str(moment), deaths[1][moment]
    assert status in ((9, 0) if moment == 8 else (9,))
    assert read_checkpoint(folder / "c").step in (1, 2)
    write_checkpoint(folder / "c", example(3))
    assert read_checkpoint(folder / "c").step == 3
    assert [path.name for path in folder.iterdir()] == ["c"]


@pytest.mark.slow
def test_killed_again_and_again(tmp_path):
    code = f"""
        from clustergym.agents.files.checkpoint import Checkpoint, write_checkpoint
        import numpy as np
        for step in range(10**6):
            write_checkpoint({os.fspath(tmp_path / "c")!r}, Checkpoint(step, arrays={{"a": np.full(10**6, step)}}))
    """
    for trial in range(8):
        child = subprocess.Popen([sys.executable, "-P", "-c", textwrap.dedent(code)])
        while not (tmp_path / "c").exists():
            time.sleep(0.01)
        time.sleep(2.0 + 0.037 * trial)
        child.send_signal(signal.SIGKILL)
        child.wait()
        found = read_checkpoint(tmp_path / "c")
        assert (found.arrays["a"] == found.step).all()


def _cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def _flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("damage", [_cut, _flip, lambda path: path.unlink()])
@pytest.mark.parametrize("name", [module.MANIFEST, module.TENSORS, module.ARRAYS])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, name, damage):
    write_checkpoint(tmp_path / "c", example())
    damage(tmp_path / "c" / name)
    with pytest.raises(InputError) as refusal:
        read_checkpoint(tmp_path / "c")
    assert name in str(refusal.value) and "\n" not in str(refusal.value)


def test_edited_numbers_are_noticed(tmp_path):
    write_checkpoint(tmp_path / "c", example())
    path = tmp_path / "c" / module.MANIFEST
    manifest = json.loads(path.read_text())
    manifest["data"]["third"] = 0.5
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="edited"):
        read_checkpoint(tmp_path / "c")


def test_none_and_a_newer_one(tmp_path):
    with pytest.raises(InputError, match="no checkpoint"):
        read_checkpoint(tmp_path / "c")
    write_checkpoint(tmp_path / "c", example())
    path = tmp_path / "c" / module.MANIFEST
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(InputError, match="schema_version = 2"):
        read_checkpoint(tmp_path / "c")


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "c").write_text("mine")
    with pytest.raises(InputError, match="file"):
        write_checkpoint(tmp_path / "c", example())
    assert (tmp_path / "c").read_text() == "mine"


def test_random_numbers_go_on_where_they_were(tmp_path):
    def drawn():
        return random.gauss(0, 1), random.random(), np.random.rand(3).tolist(), torch.rand(3).tolist()  # noqa: NPY002

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    drawn()
    arrays, data = module.random_states()
    write_checkpoint(tmp_path / "c", Checkpoint(1, arrays=arrays, data={"random": data}))
    first = [drawn() for _ in range(3)]
    found = read_checkpoint(tmp_path / "c")
    module.restore_random_states(found.arrays, found.data["random"])
    assert [drawn() for _ in range(3)] == first


def _learn(network, optimizer, steps):
    for step in range(steps):
        optimizer.zero_grad()
        inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        network(inputs).pow(2).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("options", [{"lr": 3e-4, "eps": 1e-5}, {"lr": 1e-2, "amsgrad": True, "betas": (0.8, 0.99)}])
def test_adam_goes_on_to_the_bit(tmp_path, options):
    """Two steps, a checkpoint, three steps; against three steps from the checkpoint in a new network."""
    network = torch.nn.Linear(4, 3)
    optimizer = torch.optim.Adam(network.parameters(), **options)
    _learn(network, optimizer, 2)
    tensors, data = module.optimizer_tensors(optimizer)
    write_checkpoint(tmp_path / "c", Checkpoint(2, {**network.state_dict(), **tensors}, data={"optimizer": data}))
    _learn(network, optimizer, 3)

    found = read_checkpoint(tmp_path / "c")
    other = torch.nn.Linear(4, 3)
    other.load_state_dict({name: found.tensors[name] for name in other.state_dict()})
    again = torch.optim.Adam(other.parameters(), lr=1.0)
    module.restore_optimizer(again, found.tensors, found.data["optimizer"])
    _learn(other, again, 3)
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), other.parameters(), strict=True))
    before, after = module.optimizer_tensors(optimizer), module.optimizer_tensors(again)
    assert before[1] == after[1] and all(torch.equal(before[0][name], after[0][name]) for name in before[0])


def test_an_optimizer_of_another_network_is_refused():
    optimizer = torch.optim.Adam(torch.nn.Linear(4, 3).parameters())
    optimizer.param_groups[0]["params"][0].grad = torch.ones(3, 4)
    optimizer.step()
    tensors, data = module.optimizer_tensors(optimizer)
    for other in (torch.nn.Linear(5, 3), torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 3))):
        with pytest.raises(InputError, match="optimizer"):
            module.restore_optimizer(torch.optim.Adam(other.parameters()), tensors, data)
