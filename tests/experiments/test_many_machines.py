"""Work that is done elsewhere: in other processes, and on the machines of a Ray cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clustergym.experiments.console import versions
from clustergym.experiments.playing import on_ray, shipping
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.playing.executors import Processes, elsewhere
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing import identity
from clustergym.experiments.storing.store import open_store
from clustergym.simulator.base.errors import InputError, MissingExtra

SETTING = Setting.of("clustergym/Delay-v0", "dally:racks=1", "poisson:jobs=12,load=0.9,cluster_gpus=32", "none")
OWN = """
from helper import first
from clustergym.simulator.base.decisions import Advance, Start

class Mine:
    def decide(self, view):
        for job in first(view.queue):
            gpus = view.find_gpus(job, "tier")
            if gpus is not None:
                return Start(job, gpus)
        return Advance()
"""


@dataclass
class Backwards:
    """An executor that works here, the last item first, and remembers what it was given."""

    items: list[Any] = field(default_factory=list)
    count: int = 1

    def each(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """See `Executor`."""
        self.items = list(items)
        for item in reversed(self.items):
            yield work(item)


def test_runs_hang_on_nothing_that_an_executor_chooses():
    """The last run first gives the same runs, in the same order."""
    here = evaluate(SETTING, ["greedy", "random"], [0, 1])
    there = evaluate(SETTING, ["greedy", "random"], [0, 1], executor=Backwards())
    assert [(run.policy, run.seed, run.metrics) for run in here] == [
        (run.policy, run.seed, run.metrics) for run in there
    ]


def test_runs_from_elsewhere_are_kept_where_they_were_handed_out(tmp_path):
    """Two policies on two seeds are four items; given again, there is nothing left to hand out."""
    folder, executor = tmp_path / "results", Backwards()
    store = open_store(folder, SETTING, ["greedy", "random"])
    evaluate(SETTING, ["greedy", "random"], [0, 1], executor=executor, store=store)
    assert len(executor.items) == 4
    assert len(list((folder / "runs").glob("*.parquet"))) == 4
    again = Backwards()
    evaluate(SETTING, ["greedy", "random"], [0, 1], executor=again, store=store)
    assert again.items == []


def test_one_item_needs_no_process():
    assert elsewhere(None, 8, 1) is None
    assert elsewhere(None, 8, 3) == Processes(3)
    chosen = Backwards()
    assert elsewhere(chosen, 1, 1) is chosen


def _laid(folder: Path) -> None:
    (folder / "mine.py").write_text(OWN)
    (folder / "helper.py").write_text("def first(queue):\n    return sorted(queue)\n")
    (folder / "trace.csv").write_text("job_id,arrival_s,gpus,duration_s\na,0,1,60\nb,5,2,90\n")


def test_files_that_words_name_go_along(tmp_path, monkeypatch):
    """A policy's file takes what it imports from its folder with it; paths below the present folder stay."""
    _laid(tmp_path)
    monkeypatch.chdir(tmp_path)
    files, moved = shipping.needed(("trace.csv", {"policy": "py:mine.py:Mine"}, "fifo:head=skip"))
    assert [one.place for one in files] == ["helper.py", "mine.py", "trace.csv"]
    assert moved == {}


def test_files_elsewhere_are_called_otherwise_there_and_as_ever_here(tmp_path, monkeypatch):
    """An absolute path and one that goes up are both below `outside/` there."""
    _laid(tmp_path)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    trace = tmp_path / "trace.csv"
    setting = Setting.of("clustergym/Delay-v0", "dally:racks=1", str(trace), "none")
    files, moved = shipping.needed((setting, "py:../mine.py:Mine"))
    outside = f"outside/{str(tmp_path).lstrip('/')}"
    assert [one.place for one in files] == [f"{outside}/{name}" for name in ("helper.py", "mine.py", "trace.csv")]
    there, policy = shipping.changed((setting, "py:../mine.py:Mine"), moved)
    assert (there.workload, policy) == (f"{outside}/trace.csv", f"py:{outside}/mine.py:Mine")
    back = {after: before for before, after in moved.items()}
    assert shipping.changed((there, policy), back) == (setting, "py:../mine.py:Mine")


def test_what_editors_leave_among_the_sources_is_none_of_them(tmp_path, monkeypatch):
    """It does not go along, so a machine would have other sources than this one."""
    (tmp_path / "simulator").mkdir()
    (tmp_path / "simulator" / "engine.py").write_text("pass\n")
    monkeypatch.setattr(identity, "PACKAGE", tmp_path)
    before = identity.sources.__wrapped__("simulator")
    (tmp_path / "simulator" / ".engine.py.swp").write_text("pass\n")
    (tmp_path / "simulator" / ".checkpoints").mkdir()
    (tmp_path / "simulator" / ".checkpoints" / "engine.py").write_text("pass\n")
    assert identity.sources.__wrapped__("simulator") == before
    (tmp_path / "simulator" / "other.py").write_text("pass\n")
    assert identity.sources.__wrapped__("simulator") != before


def test_a_machine_with_other_libraries_plays_nothing():
    known = versions.versions(*versions.LIBRARIES)
    on_ray.expect_libraries(known)
    with pytest.raises(InputError, match=r"numpy is \S+ on \S+ and 1\.0 where results are kept"):
        on_ray.expect_libraries(known | {"numpy": "1.0"})


def test_the_sources_that_go_along_are_a_package_that_runs(tmp_path):
    shipping.write_package(tmp_path)
    code = "from clustergym.experiments.storing.identity import PLAYING, sources; print(sources(*PLAYING))"
    printed = subprocess.check_output(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, text=True
    )
    from clustergym.experiments.storing import identity

    assert printed.strip() == identity.sources(*identity.PLAYING)


