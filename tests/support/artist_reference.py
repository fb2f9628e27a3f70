"""Reference of `semantics=artist-sim`: leases, chunks, auctions and timers, written to be read, not to be fast.

The compiled kernels are checked against it; it shares no code with them. It is in its turn checked against the grant
logs of the corrected ArtISt-sim, the simulator behind paper dally (the two in test_artist_semantics.py). Floats are
added in the order of that simulator, chunk by chunk: among jobs of one GPU, rounding decides which comes first.

Gandiva is built from a description; there is no log of it. Its random choices are those of the function `shuffle`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from heapq import heapify, heappop, heappush
from itertools import count, product
from operator import add
from typing import NamedTuple

ARRIVAL, END, AUCTION = range(3)  # the order of events at one instant; ties first in, first out
FINISHED, EXPIRED, EARLY, MOVED = range(4)  # how the use of a gang's GPUs ends
SKEWED = ("VGG", "AlexNet", "MobileNetV3")  # most of the gradient is in one layer: Tiresias keeps them in a rack

Gpu = tuple[int, int, int, int]  # rack, machine, slot, GPU; prefixes of it name the rack, the machine, the slot


class Job(NamedTuple):
    """A job as ArtISt-sim reads it; `iterations` are those of one GPU, a chunk earns as many times more as it has."""

    job_id: int
    arrival_s: float
    gpus: int
    iteration_s: float
    iterations: int
    model: str = ""


class Grant(NamedTuple):
    """One gang of GPUs given; `key` is what ordered the bids."""

    time_s: float
    job_id: int
    key: float
    gpus: list[Gpu]


@dataclass
class Runner:
    """A job under way."""

    job: Job
    left: int  # iterations
    since_s: float  # last start, end of a lease, or arrival
    run_s: float = 0.0
    service: float = 0.0  # GPU-seconds
    sensitivity: float = 0.0  # Nw_sens
    first_start_s: float = -1.0
    held: list[Gpu] = field(default_factory=list)
    to_move: list[Gpu] = field(default_factory=list)  # Gandiva: found, not yet moved to
    end_event: tuple | None = None
    lease: tuple[float, float, int, float, float] = (0.0, 0.0, 0, 0.0, 0.0)  # start, end; then left, run_s, service


def cluster(racks: int, machines: int, slots: int = 2, gpus: int = 4) -> list[Gpu]:
    """All GPUs of so many racks of so many machines of so many slots, in the order in which they are listed."""
    return list(product(range(racks), range(machines), range(slots), range(gpus)))


class Artist:
    """One run.

    Args:
        jobs: in the order in which they are read.
        gpus: all GPUs, ascending.
        fraction: (job, gang) -> compute / (compute + exposed communication), in (0, 1]; not asked for one GPU.
        policy: tiresias, dally or gandiva.
        timers: Dally's machine and rack timer, leases: (0, 0) never waits, (inf, inf) never spreads; None: tuned.
        history, floors, deviation: leases for which tuned timers remember waits, their least values (leases), and
            which deviation (population, sample) of the waits counts.
        scan: (rack, machine) of all machines, the order in which the first one with room is looked for.
        shuffle, fallback: the random order in which Gandiva takes free GPUs; its defect, see `own_machine`.
        lease_s, chunk, pause_s: of every grant; iterations that a job cannot be stopped within; seconds per GPU before
            the auction of GPUs whose lease has ended.
    """

    def __init__(
        self, jobs: Sequence[Job], gpus: list[Gpu], fraction: Callable[[Job, list[Gpu]], float], *, policy: str,
        timers: tuple[float, float] | None = None, history: int = 24, floors: tuple[float, float] = (6, 12),
        deviation: str = "population", scan: list[tuple[int, int]] | None = None,
        shuffle: Callable[[list[Gpu]], list[Gpu]] = list, fallback: bool = True,
        lease_s: float = 3600.0, chunk: int = 1000, pause_s: float = 1.0,
    ) -> None:  # fmt: skip
        self.place = {"tiresias": self.place_tiresias, "dally": self.place_dally, "gandiva": self.place_gandiva}[policy]
        assert all(job.gpus <= len(gpus) for job in jobs), "a job asks for more GPUs than there are"
        self.jobs, self.gpus, self.fraction, self.policy = jobs, gpus, fraction, policy
        self.timers, self.history, self.floors, self.sample = timers, history, floors, deviation == "sample"
        self.shuffle, self.fallback = shuffle, fallback
        self.lease_s, self.chunk, self.pause_s = lease_s, chunk, pause_s
        self.per_rack, self.per_machine = (max(Counter(gpu[:depth] for gpu in gpus).values()) for depth in (1, 2))
        self.rank = {machine: i for i, machine in enumerate(scan or sorted({gpu[:2] for gpu in gpus}))}
        self.free = set(gpus)
        self.active: list[Runner] = []
        self.waits: dict[tuple[int, str], list[tuple[float, float]]] = {}  # (gang, tier): (when, leases waited)
        self.owned: dict[int, set[int]] = {}  # gang -> machine numbers that Gandiva keeps for it
        self.grants: list[Grant] = []
        self.end_s: dict[int, float] = {}
        self.events: list[tuple] = []
        self.numbers = count()
        self.now = 0.0

    def push(self, time_s: float, kind: int, what: object = None) -> tuple:
        event = (time_s, kind, next(self.numbers), what)
        heappush(self.events, event)
        return event

    def run(self, stop_after: float = math.inf) -> Artist:
        """Play all jobs, or until there are so many grants."""
        for job in self.jobs:
            self.push(job.arrival_s, ARRIVAL, job)
        while self.events and len(self.grants) < stop_after:
            self.now, kind, _, what = heappop(self.events)
            if kind == AUCTION:
                self.auction()
            elif kind == END:
                self.end(*what)
            elif isinstance(what, Job):
                if not self.active and not self.end_s:  # the first job: statistics start to be taken
                    self.push(self.now + 1.0, ARRIVAL)
                self.active.append(Runner(what, what.iterations, what.arrival_s))
                if self.free:
                    self.push(self.now, AUCTION)
            elif self.events:  # statistics, as long as anything else is to come
                self.push(self.now + self.lease_s * 0.1, ARRIVAL)
            if not self.events and self.active:
                self.push(self.now + 60.0, AUCTION)
        return self

    def key(self, runner: Runner) -> float:
        """Which job is offered GPUs first: the least."""
        if self.policy == "gandiva":
            return -runner.first_start_s
        return runner.service if self.policy == "tiresias" else runner.sensitivity

    def auction(self) -> None:
        """Offer all free GPUs to all that bid, once; the winners start afterwards."""
        bidders = [one for one in self.active if not one.held]
        if self.policy == "gandiva":  # running jobs on several machines would like to move
            bidders += [one for one in self.active if len({gpu[:2] for gpu in one.held}) > 1 and not one.to_move]
        winners = []
        for runner in sorted(bidders, key=lambda one: (self.key(one), one.since_s, one.job.job_id)):
            free = sorted(self.free)
            if runner.job.gpus > len(free):
                continue
            gang = self.place(runner, free)
            if gang:
                self.free.difference_update(gang)
                self.grants.append(Grant(self.now, runner.job.job_id, self.key(runner), gang))
                winners.append((runner, gang))
        for runner, gang in winners:
            if runner.held:
                runner.to_move = gang
                self.end_at(runner, runner.lease[1], self.now, self.now + self.lease_s)
            else:
                runner.since_s = self.now
                runner.first_start_s = self.now if runner.first_start_s < 0 else runner.first_start_s
                self.start(runner, gang, self.now + self.lease_s)

    def start(self, runner: Runner, gang: list[Gpu], lease_end_s: float) -> None:
        runner.held = gang
        runner.lease = (self.now, lease_end_s, runner.left, runner.run_s, runner.service)
        self.end_at(runner, lease_end_s)

    def end_at(self, runner: Runner, lease_end_s: float, moves_s: float = math.inf, new_end_s: float = 0.0) -> None:
        """Chunk by chunk to the end of the lease, or to the first end of a chunk after `moves_s`."""
        if runner.end_event:
            self.events.remove(runner.end_event)
            heapify(self.events)
        now_s, _, runner.left, runner.run_s, runner.service = runner.lease
        gpus, iteration_s = len(runner.held), runner.job.iteration_s
        share = 1.0 if gpus == 1 else self.fraction(runner.job, runner.held)
        chunk_s = iteration_s / share * self.chunk
        chunk_service = gpus * (iteration_s / share) * self.chunk
        too_short_s = iteration_s * self.chunk / share / gpus  # as if the gang divided it: it does not
        how = None
        while how is None:
            now_s += chunk_s
            runner.run_s += chunk_s
            runner.service += chunk_service
            runner.left = max(0, runner.left - self.chunk * gpus)
            if runner.left == 0:
                how = FINISHED
            elif now_s > moves_s:
                how = MOVED
            elif now_s >= lease_end_s:
                how = EXPIRED
            elif now_s + too_short_s > lease_end_s:
                how = EARLY
        runner.end_event = self.push(now_s, END, (runner, how, new_end_s))

    def end(self, runner: Runner, how: int, new_end_s: float) -> None:
        """GPUs are free at once; what is released early is auctioned at once too, the rest after a pause."""
        job, released = runner.job, runner.held
        runner.held, runner.end_event = [], None
        if how == FINISHED:
            released = released + runner.to_move
            self.active.remove(runner)
            self.end_s[job.job_id] = self.now
        elif how == MOVED:
            self.start(runner, runner.to_move, new_end_s)
            runner.to_move = []
        else:
            runner.since_s = self.now
            done = 1 - runner.left / job.iterations
            runner.sensitivity = done / (runner.run_s / (job.iteration_s * job.iterations / job.gpus))
        self.free.update(released)
        self.push(self.now if how == EARLY else self.now + self.pause_s * len(released), AUCTION)

    def units(self, free: list[Gpu], depth: int, need: int) -> list[list[Gpu]]:
        """Free GPUs of every rack (1), machine (2) or slot (3) that has enough, in the order of looking at them."""
        inside: dict[tuple, list[Gpu]] = {}
        for gpu in free:
            inside.setdefault(gpu[:depth], []).append(gpu)
        names = sorted(inside, key=lambda name: (self.rank[name[:2]], name) if depth > 1 else (0, name))
        return [inside[name] for name in names if len(inside[name]) >= need]

    def first(self, free: list[Gpu], depth: int, need: int) -> list[Gpu]:
        return next(iter(self.units(free, depth, need)), [])[:need]

    def place_tiresias(self, runner: Runner, free: list[Gpu]) -> list[Gpu]:
        need, anywhere = runner.job.gpus, runner.job.model not in SKEWED
        gang = self.first(free, 2, need)
        if not gang and (anywhere or len(free) + 1 > self.per_machine):
            gang = self.first(free, 1, need)
        if not gang and (anywhere or need > self.per_rack):
            gang = free[:need]
        return gang

    def place_dally(self, runner: Runner, free: list[Gpu]) -> list[Gpu]:
        need, waited_s = runner.job.gpus, self.now - runner.since_s
        gang = self.first(free, 3, need) or self.first(free, 2, need)
        if gang:
            self.note(need, "machine", waited_s / self.lease_s)
            return gang
        machine_timer, rack_timer = self.timers or self.tune(need)
        if waited_s >= self.lease_s * machine_timer or need > self.per_machine:
            gang = self.first(free, 1, need)
            if gang:
                self.note(need, "rack", waited_s / self.lease_s)
                return gang
        return free[:need] if waited_s >= self.lease_s * rack_timer or need > self.per_rack else []

    def note(self, need: int, tier: str, leases: float) -> None:
        """Remember a wait of a lease or more. Only then are old ones dropped, and each dropped one spares the next."""
        if leases < 1:
            return
        waits = self.waits.setdefault((need, tier), [])
        waits.append((self.now, leases))
        place = 0
        while place < len(waits):
            if waits[place][0] < self.now - self.lease_s * self.history:
                del waits[place]
            place += 1

    def tune(self, need: int) -> tuple[float, float]:
        """Machine and rack timer of a gang size, leases."""

        def usual(tier: str) -> float:
            waits = [leases for _, leases in self.waits.get((need, tier), [])]
            if not waits:
                return 1.0
            mean = reduce(add, waits) / len(waits)  # sum() compensates for rounding since Python 3.12
            squares = reduce(add, [(leases - mean) * (leases - mean) for leases in waits])
            return mean + 2 * math.sqrt(squares / max(1, len(waits) - self.sample))

        machine = min(math.ceil(self.history * 0.8), max(self.floors[0], math.ceil(usual("machine"))))
        return machine, min(self.history, max(self.floors[1], math.ceil(usual("rack"))))

    def place_gandiva(self, runner: Runner, free: list[Gpu]) -> list[Gpu]:
        need, anyhow = runner.job.gpus, self.shuffle(free)
        if runner.held:  # asks for a better tier than it has
            if need > self.per_machine:
                across = len({gpu[:1] for gpu in runner.held}) > 1
                chosen = next(iter(self.units(free, 1, need)), []) if across else []
            else:
                chosen = max(self.units(free, 2, need), key=len, default=[])
        else:
            chosen = free if need > self.per_machine else self.own_machine(need, free)
        return [gpu for gpu in anyhow if gpu in chosen][:need]

    def own_machine(self, need: int, free: list[Gpu]) -> list[Gpu]:
        """The most free machine among those kept for gangs of this size; the first one is chosen among unowned ones.

        Ownership is by number in the rack, so it holds for all racks. `fallback`: when none of those has room, the last
        machine with a free GPU is asked whether it has, and if so, the gang gets any GPUs of the cluster.
        """
        machines = self.units(free, 2, need)
        if need in self.owned:
            mine = [unit for unit in machines if unit[0][1] in self.owned[need]]
            if mine or not self.fallback:
                return max(mine or machines, key=len, default=[])
            return free if len(self.units(free, 2, 1)[-1]) >= need else []
        unowned = [unit for unit in machines if not any(unit[0][1] in numbers for numbers in self.owned.values())]
        if unowned:
            chosen = max(unowned, key=len)
            self.owned[need] = {chosen[0][1]}
            return chosen
        return max(machines, key=len, default=[])
