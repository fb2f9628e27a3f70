"""Reference of Dally's rules under `semantics=events`: delay timers, offers, leases; written to be read, not to be
fast.

The compiled kernels are checked against it; it shares no code with them. At every instant at which something happens it
goes through all waiting jobs in order of Nw_sens, and each is asked for itself. A cluster is racks of machines of slots
of GPUs: nested lists, whose leaves are the GPUs in ascending order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

Unit = Any  # a GPU, or a list of units
MACHINE, RACK, NETWORK = 1, 2, 3


def gpus_of(unit: Unit) -> list[int]:
    return [gpu for part in unit for gpu in gpus_of(part)] if isinstance(unit, list) else [unit]


def pack(unit: Unit, need: int, free: set[int]) -> list[int]:
    """The part with the fewest free GPUs that suffice, and inside it likewise; else all of the fullest, and so on."""
    if not isinstance(unit[0], list):
        return [gpu for gpu in unit if gpu in free][:need]
    parts = [(len(free.intersection(gpus_of(part))), place) for place, part in enumerate(unit)]
    taken: list[int] = []
    while need > 0:
        fitting = [part for part in parts if part[0] >= need]
        room, place = part = min(fitting) if fitting else max(parts, key=lambda part: (part[0], -part[1]))
        parts.remove(part)
        taken += pack(unit[place], min(room, need), free)
        need -= min(room, need)
    return taken


@dataclass
class Runner:
    arrival_s: float
    gpus: int
    duration_s: float
    left_s: float  # of isolated run time, when it last started
    waiting_since_s: float = math.inf
    key: float = 0.0  # Nw_sens when it began to wait
    ring_s: float = math.inf  # when it is offered GPUs because a timer runs out
    attained_s: float = 0.0
    starts: int = 0
    preempted: int = 0
    moved: int = 0
    gang: frozenset[int] = frozenset()
    tier: int = 0
    slowdown: float = 1.0
    started_s: float = 0.0
    since_s: float = 0.0  # progress counts from here
    lease_end_s: float = math.inf
    finish_s: float = math.inf
    first_start_s: float = math.inf


@dataclass
class Dally:
    """One run.

    Args:
        cluster: racks of machines of slots of GPUs.
        jobs: (arrival_s, gpus, duration_s), ascending in arrival_s; the id is the index.
        timers: seconds; None: tuned, by `history` and `initial` (leases), and `population` or sample deviations.
        lease_s: 0: none.
        first: the first place with room, in the order `scan` of the machines, instead of the tightest.
        costs_s: of a start after the first, for up to 8 GPUs and more.
        slowdowns: of gangs inside a machine, inside a rack, and across racks.
        moves: running jobs whose lease is over move to better tiers.
    """

    cluster: Unit
    jobs: list[tuple[float, int, float]]
    timers: tuple[float, float] | None = None
    history: float = 24.0
    initial: tuple[float, float] = (1.0, 1.0)
    population: bool = False
    lease_s: float = 3600.0
    first: bool = False
    scan: list[int] = field(default_factory=list)
    costs_s: tuple[float, float] = (0.0, 0.0)
    slowdowns: tuple[float, float, float] = (1.0, 1.0, 1.0)
    moves: bool = False

    def __post_init__(self) -> None:
        self.now_s = -1.0
        self.runners = [Runner(*job, job[2]) for job in self.jobs]
        self.waiting: set[int] = set()
        self.running: set[int] = set()
        self.free = set(gpus_of(self.cluster))
        self.machines = [machine for rack in self.cluster for machine in rack]
        self.waits: dict[tuple[int, int], list[tuple[float, float]]] = {}  # by (GPUs, tier): (instant, leases)
        self.largest = {MACHINE: max(map(len, map(gpus_of, self.machines)))}
        self.largest[RACK] = max(map(len, map(gpus_of, self.cluster)))

    # Algorithm 2

    def timer_s(self, job: int, tier: int) -> float:
        need = self.runners[job].gpus
        if need > self.largest[tier] or need > self.largest[RACK]:
            return 0.0
        if self.timers is not None:
            return self.timers[tier - MACHINE]
        unit_s = self.lease_s or 3600.0
        known = self.waits.setdefault((need, tier), [])
        known[:] = [entry for entry in known if entry[0] >= self.now_s - self.history * unit_s]
        waits = [wait for _, wait in known]
        if not waits:
            return self.initial[tier - MACHINE] * unit_s
        mean = sum(waits) / len(waits)
        degrees = len(waits) if self.population else len(waits) - 1
        deviation = math.sqrt(sum((wait - mean) * (wait - mean) for wait in waits) / degrees) if degrees else 0.0
        return (mean + 2.0 * deviation) * unit_s

    # Algorithm 1

    def offer(self, job: int, free: set[int]) -> tuple[list[int], int] | None:
        """The GPUs that the job accepts, and their tier."""
        need, starved_s = self.runners[job].gpus, self.now_s - self.runners[job].waiting_since_s
        if gang := self.find(need, MACHINE, free):
            return gang, MACHINE
        if starved_s < self.timer_s(job, MACHINE):
            return None
        if gang := self.find(need, RACK, free):
            return gang, RACK
        if starved_s < self.timer_s(job, RACK):
            return None
        return (self.find(need, NETWORK, free), NETWORK) if need <= len(free) else None

    def find(self, need: int, tier: int, free: set[int]) -> list[int]:
        if tier == NETWORK:
            return sorted(free)[:need] if self.first else pack(self.cluster, need, free)
        places = self.machines if tier == MACHINE else self.cluster
        if self.first and tier == MACHINE:
            scanned = [places[place] for place in self.scan]
            places = [slot for machine in scanned for slot in machine] + scanned
        roomy = [place for place in places if len(free.intersection(gpus_of(place))) >= need]
        if self.first:
            return [gpu for gpu in gpus_of(roomy[0]) if gpu in free][:need] if roomy else []
        roomy.sort(key=lambda place: len(free.intersection(gpus_of(place))))  # stable: lowest index first
        return pack(roomy[0], need, free) if roomy else []

    # offers and leases

    def sensitivity(self, job: int) -> float:
        """Nw_sens of a running job."""
        r = self.runners[job]
        ran_s = r.attained_s + (self.now_s - r.started_s)
        if ran_s <= 0.0:
            return 0.0
        return (1.0 - self.left_s(job) / r.duration_s) / (ran_s / r.duration_s)

    def left_s(self, job: int) -> float:
        r = self.runners[job]
        return r.left_s - max(0.0, self.now_s - r.since_s) / r.slowdown

    def upgrade(self, job: int, free: set[int]) -> tuple[list[int], int] | None:
        """GPUs at a better tier that a running job would accept if it had just lost its own."""
        r = self.runners[job]
        free = free | r.gang
        if r.tier > MACHINE and (gang := self.find(r.gpus, MACHINE, free)):
            return gang, MACHINE
        if r.tier > RACK and self.timer_s(job, MACHINE) <= 0.0 and (gang := self.find(r.gpus, RACK, free)):
            return gang, RACK
        return None

    def make_offers(self) -> None:
        """What a job leaves when it moves is offered once more, to all."""
        while self.one_pass():
            pass

    def one_pass(self) -> bool:
        """Waiting jobs, and running ones that may move, in order. Each may stop jobs behind it whose lease is over.

        True if a job moved.
        """
        moved = False
        over = {k: self.sensitivity(k) for k in self.running if self.runners[k].lease_end_s <= self.now_s}
        over = over if self.waiting else {}  # nobody is stopped while nobody waits
        bids = sorted((self.runners[j].key, j) for j in self.waiting)
        if self.moves:
            movers = [k for k in self.running if not self.is_leased(k) and self.runners[k].tier > MACHINE]
            bids = sorted(bids + [(self.sensitivity(k), k) for k in movers])
        while bids:
            key, job = bids.pop(0)
            if job in self.running and self.runners[job].started_s == self.now_s:
                continue
            wanted = self.upgrade if job in self.running else self.offer
            stopped: list[int] = []
            offered = wanted(job, self.free)
            for _, k in sorted(((sens, k) for k, sens in over.items() if (sens, k) > (key, job)), reverse=True):
                if offered:
                    break
                stopped.append(k)
                offered = wanted(job, self.free.union(*(self.runners[i].gang for i in stopped)))
            if not offered:
                continue
            for k in stopped[::-1]:  # best first: who is not needed after all goes on
                fewer = [i for i in stopped if i != k]
                if wanted(job, self.free.union(*(self.runners[i].gang for i in fewer))):
                    stopped = fewer
            for k in stopped:
                del over[k]
                self.stop(k)
                bids = sorted({*bids, (self.runners[k].key, k)})
            gang, tier = wanted(job, self.free) or ([], 0)
            over.pop(job, None)
            if job in self.running:
                self.move(job, gang, tier)
                moved = True
            else:
                self.start(job, gang, tier)
        return moved

    def is_leased(self, job: int) -> bool:
        return self.lease_s > 0.0 and self.runners[job].lease_end_s > self.now_s

    def start(self, job: int, gang: list[int], tier: int) -> None:
        r = self.runners[job]
        if tier <= RACK:
            wait = (self.now_s - r.waiting_since_s) / (self.lease_s or 3600.0)
            self.waits.setdefault((r.gpus, tier), []).append((self.now_s, wait))
        r.first_start_s = min(r.first_start_s, self.now_s)
        self.waiting.remove(job)
        self.running.add(job)
        for other in self.waiting:
            if self.runners[other].gpus == r.gpus and tier <= RACK:
                self.set_ring(other)
        self.run_on(job, gang, tier)

    def move(self, job: int, gang: list[int], tier: int) -> None:
        self.settle(job)
        self.runners[job].moved += 1
        self.run_on(job, gang, tier)

    def run_on(self, job: int, gang: list[int], tier: int) -> None:
        r = self.runners[job]
        r.started_s = self.now_s
        r.since_s = self.now_s + (self.costs_s[r.gpus > 8] if r.starts else 0.0)
        r.starts += 1
        r.gang, r.tier, r.slowdown = frozenset(gang), tier, self.slowdowns[tier - MACHINE] if r.gpus > 1 else 1.0
        r.lease_end_s = self.now_s + self.lease_s if self.lease_s else math.inf
        r.finish_s = r.since_s + r.left_s * r.slowdown
        self.free -= r.gang

    def settle(self, job: int) -> None:
        r = self.runners[job]
        r.left_s = self.left_s(job)
        r.attained_s += self.now_s - r.started_s
        self.free |= r.gang

    def stop(self, job: int) -> None:
        r = self.runners[job]
        r.key = self.sensitivity(job)
        self.settle(job)
        r.waiting_since_s, r.finish_s, r.lease_end_s = self.now_s, math.inf, math.inf
        r.preempted += 1
        self.running.remove(job)
        self.waiting.add(job)
        self.set_ring(job)

    def set_ring(self, job: int) -> None:
        """The next instant at which a timer of a waiting job runs out.

        Looked up when it begins to wait, when it rings, and when a wait is recorded for its demand.
        """
        r = self.runners[job]
        rings = []
        for tier in (MACHINE, RACK):
            wait_s = self.timer_s(job, tier)
            ring_s = r.waiting_since_s + wait_s
            while ring_s - r.waiting_since_s < wait_s < math.inf:
                ring_s = math.nextafter(ring_s, math.inf)
            rings.append(ring_s)
        r.ring_s = min((ring_s for ring_s in rings if ring_s > self.now_s and r.gpus > 1), default=math.inf)

    def run(self) -> list[Runner]:
        arrived = 0
        while arrived < len(self.jobs) or self.waiting or self.running:
            times = [self.runners[j].ring_s for j in self.waiting]
            ends = [(self.runners[j].finish_s, self.runners[j].lease_end_s) for j in self.running]
            times += [time_s for pair in ends for time_s in pair if time_s > self.now_s]
            times += [job[0] for job in self.jobs[arrived : arrived + 1]]
            self.now_s = min(times)
            assert self.now_s < math.inf
            while arrived < len(self.jobs) and self.jobs[arrived][0] <= self.now_s:
                self.runners[arrived].waiting_since_s = self.jobs[arrived][0]
                self.waiting.add(arrived)
                self.set_ring(arrived)
                arrived += 1
            for job in sorted(self.running):
                if self.runners[job].finish_s <= self.now_s:
                    self.free |= self.runners[job].gang
                    self.running.remove(job)
            for job in self.waiting:
                if self.runners[job].ring_s <= self.now_s:
                    self.set_ring(job)
            self.make_offers()
        return self.runners