def _cluster() -> Any:
    """A cluster of two machines with a processor each, both of them on this one."""
    pytest.importorskip("ray.cluster_utils", reason="Ray is not installed (pip install ray)")
    from ray import cloudpickle
    from ray.cluster_utils import Cluster

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the tests are no part of the package
    small = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    return cluster, cluster.add_node(**small)


@pytest.mark.slow
def test_a_machine_that_is_lost_in_the_middle_changes_no_row(tmp_path, monkeypatch):
    """Two machines; one is killed after 30 of 240 runs: all of them are there, byte for byte those of processes."""
    cluster, second = _cluster()
    import ray

    from clustergym.experiments.playing.on_ray import RayCluster

    _laid(tmp_path)
    monkeypatch.chdir(tmp_path)
    policies = ["greedy", "random", "py:mine.py:Mine"]
    setting = Setting.of("clustergym/Delay-v0", "dally:racks=2", "poisson:jobs=1000,load=0.9,cluster_gpus=64", "none")
    seeds, ended, places = range(80), [], set()

    def kill() -> None:
        for node, process in places:
            if node == second.node_id:
                os.kill(process, signal.SIGKILL)  # before Ray sees it: a machine is gone with all that runs there
        cluster.remove_node(second, allow_graceful=False)

    def kill_one(done: float) -> None:
        ended.append(done)
        if len(ended) == 30:
            threading.Timer(0.5, kill).start()  # in the middle of a task, which is a second of runs

    try:
        there = open_store(tmp_path / "there", setting, policies)
        both = RayCluster(cluster.address)
        while len(dict(places)) < 2:  # until both have been given the sources
            places |= set(both.each(_where, range(8)))
        began_s = time.monotonic()
        evaluate(setting, policies, seeds, executor=both, progress=kill_one, store=there)
        print(f"two machines, one of them killed: {time.monotonic() - began_s:.1f} s")
    finally:
        ray.shutdown()
        cluster.shutdown()
    here = open_store(tmp_path / "here", setting, policies)
    evaluate(setting, policies, seeds, processes=2, store=here)
    files = sorted(path.name for path in (tmp_path / "here" / "runs").glob("*.parquet"))
    assert len(files) == 240
    for name in files:
        ours, theirs = (tmp_path / place / "runs" / name for place in ("here", "there"))
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.slow
def test_a_mistake_on_a_machine_is_told_as_one_here():
    """A worker's InputError is the driver's, in one sentence."""
    cluster, _ = _cluster()
    import ray

    from clustergym.experiments.playing.on_ray import RayCluster

    try:
        with pytest.raises(InputError, match="negative"):
            list(RayCluster(cluster.address).each(_refused, [1, -1]))
    finally:
        ray.shutdown()
        cluster.shutdown()


def _where(number: int) -> tuple[str, int]:
    """The node of Ray that works, and the process."""
    import ray

    time.sleep(0.2)
    return str(ray.get_runtime_context().get_node_id()), os.getpid()


@pytest.mark.parametrize(
    ("address", "said"), [("127.0.0.1:9", "no answer from there"), ("somewhere", "expected auto, local")]
)
def test_an_address_without_a_cluster_is_told_at_once(address, said):
    pytest.importorskip("ray.cluster_utils", reason="Ray is not installed (pip install ray)")
    from clustergym.experiments.playing.on_ray import RayCluster

    with pytest.raises(InputError, match=said):
        RayCluster(address)


@pytest.fixture
def only(monkeypatch) -> Iterator[Callable[[Path], None]]:
    """A function that lets Python find modules in one folder only."""

    def limit(folder: Path) -> None:
        monkeypatch.delitem(sys.modules, "ray", raising=False)
        monkeypatch.setattr(sys, "path", [str(folder)])

    yield limit
    sys.modules.pop("ray", None)


@pytest.mark.parametrize("content", ["", "import nothing_of_that_name"])
def test_a_package_that_hides_ray_is_told_of(tmp_path, only, content):
    """In the present folder, where `python -m` looks first: another's, or sources of Ray that were not built."""
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "__init__.py").write_text(content)
    only(tmp_path)
    with pytest.raises(InputError, match=f"{tmp_path / 'ray'} is called ray too"):
        on_ray.expect_installed()


def test_a_folder_that_is_called_ray_is_not_taken_for_it(tmp_path, only):
    """A checkout has its modules deeper; Python imports such a folder where Ray is not installed."""
    (tmp_path / "ray").mkdir()
    only(tmp_path)
    with pytest.raises(MissingExtra, match="pip install"):
        on_ray.expect_installed()


def _refused(number: int) -> int:
    from clustergym.simulator.base.errors import InputError

    if number < 0:
        raise InputError(f"{number} is negative")
    return number


@pytest.mark.slow
def test_the_command_prints_the_same_on_a_cluster(tmp_path):
    """`--ray local` and `-j 2`: the same JSON."""
    pytest.importorskip("ray.cluster_utils", reason="Ray is not installed (pip install ray)")
    _laid(tmp_path)
    words = ["evaluate", "Delay", "--workload", "trace.csv", "--network", "none", "--policies"]
    more = ["greedy py:mine.py:Mine", "--seeds", "0-1", "--json", "--quiet"]
    printed = [
        json.loads(subprocess.check_output([sys.executable, "-m", "clustergym", *words, *more, *how], cwd=tmp_path))
        for how in (["-j", "2"], ["--ray", "local"])
    ]
    assert printed[0] == printed[1]
    assert len(printed[0]) == 4
