"""Mutates every kind of file that is read: each must be refused in a sentence or read, soon, and never in a traceback.

`python tests/hunt/readers.py 1000` changes so many files, drawn over all kinds; `make hunt` runs it.
"""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.cluster.topology_files import load_topology
from clustergym.simulator.workloads import open_workload, read_trace, recognise
from clustergym.tests.hunt import mutants
from clustergym.tests.support import training_tables
from clustergym.tests.support.paths import DATA, ROOT, WORKLOADS
from clustergym.tests.support.pod_hours import write_pod_folders, write_pod_hours

PACKAGE = ROOT
Reader = Callable[[Path], object]

SHORT = "racks: 2\nmachines: 4\nslots: 2\ngpus_per_slot: 4\nname: mine\ntiers:\n  - {name: rack, bandwidth_gbps: 400}\n"
FULL = """name: mine
machine_order: 3
regions:
  - name: east
    count: 2
    clusters:
      - name: a
        gpu_type: V100
        racks: [{count: 2, machines: [{count: 4, slots: 2, gpus_per_slot: 4}, {gpus_per_slot: 1}]}]
tiers:
  - {name: network, bandwidth_gbps: 100, latency_us: 5, oversubscription: 2}
"""
GRAPH = {
    "graph": {"name": "mine", "gpu_type": "A100"},
    "nodes": [{"id": "s0", "gpus": 2, "rack": "a"}, {"id": "s1", "gpus": 2, "forwards": False}, {"id": "leaf"}],
    "edges": [{"source": f"s{one}", "target": "leaf", "capacity_gbps": 50} for one in (0, 1)],
}
LANDS = {
    "wan_gbps": 100.0,
    "links": [{"from": "east", "to": "west", "gbps": 8.0}],
    "regions": [
        {"name": "east", "storage_tb": 50.0, "clusters": [{"name": "a", "gpu_type": "A100", "gpu_machines": 4}]},
        {"name": "west", "storage_tb": 20.0, "clusters": [{"name": "b", "cpu_machines": 10}]},
    ],
    "apps": [{"name": "spark", "cpu_hours": {"west": 10.0}}],
    "tables": [{"name": "clicks", "size_tb": 1.5, "home": "east", "replicas": ["west"]}],
    "jobs": [{"name": "rank", "tables": ["clicks"], "gpu_type": "A100", "gpus": 8, "gpu_hours": 20.0, "priority": 0}],
}
PENALTIES = "model,gpus,machine,rack,network\nvgg16,4,1.1,1.5,2\nvgg16,8,1.1,1.5,2.5\nbert,,1,1,1.2\n"
PHASES = "model,workers,batch,iteration_s,local_s,start_s,duration_s,gbps\nmine,4,32,0.2,0.11,0.1,0.09,40\n"


def kinds(folder: Path) -> Iterator[tuple[str, list[Path], Reader]]:
    """(name, the files that are changed, a function from the first of them to whatever is read), for every kind."""
    yield from _workloads(folder)
    yield from _specifications(folder)
    yield from _networks_and_profiles(folder)
    yield from _trained(folder)


def _workloads(folder: Path) -> Iterator[tuple[str, list[Path], Reader]]:
    for path in sorted((WORKLOADS).iterdir()):
        if path.is_dir():
            pair = [folder / path.name / name for name in ("pai_task_table.csv", "pai_job_table.csv")]
            shutil.copytree(path, folder / path.name)
            yield f"trace {path.name}", pair, read_trace
        elif path.suffix in (".csv", ".json", ".swf", ".trace"):
            place = Path(shutil.copy(path, folder))
            yield f"trace {path.name}", [place], read_trace
            name = recognise(place)
            yield f"trace {path.name} as {name}", [place], lambda path, name=name: read_trace(path, name)
    yield "pods by the hour", [write_pod_hours(folder / "pods.parquet")], read_trace
    days = write_pod_folders(folder / "days")
    yield "pods by the hour, in folders", sorted(days.rglob("*.parquet")), lambda _: read_trace(days)
    for number, word in enumerate(("poisson:jobs=9,deadlines=2", "mast-like:jobs=9", "harmony-like:jobs=9")):
        for ending in ("csv", "parquet"):
            path = folder / f"own-{number}-{ending}" / f"w.{ending}"
            path.parent.mkdir()
            open_workload(word).save(path)
            files = [path, *sorted(one for one in path.parent.iterdir() if one != path)]
            yield f"{word} as {ending}", files, read_trace


