"""A player of the regions of geo_small at random, or first come first served; and what must hold at any time.

The script is for the modes chosen when Python starts: `NUMBA_DISABLE_JIT=1 python geo_player.py 4` prints one line of
JSON with what `played` returns for the seeds 0 to 3.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace

import numpy as np

from clustergym.simulator.base.codes import HELD, LEVELS, WAITING
from clustergym.simulator.base.decisions import Advance, Drop, Hold, Migrate, Move, Preempt, Replicate, Start
from clustergym.simulator.base.errors import InvalidDecision, Stalled
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.regions.region_metrics import type_seconds
from clustergym.tests.support import geo_small

DRAWN = {"egress_bytes_per_s": np.array([1e7, 3e6, np.inf]), "copy_time": "published", "copy_order": "urgent"}


def find_units(view, job, region, rng=None):
    """Free units for a job in a region, part after part: in the first cluster with room, or one at random; or None."""
    topology, free = view.topology, view.free_gpus
    cluster_of = topology.gpu_cluster[free]
    taken = np.zeros(len(free), bool)
    units = []
    for kind, size in view.parts(job):
        found = [
            cluster
            for cluster in np.flatnonzero(topology.cluster_region == region).tolist()
            if topology.cluster_gpu_type[cluster] in kind.split("|") and (cluster_of[~taken] == cluster).sum() >= size
        ]
        if not found:
            return None
        cluster = found[0] if rng is None else int(rng.choice(found))
        places = np.flatnonzero((cluster_of == cluster) & ~taken)
        places = places[:size] if rng is None else np.sort(rng.permutation(places)[:size])
        taken[places] = True
        units += free[places].tolist()
    return units


class FirstCome:
    """Every waiting job in the first region that has room for it."""

    def decide(self, view):
        """The first that fits."""
        for job in view.queue.tolist():
            for region in view.regions_of(job):
                units = find_units(view, job, region)
                if units is not None:
                    return Start(job, units)
        return Advance()


class Anything:
    """Decisions at random, checked after each; some of them are refused.

    Attributes:
        refused: the sentences.
        made: how many were carried out, by name.
    """

    def __init__(self, seed, check=None):
        self.rng = np.random.default_rng(seed)
        self.check = check
        self.refused, self.made = [], {}

    def play(self, simulator, instants=100_000):
        """To the end, or for so many decision points."""
        for _ in range(instants):
            if simulator.ended:
                return
            for _ in range(int(self.rng.integers(0, 5))):
                self._try(simulator, self._pick(simulator.view))
            if self.rng.random() < 0.7:
                while not isinstance(decision := simulator.ask(FirstCome()), Advance):
                    self._try(simulator, decision)
            try:
                simulator.advance()
            except Stalled:
                continue
            if self.check is not None:
                self.check(simulator)

    def _try(self, simulator, decision):
        if decision is None:
            return
        before = simulator.state.tobytes()
        try:
            simulator.apply(decision)
        except InvalidDecision as error:
            self.refused.append(str(error))
            assert simulator.state.tobytes() == before
            return
        name = type(decision).__name__
        self.made[name] = self.made.get(name, 0) + 1
        view = simulator.view
        if name in ("Start", "Migrate") and view.needs_home(decision.job):
            assert view.demands.fresh[decision.job]
            assert {view.home(table) for table in view.tables_of(decision.job)} <= {view.region_of(decision.job)}
        if self.check is not None:
            self.check(simulator)

    def _pick(self, view):
        rng, s = self.rng, view._simulator.state
        kind = rng.choice(
            [Start, Preempt, Migrate, Hold, Replicate, Move, Drop], p=[0.2, 0.1, 0.1, 0.05, 0.2, 0.2, 0.15]
        )
        if kind in (Replicate, Move, Drop):
            table, region = int(rng.integers(s.n_tables)), int(rng.integers(s.n_regions))
            return kind(table, region, bool(rng.random() < 0.4)) if kind is Replicate else kind(table, region)
        jobs = view.queue if kind in (Start, Hold) else view.running
        if len(jobs) == 0:
            return None
        job = int(rng.choice(jobs))
        if kind is Preempt:
            return Preempt(job)
        if kind is Hold:
            return Hold(job, None if rng.random() < 0.5 else view.now_s + 30.0)
        units = find_units(view, job, int(rng.integers(s.n_regions)), rng)
        return None if units is None else kind(job, units)


def check_regions(simulator):
    """Units conserved, parts whole, data there, storage and links within their limits, no table without a copy."""
    s, view, topology = simulator.state, simulator.view, simulator.topology
    demands = view.demands
    n, regions, tables = int(s.n_jobs), int(s.n_regions), int(s.n_tables)
    _check_units(simulator)
    running = view.running.tolist()
    sized = demands.tables.size_bytes
    replica = np.ceil(sized * demands.tables.read_share).astype(np.int64)
    for job in running:
        region = view.region_of(job)
        clusters = topology.gpu_cluster[view.gpus_of(job)]
        last = 0
        for (kind, size), cluster in zip(view.parts(job), view.clusters_of(job), strict=True):
            assert (clusters[last : last + size] == cluster).all() and topology.cluster_gpu_type[cluster] in kind.split(
                "|"
            )
            assert topology.cluster_region[cluster] == region and region in view.up_regions
            last += size
        assert last == len(clusters) == view.gpus(job)
        for table in view.tables_of(job).tolist():
            assert region in view.copies(table)
    stored = np.zeros(regions, np.int64)
    for table in range(tables):
        home, copies = view.home(table), view.copies(table)
        assert home in copies and home not in view.doomed(table)
        assert s.table_whole[table] >> home & 1
        for region in copies:
            stored[region] += sized[table] if s.table_whole[table] >> region & 1 else replica[table]
            is_whole = s.table_whole[table] >> region & 1
            assert is_whole or not s.table_complete[table] >> region & 1 or transfer_to(simulator, table, region)
        assert set(view.doomed(table)) <= set(copies)
        wanted = {region for region in range(regions) if s.table_wanted[table] >> region & 1}
        coming = {target for moved, _, target, _ in view.transfers if moved == table}
        assert wanted <= set(copies) | coming and not s.table_complete[table] & ~s.table_wanted[table]
        target = view.moving_to(table)
        assert set(copies) - set(view.doomed(table)) - {home, target} == wanted & set(copies) - {home, target}
        assert target is None or (target in coming and target != home)
        assert coming <= wanted | {target}
    for table, source, target, left in view.transfers:
        assert 0.0 <= left <= sized[table]
        if source is not None:
            assert source in view.copies(table) and {source, target} <= set(view.up_regions)
        elif target in view.up_regions:
            is_whole = view.moving_to(table) == target or s.table_complete[table] >> target & 1
            assert is_whole or not set(view.copies(table)) & set(view.up_regions)
    _check_links(s, regions, stored)
    assert (stored == view.stored_bytes).all() and (view.stored_bytes <= view.storage_bytes).all()
    readers = {table: [] for table in range(tables)}
    for table in range(tables):
        use = int(s.table_reader[table])
        while use >= 0:
            readers[table].append(int(s.reader_job[use]))
            use = int(s.reader_next[use])
    lacking = np.flatnonzero(s.lacks_data[:n] == 1).tolist()
    for table, jobs in readers.items():
        expected = [job for job in [*running, *lacking] if table in view.tables_of(job)]
        assert sorted(jobs) == sorted(expected)
    assert not any(view.regions_of(job) for job in lacking if s.up_regions == (1 << regions) - 1)
    without = np.isin(s.status[:n], (WAITING, HELD))
    assert s.level_waits.tolist() == np.bincount(s.job_level[:n][without], minlength=LEVELS).tolist()
    assert s.level_late.sum() == s.late_starts


def transfer_to(simulator, table, region):
    """Whether a copy of a table is on the way to a region."""
    return any(moved == table and target == region for moved, _, target, _ in simulator.view.transfers)


def _check_units(simulator):
    s, view, topology = simulator.state, simulator.view, simulator.topology
    owner = s.gpu_job[: topology.num_gpus]
    for cluster in range(topology.num_clusters):
        inside = topology.gpu_cluster == cluster
        assert s.cluster_free[cluster] == (owner[inside] == -1).sum()
    for kind, name in enumerate(view.demands.gpu_types):
        inside = np.isin(topology.gpu_cluster, np.flatnonzero(np.array(topology.cluster_gpu_type) == name))
        assert s.type_held[kind] == (owner[inside] >= 0).sum() and s.type_down[kind] == (owner[inside] == -2).sum()
    seconds, total = type_seconds(s), gpu_seconds(s)
    assert (seconds["free"] >= -1e-6 * seconds["all"]).all()
    for name in ("all", "held", "down", "free"):
        assert np.isclose(seconds[name].sum(), total[name], rtol=1e-9, atol=1e-3)
    parts = total["compute"] + total["comm"] + total["restore"] + total["lost"]
    assert np.isclose(parts, total["held"], rtol=1e-9, atol=1e-3)


def _check_links(s, regions, stored):
    """Modify `stored`: add what is on the way. What was sent is what arrived, was wasted, or is on its way.

    No link, and no region, sends or receives more than it may, now and since the beginning.
    """
    flows, sent = np.zeros((regions, regions)), s.wan_bytes[:regions, :regions].copy()
    for lane, source, target in np.ndindex(s.wan_count.shape[0], regions, regions):
        count, transfer, before, weight = 0, int(s.wan_first[lane, source, target]), -np.inf, 0.0
        while transfer >= 0:
            assert s.transfer_end[transfer] >= before and s.transfer_lane[transfer] == lane
            before = s.transfer_end[transfer]
            weight += float(s.transfer_weight[transfer])
            count += 1
            transfer = int(s.transfer_next[transfer])
        assert count == s.wan_count[lane, source, target] and (lane == 0 or count == 0 or s.copy_urgent)
        if count:
            assert np.isclose(weight, s.wan_weight[lane, source, target], rtol=1e-12)
            flow = float(s.wan_flow[lane, source, target])
            assert flow >= 0.0 and (not s.copy_published or flow <= weight * (1.0 + 1e-9))
            flows[source, target] += flow
            sent[source, target] += float(s.now_s - s.wan_since_s[lane, source, target]) * flow
    ends = s.egress_rate[:regions], s.ingress_rate[:regions]
    elapsed_s = s.now_s - s.start_s
    for taken, longest in ((flows, 1.0), (sent, elapsed_s)):
        most = 1.0 + 1e-9
        assert (taken <= s.wan_rate[:regions, :regions] * longest * most + 1e-3).all()
        for axis, rate in zip((1, 0), ends, strict=True):
            limited = np.isfinite(rate)
            assert (taken.sum(axis=axis)[limited] <= rate[limited] * longest * most + 1e-3).all()
    total = 0.0
    on_the_way = 0
    for table in range(int(s.n_tables)):
        transfer = int(s.table_transfer[table])
        while transfer >= 0:
            on_the_way += 1
            target, source = int(s.transfer_to[transfer]), int(s.transfer_from[transfer])
            stored[target] += s.transfer_room[transfer]
            if source >= 0:
                place = int(s.transfer_lane[transfer]), source, target
                since = float(s.now_s - s.wan_since_s[place]) * s.wan_flow[place]
                served = s.wan_served[place] + since / s.wan_weight[place]
                total += s.transfer_bytes[transfer] - (s.transfer_end[transfer] - served) * s.transfer_weight[transfer]
            transfer = int(s.transfer_after[transfer])
    assert on_the_way == s.n_transfers
    assert np.isclose(sent.sum(), total + s.bytes_moved + s.bytes_wasted, rtol=1e-9, atol=1.0)


def random_run(seed, jobs=25, **copies):
    """A simulator at its first decision point; machines and regions fail for most seeds, replicas of some are small.

    `copies` are caps of the regions, and options of the simulator.
    """
    caps = {name: copies.pop(name) for name in ("egress_bytes_per_s", "ingress_bytes_per_s") if name in copies}
    topology = geo_small.small_topology(**caps)
    failures = Failures(20_000.0 if seed % 2 else np.inf, 600.0, 300.0, 3000.0, 300.0) if seed % 3 else None
    lag_s = 400.0 if seed % 7 > 3 else None
    simulator = Simulator(topology, failures=failures, tables_every_s=300.0, replica_lag_s=lag_s, **copies)
    workload = geo_small.random_workload(seed, jobs)
    shares = np.full(len(workload.geo.tables.size_bytes), 0.25 if seed % 4 > 1 else 1.0)
    tables = replace(workload.geo.tables, read_share=shares)
    fresh = workload.geo.level < seed % 5
    simulator.reset(workload.with_geo(replace(workload.geo, tables=tables, fresh=fresh)), seed)
    return simulator


def played(seed):
    """A hash of the whole record after 200 instants of a random run; every other has caps, urgency and drawn times."""
    simulator = random_run(seed, **DRAWN if seed % 2 else {})
    Anything(seed).play(simulator, 200)
    return hashlib.sha256(simulator.records.tobytes()).hexdigest()


if __name__ == "__main__":
    print(json.dumps([played(seed) for seed in range(int(sys.argv[1]))]))
