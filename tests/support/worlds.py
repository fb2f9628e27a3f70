"""Random simulators of every kind with every option, and random decisions in them, one at a time.

A `World` is a simulator at a decision point and its player; `make_world(kind, seed)` makes one, the same
for a seed everywhere. What must hold is in invariants.py.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from clustergym.policies import make
from clustergym.simulator.base.decisions import (
    Advance,
    AssignGroup,
    Decision,
    Drop,
    Hold,
    Migrate,
    Move,
    Preempt,
    Replicate,
    Resize,
    SetMachines,
    SetSpill,
    Shift,
    Start,
)
from clustergym.simulator.base.errors import InvalidDecision, Stalled
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import BACKFILL_PLACERS, ORDERS, PLACERS, Rule, Tuner
from clustergym.simulator.rules.semantics import Semantics, artist_sim, events
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import random_sharing
from clustergym.tests.support.geo_player import FirstCome, find_units
from clustergym.tests.support.geo_player import random_run as regions_run
from clustergym.tests.support.paths import DATA
from clustergym.tests.support.random_contended import random_run as contended_run
from clustergym.tests.support.random_groups import finish as finish_groups
from clustergym.tests.support.random_groups import random_simulator as groups_simulator

ESTIMATES = ("exact", "exact", "none", "lognormal:sigma=1", "user")
NETWORKS = ("none", "penalty:default=1/1.2/1.5", "allreduce:calibration=artist,default=VGG")
FABRICS = (
    "leaf-spine:leaves=2,spines=2,machines=2,gpus_per_machine=2",
    "leaf-spine:leaves=4,spines=2,machines=2,gpus_per_machine=4,nics=2,rails=on",
    "leaf-spine:leaves=2,spines=3,machines=2,gpus_per_machine=4,nics=2",
    "fat-tree:k=4,gpus_per_machine=2",
)
ROUTES = ("routes=table", "routes=hash,route_seed={seed}", "routes=hash,route_seed={seed},channels=3", "routes=least")
RATES = ("rates=fair", "rates=fair,carried=0.8", "rates=crux", "rates=crux,levels=2", "rates=mltcp")
MOST_GPUS = 72
COSTS_S = ((0.0,), (7.0,), (5.0, 11.0))
Verb = Callable[[Any, np.random.Generator], Decision | None]


class World:
    """One run: its simulator, what can be decided, and how it is brought to its end.

    Attributes:
        simulator: at a decision point, or ended.
        made: how many decisions were carried out, by name; those that were refused, as `refused`.
        careful: compare all bits around a decision that is refused.
    """

    verbs: ClassVar[dict[str, Verb]]

    def __init__(self, simulator: Any) -> None:
        self.simulator = simulator
        self.made: Counter[str] = Counter()
        self.careful = True

    @property
    def ended(self) -> bool:
        """Nothing more can be decided."""
        return bool(self.simulator.ended)

    @property
    def events(self) -> int:
        """What has happened so far, in the kernels' own count: with contention also the phases of iterations."""
        s = self.simulator.state
        return int(s.events) + (int(s.phase_events) if "phase_events" in s.dtype.names else 0)

    def do(self, verb: str, rng: np.random.Generator) -> bool:
        """Carry a random decision of a kind out, if there is one; a refused one must leave the record as it was."""
        decision = None if self.ended else self.verbs[verb](self.simulator.view, rng)
        if decision is None:
            return False
        before = self.simulator.records.tobytes() if self.careful else b""
        try:
            self.simulator.apply(decision)
        except InvalidDecision as error:
            assert str(error) and (not self.careful or self.simulator.records.tobytes() == before), decision
            self.made["refused"] += 1
            return False
        self.made[type(decision).__name__] += 1
        return True

    def advance(self) -> None:
        """On to the next decision point; where nothing can come, something is started first."""
        now_s = float(self.simulator.state.now_s)
        try:
            self.simulator.advance()
        except Stalled:
            self.unstall()
            if not self.ended:
                self.simulator.advance()
        assert self.simulator.state.now_s >= now_s

    def unstall(self) -> None:
        """Start what fits; nothing runs."""
        view = self.simulator.view
        for job in [*view.queue.tolist(), *view.held.tolist()]:
            if view.gpus(job) <= len(view.free_gpus):
                self.simulator.apply(Start(job, view.free_gpus[: view.gpus(job)].tolist()))
                return
        raise AssertionError("it has stalled, although GPUs are free")

    def let_rule(self) -> None:
        """One pass of the compiled rule at this instant, if one plays here."""
        if not self.ended:
            self.simulator.schedule()

    def finish(self) -> None:
        """To the end, without more of chance."""
        view = self.simulator.view
        if not self.ended:
            for job in view.held.tolist():
                if view.gpus(job) <= len(view.free_gpus):
                    self.simulator.apply(Start(job, view.free_gpus[: view.gpus(job)].tolist()))
            self.simulator.run()


