"""Size classes: few, the same results in all of them, and unused room costs nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym.experiments.playing.evaluation import simulator_of
from clustergym.experiments.settings.evaluation_setting import Setting, workload_of
from clustergym.policies import make_for
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.groups.group_fields import GroupCapacity
from clustergym.simulator.record.extents import Block, blocks_of, used_parts
from clustergym.simulator.record.field_axes import CALL, RUN, Axis, Field, dtype_of
from clustergym.simulator.record.raw_record import RawRecord
from clustergym.simulator.record.state import Capacity, state_dtype
from clustergym.simulator.record.zeroed import SPARSE_BYTES, zeroed
from clustergym.simulator.workloads import open_workload

DELAY = "clustergym/Delay-v0"
SMALL = {
    "clustergym/Delay-v0": "poisson:jobs=40,backlog=20,load=1.3",
    "clustergym/Sharing-v0": "philly-sample:jobs=24,hours=1",
    "clustergym/TimeShift-v0": "cassini-poisson:jobs=10,load=0.9",
    "clustergym/Grouping-v0": "harmony-like:jobs=10,gap_min=15",
}


@pytest.mark.parametrize("berths", [1, 2])
@pytest.mark.parametrize("links", [0, 24])
def test_one_class_beside_the_small_one_does_all_that_people_have(berths, links):
    """Jobs up to 16,392, GPUs up to 8,200, links up to 8,264, jobs on a GPU up to 8."""
    rng = np.random.default_rng(berths + links)
    small = Capacity.fitting(2, 2, berths, links)
    found = {
        Capacity.fitting(
            int(rng.integers(1, 16_393)),
            int(rng.integers(1, 8_201)),
            int(rng.integers(2, 9)) if berths > 1 else 1,
            int(rng.integers(1, 8_265)) if links else 0,
        )
        for _ in range(200)
    }
    assert found | {small, Capacity.fitting(16_392, 8_200, berths, links)} == {small, small.large}


def test_in_regions_there_are_two_classes_as_well():
    default, other = Capacity.with_regions(400, 300, 5, 20, 60, 900), Capacity.with_regions(521, 300, 5, 20, 60, 900)
    assert other == default.large == Capacity.with_regions(16_392, 8_200, 63, 900, 8_264, 1_000_000)


def test_so_there_are_for_groups():
    assert GroupCapacity.fitting(40, 40).large == GroupCapacity.fitting(41, 2) == GroupCapacity.fitting(16_392, 8_200)


def test_beyond_the_largest_class_is_an_error():
    with pytest.raises(InputError, match="9000000 jobs: one simulator holds at most 8388608"):
        Capacity.fitting(9_000_000, 8)
    with pytest.raises(InputError, match="9 jobs on a GPU: one simulator holds at most 8"):
        Capacity.fitting(8, 8, berths=9)


def played(env_id: str, word: str, large: bool) -> tuple[dict[str, float], list[float]]:
    """Metrics and finish times of a policy on a small workload, in the class that fits, or in the large one."""
    setting = Setting.of(env_id, workload=SMALL[env_id])
    policy = make_for(word, env_id)
    simulator: Any = simulator_of(setting.config, policy)
    if large:
        simulator.room = lambda capacity: simulator.move_to(capacity.large.empty(), capacity.large, keep=False)
    workload = workload_of(setting, 0)
    simulator.reset(workload, 0)
    return simulator.run(policy.decider(simulator)), simulator.state.finish_s[: len(workload)].tolist()


@pytest.mark.parametrize(
    ("env_id", "word"),
    [
        ("clustergym/Delay-v0", "greedy"),  # rehearses passes on copies of the record
        ("clustergym/Delay-v0", "dally"),
        ("clustergym/Sharing-v0", "sjf-bsbf"),
        pytest.param("clustergym/TimeShift-v0", "sjf-bsbf+cassini", marks=pytest.mark.slow),  # compiles for a minute
        ("clustergym/Grouping-v0", "harmony"),
    ],
)
def test_results_are_the_same_in_both_classes(env_id, word):
    assert str(played(env_id, word, large=True)) == str(played(env_id, word, large=False))  # nan is nan


def delay_run(simulator: Simulator, jobs: int, seed: int) -> dict[str, float]:
    simulator.reset(open_workload(f"poisson:jobs={jobs},backlog=30,load=1.3", seed=seed, cluster_gpus=64), seed)
    return simulator.run()


def test_what_a_longer_run_has_left_does_not_matter():
    """300 jobs, 140, 300 on one record are as on a new one each: byte for byte of what is in use."""
    used = Simulator("dally:racks=2", "none")
    for jobs, seed in ((300, 1), (140, 2), (300, 3)):
        new = Simulator("dally:racks=2", "none")
        assert str(delay_run(used, jobs, seed)) == str(delay_run(new, jobs, seed))
        extent = new.raw.extent
        theirs = (part.tobytes() for part in new.raw._parts_of(extent, is_running=False))
        assert all(
            part.tobytes() == their
            for part, their in zip(used.raw._parts_of(extent, is_running=False), theirs, strict=True)
        )


def test_a_snapshot_of_a_large_record_goes_on_the_same():
    simulator = Simulator("dally:racks=2", "none")
    workload = open_workload("poisson:jobs=140,backlog=30,load=1.3", seed=5, cluster_gpus=64)
    simulator.reset(workload, 5)
    for _ in range(40):
        simulator.schedule()
        simulator.advance()
    kept = simulator.snapshot()
    first = simulator.run()
    simulator.restore(kept)
    assert str(simulator.run()) == str(first)


def test_blocks_are_all_bytes_once():
    """By hand: first what is short and of no axis, n (8 bytes) and odd (5 x 8); a, b, skip (3 x 8), grid (2 x 3 x 8).

    Of `odd`, which has as many entries as `others`, the number in use is not counted; `others` has two more.
    """
    jobs, others = Axis("job", 3), Axis("other", 3).and_more(2)
    fields: list[Field] = [("a", "f8", (jobs,)), ("b", "f8", (jobs,)), ("skip", "i8", (jobs,), CALL), ("n", "i8")]
    fields += [("grid", "i8", (2, jobs)), ("odd", "i8", (5,)), ("others", "i8", (others,))]
    dtype = dtype_of(fields)
    blocks = blocks_of(fields, dtype, {"job", "other"}, (RUN,))
    grid = [Block(120, 2, 8, 3, "job"), Block(168, 1, 8, 5, "other", 2)]
    assert blocks == [Block(0, 1, 48, 1), Block(48, 2, 8, 3, "job"), *grid]
    data = np.zeros(1, dtype).view(np.uint8)
    for part in used_parts(data, blocks, {"job": 2, "other": 1}):
        part.fill(1)
    record = data.view(dtype)[0]
    assert [int(value != 0) for value in (*record["a"], *record["b"], *record["skip"])] == [1, 1, 0, 1, 1, 0, 0, 0, 0]
    assert (record["grid"] != 0).tolist() == [[True, True, False]] * 2 and (record["odd"] != 0).all()
    assert (record["others"] != 0).tolist() == [True, True, True, False, False]


def test_room_is_what_the_cluster_has_and_a_small_record_of_delay_takes_162_kb():
    """Four groups of fields; what the group of a record does not have is one entry."""
    kinds = {"plain": (1, 0), "sharing": (8, 0), "links": (8, 104)}
    small = {name: Capacity.fitting(128, 64, *kind) for name, kind in kinds.items()}
    assert {name: capacity.features for name, capacity in small.items()} == {name: name for name in small}
    sizes = {name: state_dtype(capacity).itemsize for name, capacity in small.items()}
    assert sizes["plain"] <= 162 * 1024 < sizes["sharing"] < sizes["links"]
    plain = state_dtype(small["plain"])
    assert all(plain[name].itemsize == 8 for name in ("xi", "link_bytes", "table_home", "layer_bytes", "auction_s"))


def test_layers_of_models_and_auctions_take_the_next_class():
    assert Capacity.fitting(128, 64, layered=True) == Capacity.fitting(128, 64).large
    for options in ({"network": "allreduce:calibration=artist"}, {"semantics": "artist-sim"}):
        simulator = Simulator("dally:racks=1", **options)
        simulator.reset(open_workload("dally-like:jobs=8", seed=0))
        assert not simulator.capacity.is_small


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="it asks Linux")
def test_unused_room_takes_no_memory():
    """Of 1 GB one byte in every 16 MB is written: 64 pages."""
    before = resident_bytes()
    dtype = np.dtype([("all", "u1", (1 << 24,))])
    assert dtype.itemsize > SPARSE_BYTES
    array = zeroed(64, dtype)
    array["all"][:, 5] = 1
    assert resident_bytes() - before < 1e6 and array["all"][7, :7].tolist() == [0, 0, 0, 0, 0, 1, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="it asks Linux")
def test_a_batch_of_large_records_takes_little():
    """64 rows with 150 jobs: a record has room for 19 MB, and each row takes less than 4."""
    before = resident_bytes()
    envs = clustergym.make_vec("Delay", 64, workload="poisson:jobs=150,backlog=48,load=1.3")
    envs.reset(seed=0)
    assert (resident_bytes() - before) / 64 < 4e6


def test_an_environment_goes_on_in_the_large_class():
    """The same actions in both: the same rewards."""
    returns = []
    for large in (False, True):
        env: Any = gymnasium.make(DELAY, workload=SMALL[DELAY]).unwrapped
        if large:
            env.simulator.room = lambda capacity, env=env: env.stepper.make_room(capacity.large, lost=(0,))
        _, info = env.reset(seed=3)
        rewards = []
        for _ in range(150):
            parts = np.split(info["action_mask"], np.cumsum(env.action_space.nvec)[:-1])
            _, reward, ended, _, info = env.step([int(np.flatnonzero(part)[-1]) for part in parts])
            rewards.append(reward)
            if ended:
                break
        returns.append(rewards)
        assert isinstance(env.simulator.raw, RawRecord) and (env.simulator.capacity.jobs > 136) == large
    assert returns[0] == returns[1]
