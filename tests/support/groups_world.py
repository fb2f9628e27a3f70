"""Job groups a second time, in plain Python and one subtask after another: moves, machines and the ends of jobs.

No memory, no failures, no jitter. Written from the rules alone: a job has a group that it is in and one that it is to
be in; it leaves when its iteration is over, at once if it has begun none; on entering it loads; a group that no job is
to be in is gone when an instant ends; other machines stretch the COMP in progress and owe loading.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

EPSILON_S = 1e-7  # instants that lie nearer are one


class Group:
    """Its machines, the job executed, the holder of each resource (job, end), the queues."""

    def __init__(self, machines: int) -> None:
        self.machines, self.before = machines, 0
        self.cpu: Any = None
        self.net: Any = None
        self.second: Any = None
        self.cpu_queue: deque[int] = deque()
        self.net_queue: deque[int] = deque()

    def next_end_s(self) -> float:
        return min((slot[1] for slot in (self.cpu, self.net, self.second) if slot), default=math.inf)

    def drop(self, job: int) -> None:
        for name in ("cpu", "net", "second"):
            slot = getattr(self, name)
            if slot and slot[0] == job:
                setattr(self, name, None)
        for queue in (self.cpu_queue, self.net_queue):
            if job in queue:
                queue.remove(job)


class World:
    """All groups; `run_to`, then `decide`, as often as there are decision points."""

    def __init__(self, jobs: Any, iterations: Any, *, comm: str, busy: float, move_s: float) -> None:
        n = len(jobs)
        self.jobs, self.left, self.move_s, self.comm = jobs, [int(count) for count in iterations], move_s, comm
        self.rate, self.slots = (1 - busy) / busy, 1 if busy == 1 else 2
        self.groups: dict[int, Group] = {}
        self.at: list[Any] = [None] * n
        self.goal: list[Any] = [None] * n
        self.loads: dict[int, float] = {}
        self.part, self.owed = [0] * n, [0.0] * n
        self.begun: dict[int, float] = {}  # when the present subtask of a job began; not there while it queues
        self.finish: list[Any] = [None] * n

    def parts(self, job: int) -> list[tuple[bool, float]]:
        """Subtasks of an iteration: is it COMP; machine-seconds of it or seconds."""
        w, c = self.jobs[job]
        return [(True, w), (False, c)] if self.comm == "merged" else [(False, c / 2), (True, w), (False, c / 2)]

    def run_to(self, until_s: float) -> None:
        while True:
            end_s, loads, key = min(
                [(group.next_end_s(), 0, key) for key, group in self.groups.items()]
                + [(load_s, 1, job) for job, load_s in self.loads.items()],
                default=(math.inf, 0, 0),
            )
            if end_s > until_s + EPSILON_S or end_s == math.inf:
                return
            if loads:
                self.end_load(key, end_s)
            else:
                self.end_subtasks(self.groups[key], end_s)

    def end_load(self, job: int, now_s: float) -> None:
        del self.loads[job]
        self.part[job] = 0
        self.enqueue(job)
        self.dispatch(self.groups[self.at[job]], now_s)

    def enqueue(self, job: int) -> None:
        group, (is_comp, _) = self.groups[self.at[job]], self.parts(job)[self.part[job]]
        self.begun.pop(job, None)
        (group.cpu_queue if is_comp else group.net_queue).append(job)

    def dispatch(self, group: Group, now_s: float) -> None:
        if group.cpu is None and group.cpu_queue:
            job = group.cpu_queue.popleft()
            group.cpu, self.begun[job] = (job, now_s + self.jobs[job][0] / group.machines), now_s
        if group.net is None and group.second is not None:
            job, end_s = group.second
            group.net, group.second = (job, now_s + (end_s - now_s) * self.rate), None
        for slot in ("net", "second")[: self.slots]:
            if getattr(group, slot) is None and group.net_queue:
                job = group.net_queue.popleft()
                seconds = self.parts(job)[self.part[job]][1] / (1.0 if slot == "net" else self.rate)
                setattr(group, slot, (job, now_s + seconds))
                self.begun[job] = now_s

    def end_subtasks(self, group: Group, now_s: float) -> None:
        for slot in ("cpu", "net", "second"):
            held = getattr(group, slot)
            if held and held[1] <= now_s:
                setattr(group, slot, None)
                self.end_subtask(held[0], now_s)
        self.dispatch(group, now_s)

    def end_subtask(self, job: int, now_s: float) -> None:
        self.part[job] += 1
        if self.part[job] < len(self.parts(job)):
            self.enqueue(job)
            return
        self.part[job] = 0
        self.left[job] -= 1
        if self.left[job] == 0:
            self.at[job] = self.goal[job] = None
            self.finish[job] = now_s
        elif self.goal[job] != self.at[job] or self.owed[job] > 0:
            self.change_place(job, now_s)
        else:
            self.enqueue(job)

    def change_place(self, job: int, now_s: float) -> None:
        seconds = self.owed[job] if self.goal[job] == self.at[job] else self.move_s
        self.at[job], self.owed[job] = self.goal[job], 0.0
        if self.at[job] is not None:
            self.loads[job] = now_s + seconds

    def take_away(self, job: int) -> None:
        """From its group, in mid-iteration or while it loads."""
        self.groups[self.at[job]].drop(job)
        self.loads.pop(job, None)
        self.part[job], self.at[job] = 0, None

    def dissolve(self, key: int) -> None:
        for job, at in enumerate(self.at):
            if at == key:
                self.take_away(job)
        del self.groups[key]

    def open(self, job: int, key: int, machines: int) -> None:
        if key in self.groups:
            self.dissolve(key)
        self.groups[key] = Group(machines)
        self.goal[job] = key

    def close_instant(self, now_s: float) -> None:
        for key in [key for key in self.groups if key not in self.goal]:
            self.dissolve(key)
        touched = {key for key, group in self.groups.items() if group.before not in (0, group.machines)}
        for job, (at, goal) in enumerate(zip(self.at, self.goal, strict=True)):
            if at == goal:
                continue
            if at is None:
                self.change_place(job, now_s)
            elif job in self.loads or (self.part[job] == 0 and self.begun.get(job, now_s) >= now_s - EPSILON_S):
                touched.add(at)
                self.take_away(job)
                self.change_place(job, now_s)
        for key in touched:
            self.take_over(key, now_s)
        for group in self.groups.values():
            group.before = group.machines

    def take_over(self, key: int, now_s: float) -> None:
        """Other machines, or a resource that is free."""
        group = self.groups[key]
        if group.before not in (0, group.machines):
            if group.cpu:
                job, end_s = group.cpu
                group.cpu = (job, now_s + max(0.0, end_s - now_s) * group.before / group.machines)
            for job, at in enumerate(self.at):
                if at == key and job not in self.loads:
                    change = abs(group.machines - group.before) / max(group.machines, group.before)
                    self.owed[job] += self.move_s * change
        self.dispatch(group, now_s)
