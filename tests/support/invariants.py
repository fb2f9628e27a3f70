"""What holds in every simulator at every decision point, whatever was decided: the one home of these checks.

`look(simulator)` is all of them for the kind that it is; `look_back(simulator)` what holds when every job is finished.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from clustergym.simulator.base.codes import DONE, DOWN, HELD, PENDING, RUNNING, WAITING
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.groups.group_codes import LOADING, NAIVE, OUT
from clustergym.simulator.groups.group_simulator import GroupSimulator
from clustergym.tests.support.geo_player import check_regions

# nan also where jobs have finished: while no iteration has, and in groups, where no job has GPUs
UNKNOWN = ("iteration_time_mean", "iteration_time_p99", "finish_time_fairness_mean", "finish_time_fairness_max")


def near(one: Any, other: Any, rel: float = 1e-9, least: float = 1e-12) -> bool:
    """Whether numbers or arrays are equal but for `rel` of the second, or `least`; in a tenth of approx's time."""
    one, other = np.asarray(one, float), np.asarray(other, float)
    return bool((np.abs(one - other) <= np.maximum(rel * np.abs(other), least)).all())


def look(simulator: Any) -> None:
    """All that holds at any time."""
    if isinstance(simulator, GroupSimulator):
        check_groups(simulator)
    elif simulator.capacity.regions > 0:
        check_gangs(simulator)
        check_regions(simulator)
        check_gpu_seconds(simulator)
    elif simulator.capacity.berths > 1:
        check_shared(simulator)
        check_lists(simulator)
        check_gpu_seconds(simulator)
    else:
        check_gangs(simulator)
        check_gpu_seconds(simulator)
    if not isinstance(simulator, GroupSimulator):
        if simulator.capacity.links > 0:
            check_links(simulator)
        check_left(simulator)
    check_metrics(simulator)


def look_back(simulator: Any) -> None:
    """All that holds when every job is finished."""
    look(simulator)
    if isinstance(simulator, GroupSimulator):
        check_end_of_groups(simulator)
    else:
        check_end(simulator)


def check_metrics(simulator: Any) -> None:
    """Every one is finite, or nan where there is nothing to average."""
    metrics = simulator.metrics()
    none = metrics["jobs_finished"] == 0
    for name, value in metrics.items():
        assert not math.isinf(value), (name, value)
        may_be_nan = none or (name in UNKNOWN[:2] or (isinstance(simulator, GroupSimulator) and name in UNKNOWN))
        assert value == value or may_be_nan, (name, value)


# GPUs


def reserved_gang(s: Any, job: int) -> list[int]:
    """The GPUs to which a running job will move when its present chunk is done."""
    gpus, gpu = [], int(s.next_first_gpu[job]) if s.auctions else -1
    while gpu >= 0:
        gpus.append(gpu)
        gpu = int(s.gpu_next[gpu])
    return gpus


def check_lists(simulator: Any) -> None:
    """Every job that has arrived is in one list, that of its status."""
    s, view = simulator.state, simulator.view
    n, queue, held, running = int(s.next_arrival), view.queue, view.held, view.running
    assert (s.waiting, s.held, s.running) == (len(queue), len(held), len(running))
    assert s.waiting + s.held + s.running + s.done == n
    status = s.status[:n]
    for jobs, code in ((queue, WAITING), (held, HELD), (running, RUNNING)):
        assert sorted(jobs.tolist()) == np.flatnonzero(status == code).tolist()
    assert (status == DONE).sum() == s.done and (s.status[n : s.n_jobs] == PENDING).all()


def check_gangs(simulator: Any) -> None:
    """GPUs conserved, gangs whole, and every counter equal to a recount."""
    s, topology, view = simulator.state, simulator.topology, simulator.view
    owner = s.gpu_job[: topology.num_gpus]
    for job in view.running.tolist():
        gpus = view.gpus_of(job)
        assert len(gpus) == view.gpus(job)
        reserved = reserved_gang(s, job)  # at auctions, a job that is about to move holds two gangs
        assert len(reserved) in (0, view.gpus(job))
        assert sorted([*gpus, *reserved]) == np.flatnonzero(owner == job).tolist()
    assert set(owner[owner >= 0].tolist()) == set(view.running.tolist())
    is_free = owner == -1
    assert view.free_gpus.tolist() == np.flatnonzero(is_free).tolist()
    assert s.free_gpus == is_free.sum() and s.down_gpus == (owner == DOWN).sum()
    slots = np.bincount(topology.gpu_slot, weights=is_free, minlength=topology.num_slots)
    machines = np.bincount(topology.gpu_machine, weights=is_free, minlength=topology.num_machines)
    racks = np.bincount(topology.machine_rack, weights=machines, minlength=topology.num_racks)
    assert s.slot_free[: topology.num_slots].tolist() == slots.tolist()
    assert view.free_by_machine.tolist() == machines.tolist()
    assert view.free_by_rack.tolist() == racks.tolist()
    assert s.fragmented_gpus == machines[machines < topology.machine_gpus].sum()
    check_lists(simulator)


