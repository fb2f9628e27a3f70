"""Plain reference simulator of the scheduler "native Dally".

Written from the paper (Dally, Sec. IV-B: Algorithms 1 and 2, Nw_sens) and from the definition
below only, without looking at any other code of this project, so that the two can be compared.

"A lease is 3,600 s from the start. At every offer round (an arrival, an end, the end of a lease,
a timer) while a job waits, one that refused by its timers included, every running job whose lease
has ended joins the bids with its GPUs counted as free and its starvation at 0, in the order of
Nw_sens rounded to 1e-6; ties: fewer GPUs, earlier last assignment, lower id. A job that gets the same
GPUs back has not stopped and begins a new lease; one that gets others pays `preemption_cost`; one that gets
none waits, its starvation counted from now. While none waits, a lease that has ended changes
nothing."

Starvation 0 means a last assignment now, for the ties too; that of a waiting job is its arrival or
the moment it lost its GPUs. All that bid while running give their GPUs back before the walk; then
each is offered what the placer finds, with no preference for its own: the same set is a new lease
and nothing else; another set is a stop and a start at once, no wait recorded, since it has not
waited; if it accepts nothing, be it that it refuses the tier on which it ran, it is stopped.
With `lease_s` 0 no job is stopped; with `moves` too, a running job that does not lie inside one
machine bids at starvation 0 (last assignment: when it got its GPUs), whether or not a job
waits, and moves if what it accepts, its own GPUs counted as free, is a better tier. After a walk
with a move there is another, but a job that started or moved at this instant stays.
"""

import math
from dataclasses import dataclass, field

MACHINE, RACK, NETWORK = 1, 2, 3


@dataclass(eq=False)
class Runner:
    """One job: its request, what happened to it, and where it stands."""

    id: int
    arrival_s: float
    gpus: int
    duration_s: float
    starts: int = 0
    preempted: int = 0
    moved: int = 0
    gang: frozenset = frozenset()
    tier: int = 0
    first_start_s: float = math.inf
    finish_s: float = math.inf  # while it runs: when it will end; while it waits: inf
    history: list = field(default_factory=list)  # (time_s, "start" | "move" | "stop", gpus)
    left_s: float = 0.0  # seconds of compute, settled when it stops or moves (no lease settles)
    attained_s: float = 0.0  # seconds held on GPUs, settled with `left_s`
    started_s: float = 0.0  # since when it holds the present gang
    since_s: float = 0.0  # since when it progresses there: the start and the cost
    slowdown: float = 1.0
    assigned_s: float = 0.0  # last assignment of a waiting job: it arrived or lost its GPUs
    lease_end_s: float = math.inf
    alarm_s: float = math.inf  # while it waits: when one of its timers ends
    waiting_key: int = 0  # Nw_sens when it lost its GPUs; 0 if it never ran

    def left_at(self, now):
        return max(0.0, self.left_s - max(0.0, now - self.since_s) / self.slowdown)

    def held_at(self, now):
        return self.attained_s + (now - self.started_s)

    def key_at(self, now):
        """Nw_sens = (share done) / (held / ideal run time), in millionths."""
        held = self.held_at(now) / self.duration_s
        done = 1.0 - self.left_at(now) / self.duration_s
        return math.floor(done / held * 1e6 + 0.5) if held > 0.0 else 0