def _specifications(folder: Path) -> Iterator[tuple[str, list[Path], Reader]]:
    from clustergym.experiments.tuning.space import read_space, shipped
    from clustergym.simulator.warehouse.warehouse_files import load_warehouse

    for name, text, read in (
        ("short.yaml", SHORT, load_topology),
        ("full.yaml", FULL, load_topology),
        ("graph.json", json.dumps(GRAPH), load_topology),
        ("lands.json", json.dumps({key: LANDS[key] for key in ("wan_gbps", "links", "regions")}), load_topology),
        ("warehouse.json", json.dumps(LANDS), load_warehouse),
    ):
        yield f"topology {name}", [_written(folder, name, text)], read
    table = _written(folder, "hosts.csv", (DATA / "hosts.csv").read_text())
    yield "hosts", [table], lambda path: Topology.load(f"hosts:nics=2,oversubscription=2,uplinks=3,file={path}")
    table = _written(folder, "nodes.csv", (DATA / "nodes.csv").read_text())
    yield "nodes", [table], lambda path: Topology.load(f"nodes:file={path}")
    for name, path in shipped().items():
        place = _written(folder, f"space-{name}.yaml", path.read_text())
        yield f"space {name}", [place], lambda path: read_space(str(path))


def _networks_and_profiles(folder: Path) -> Iterator[tuple[str, list[Path], Reader]]:
    from clustergym.simulator.configuration.network_choice import load_network
    from clustergym.simulator.profiles.measured_tables import read_tables
    from clustergym.simulator.profiles.measurements import read_measurements
    from clustergym.simulator.sharing.interference import Interference

    def network(word: str) -> Reader:
        return lambda path: load_network(word.format(path, path.parent))

    yield "penalties", [_written(folder, "p.csv", PENALTIES)], network("penalty:table={0}")
    for name in ("phases.csv", "phases.json"):
        text = PHASES if name.endswith("csv") else (DATA / "own_phases.json").read_text()
        yield f"phases {name}", [_written(folder, name, text)], network("contention:models={0}")
    data = PACKAGE / "simulator" / "network" / "data"
    for name in ("artist", "measured"):
        files = [_written(folder, end, (data / end).read_text()) for end in (f"{name}.yaml", f"{name}_layers.csv")]
        yield f"tiers and layers {name}", files, network("allreduce:tiers={0},layers={1}/" + files[1].name)
    rows = ("bert,ncf,1.5,2,mps", "bert,ncf,2,,mps", "ncf,bert,1,,mps", "ncf,ncf,1,,mps", "bert,bert,1,,mps")
    pairs = "\n".join(("victim,with,xi,gpus,mode", *rows)) + "\n"
    yield "interference", [_written(folder, "xi.csv", pairs)], lambda path: Interference(str(path))
    yield "interference by word", [_written(folder, "m.csv", pairs)], lambda path: Interference(f"csv:{path},mode=mps")
    measured = "model,gpu,placement,local_batch,step_s,sync_s\nmine,t4,1,8,0.1,\nmine,t4,22,8,0.15,0.01\n"
    yield "measurements", [_written(folder, "times.csv", measured)], lambda path: read_measurements([path])
    tables = training_tables.write_tables(folder / "tables") / "toy"
    yield "tables", sorted(tables.iterdir()), lambda path: read_tables(path.parent.parent, "toy")


def _trained(folder: Path) -> Iterator[tuple[str, list[Path], Reader]]:
    if importlib.util.find_spec("sb3_contrib") is None:
        return
    from clustergym.agents.files.saved import load_agent
    from clustergym.agents.training.config import make_config, read_yaml
    from clustergym.experiments.learning.training import CONFIG, read_config

    for path in sorted((PACKAGE / "agents" / "configs").iterdir())[:2]:
        place = _written(folder, f"config-{path.name}", path.read_text())
        yield f"configuration {path.name}", [place], lambda path: make_config(read_yaml(path), str(path))
    began = folder / "training"
    began.mkdir()
    text = json.dumps(read_yaml(PACKAGE / "agents" / "configs" / "delay.yaml"))
    files = [_written(began, CONFIG, text)]
    yield "training", files, lambda path: make_config(read_config(path.parent), str(path))
    agent = folder / "agent"
    shutil.copytree(PACKAGE / "agents" / "zoo" / "timeshift", agent)
    files = [agent / "agent.json", agent / "weights.safetensors"]
    yield "agent", files, lambda path: load_agent(path.parent)


def _written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def readers(count: int, seed: int = 0) -> Counter[str]:
    """What became of `count` changed files, drawn over all kinds; each kind is read as it is first."""
    found, draw = Counter[str](), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        known = list(kinds(Path(name)))
        for what, paths, read in known:
            outcome: Counter[str] = Counter()
            mutants.outcome(lambda read=read, paths=paths: read(paths[0]), f"{what}, as it is", outcome)
            if outcome != {"accepted": 1}:
                read(paths[0])  # which says why
        for number in range(count):
            what, paths, read = draw.choice(known)
            path = draw.choice(paths)
            whole = path.read_bytes()
            path.write_bytes(mutants.mutated(whole, draw))
            try:
                mutants.outcome(lambda read=read, paths=paths: read(paths[0]), f"{number}: {what}: {path.name}", found)
            finally:
                path.write_bytes(whole)
    return found


if __name__ == "__main__":
    sys.exit(not mutants.tell("changed files", readers(int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0]))))
