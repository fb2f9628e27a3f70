"""Events per CPU second of the compiled schedulers, alone and with shared GPUs, and by the size of the workload.

The load is GPU-seconds of all jobs / (GPUs x time from the first to the last arrival). An event is an arrival, a
completion or a demotion. Beside most schedulers the pure-Python simulator of the tests plays the same workload.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from _measure import Row, bench, cpu_seconds

from clustergym import policies
from clustergym.policies.loop import loop_calls
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload, open_workload

MIXES = ("philly-like", "poisson")
STEADY_LOAD = 0.9  # at 1 and more the queue, and with it the work of an event, grows with the jobs
SIX_MODELS = "models=bert/cifar10/deepspeech2/imagenet/ncf/yolov3"  # whose interference is measured


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    return bench(__doc__.splitlines()[0], argv, events, shared, scaling)


def events(options: Any) -> Iterator[Row]:
    """Events per CPU second, load 1; the reference is plain Python."""
    small, large = ((8, 300, 2), None) if options.quick else ((64, 10_000, 25), (800, 100_000, 5))
    of_small = ("fifo", "las") if options.quick else ("fifo", "sjf", "srtf", "las", "tiresias")
    for size, names in ((small, of_small), (large, ("fifo", "sjf", "las", "tiresias"))):
        for mix in MIXES if size else ():
            machines, jobs, runs = size
            workload = at_load(f"{mix}:jobs={jobs}", 1.0, 8 * machines, options.seed)
            for name in names:
                simulator = Simulator(_cluster(machines), "none", rule=policies.make(name).rule)
                row = _timed(name, mix, simulator, workload, options.seed, runs)
                slow = name == "tiresias" or (name == "las" and size is large)  # unknown to it, or minutes
                yield row | _reference(row, simulator, workload, machines, slow)


def shared(options: Any) -> Iterator[Row]:
    """Events per CPU second where two jobs may hold a GPU, measured interference, load 1."""
    machines, jobs, runs = (4, 136, 2) if options.quick else (64, 10_000, 15)
    for mix in MIXES:
        workload = at_load(f"{mix}:{SIX_MODELS},jobs={jobs}", 1.0, 8 * machines, options.seed)
        for name in ("sjf", "sjf-ffs", "sjf-bsbf"):
            simulator = Simulator(_cluster(machines), rule=policies.make(name).rule, sharing=Sharing())
            row = _timed(name, mix, simulator, workload, options.seed, runs)
            state = simulator.state
            yield row | {"shared": float(state.shared_integral / state.busy_integral)}


def scaling(options: Any) -> Iterator[Row]:
    """Cost of an event against the number of jobs: poisson, 512 GPUs, load 0.9."""
    for name in ("fifo", "las"):
        for jobs in (200, 400) if options.quick else (10_000, 100_000, 1_000_000):
            workload = at_load(f"poisson:jobs={jobs}", STEADY_LOAD, 512, options.seed)
            simulator = Simulator(_cluster(64), "none", rule=policies.make(name).rule)
            runs = 2 if options.quick else max(3, min(25, 300_000 // jobs))
            row = _timed(name, "poisson", simulator, workload, options.seed, runs)
            yield row | {"ns_per_event": 1e9 / row["events_per_s"]}


def at_load(word: str, load: float, gpus: int, seed: int) -> Workload:
    """The generator's workload, its arrivals stretched to a load."""
    drawn = open_workload(word, seed=seed)
    since_s = drawn.arrival_s - drawn.arrival_s[0]
    wanted_s = float((drawn.gpus * drawn.duration_s).sum()) / (load * gpus)
    arrival_s, named = since_s * (wanted_s / since_s[-1]), {"model": drawn.model, "batch_size": drawn.batch_size}
    return Workload.from_arrays(drawn.name, arrival_s, drawn.gpus, drawn.duration_s, **named)


def _cluster(machines: int) -> str:
    return f"flat:machines={machines},gpus_per_machine=8"


def _timed(name: str, mix: str, simulator: Simulator, workload: Workload, seed: int, runs: int) -> Row:
    """A row: the best compiled run without `reset` and metrics; the first run is not counted."""
    taken_s = []
    for _ in range(runs + 1):
        simulator.reset(workload, seed)
        taken_s.append(cpu_seconds(lambda: _play(simulator)))
    jobs, events = simulator.jobs(), int(simulator.state.events)
    waited = float((jobs["first_start_s"] > jobs["arrival_s"]).mean())
    row: Row = {"policy": name, "workload": mix, "gpus": simulator.topology.num_gpus, "jobs": len(workload)}
    row |= {"mean_gang": float(workload.gpus.mean()), "waited": waited, "events": events}
    return row | {"events_per_s": events / min(taken_s[1:]), "events_per_s_median": events / median(taken_s[1:])}


def _play(simulator: Simulator) -> None:
    loop_calls.schedule(simulator.records, 0)
    simulator.note(int(loop_calls.run(simulator.records, 0, 1 << 62)))


def _reference(row: Row, simulator: Simulator, workload: Workload, machines: int, slow: bool) -> Row:
    """The same in plain Python, the ratio of the best times, and whether all jobs finished at the same instants."""
    if slow:
        return {"reference_events_per_s": None, "ratio": None, "same_finish_times": None}
    from clustergym.tests.support.reference import simulate

    jobs = list(zip(workload.arrival_s.tolist(), workload.gpus.tolist(), workload.duration_s.tolist(), strict=True))
    outcome: dict[str, Any] = {}
    taken_s: list[float] = []
    while len(taken_s) < 3 and sum(taken_s) < 2.0:
        taken_s.append(cpu_seconds(lambda: outcome.update(simulate(jobs, [8] * machines, order=row["policy"]))))
    per_s = row["events"] / min(taken_s)
    same = outcome["finish_s"] == simulator.jobs()["finish_s"].tolist()
    return {"reference_events_per_s": per_s, "ratio": row["events_per_s"] / per_s, "same_finish_times": same}


if __name__ == "__main__":
    raise SystemExit(main())