@dataclass
class Dally:
    cluster: list  # racks of machines of slots of GPUs
    jobs: list  # (arrival_s, gpus, duration_s), ascending arrival
    timers: tuple = None  # fixed (machine, rack) timers in seconds
    history: float = 24.0  # leases
    initial: tuple = (1.0, 1.0)  # leases: the timers of an empty list
    population: bool = False
    lease_s: float = 3600.0
    first: bool = False
    scan: list = field(default_factory=list)  # empty: every machine by index
    costs_s: tuple = (0.0, 0.0)
    slowdowns: tuple = (1.0, 1.0, 1.0)
    moves: bool = False

    def __post_init__(self):
        self.machines = [machine for rack in self.cluster for machine in rack]
        parts = [self.cluster, *self.cluster, *self.machines]
        parts += [slot for machine in self.machines for slot in machine]
        self.gpus_of = {id(part): frozenset(leaves(part)) for part in parts}
        self.free = set(leaves(self.cluster))
        self.largest_machine = max(len(leaves(m)) for m in self.machines)
        self.largest_rack = max(len(leaves(r)) for r in self.cluster)
        self.unit_s = self.lease_s or 3600.0
        self.waits = {}  # (gpus, tier) -> [(time_s, starvation in leases)]
        self.waiting, self.running = [], []
        self.now = -math.inf

    def run(self):
        runners = [Runner(i, *job, left_s=job[2]) for i, job in enumerate(self.jobs)]
        to_come = list(reversed(runners))
        while True:
            times = [to_come[-1].arrival_s] if to_come else []
            times += [r.finish_s for r in self.running]
            times += [r.lease_end_s for r in self.running if r.lease_end_s > self.now]
            times += [r.alarm_s for r in self.waiting]
            now = min(times, default=math.inf)
            if now == math.inf:
                return runners
            self.now = now
            for r in [r for r in self.running if r.finish_s <= now]:
                self.running.remove(r)
                self.free |= r.gang
            rung = [r for r in self.waiting if r.alarm_s <= now]
            while to_come and to_come[-1].arrival_s <= now:
                r = to_come.pop()
                r.assigned_s = now
                self.waiting.append(r)
            self.recorded = set()  # gang sizes with a wait recorded at this instant
            if self.lease_s > 0:
                if self.waiting:
                    self.lease_round()
            else:
                while self.leaseless_walk():
                    pass
            for r in self.waiting:  # the alarms last: every record of this instant is in the lists
                if r in rung or r.assigned_s == now or r.gpus in self.recorded:
                    r.alarm_s = self.next_alarm(r)

    def order(self, runners):
        """(runner, whether it runs) for all that bid, in the order of service."""
        bids = [(r.waiting_key, r.gpus, r.assigned_s, r.id, r, False) for r in self.waiting]
        for r in runners:
            assigned_s = self.now if self.lease_s > 0 else r.started_s
            bids.append((r.key_at(self.now), r.gpus, assigned_s, r.id, r, True))
        return [bid[4:] for bid in sorted(bids)]

    def lease_round(self):
        """One walk over the waiting jobs and the running ones whose lease has ended."""
        ended = [r for r in self.running if r.lease_end_s <= self.now]
        for r in ended:
            self.free |= r.gang
        for r, runs in self.order(ended):
            gang, tier = self.offer(r, 0.0 if runs else self.now - r.assigned_s)
            if runs and gang is not None and r.gang == set(gang):
                self.free -= r.gang
                r.lease_end_s = self.now + self.lease_s
                continue
            if runs:
                self.stop(r)
            self.start(r, gang, tier, waited=not runs)

    def leaseless_walk(self):
        """One walk without leases: none is stopped. True if a job moved."""
        movers, moved = [], False
        if self.moves:
            movers = [r for r in self.running if r.tier > MACHINE and r.started_s < self.now]
        for r, runs in self.order(movers):
            if not runs:
                self.start(r, *self.offer(r, self.now - r.assigned_s))
                continue
            self.free |= r.gang
            gang, tier = self.offer(r, 0.0)
            if gang is not None and tier < r.tier:
                self.move(r, gang, tier)
                moved = True
            else:
                self.free -= r.gang
        return moved

    def start(self, r, gang, tier, waited=True):
        """A waiting job takes its offer, if it got one."""
        if gang is None:
            return
        if tier != NETWORK and waited:  # update_demand_delay
            entry = (self.now, (self.now - r.assigned_s) / self.unit_s)
            self.waits.setdefault((r.gpus, tier), []).append(entry)
            self.recorded.add(r.gpus)
        self.waiting.remove(r)
        self.running.append(r)
        self.settle_on(r, gang, tier, "start")
        r.starts += 1
        r.first_start_s = min(r.first_start_s, self.now)

    def move(self, r, gang, tier):
        r.left_s, r.attained_s = r.left_at(self.now), r.held_at(self.now)
        r.moved += 1
        self.settle_on(r, gang, tier, "move")

    def stop(self, r):
        r.waiting_key = r.key_at(self.now)
        r.left_s, r.attained_s = r.left_at(self.now), r.held_at(self.now)
        r.preempted += 1
        r.assigned_s = self.now
        r.finish_s = math.inf
        r.history.append((self.now, "stop", tuple(sorted(r.gang))))
        self.running.remove(r)
        self.waiting.append(r)

    def settle_on(self, r, gang, tier, kind):
        cost_s = self.costs_s[r.gpus > 8] if r.starts else 0.0
        r.gang, r.tier = frozenset(gang), tier
        self.free -= r.gang
        r.slowdown = self.slowdowns[tier - 1] if r.gpus > 1 else 1.0
        r.started_s = self.now
        r.since_s = self.now + cost_s
        r.finish_s = r.since_s + r.left_s * r.slowdown
        r.history.append((self.now, kind, tuple(sorted(gang))))
        r.lease_end_s = self.now + (self.lease_s or math.inf)

    def offer(self, r, starvation_s):
        """(GPUs, tier) that the job accepts now, or (None, 0)."""
        machine_s, rack_s = self.tuned_timers(r.gpus)
        for tier, timer_s in ((MACHINE, -math.inf), (RACK, machine_s), (NETWORK, rack_s)):
            if starvation_s < timer_s:
                break
            if (gang := self.place(r.gpus, tier)) is not None:
                return gang, tier
        return None, 0

    def tuned_timers(self, gpus):
        """(machine, rack) timers in seconds, both counted from the begin of the wait."""
        if self.timers is not None:
            machine_s, rack_s = self.timers
        else:
            machine_s = self.tuned(gpus, MACHINE, self.initial[0]) * self.unit_s
            rack_s = self.tuned(gpus, RACK, self.initial[1]) * self.unit_s
        if gpus > self.largest_rack:
            return 0.0, 0.0
        return (0.0 if gpus > self.largest_machine else machine_s), rack_s

    def tuned(self, gpus, tier, initial):
        oldest = self.now - self.history * self.unit_s
        kept = [wait for wait in self.waits.get((gpus, tier), ()) if wait[0] >= oldest]
        self.waits[gpus, tier] = kept
        n = len(kept)
        if n == 0:
            return initial
        mean = math.fsum(x for _, x in kept) / n
        squares = math.fsum((x - mean) ** 2 for _, x in kept)  # 0 for one entry
        return mean + 2.0 * math.sqrt(squares / (n if self.population else max(1, n - 1)))

    def next_alarm(self, r):
        """The next instant after now at which one of the two timers of a waiting job ends."""
        if r.gpus == 1:
            return math.inf
        ends = [first_at(r.assigned_s, timer_s) for timer_s in self.tuned_timers(r.gpus)]
        return min((t for t in ends if t > self.now), default=math.inf)

    def place(self, gpus, tier):
        """GPUs out of the free ones for a gang on this tier, or None."""
        if len(self.free) < gpus:
            return None
        if tier != MACHINE:
            parts = self.cluster if tier == RACK else [self.cluster]
        elif self.first:
            scanned = [self.machines[i] for i in (self.scan or range(len(self.machines)))]
            parts = [slot for machine in scanned for slot in machine] + scanned
        else:
            parts = self.machines
        fitting = [part for part in parts if self.room(part) >= gpus]
        if not fitting or self.first:
            return self.lowest(fitting[0])[:gpus] if fitting else None
        return self.pack(min(fitting, key=self.room), gpus)

    def lowest(self, part):
        return sorted(self.free & self.gpus_of[id(part)])

    def room(self, part):
        return len(self.free & self.gpus_of[id(part)])

    def pack(self, part, gpus):
        """`gpus` of the free GPUs of a part that has so many; min and max keep the lowest index."""
        if isinstance(part[0], int):
            return self.lowest(part)[:gpus]
        inner, gang = list(part), []
        while True:
            fitting = [p for p in inner if self.room(p) >= gpus]
            if fitting:
                return gang + self.pack(min(fitting, key=self.room), gpus)
            fullest = max(range(len(inner)), key=lambda i: self.room(inner[i]))
            whole = self.lowest(inner.pop(fullest))
            gang += whole
            gpus -= len(whole)


def leaves(part):
    return [part] if isinstance(part, int) else [g for p in part for g in leaves(p)]


def first_at(since, timer):
    """The smallest float t with t - since >= timer."""
    t = since + timer
    if not math.isfinite(t):
        return t
    while t - since < timer:
        t = math.nextafter(t, math.inf)
    while (before := math.nextafter(t, -math.inf)) - since >= timer:
        t = before
    return t