def check_shared(simulator: Any) -> None:
    """Where GPUs hold several jobs: gangs whole, memory holds, and every count equal to a recount from the gangs."""
    s, view, topology = simulator.state, simulator.view, simulator.topology
    load, memory = np.zeros(topology.num_gpus, int), np.zeros(topology.num_gpus)
    for job in view.running.tolist():
        gpus = view.gpus_of(job)
        assert len(gpus) == view.gpus(job) == len(set(gpus))
        assert all(job in view.jobs_on(gpu) for gpu in gpus)
        assert 1 <= view.sub_batch(job) <= view.batch(job)
        load[gpus] += 1
        memory[gpus] += s.memory_base[s.model[job]] + s.memory_sample[s.model[job]] * view.sub_batch(job)
    is_down = s.gpu_job[: topology.num_gpus] == DOWN
    assert not load[is_down].any()
    assert view.load.tolist() == load.tolist() and load.max() <= view.jobs_per_gpu
    assert (s.gpu_memory_used[: topology.num_gpus] == memory).all() and memory.max() <= s.gpu_memory
    assert view.free_gpus.tolist() == np.flatnonzero((load == 0) & ~is_down).tolist()
    assert bits(s.open_low, topology.num_gpus) == view.open_gpus.tolist()
    assert (s.busy_gpus, s.shared_gpus) == ((load > 0).sum(), (load > 1).sum())
    assert s.free_gpus + s.busy_gpus + s.down_gpus == topology.num_gpus
    assert view.free_by_machine.sum() == s.free_gpus


