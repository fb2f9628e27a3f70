"""`greedy:preempt=on`, written to be read: every number made anew from what the view shows. No code is shared.

The rule. Restore cost c_v: what a start anew costs a job; left_v: its isolated run time left; w_v = GPUs ** exponent.

1. A pass asks the waiting jobs in ascending order of left x w, ties by index.
2. Job j starts as plain `greedy` starts it. If it finds no gang, or would rather wait, it looks for victims - unless it
   lost its GPUs at this very instant.
3. Areas: every machine of at least gpus_j GPUs; if there is none every such rack; else the cluster. mine_j is the run
   time left of j at the tier of an area, + c_j if it has run before.
4. A running job with GPUs in the area, that did not start, move or stop at this instant and has no lease, can be moved
   (cost c_v) if it fits on the free GPUs of one machine outside; else be stopped (cost mine_j + c_v) if
   left_v x w_v > theta x mine_j x w_j + c_v; else it stays.
5. Victims are taken by cost for each GPU freed in the area, ties by index, until j fits. A mover claims the fullest
   machine outside that has room beside earlier claims; if none has, it is stopped if it may be, else left.
6. From the last taken to the first, a job that is not needed stays.
7. The area of the least sum of costs wins, ties by index. If none serves j, the next job is asked.
8. First all stops, then all moves, each in the order taken, then j starts, and the pass begins anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from clustergym.policies.base import Policy
from clustergym.simulator.base.decisions import Advance, Decision, Migrate, Preempt, Start
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK
from clustergym.simulator.engine.view import ClusterView
from clustergym.simulator.network.collectives import compute_fraction, measure_gang

LARGE = 8  # gangs of more GPUs pay the second of two costs


@dataclass(frozen=True)
class Area:
    machines: frozenset[int]
    tier: int


@dataclass(frozen=True)
class Runner:
    """A running job; `on` is how many GPUs it holds by machine, `settled` that nothing befell it at this instant."""

    job: int
    gpus: int
    left_s: float
    end_s: float
    cost_s: float
    on: dict[int, int]
    settled: bool


@dataclass
class Victim:
    runner: Runner
    freed: int  # GPUs in the area
    moves: bool
    cost_s: float


@dataclass(frozen=True)
class Room:
    area: Area
    victims: list[Victim]
    cost_s: float


class PreemptiveGreedy(Policy):
    """The rule as a policy; play it on a simulator whose rule has the same `preemption_cost`."""

    name = "greedy, preemptive, by the words"

    def __init__(self, preemption_cost=(0.0,), theta=1.2, exponent=0.5, margin=0.9, placer="tier"):
        self.costs_s = tuple(preemption_cost)
        self.theta, self.exponent, self.margin, self.placer = theta, exponent, margin, placer
        self.instant, self.decisions = None, iter(())
        self.rooms = []  # every room that was made, for tests

    def decide(self, view: ClusterView) -> Decision:
        instant = view._simulator.runs, view.instant
        if instant != self.instant:
            self.instant, self.decisions = instant, self.one_pass(view)
        return next(self.decisions, Advance())

    # Points 1, 2 and 8: which jobs are asked, and what comes of it

    def one_pass(self, view: ClusterView) -> Iterator[Decision]:
        made_room = True
        while made_room:
            made_room = False
            runners = self.runners(view)
            for job in self.order(view):
                gang = view.find_gpus(job, self.placer)
                if gang is not None and self.takes_now(view, job, gang, runners):
                    yield Start(job, gang)
                    runners = self.runners(view)
                elif not lost_gpus_now(view, job) and (room := self.find_room(view, job, runners)) is not None:
                    yield from self.make_room(view, job, room)
                    made_room = True
                    break

    def order(self, view: ClusterView) -> list[int]:
        """Point 1."""
        keys = {job: near(view.remaining_s(job) * self.weight(view.gpus(job))) for job in view.queue.tolist()}
        return sorted(keys, key=lambda job: (keys[job], job))

    def takes_now(self, view: ClusterView, job: int, gang: list[int], runners: list[Runner]) -> bool:
        """Whether plain `greedy` starts the job on these GPUs rather than let it wait for a better place."""
        tier = tier_of(view, gang)
        if tier == MACHINE or not runners:
            return True
        now_s = left_iterations(view, job) * iteration_s(view, job, gang)
        for better in range(MACHINE, min(tier, RACK) + 1):
            then_s = run_time_left_s(view, job, better)
            wait_s = room_at_s(view, view.gpus(job), better, runners) - view.now_s
            if then_s < now_s * (1.0 - 1e-9) and wait_s < math.inf and now_s > self.margin * (wait_s + then_s):
                return False
        return True

    def make_room(self, view: ClusterView, job: int, room: Room) -> Iterator[Decision]:
        """Point 8."""
        self.rooms.append((view.now_s, job, room))
        for victim in room.victims:
            if not victim.moves:
                yield Preempt(victim.runner.job)
        for victim in room.victims:
            if victim.moves:
                free = view.free_by_machine.tolist()
                machine = fullest_outside(free, room.area, victim.runner.gpus)
                assert machine is not None, "the claims of the movers were room enough"
                yield Migrate(victim.runner.job, gpus_inside(view, machine, victim.runner.gpus, self.placer))
        gang = view.find_gpus(job, self.placer)
        assert gang is not None and tier_of(view, gang) <= room.area.tier
        yield Start(job, gang)

    # Points 3 to 7: which jobs to stop or move

    def find_room(self, view: ClusterView, job: int, runners: list[Runner]) -> Room | None:
        """Points 3 and 7.

        Where an area has room as it is none need make way: the job takes the free GPUs, or it would rather wait for a
        better shape (allreduce).
        """
        if any(has_room(view, area, view.gpus(job)) for area in areas(view, view.gpus(job))):
            return None
        rooms = []
        for area in areas(view, view.gpus(job)):
            mine_s = run_time_left_s(view, job, area.tier)
            if view._simulator.state.starts[job] > 0:
                mine_s += self.cost_s(view.gpus(job))
            victims = self.cheapest(view, area, view.gpus(job), self.candidates(view, job, area, mine_s, runners))
            if victims is not None:
                rooms.append(Room(area, victims, near(sum(victim.cost_s for victim in victims))))
        return min(rooms, key=lambda room: room.cost_s, default=None)  # the first of equal ones

    def candidates(self, view, job, area, mine_s, runners) -> list[tuple[Victim, float]]:
        """Point 4: each with what it costs to stop it, inf if it may not be stopped."""
        free = view.free_by_machine.tolist()
        found = []
        for v in runners:
            freed = sum(gpus for machine, gpus in v.on.items() if machine in area.machines)
            if freed == 0 or not v.settled:
                continue
            gain_s = v.left_s * self.weight(v.gpus)
            stoppable = gain_s > self.theta * mine_s * self.weight(view.gpus(job)) + v.cost_s
            stop_s = mine_s + v.cost_s if stoppable else math.inf
            if fullest_outside(free, area, v.gpus) is not None:
                found.append((Victim(v, freed, True, v.cost_s), stop_s))
            elif stoppable:
                found.append((Victim(v, freed, False, stop_s), stop_s))
        return sorted(found, key=lambda pair: (near(pair[0].cost_s / pair[0].freed), pair[0].runner.job))

    def cheapest(self, view, area, need, candidates) -> list[Victim] | None:
        """Points 5 and 6."""
        free = view.free_by_machine.tolist()
        missing = need - sum(free[machine] for machine in area.machines)
        taken = []
        for victim, stop_s in candidates:
            if missing <= 0:
                break
            if victim.moves:
                machine = fullest_outside(free, area, victim.runner.gpus)
                if machine is not None:
                    free[machine] -= victim.runner.gpus  # claimed
                elif stop_s < math.inf:
                    victim.moves, victim.cost_s = False, stop_s
                else:
                    continue
            taken.append(victim)
            missing -= victim.freed
        if missing > 0:
            return None
        for victim in reversed(list(taken)):
            if missing + victim.freed <= 0:
                taken.remove(victim)
                missing += victim.freed
        return taken

    # What is known of jobs

    def cost_s(self, gpus: int) -> float:
        return self.costs_s[-1 if gpus > LARGE else 0]

    def weight(self, gpus: int) -> float:
        return float(gpus) ** self.exponent

    def runners(self, view: ClusterView) -> list[Runner]:
        s = view._simulator.state
        found = []
        for job in view.running.tolist():
            on: dict[int, int] = {}
            for gpu in view.gpus_of(job):
                machine = int(view.topology.gpu_machine[gpu])
                on[machine] = on.get(machine, 0) + 1
            last_s = max(s.started_s[job], s.left_s[job], s.stopped_s[job])  # it started or moved, left GPUs, stopped
            leased = s.lease_s > 0.0 and s.lease_end_s[job] > view.now_s
            found.append(
                Runner(
                    job,
                    view.gpus(job),
                    view.remaining_s(job),
                    float(s.planned_finish_s[job]),
                    self.cost_s(view.gpus(job)),
                    on,
                    bool(last_s < view.now_s and not leased),
                )
            )
        return found


def near(value: float) -> float:
    """What is equal but for rounding is a tie (docs/concepts/semantics.md)."""
    return float(f"{value:.8e}")


def lost_gpus_now(view: ClusterView, job: int) -> bool:
    return bool(view._simulator.state.stopped_s[job] == view.now_s)


def left_iterations(view: ClusterView, job: int) -> float:
    """Of a waiting job."""
    return float(view._simulator.state.iterations_left[job])


def run_time_left_s(view: ClusterView, job: int, tier: int) -> float:
    """Of a waiting job, on the best gang of a tier."""
    s = view._simulator.state
    return left_iterations(view, job) * float(s.compute_iteration_s[job]) * float(s.tier_factor[s.profile[job], tier])


def iteration_s(view: ClusterView, job: int, gang: list[int]) -> float:
    """Seconds per iteration on these very GPUs: by the shape of the gang under allreduce, else by its tier."""
    s = view._simulator.state
    if s.net_models == 0:
        return float(s.compute_iteration_s[job]) * float(s.tier_factor[s.profile[job], tier_of(view, gang)])
    s.gang[: len(gang)], s.gang_size = gang, len(gang)
    measure_gang(s)
    return float(s.compute_iteration_s[job]) / float(compute_fraction(s, int(s.profile_model[s.profile[job]])))


def tier_of(view: ClusterView, gang: list[int]) -> int:
    """MACHINE (slots count as their machine), RACK or NETWORK."""
    machines = {int(view.topology.gpu_machine[gpu]) for gpu in gang}
    racks = {int(view.topology.machine_rack[machine]) for machine in machines}
    return MACHINE if len(machines) == 1 else RACK if len(racks) == 1 else NETWORK


def machines_of_racks(view: ClusterView) -> list[list[int]]:
    topology = view.topology
    pairs = zip(topology.rack_first_machine.tolist(), topology.rack_machines.tolist(), strict=True)
    return [list(range(first, first + count)) for first, count in pairs]


def areas(view: ClusterView, need: int) -> list[Area]:
    """Point 3, in order of index."""
    size = view.topology.machine_gpus.tolist()
    racks = machines_of_racks(view)
    inside = [Area(frozenset([machine]), MACHINE) for machine in range(len(size)) if size[machine] >= need]
    if not inside:
        inside = [Area(frozenset(rack), RACK) for rack in racks if sum(size[m] for m in rack) >= need]
    return inside or [Area(frozenset(range(len(size))), NETWORK)]


def has_room(view: ClusterView, area: Area, need: int) -> bool:
    """Whether an area has room without a job making way."""
    free = view.free_by_machine.tolist()
    return sum(free[machine] for machine in area.machines) >= need


def fullest_outside(free: list[int], area: Area, need: int) -> int | None:
    """The machine outside the area with the fewest free GPUs that suffice, lowest index; None: there is none."""
    fitting = [m for m in range(len(free)) if m not in area.machines and free[m] >= need]
    return min(fitting, key=lambda machine: (free[machine], machine), default=None)


def gpus_inside(view: ClusterView, machine: int, need: int, placer: str) -> list[int]:
    """Free GPUs of one machine: of the tightest slot that suffices, else the most free ones; `first`: of the first."""
    slots: dict[int, list[int]] = {}
    for gpu in view.free_gpus.tolist():
        if view.topology.gpu_machine[gpu] == machine:
            slots.setdefault(int(view.topology.gpu_slot[gpu]), []).append(gpu)
    if placer == "first":
        suffices = [gpus for _, gpus in sorted(slots.items()) if len(gpus) >= need]
        return (suffices[0] if suffices else sorted(gpu for gpus in slots.values() for gpu in gpus))[:need]
    gang: list[int] = []
    while len(gang) < need:
        rest = need - len(gang)
        suffices = [slot for slot in slots if len(slots[slot]) >= rest]
        if suffices:
            slot = min(suffices, key=lambda slot: (len(slots[slot]), slot))
        else:
            slot = min(slots, key=lambda slot: (-len(slots[slot]), slot))
        gang += slots.pop(slot)[:rest]
    return gang


def room_at_s(view: ClusterView, need: int, tier: int, runners: list[Runner]) -> float:
    """The first instant with room for the gang in one machine, or rack, if all end as planned and no other job comes.

    Under allreduce a rack has room if enough of its machines are wholly free.
    """
    size = view.topology.machine_gpus.tolist()
    free = view.free_by_machine.tolist()
    racks = machines_of_racks(view)
    whole = math.ceil(need / max(size))

    def has_room() -> bool:
        if tier == MACHINE:
            return max(free) >= need
        if view._simulator.state.net_models > 0:
            return any(sum(free[m] == size[m] for m in rack) >= whole for rack in racks)
        return any(sum(free[m] for m in rack) >= need for rack in racks)

    instant_s = view.now_s
    for runner in sorted(runners, key=lambda runner: runner.end_s):
        if has_room():
            return instant_s
        instant_s = runner.end_s
        for machine, gpus in runner.on.items():
            free[machine] += gpus
    return instant_s if has_room() else math.inf
