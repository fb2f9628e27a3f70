"""What holds after every decision and event in regions, on random workloads, decisions and outages."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clustergym.policies import make
from clustergym.simulator.base.decisions import Advance, Preempt, Start
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.workloads import open_workload
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.geo_player import DRAWN, Anything, check_regions, random_run
from clustergym.tests.support.mast_reference import ranking

SCHEDULERS = ("mast", "federated", "federated:bind=any", "global:joint=4", "bring", "srtf", "mast:slow=static")


@calm(15)
@given(seed=st.integers(0, 10_000))
def test_units_parts_tables_and_links_are_sound_at_any_time(seed):
    """Among the rest: no table is ever without a complete copy, whatever fails while its home moves.

    Jobs that need fresh data, which most seeds have, start at home only; a replica that is to be whole is so, or what
    it lacks is on its way.
    """
    simulator = random_run(seed)
    check_regions(simulator)
    player = Anything(seed, check_regions)
    player.play(simulator)
    assert simulator.done and {"Start", "Move"} <= player.made.keys()


@calm(10)
@given(seed=st.integers(0, 10_000))
def test_refusals_leave_the_record_as_it_was_and_runs_repeat(seed):
    """`Anything` compares the whole record around every decision that is refused."""
    ends = []
    for _ in range(2):
        simulator = random_run(seed, jobs=15)
        Anything(seed).play(simulator)
        ends.append(simulator.records.tobytes())
    assert ends[0] == ends[1]


def drawn_days(rng):
    """A few days of `mast-like` with whatever regions can have, at the first decision point; and its words."""
    caps = ",egress_gbps=2,ingress_gbps=3" if rng.random() < 0.5 else ""
    copies = {key: value for key, value in DRAWN.items() if key.startswith("copy")} if rng.random() < 0.5 else {}
    lag_s = [None, 1800.0][int(rng.integers(2))]
    failures = Failures(region_mtbf_s=150_000.0, region_mttr_s=3000.0) if rng.random() < 0.5 else None
    simulator = Simulator(
        f"mast:regions=4,gpus=256{caps}",
        tables_every_s=20_000.0,
        failures=failures,
        replica_lag_s=lag_s,
        **copies,
    )
    word = f"mast-like:days=2,jobs=25,longest_h=6,tables=12,fresh_levels={rng.integers(0, 4)},read_share=0.5"
    word += f",reads={rng.choice([1.2, 2.0])},size_reads=1" + (",storage_ratio=1.5" if rng.random() < 0.5 else "")
    return simulator, word


@calm(12)
@given(seed=st.integers(0, 10_000), word=st.sampled_from(SCHEDULERS))
def test_schedulers_and_tetris_keep_what_holds_in_regions(seed, word):
    """Data, gangs, freshness, caps, storage and outages at every instant; a start has its data, fresh if need be."""
    rng = np.random.default_rng(seed)
    simulator, workload = drawn_days(rng)
    simulator.reset(open_workload(workload, seed=seed), seed)
    view, policy, starts = simulator.view, make(word), 0
    for _ in range(400):
        if simulator.ended:
            break
        while not isinstance(decision := simulator.ask(policy), Advance):
            simulator.apply(decision)
            if isinstance(decision, Start):
                starts += 1
                region, tables = view.region_of(decision.job), view.tables_of(decision.job).tolist()
                assert all(region in view.copies(table) for table in tables)
                assert not view.needs_home(decision.job) or all(view.home(table) == region for table in tables)
        check_regions(simulator)
        simulator.advance()
    check_regions(simulator)
    assert starts > 5


@calm(10)
@given(seed=st.integers(0, 10_000))
def test_quotas_bound_what_a_tenant_has_within_its_priority(seed):
    """What `mast` stops for another ranks below it; workloads within quota keep every tenant at its quota or below.

    By GMS's reference in plain Python: a workload beyond its tenant's quota has the lowest priority of all.
    """
    rng = np.random.default_rng(seed)
    simulator, workload = drawn_days(rng)
    simulator.reset(open_workload(workload, seed=seed), seed)
    view, policy = simulator.view, make("mast:slow=none,scan_s=0")
    demands, stopped, level, seen = view.demands, list[int](), {}, None
    for _ in range(150):
        if simulator.ended:
            break
        while not isinstance(decision := simulator.ask(policy), Advance):
            if seen != (seen := (view.instant, policy.fast._passes)):
                level = ranking(view)[0]
                for group in (view.queue.tolist(), view.running.tolist()):
                    inside = [job for job in group if level[job] == demands.level[job] < 6]
                    used = np.zeros_like(demands.quota)
                    np.add.at(used, demands.tenant[inside], demands.asked[inside])
                    assert (used <= demands.quota).all()
            if isinstance(decision, Preempt):
                stopped.append(decision.job)
            elif isinstance(decision, Start):
                assert all(level[victim] > level[decision.job] for victim in stopped)
                stopped = []
            simulator.apply(decision)
        assert not stopped
        simulator.advance()