def bits(low: np.ndarray, items: int) -> list[int]:
    """The members of a set in words of 32."""
    return [item for item in range(items) if low[item // 32] >> (item % 32) & 1]


def check_gpu_seconds(simulator: Any) -> None:
    """They add up, now."""
    parts = gpu_seconds(simulator.state)
    used = sum(parts[name] for name in ("compute", "comm", "interference", "restore", "lost"))
    whole = max(1.0, parts["all"])
    assert near(parts["held"], used, least=1e-9 * whole)
    assert near(parts["all"], parts["busy"] + parts["free"] + parts["down"], least=1e-6)
    least = dict(parts)
    if simulator.rate_provider is not None:  # its iterations may be faster than the workload's
        del least["comm"]
    assert min(least.values()) >= -1e-9 * whole, parts
    assert parts["shared"] <= parts["busy"] + 1e-9 * whole
    assert parts["busy"] <= parts["all"] + 1e-6


def check_left(simulator: Any) -> None:
    """No job has more work left than it has, or less than none; a finished job has none."""
    s, n = simulator.state, int(simulator.state.n_jobs)
    left, whole = s.iterations_left[:n], s.iterations[:n]
    assert (left >= 0.0).all() and (left <= whole * (1 + 1e-9)).all()
    assert (left[s.status[:n] == DONE] == 0.0).all()


def check_links(simulator: Any) -> None:
    """A job on the network runs or has just lost its GPUs; both lists of its uses agree; no link carries too much."""
    s, links = simulator.state, int(simulator.state.n_links)
    if s.averages:
        return
    there = np.flatnonzero(s.first_use[: s.n_jobs] >= 0)
    leaving = set(s.leaver[: s.n_leavers].tolist())
    assert set(there.tolist()) <= set(simulator.view.running.tolist()) | leaving
    by_job: list[tuple[int, int, float]] = []
    for job in there:
        use = int(s.first_use[job])
        while use >= 0:
            assert s.use_job[use] == job
            by_job.append((int(s.use_link[use]), int(job), float(s.use_flows[use])))
            use = int(s.use_after[use])
    by_link: list[tuple[int, int, float]] = []
    for link in range(links):
        use = int(s.link_first[link])
        while use >= 0:
            assert s.use_link[use] == link
            by_link.append((link, int(s.use_job[use]), float(s.use_flows[use])))
            use = int(s.use_next[use])
    assert sorted(by_job) == sorted(by_link)
    assert np.bincount([link for link, *_ in by_link], minlength=links).tolist() == s.link_users[:links].tolist()
    if s.n_dirty == 0:  # else rates are computed before time passes
        carried = np.zeros(links)
        for link, job, flows in by_link:
            # Where jobs of higher priority fill a link others have 1 byte per second all the same (max_min_weighted).
            is_least = s.is_weighted and s.send_rate[job] == 1.0
            carried[link] += flows * s.send_rate[job] * (s.is_sending[job] == 1 and not is_least)
        assert (carried <= s.link_capacity[:links]).all()
    if s.links_change and not s.links_changed:  # else ways are laid before time passes
        assert not s.link_users[:links][s.link_capacity[:links] == 0.0].any()
        cut_off = (s.cut_off[: s.n_jobs] > 0) & (s.phase_position[: s.n_jobs] >= 0)
        assert (s.first_use[: s.n_jobs][cut_off] < 0).all() and not s.send_rate[: s.n_jobs][cut_off].any()


def computing_s(simulator: Any) -> np.ndarray:
    """Seconds that each job computes, whatever its placement adds, (n,)."""
    s, n = simulator.state, len(simulator.workload)
    return s.iterations[:n] * s.compute_iteration_s[:n]


def check_end(simulator: Any) -> None:
    """All work done once; no job before its arrival; waiting and running make up the JCT."""
    workload, table, s = simulator.workload, simulator.jobs(), simulator.state
    assert simulator.done and (s.iterations_left[: len(workload)] == 0.0).all()
    assert (table["first_start_s"] >= table["arrival_s"]).all()
    assert (table["finish_s"] > table["first_start_s"]).all()
    ran = s.attained_s[: len(workload)]
    assert near(table["queueing_delay_s"] + ran, table["jct_s"], least=1e-6)
    if simulator.capacity.links > 0:
        n = len(workload)
        work = (s.gpus[:n] * computing_s(simulator)).sum()
        assert near(gpu_seconds(s)["compute"], float(work), 1e-6)
    elif simulator.rate_provider is None:
        alone_s = computing_s(simulator)
        assert near(gpu_seconds(s)["compute"], float((workload.gpus * alone_s).sum()))
        assert (table["jct_s"] >= alone_s * (1 - 1e-9)).all()
        if simulator.config.failures is None:
            spent = alone_s + table["comm_time_s"] + table["interference_s"] + table["restore_s"]
            over = ran - spent  # what a job ran past its work in its last chunk, at auctions
            assert (over >= -1e-9 * ran - 1e-6).all() and (
                simulator.semantics.chunk > 0.0 or near(ran, spent, least=1e-6)
            )
            assert near((workload.gpus * over).sum(), s.lost_gpu_s, least=1e-6 * max(1.0, float(s.used_gpu_s)))
    check_gpu_seconds(simulator)


# Job groups


def listed(first: int, after: np.ndarray) -> list[int]:
    """The jobs of a list of a record."""
    found = []
    while first >= 0:
        found.append(int(first))
        first = after[first]
    return found


def check_groups(simulator: GroupSimulator) -> None:
    """Machines, counts, lists, work, and memory once the instant's moves are settled."""
    s = simulator.state
    check_machines(s)
    check_members(s)
    check_work(s)
    if s.n_dirty_jobs == 0 and s.n_dirty_groups == 0:
        check_memory(s)


def check_machines(s: Any) -> None:
    """Each is free, down, or of one group that there is."""
    owner = s.machine_group[: s.n_machines]
    groups = np.flatnonzero(s.is_group)
    assert s.free_machines == (owner == -1).sum() and s.down_machines == (owner == DOWN).sum()
    assert s.n_groups == len(groups)
    assert {g: int(s.group_machines[g]) for g in groups} == {g: int((owner == g).sum()) for g in groups}
    assert set(owner[owner >= 0]) == set(groups)
    assert (s.group_machines[groups] >= 1).all()


def check_members(s: Any) -> None:
    """Counts and lists are what the jobs say."""
    n = s.n_jobs
    status, at, goal, place = s.status[:n], s.at[:n], s.goal[:n], s.place[:n]
    assert (s.waiting, s.running, s.done) == tuple((status == code).sum() for code in (WAITING, RUNNING, DONE))
    assert bits(s.window_low, n) == np.flatnonzero(status == WAITING).tolist()
    assert bits(s.running_low, n) == np.flatnonzero(status == RUNNING).tolist()
    assert ((goal >= 0) == (status == RUNNING)).all()
    assert ((at >= 0) == (place != OUT)).all()
    assert (at[(status == PENDING) | (status == DONE)] == -1).all()
    assert s.n_loading == (place == LOADING).sum()
    assert s.n_executed == ((place != OUT) & (place != LOADING)).sum()
    for group in np.flatnonzero(s.is_group):
        assert s.n_at[group] == (at == group).sum() and s.n_goal[group] == (goal == group).sum()
        members = listed(s.first_member[group], s.next_member)
        assert sorted(members) == np.flatnonzero((at == group) & (place != LOADING)).tolist()
        assert s.n_members[group] == len(members)
        if s.execution != NAIVE and members:
            check_resources(s, group, members)
    assert set(at[at >= 0]) | set(goal[goal >= 0]) <= set(np.flatnonzero(s.is_group))


def check_resources(s: Any, group: int, members: list[int]) -> None:
    """Each member is in one queue or has one resource; at a decision point no resource idles beside its queue."""
    queued = [*listed(s.cpu_head[group], s.queue_next), *listed(s.net_head[group], s.queue_next)]
    holders = [int(job) for job in (s.cpu_job[group], s.net_job[group], s.second_job[group]) if job >= 0]
    assert sorted(queued + holders) == sorted(members)
    if s.busy == 1.0:
        assert s.second_job[group] == -1


def check_work(s: Any) -> None:
    """Iterations are whole and done once; busy machines are held ones."""
    n = s.n_jobs
    done = s.iterations[:n] - s.iterations_left[:n]
    assert near(s.comp_done_s, float(done @ s.comp_machine_s[:n]), least=1e-6)
    assert (done == np.floor(done)).all() and (done >= 0).all() and (s.saved_left[:n] >= s.iterations_left[:n]).all()
    if s.jitter == 0.0:
        assert s.cpu_busy_s >= (s.comp_done_s + s.comp_lost_s) * (1 - 1e-9) - 1e-6
    assert s.cpu_busy_s <= s.held_integral * (1 + 1e-9) + 1e-6
    assert s.net_busy_s * s.busy <= s.held_integral * (2 if s.busy < 1 else 1) * (1 + 1e-9) + 1e-6
    whole = s.n_machines * (s.now_s - s.start_s)
    assert s.held_integral + s.down_integral <= whole * (1 + 1e-9) + 1e-6


def check_memory(s: Any) -> None:
    """What is kept and what is spilled make up the input; what is kept fits; asked ratios hold."""
    for group in np.flatnonzero(s.is_group):
        members = listed(s.first_member[group], s.next_member)
        if not members:
            continue
        alpha, model = s.alpha[members], s.model_spill[members]
        assert ((alpha >= 0) & (alpha <= 1) & (model >= 0) & (model <= 1)).all()
        kept, spilled = (1 - alpha) * s.input_bytes[members], alpha * s.input_bytes[members]
        assert near(kept + spilled, s.input_bytes[members], 1e-6)
        bytes_kept = kept.sum() + ((1 - model) * s.model_bytes[members]).sum()
        occupancy = s.expansion * bytes_kept / (s.group_machines[group] * s.ram_bytes)
        assert near(s.group_occupancy[group], occupancy, 1e-6) and occupancy <= 1 + 1e-9
        assert s.group_gc[group] >= 1.0
        if not s.spills:
            assert not alpha.any() and not model.any()


def check_end_of_groups(simulator: GroupSimulator) -> None:
    """Each job ends once, with all its work; waiting, moving and running make up the JCT."""
    s, n = simulator.state, int(simulator.state.n_jobs)
    assert simulator.done and (s.iterations_left[:n] == 0).all() and (s.status[:n] == DONE).all()
    assert near(s.comp_done_s, float(s.iterations[:n] @ s.comp_machine_s[:n]))
    least = s.iterations[:n] * (s.comp_machine_s[:n] / s.n_machines + s.comm_s[:n])
    if s.jitter == 0.0:
        assert (s.finish_s[:n] - s.arrival_s[:n] >= least * (1 - 1e-9) - 1e-9).all()
    table, metrics = simulator.jobs(), simulator.metrics()
    assert np.isfinite(table["finish_s"]).all() and metrics["jobs_finished"] == n
    assert metrics["moves"] == s.starts[:n].sum() >= n
    assert metrics["preemptions"] == s.preempted[:n].sum() and metrics["migrations"] == s.migrated[:n].sum()
    assert (s.queued_s[:n] >= -1e-9).all() and (s.restore_s[:n] >= -1e-9).all()
    spans = float(s.queued_s[:n].sum() + s.moving_integral + s.executed_integral)
    assert near(float(table["jct_s"].sum()), spans)
    assert near(float(s.restore_s[:n].sum()), s.moving_integral, least=1e-6)
    if s.failures == 0 and s.out_of_memory == 0:
        assert (s.starts[:n] - 1 == s.preempted[:n] + s.migrated[:n]).all()