def pick(jobs: Any, rng: np.random.Generator) -> int | None:
    """One of them; None: there is none."""
    return int(rng.choice(jobs)) if len(jobs) else None


def waiting(view: Any) -> list[int]:
    return [*view.queue.tolist(), *view.held.tolist()]


# Gangs with GPUs to themselves


def start(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(waiting(view), rng)
    if job is None or view.gpus(job) > len(view.free_gpus):
        return None
    return Start(job, rng.choice(view.free_gpus, view.gpus(job), replace=False).tolist())


def stop(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(view.running, rng)
    return None if job is None else Preempt(job)


def move(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(view.running, rng)
    if job is None:
        return None
    there = [*view.free_gpus.tolist(), *view.gpus_of(job)]
    return Migrate(job, rng.choice(there, view.gpus(job), replace=False).tolist())


def hold(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(view.queue, rng)
    if job is None or not len(view.running):
        return None
    until_s = None if rng.random() < 0.5 else view.now_s + float(rng.integers(1, 200))
    tiers = (None,) if view._simulator.capacity.regions > 0 else (None, 1, 2, 3)
    return Hold(job, until_s, tiers[rng.integers(len(tiers))])


class Gangs(World):
    """Any rule, network, estimates, failures and semantics."""

    verbs: ClassVar[dict[str, Verb]] = {"start": start, "stop": stop, "move": move, "hold": hold}


def random_gangs(seed: int, large: bool = False) -> World:
    """2 to 60 jobs on up to 16 racks of unequal machines; `large`: up to 136."""
    rng = np.random.default_rng(seed)
    rule, semantics = random_rule(rng), random_semantics(rng)
    is_set_aside = any(getattr(rule, name) != getattr(Rule, name) for name in semantics.in_place)
    if rule.preempt or rule.lease or rule.round or rule.slicing or rule.backfills or is_set_aside:
        semantics = events()
    topology, network = random_topology(rng), str(rng.choice(NETWORKS))
    failures = None
    if rng.random() < 0.4 and not semantics.auctions:
        failures = Failures(600.0 * topology.num_machines, 60.0, float(rng.choice([0.0, 5.0])))
        network = str(rng.choice(NETWORKS[:2]))
    if rule.preempt:
        network = str(rng.choice(NETWORKS[:2]))
    estimates = str(rng.choice(ESTIMATES))
    if estimates == "none" and rule.needs_run_times:
        estimates = "exact"
    horizon_s = 400.0 if rng.random() < 0.1 else math.inf
    simulator = Simulator(
        topology, network, rule=rule, semantics=semantics, failures=failures, horizon_s=horizon_s, estimates=estimates
    )
    n, total = int(rng.integers(2, 137 if large else rng.choice([8, 25, 60]))), topology.num_gpus
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 4, 6, 8, total], n), total)
    duration_s = np.ceil(rng.lognormal(4, 1, n)) if rng.random() < 0.5 else rng.lognormal(4, 1, n)
    arrival_s = np.sort(rng.uniform(0, rng.choice([1, 300]), n))
    if rng.random() < 0.5:
        arrival_s = np.floor(arrival_s)
    optional = {"estimate_s": duration_s * rng.lognormal(0, 0.5, n), "iterations": np.ceil(duration_s)}
    if rng.random() < 0.3:
        optional["deadline_s"] = arrival_s + duration_s * rng.uniform(1.0, 5.0, n)
    simulator.reset(Workload.from_arrays("random", arrival_s, gpus, duration_s, **optional), seed)
    return Gangs(simulator)


def random_topology(rng: np.random.Generator) -> Topology:
    """1 to 3 racks of 1 to 3 machines of 1 to 3 slots of 1 to 4 GPUs, all of them unequal; or 16 racks of a slot each.

    72 GPUs at most: one size class of records.
    """
    few = bool(rng.random() < 0.9)
    while True:
        racks = rng.integers(1, 4, rng.integers(1, 4)) if few else np.ones(16, np.int64)
        machines = rng.integers(1, 4, racks.sum()) if few else np.ones(16, np.int64)
        slots = rng.choice([1, 2, 4], machines.sum())
        if slots.sum() <= MOST_GPUS:
            return Topology.from_counts("random", slot_gpus=slots, machine_slots=machines, rack_machines=racks)


def random_semantics(rng: np.random.Generator) -> Semantics:
    if rng.random() < 0.75:
        return events()
    return artist_sim(*(float(rng.choice(choice)) for choice in ([0.0, 20.0, 100.0], [0.0, 1.0], [0.0, 1.0, 2.5])))


def random_rule(rng: np.random.Generator) -> Rule:
    """Of one of seven families: orders, backfilling, timers, timers that follow, foresight, making room, slices."""
    cost, near = COSTS_S[rng.integers(3)], str(rng.choice(["tier", "first"]))
    lease, round_s = float(rng.choice([0.0, 0.0, 20.0, 100.0])), float(rng.choice([0.0, 0.0, 25.0]))
    match int(rng.integers(7)):
        case 0:
            order = str(rng.choice(sorted(set(ORDERS) - {"logged", "turns", "weighted"})))
            thresholds = (50.0, 400.0) if order == "las" and rng.random() < 0.5 else ()
            quantum, head = float(rng.choice([0.0, 1.0, 10.0])), str(rng.choice(["strict", "skip"]))
            return Rule(order, head, str(rng.choice(list(PLACERS))), cost, thresholds, quantum, round_s, lease)
        case 1:
            head, order = str(rng.choice(["reserve", "conservative"])), str(rng.choice(["fifo", "sjf"]))
            return Rule(order, head, str(rng.choice(BACKFILL_PLACERS)), cost, round=round_s)
        case 2:
            timers = tuple(rng.choice([0.0, 1e-9, 10.0, 60.0, 300.0, math.inf], 2).tolist())
            order = str(rng.choice(["nw-sens", "fifo", "latest"]))
            return Rule(order, placer=near, preemption_cost=cost, timers=timers, lease=lease, migrates=not lease)
        case 3:
            tuner = Tuner(float(rng.choice([0.3, 3.0, 24.0])), tuple(rng.choice([0.0, 0.2, 5.0], 2).tolist()))
            return Rule("nw-sens", placer=near, preemption_cost=cost, tuner=tuner, lease=lease, round=round_s)
        case 4:
            margin = float(rng.choice([0.0, 0.5, 0.9, 1.1, math.inf]))
            return Rule(str(rng.choice(["fifo", "srsf"])), placer=near, preemption_cost=cost, margin=margin)
        case 5:
            theta, exponent = float(rng.choice([0.5, 1.2, 3.0])), float(rng.choice([0.0, 0.5, 1.0]))
            options: dict[str, Any] = {"preemption_cost": cost, "round": round_s, "margin": 0.9, "preempt": True}
            return Rule("weighted", placer=near, theta=theta, exponent=exponent, **options)
        case _:
            slicing = float(rng.choice([12.0, 40.0]))
            return Rule("turns", placer="affinity", preemption_cost=cost, migrates=True, slicing=slicing)


# GPUs that hold several jobs, elastic jobs among them


def start_shared(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(waiting(view), rng)
    gpus = None if job is None else random_sharing.random_gang(view, job, rng, keep=False)
    most = view.sub_batch_for(job, gpus) if gpus else None
    if not gpus or not most:
        return None
    batch = len(gpus) * int(rng.integers(1, 9)) if view._simulator.state.elastic and rng.random() < 0.5 else None
    return Start(job, gpus, int(rng.integers(1, most + 1)) if rng.random() < 0.3 and batch is None else None, batch)


def move_shared(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(view.running, rng)
    if job is None or view._simulator.state.elastic:
        return resize(view, rng)
    gpus = random_sharing.random_gang(view, job, rng, keep=True)
    return Migrate(job, gpus) if gpus else None


def resize(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(view.running, rng)
    if job is None:
        return None
    if not view._simulator.state.elastic:
        passes = view.batch(job) >> int(rng.integers(0, max(1, view.batch(job).bit_length())))
        return Resize(job, view.gpus_of(job), sub_batch=passes)
    gpus = random_sharing.random_gang(view, job, rng, keep=True)
    return Resize(job, gpus, len(gpus) * int(rng.integers(1, 9))) if gpus else None


class Shared(World):
    """Several jobs a GPU, with networks, failures and paces; elastic jobs too."""

    verbs: ClassVar[dict[str, Verb]] = {
        "start": start_shared,
        "stop": stop,
        "move": move_shared,
        "resize": resize,
        "hold": hold,
    }


def random_shared(seed: int, large: bool = False) -> World:
    """The simulators of random_sharing.py, with what is known of run times, and now and then a horizon."""
    rng = np.random.default_rng([seed, 1])
    estimates = str(rng.choice(["exact", "none", "lognormal:sigma=1"]))
    horizon_s = 400.0 if rng.random() < 0.1 else math.inf
    most = 136 if large else 25
    return Shared(random_sharing.random_simulator(seed, most=most, estimates=estimates, horizon_s=horizon_s))


def random_elastic(seed: int, large: bool = False) -> World:
    """Up to six, or 20, of Pollux's jobs, which fit what they see, several a GPU or one; now and then machines fail."""
    rng = np.random.default_rng(seed)
    models = ("bert", "cifar10", "deepspeech2", "imagenet", "yolov3")
    n, topology = int(rng.integers(1, 21 if large else 7)), Topology.load("flat:machines=3,gpus_per_machine=4")
    gpus, seconds = rng.integers(1, 9, n), rng.uniform(0.05, 5.0, n)
    iterations = rng.integers(1, 3000, n).astype(float)
    workload = Workload.from_arrays(
        *("elastic", np.sort(rng.integers(0, 60, n)) * 60.0, gpus, iterations * seconds),
        iterations=iterations,
        iteration_s=seconds,
        model=rng.choice(models, n).astype(object),
        batch_size=gpus * 2 ** rng.integers(0, 4, n),
    )
    simulator = Simulator(
        topology,
        "allreduce:calibration=measured,gpu=2080ti",
        rate_provider=make("pollux").rate_provider("2080ti"),
        failures=Failures(20_000.0, 300.0, 60.0) if rng.random() < 0.3 else None,
        sharing=Sharing(2, "constant:xi=1.5", 11.0) if rng.random() < 0.3 else None,
        estimates=str(rng.choice(["exact", "none"])),
    )
    simulator.reset(workload, seed)
    return Shared(simulator)


# A network that jobs contend for


def shift(view: Any, rng: np.random.Generator) -> Decision | None:
    sending = [job for job in view.running.tolist() if view.period_s(job) is not None]
    job = pick(sending, rng)
    if job is None:
        return None
    return Shift(job, None if rng.random() < 0.2 else float(rng.random()) * view.period_s(job))


class Contended(World):
    """Jobs that share links, with time-shifts, leases and failures."""

    verbs: ClassVar[dict[str, Verb]] = {
        "start": start,
        "stop": stop,
        "move": move,
        "hold": hold,
        "shift": shift,
    }


def random_contended(seed: int, large: bool = False) -> World:
    """The simulators of random_contended.py, half of them on fabrics with equal paths and any routes and rates.

    Links may fail too. `large`: with up to 3,000 iterations a job, not 60.
    """
    rng = np.random.default_rng([seed, 2])
    failures = Failures(mtbf_s=60.0, mttr_s=5.0, checkpoint_s=2.0) if rng.random() < 0.3 else None
    words = ["mode=averaged"] if rng.random() < 0.2 else []
    estimates = str(rng.choice(["exact", "none", "lognormal:sigma=1"]))
    most = 3_000 if large else 60
    if not words:  # links fail, or carry less for a while; both, one of them, or neither
        words += [f"link_mtbf_s={rng.choice([20.0, 90.0])},link_mttr_s=4"] * int(rng.random() < 0.3)
        words += [f"degraded={DATA / 'degraded_links.csv'}"] * int(rng.random() < 0.3)
    topology = None
    if rng.random() < 0.5:
        fabric = FABRICS[rng.integers(len(FABRICS))]
        topology = Topology.load(fabric)
        if "spine" in fabric:
            words = [word.replace("degraded_links", "degraded_spines") for word in words]
        else:
            words = [word for word in words if not word.startswith("degraded")]
        words.append(str(rng.choice(ROUTES)).format(seed=seed))
    words.append(str(rng.choice(RATES)))
    options = {"failures": failures, "words": words, "estimates": estimates}
    return Contended(contended_run(seed, most, topology, **options))


# Regions


def start_in_region(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(waiting(view), rng)
    return None if job is None else _placed(Start, view, job, rng)


def move_in_regions(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(view.running, rng)
    return None if job is None else _placed(Migrate, view, job, rng)


def _placed(kind: Any, view: Any, job: int, rng: np.random.Generator) -> Decision | None:
    regions = view.regions_of(job)
    region = int(rng.choice(regions)) if len(regions) and rng.random() < 0.8 else int(rng.integers(3))
    units = find_units(view, job, region, rng)
    return None if units is None else kind(job, units)


def table(view: Any, rng: np.random.Generator) -> Decision | None:
    s = view._simulator.state
    kind = (Replicate, Replicate, Move, Drop)[rng.integers(4)]
    return kind(int(rng.integers(s.n_tables)), int(rng.integers(s.n_regions)))


class Regions(World):
    """Regions with tables, links between them and outages; no compiled rule plays there."""

    verbs: ClassVar[dict[str, Verb]] = {
        "start": start_in_region,
        "stop": stop,
        "move": move_in_regions,
        "hold": hold,
        "table": table,
    }

    def advance(self) -> None:
        """Where nothing can come and no table either, for want of room, the instant stays."""
        with contextlib.suppress(Stalled):
            super().advance()

    def unstall(self) -> None:
        """Start what fits, or bring the tables of those that wait together somewhere."""
        before = self.simulator.state.decisions
        self.let_rule()
        view, s = self.simulator.view, self.simulator.state
        if s.decisions > before:
            return
        for job in waiting(view):
            self.bring(job)

    def bring(self, job: int) -> None:
        """Ask for copies of the tables of a job in every region where units could be had."""
        view = self.simulator.view
        for region in range(int(self.simulator.state.n_regions)):
            if find_units(view, job, region) is None:
                continue
            for needed in view.tables_of(job).tolist():
                if region not in view.copies(needed):
                    self._ask(Replicate(needed, region))
            return

    def _ask(self, decision: Decision) -> None:
        try:
            self.simulator.apply(decision)
        except InvalidDecision:
            self.made["refused"] += 1

    def let_rule(self) -> None:
        """First come first served, in the first region with room."""
        while not self.ended and not isinstance(decision := self.simulator.ask(FirstCome()), Advance):
            self.simulator.apply(decision)

    def finish(self) -> None:
        rng = np.random.default_rng(0)
        for count in range(200_000):
            if self.ended:
                return
            self.let_rule()
            if count > 1000 and len(self.simulator.view.running) == 0:  # full storage, and tables far from each other
                self.do("table", rng)
            self.advance()
        raise AssertionError("the regions do not come to their end")


def random_regions(seed: int, large: bool = False) -> World:
    """The simulators of geo_player.py, with 2 to 40 jobs, or up to 136."""
    jobs = int(np.random.default_rng([seed, 3]).integers(2, 137 if large else 41))
    return Regions(regions_run(seed, jobs=jobs))


# Job groups


def _active(view: Any) -> list[int]:
    return [*view.queue.tolist(), *view.running.tolist()]


def open_group(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(_active(view), rng)
    if job is None or view.free_machines < 1:
        return None
    return AssignGroup(job, None, int(rng.integers(1, view.free_machines + 1)))


def join_group(view: Any, rng: np.random.Generator) -> Decision | None:
    job, group = pick(_active(view), rng), pick(view.groups, rng)
    return None if job is None or group is None else AssignGroup(job, group)


def pause(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(_active(view), rng)
    return None if job is None else Preempt(job)


def size_group(view: Any, rng: np.random.Generator) -> Decision | None:
    group = pick(view.groups, rng)
    if group is None:
        return None
    return SetMachines(group, int(rng.integers(1, view.machines_of(group) + view.free_machines + 1)))


def spill(view: Any, rng: np.random.Generator) -> Decision | None:
    job = pick(view.running, rng)
    if job is None or not view._simulator.rule.spills:
        return None
    return SetSpill(job, None if rng.random() < 0.5 else float(rng.choice([0.0, 0.3, 1.0])))


class Groups(World):
    """Parameter-server jobs in groups of machines, with failures, moves, naive groups and asked spills."""

    verbs: ClassVar[dict[str, Verb]] = {
        "start": open_group,
        "join": join_group,
        "stop": pause,
        "resize": size_group,
        "spill": spill,
    }

    def unstall(self) -> None:
        """A job that waits gets all machines that are free."""
        view = self.simulator.view
        if len(view.queue) and view.free_machines:
            self.simulator.apply(AssignGroup(int(view.queue[0]), None, view.free_machines))

    def let_rule(self) -> None:
        """Where no job runs: a job on all machines."""
        if not self.ended and len(self.simulator.view.running) == 0:
            self.unstall()

    def finish(self) -> None:
        finish_groups(self.simulator)


def random_groups(seed: int, large: bool = False) -> World:
    """The simulators of random_groups.py, with 2 to 10 jobs, or up to 36."""
    rng = np.random.default_rng([seed, 4])
    estimates = str(rng.choice(["exact", "none", "lognormal:sigma=1"]))
    horizon_s = 300.0 if rng.random() < 0.1 else math.inf
    most = 36 if large else 10
    return Groups(groups_simulator(seed, most, estimates=estimates, horizon_s=horizon_s))


KINDS: dict[str, Callable[[int, bool], World]] = {
    "gangs": random_gangs,
    "shared": random_shared,
    "elastic": random_elastic,
    "contended": random_contended,
    "regions": random_regions,
    "groups": random_groups,
}


def make_world(kind: str, seed: int, large: bool = False) -> World:
    """A random one of `KINDS`, at its first decision point; `large`: with more jobs, or longer ones."""
    return KINDS[kind](seed, large)
