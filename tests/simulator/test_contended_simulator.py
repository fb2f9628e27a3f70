"""Network contention in the whole simulator: by hand, against PhaseRun, transactions, shifts, and malformed input."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from clustergym.simulator.base.decisions import Hold, Migrate, Preempt, Shift, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.configuration.network_choice import Contention, load_network
from clustergym.simulator.contention import link_memo
from clustergym.simulator.contention.own_patterns import read_patterns
from clustergym.simulator.contention.patterns import pattern_of
from clustergym.simulator.contention.phase_run import Contender, PhaseRun
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import random_contended
from clustergym.tests.support.paths import ROOT, SUPPORT
from clustergym.tests.support.random_contended import BYTES, PHASES, dumbbell, outcome, played, random_run, workload
from clustergym.tests.support.scripted_contention import ACROSS, ALSO, Script, contended

SCENARIOS = 25
TICK = (0.05, 1, "quiet", 400.0)  # a job of one GPU that comes and goes: an instant to decide at


def test_what_is_remembered_of_jobs_has_a_bound(monkeypatch):
    """Three jobs of three models on two machines each, with room for two: the same times, and two are left at most."""
    rows = [(0.0, 2, model, 50.0) for model in ("half", "twice", "quiet")]
    jct_s, left = [], []
    for most in (link_memo.MOST_ALONE, 2):
        monkeypatch.setattr(link_memo, "MOST_ALONE", most)
        simulator = contended(*rows)
        simulator.run(Script(*[(0.0, Start(job, (job, 4 + job))) for job in range(3)]))
        jct_s.append(simulator.jobs()["jct_s"].tolist())
        left.append(len(simulator.network.memo.alone))
    assert jct_s[0] == jct_s[1]
    assert left[0] == 3 and left[1] <= 2


# By hand


def test_alone_a_job_takes_its_iterations():
    for model, gpus in (("half", ACROSS), ("twice", ACROSS), ("quiet", ACROSS), ("half", (0, 1))):
        simulator = contended((0.0, 2, model, 50.0))
        simulator.run(Script((0.0, Start(0, gpus))))
        seconds = {"half": 0.18, "twice": 0.31, "quiet": 0.05}[model] * 50
        assert simulator.jobs()["jct_s"] == pytest.approx(seconds, rel=1e-12)
        metrics = simulator.metrics()
        assert metrics["congestion_bytes"] == 0.0
        assert metrics["iteration_time_mean"] == pytest.approx(seconds / 50)
        assert metrics["iteration_time_p99"] == pytest.approx(seconds / 50, rel=0.01)


@pytest.mark.parametrize("duration", ["isolated", "compute"])
def test_an_iteration_is_computing_and_communication_as_its_phases_say(duration):
    """No machine holds these gangs: of 0.18 s, 0.1 are computing and 0.08 sending, whatever `duration` is."""
    for model, computing in (("half", 0.1 / 0.18), ("quiet", 1.0)):
        simulator = contended((0.0, 2, model, 50.0), words=f",duration={duration}")
        metrics = simulator.run(Script((0.0, Start(0, ACROSS))))
        seconds = simulator.jobs()["jct_s"][0]
        assert metrics["comm_time_mean"] == pytest.approx(seconds * (1.0 - computing), abs=1e-9)
        assert metrics["gpu_utilisation"] == pytest.approx(metrics["allocation_rate"] * computing)


def test_two_in_lockstep_and_two_with_shifts():
    """0.1 s of computing and 0.08 s of the whole link: 0.26 s an iteration together, 0.18 s in turns."""
    starts = (0.0, Start(0, ACROSS)), (0.0, Start(1, ALSO))
    simulator = contended(*[(0.0, 2, "half", 100.0)] * 2)
    metrics = simulator.run(Script(*starts))
    assert simulator.jobs()["jct_s"] == pytest.approx(26.0, rel=1e-9)
    assert metrics["congestion_bytes"] == pytest.approx(100 * 0.16 * 50e9 / 8)  # once, not in both directions
    assert metrics["comm_time_mean"] == pytest.approx(16.0) and metrics["iteration_time_mean"] == pytest.approx(0.26)

    simulator = contended(*[(0.0, 2, "half", 100.0)] * 2)
    metrics = simulator.run(Script(*starts, (0.0, Shift(0, 0.0)), (0.0, Shift(1, 0.09))))
    assert simulator.jobs()["jct_s"] == pytest.approx([18.0, 18.09], rel=1e-9)
    assert metrics["congestion_bytes"] == 0.0 and metrics["jct_mean"] == pytest.approx(18.045)

    simulator = contended(*[(0.0, 2, "half", 100.0)] * 2)
    simulator.run(Script((0.0, Start(0, ACROSS, time_shift=0.0)), (0.0, Start(1, ALSO, time_shift=0.09))))
    assert simulator.jobs()["jct_s"] == pytest.approx([18.0, 18.09], rel=1e-9)


def test_one_that_leaves_lets_the_other_go_on_alone():
    """Together until the first has done 10 iterations, at 2.6 s; the other is where it is then, and ends alone."""
    simulator = contended((0.0, 2, "half", 10.0), (0.0, 2, "half", 30.0))
    simulator.run(Script((0.0, Start(0, ACROSS)), (0.0, Start(1, ALSO))))
    assert simulator.jobs()["jct_s"] == pytest.approx([2.6, 2.6 + 20 * 0.18], rel=1e-9)


@pytest.mark.parametrize(("shifts", "words"), [((None, None), ""), ((0.02, 0.1), ""), ((0.0, 0.2), ",pacing=off")])
def test_two_jobs_are_as_alone_on_the_links(shifts, words):
    simulator = contended((0.0, 2, "half", 40.0), (0.0, 2, "twice", 40.0), words=words)
    view = simulator.view
    plan = [Start(0, ACROSS), Start(1, ALSO)]
    plan += [Shift(job, shift) for job, shift in enumerate(shifts) if shift is not None]
    for decision in plan:
        simulator.apply(decision)
    jobs = [
        Contender(view.phases_of(job), view.links_of(job), shift, view.period_s(job), rounds=40.0)
        for job, shift in enumerate(shifts)
    ]
    links = simulator.topology.links
    run = PhaseRun(links.capacity, jobs, log=True, pacing="off" not in words)
    run.play(math.inf)
    simulator.run(Script())
    begins = [first or 0.0 for first in shifts]
    ends = [begin + sum(durations) for begin, durations in zip(begins, run.durations, strict=True)]
    assert simulator.jobs()["finish_s"] == pytest.approx(ends, rel=1e-9)
    assert simulator.metrics()["congestion_bytes"] == pytest.approx(run.congestion_bytes)
    assert simulator.state.link_bytes[: links.num_links] == pytest.approx(run.link_bytes)


def test_iterations_take_what_the_workload_says_at_the_best_tier():
    """VGG16 at 1.5 times the seconds that its phases have: Down times and bytes are 1.5 times as much."""
    phases = pattern_of("VGG16", 4, 512).phases
    for factor in (1.0, 1.5):
        seconds = phases.iteration_s * factor
        jobs = Workload.from_arrays(
            "w",
            [0.0],
            [4],
            [seconds * 10],
            iterations=[10.0],
            iteration_s=[seconds],
            model=["VGG16"],
            batch_size=[2048],
        )
        simulator = Simulator("cassini-testbed", "contention")
        simulator.reset(jobs)
        simulator.apply(Start(0, range(4)))
        assert simulator.view.phases_of(0).bytes == pytest.approx(factor * phases.bytes)
        simulator.run(Script())
        assert simulator.metrics()["jct_mean"] == pytest.approx(10 * seconds)
    # Where a machine holds the gang, that is the best tier, and it sends nothing there.
    one = pattern_of("VGG16", 2, 512)
    jobs = Workload.from_arrays("w", [0.0], [2], [10.0], iterations=[50.0], model=["VGG16"], batch_size=[1024])
    for gpus, seconds in (((0, 1), 10.0), ((0, 2), 10.0 * one.phases.iteration_s / one.local_s)):
        simulator = Simulator("cassini-two-gpu", "contention")
        simulator.reset(jobs)
        assert simulator.view.slowdown(0, 3) == pytest.approx(one.phases.iteration_s / one.local_s)
        metrics = simulator.run(Script((0.0, Start(0, gpus))))
        assert metrics["jct_mean"] == pytest.approx(seconds)
        assert metrics["comm_time_mean"] == pytest.approx(seconds - 10.0, abs=1e-6)


def test_a_slow_link_is_part_of_a_job_alone():
    """Rings cross the cable once each way; at 10 Gbps 0.08 s at 50 become 0.4 s, and no flow slows another."""
    simulator = contended((0.0, 2, "half", 10.0), topology=dumbbell(gbps=10.0))
    simulator.apply(Start(0, ACROSS))
    assert simulator.view.phases_of(0).iteration_s == pytest.approx(0.5)
    metrics = simulator.run(Script())
    assert metrics["jct_mean"] == pytest.approx(5.0) and metrics["congestion_bytes"] == 0.0


# Decisions


def test_back_at_the_same_instant_is_never_gone():
    rows = [(0.0, 2, "half", 60.0), (0.0, 2, "twice", 40.0), (3.33, 1, "quiet", 10.0)]
    starts = [(0.0, Start(0, ACROSS)), (0.0, Start(1, ALSO)), (0.0, Shift(1, 0.1))]
    plain = contended(*rows)
    plain.run(Script(*starts, (3.33, Start(2, [2]))))
    away = [
        [Preempt(0), Start(0, ACROSS)],
        [Migrate(0, (2, 6)), Migrate(0, ACROSS)],
        [Migrate(1, (3, 7)), Shift(1, 0.05), Preempt(1), Start(1, (2, 7)), Preempt(1), Start(1, ALSO)],
    ]
    for decisions in away:
        simulator = contended(*rows)
        simulator.run(Script(*starts, *[(3.33, one) for one in decisions], (3.33, Start(2, [2]))))
        stayed, never = outcome(simulator), outcome(plain)
        for name, value in never.pop("metrics").items():  # what is booked and taken back may leave a rounding error
            assert float(stayed["metrics"][name]) == pytest.approx(float(value), rel=1e-12, abs=1e-9)
        assert {name: stayed[name] for name in never} == never


def test_a_moved_job_goes_on_where_it_was():
    """Moved in the middle of an iteration, at no cost, a job alone loses nothing: not while computing nor sending."""
    for when in (3.33, 3.29, 3.4):
        rows = [(0.0, 2, "half", 60.0), (when, 1, "quiet", 10.0)]
        for decisions in ([Migrate(0, (2, 6))], [Preempt(0), Start(0, (3, 5))]):
            simulator = contended(*rows)
            simulator.run(Script((0.0, Start(0, ACROSS)), *[(when, one) for one in decisions], (when, Start(1, [7]))))
            assert simulator.jobs()["jct_s"][0] == pytest.approx(60 * 0.18, rel=1e-9)
            # Out of a server, over the cable, into a server, both ways.
            assert simulator.state.link_bytes.sum() == pytest.approx(60 * BYTES["half"] * 6, rel=1e-9)


def test_a_restore_delays_the_first_iteration():
    rule = Rule(order="fifo", preemption_cost=(2.0,))
    rows = [(0.0, 2, "half", 60.0), (3.3, 1, "quiet", 10.0)]
    simulator = contended(*rows, rule=rule)
    simulator.run(Script((0.0, Start(0, ACROSS)), (3.3, Migrate(0, (2, 6))), (3.3, Start(1, [7]))))
    assert simulator.jobs()["jct_s"][0] == pytest.approx(60 * 0.18 + 2.0)
    assert simulator.jobs()["restore_s"][0] == pytest.approx(2.0)
    assert simulator.metrics()["migrations"] == 1.0


def test_a_shift_is_lost_with_the_gpus_and_seen_while_it_lasts():
    simulator = contended((0.0, 2, "half", 60.0), (0.0, 2, "half", 60.0), (1.0, 1, "quiet", 10.0))
    view = simulator.view
    simulator.apply(Start(0, ACROSS))
    assert view.period_s(0) == pytest.approx(0.18) and view.shift_s(0) is None and view.component(0) == [0]
    simulator.apply(Start(1, ALSO))
    simulator.apply(Shift(0, 0.05))
    assert view.component(1) == [0, 1] and view.shift_s(0) == 0.05 and view.shift_period_s(0) == pytest.approx(0.18)
    assert sorted(view.contending().values()) == [[0, 1], [0, 1]]
    simulator.advance()
    assert view.now_s == 1.0 and view.shift_s(0) == 0.05
    simulator.apply(Migrate(0, (2, 6)))
    assert view.shift_s(0) is None
    simulator.apply(Shift(0, 0.07))
    assert view.shift_s(0) == 0.07
    simulator.apply(Shift(1, 0.01))
    simulator.apply(Shift(1, None))
    assert view.shift_s(1) is None and view.shift_period_s(1) is None
    simulator.apply(Start(2, [7]))
    simulator.advance()
    assert view.shift_s(0) == 0.07 and 0.18 < view.iteration_s(0) < 0.27


def test_shifts_are_logged_and_counted():
    simulator = contended((0.0, 2, "half", 60.0))
    simulator.state.log_on = 1
    from clustergym.simulator.events.journal import logged

    simulator.apply(Start(0, ACROSS, time_shift=0.05))
    simulator.apply(Shift(0, None))
    assert [decision for _, decision in logged(simulator.state)] == [
        Start(0, ACROSS, 1),
        Shift(0, 0.05),
        Shift(0, None),
    ]
    assert simulator.state.decisions == 3


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Shift(2, 0.1), "it is waiting"),
        (Shift(1, 0.1), "sends nothing over the network"),
        (Shift(0, -0.1), "expected a finite number of at least 0"),
        (Shift(0, math.inf), "expected a finite number of at least 0"),
        (Shift(0, math.nan), "expected a finite number of at least 0"),
        (Shift(0, "x"), "expected a finite number of at least 0"),
        (Shift(7, 0.1), "there are jobs 0 to 2"),
        (Start(2, (3, 7), time_shift=-1.0), "expected a finite number of at least 0"),
        (Start(2, (3, 70), time_shift=1.0), "there is no GPU 70"),
        (Start(2, (3,), time_shift=1.0), "its gang needs 2"),
    ],
)
def test_shifts_that_cannot_be(decision, said):
    simulator = contended((0.0, 2, "half", 60.0), (0.0, 1, "half", 60.0), (0.0, 2, "half", 60.0))
    simulator.apply(Start(0, ACROSS))
    simulator.apply(Start(1, [1]))
    before = simulator.snapshot()
    with pytest.raises(InvalidDecision, match=said):
        simulator.apply(decision)
    assert simulator.records.tobytes() == before.tobytes()


def test_a_shift_needs_links():
    simulator = Simulator("flat:machines=2,gpus_per_machine=1")
    simulator.reset(Workload.from_arrays("w", [0.0], [2], [9.0]))
    with pytest.raises(InvalidDecision, match="need network contention"):
        simulator.apply(Start(0, (0, 1), time_shift=0.0))
    simulator.apply(Start(0, (0, 1)))
    with pytest.raises(InvalidDecision, match="need network contention"):
        simulator.apply(Shift(0, 0.0))
    on_one = contended((0.0, 2, "half", 60.0), topology=dumbbell(gpus=2))
    with pytest.raises(InvalidDecision, match="sends nothing over the network on these GPUs"):
        on_one.apply(Start(0, (0, 1), time_shift=0.0))


# What must not change a run


def test_a_snapshot_goes_on_the_same():
    policy = random_contended.Random
    for seed in (0, 7, 13):
        simulator, again = random_run(seed), random_run(seed)
        assert simulator.rule.lease == 0.0
        simulator.run(policy(seed))
        for _ in range(6):
            again._play(policy(seed))
        assert not again.ended
        kept = again.snapshot()
        for _ in range(2):
            again.run(policy(seed))
            assert outcome(again) == outcome(simulator)
            again.restore(kept)


def test_dedicated_is_exact_where_no_job_shares():
    for words in ("", ",offsets=random,jitter=0.1"):
        both = []
        for mode in ("exact", "dedicated"):
            simulator = contended(
                (0.0, 2, "half", 60.0), (1.0, 2, "twice", 40.0), (2.0, 3, "light", 30.0), words=f",mode={mode}{words}",
            )  # fmt: skip
            plan = (0.0, Start(0, (0, 1))), (1.0, Start(1, (4, 5))), (2.0, Hold(2, 9.0)), (9.0, Start(2, (2, 3, 6)))
            simulator.run(Script(*plan))
            both.append(outcome(simulator))
        assert {**both[0], "link_bytes": 0} == {**both[1], "link_bytes": 0}


def test_dedicated_is_faster_where_they_share():
    means = {}
    for mode in ("exact", "dedicated"):
        simulator = contended(*[(0.0, 2, "half", 60.0)] * 2, words=f",mode={mode}")
        means[mode] = simulator.run(Script((0.0, Start(0, ACROSS)), (0.0, Start(1, ALSO))))["jct_mean"]
    assert means == pytest.approx({"exact": 60 * 0.26, "dedicated": 60 * 0.18})


def test_the_rest_of_the_cluster_does_not_matter():
    """Jobs on other links change no bit of when two jobs end, with shifts, moves and all."""
    finish = []
    for others in ((), (2,), (2, 3)):
        rows = [(0.0, 2, "half", 60.0), (0.0, 2, "twice", 40.0), *[(0.0, 2, "light", 50.0)] * len(others)]
        topology = dumbbell(5)
        simulator = contended(*rows, topology=topology)
        plan = [(0.0, Start(0, (0, 5))), (0.0, Start(1, (1, 6)))]
        plan += [(0.0, Start(job, (job, job + 1) if job == 2 else (8, 9))) for job in others]
        simulator.run(Script(*plan))
        finish.append(simulator.jobs()["finish_s"][:2].tolist())
    assert finish[0] == pytest.approx(finish[1], rel=1e-12) and finish[0] == pytest.approx(finish[2], rel=1e-12)


def test_runs_are_the_same_under_the_compiled_rule_and_by_its_decisions():
    class Ask:
        def decide(self, view):
            return view._simulator.next_decision()

    for seed in (1, 2, 3):
        compiled, asked = random_run(seed), random_run(seed)
        compiled.run()
        asked.run(Ask())
        assert outcome(compiled) == outcome(asked)


@pytest.mark.parametrize(
    "flags", [{"NUMBA_DISABLE_JIT": "1"}, pytest.param({"NUMBA_BOUNDSCHECK": "1"}, marks=pytest.mark.slow)]
)
def test_the_bits_are_those_of_interpreted_and_of_checked_code(flags):
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_") or key.endswith("_DIR")}
    said = subprocess.run(
        [sys.executable, "-P", str(SUPPORT / "random_contended.py"), "12"],
        check=False,
        capture_output=True,
        text=True,
        env=quiet | flags,
        cwd=ROOT,
        timeout=900,
    )
    assert said.returncode == 0, said.stderr[-2000:]
    assert json.loads(said.stdout) == [played(seed) for seed in range(12)]


# Conservation


def check_conserved(simulator: Simulator) -> None:
    """GPU-seconds add up, and without failures so do work and bytes."""
    s = simulator.raw.record
    parts = gpu_seconds(s)
    held = sum(parts[name] for name in ("compute", "comm", "interference", "restore", "lost"))
    assert parts["held"] == pytest.approx(held, rel=1e-9, abs=1e-6)
    n = int(s["n_jobs"])
    work = (s["gpus"][:n] * s["iterations"][:n] * s["compute_iteration_s"][:n]).sum()
    assert parts["compute"] == pytest.approx(work, rel=1e-6)
    assert s["phase_count"] == 0 and s["n_leavers"] <= 1
    assert (s["iterations_left"][:n] == 0.0).all()


@pytest.mark.parametrize("seed", range(SCENARIOS))
def test_everything_is_conserved(seed):
    simulator = random_run(seed)
    policy = random_contended.Careful if simulator.rule.lease else random_contended.Random
    simulator.run(policy(seed))
    check_conserved(simulator)
    again = random_run(seed, failures=Failures(mtbf_s=60.0, mttr_s=5.0, checkpoint_s=2.0))
    again.run(policy(seed))
    check_conserved(again)


def test_bytes_are_conserved_through_moves():
    """One GPU a server: each worker of a ring sends the bytes of all iterations over its own link, wherever it is."""
    checked = 0
    for seed in range(12):
        simulator = random_run(seed)
        if simulator.topology.machine_gpus.max() > 1:
            continue
        policy = random_contended.Careful if simulator.rule.lease else random_contended.Random
        simulator.run(policy(seed))
        links = simulator.topology.links
        out = np.isin(links.source, links.machine_node)
        jobs = simulator.workload
        due = sum(
            BYTES[model] * gpus * count
            for model, gpus, count in zip(jobs.model, jobs.gpus, jobs.iterations, strict=True)
            if gpus > 1
        )
        assert simulator.state.link_bytes[: links.num_links][out].sum() == pytest.approx(due, rel=1e-6)
        checked += 1
    assert checked >= 4


def test_a_horizon_stops_the_clock_in_the_middle():
    simulator = contended(*[(0.0, 2, "half", 100.0)] * 2, horizon_s=10.0)
    metrics = simulator.run(Script((0.0, Start(0, ACROSS)), (0.0, Start(1, ALSO))))
    assert simulator.at_horizon and simulator.state.now_s == 10.0
    assert simulator.view.remaining_s(0) == pytest.approx((100 - 10 / 0.26) * 0.18, rel=0.01)
    assert metrics["iteration_time_mean"] == pytest.approx(0.26)
    assert metrics["congestion_bytes"] == pytest.approx(10 / 0.26 * 0.16 * 50e9 / 8, rel=0.02)
    parts = gpu_seconds(simulator.raw.record)
    assert parts["held"] == pytest.approx(40.0) == pytest.approx(parts["compute"] + parts["comm"])


def test_jobs_that_share_gpus_compute_longer():
    """Two jobs on the same GPUs at xi 1.5: computing takes 0.15 s, sending alone as before."""
    simulator = Simulator(dumbbell(), f"contention:models={PHASES}", sharing=Sharing(interference="constant:xi=1.5"))
    jobs = [(0.0, 2, "half", 100.0), (0.0, 2, "half", 100.0)]
    simulator.reset(workload(*jobs))
    simulator.apply(Start(0, ACROSS))
    simulator.apply(Start(1, ACROSS))
    slowdown = float(simulator.view.interference(0, 1))
    simulator.run(Script())
    # Both compute at once, then both send: each at half the rate of the cable.
    assert simulator.jobs()["jct_s"] == pytest.approx(100 * (0.1 * slowdown + 0.16), rel=1e-6)
    table = simulator.jobs()
    assert table["interference_s"] == pytest.approx(100 * 0.1 * (slowdown - 1.0), rel=1e-6)
    assert table["comm_time_s"] == pytest.approx(100 * 0.16, rel=1e-6)


# Options and files


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("contention:mode=fast", "mode"),
        ("contention:gbps=0", "gbps = 0.0: expected a finite number above 0"),
        ("contention:gbps=many", "expected a number"),
        ("contention:jitter=-1", "jitter = -1.0: expected a finite number of at least 0"),
        ("contention:jitter=inf", "jitter = inf"),
        ("contention:padding=-0.1", "padding"),
        ("contention:adjust=0", "adjust = 0.0: expected a finite number above 0"),
        ("contention:adjust=never", "adjust"),
        ("contention:pacing=perhaps", "pacing"),
        ("contention:offsets=some", "offsets"),
        ("contention:colective=ring", "did you mean 'collective'"),
        ("contention:models=/nowhere.yaml", "there is no such file"),
    ],
)
def test_options_that_cannot_be(text, said):
    with pytest.raises(InputError, match=said):
        load_network(text)


def test_a_network_is_what_it_says_of_itself():
    for text in ("contention", f"contention:mode=dedicated,collective=tree,gbps=40,adjust=0.05,models={PHASES}"):
        network = load_network(text)
        assert isinstance(network, Contention)
        assert load_network(network.describe()).describe() == network.describe()
        assert network.dedicated().mode == "dedicated" and replace(network.dedicated(), mode=network.mode).describe()


def test_what_a_network_needs():
    with pytest.raises(InputError, match="has no links between its machines"):
        Simulator("dally:racks=2", "contention")
    with pytest.raises(InputError, match="says itself how fast jobs run"):
        from clustergym.simulator.elastic.applications import fitted_applications
        from clustergym.simulator.elastic.elastic import TrainingRates

        Simulator("cassini-testbed", "contention", rate_provider=TrainingRates(fitted_applications("t4")))
    with pytest.raises(InputError, match="semantics=events"):
        Simulator("cassini-testbed", "contention", semantics="artist-sim")
    for model, batch, said in (("VGG61", 512, "did you mean"), ("VGG16", 0, "has no batch_size")):
        simulator = Simulator("cassini-testbed", "contention")
        jobs = Workload.from_arrays("w", [0.0], [4], [9.0], model=[model], batch_size=[batch])
        with pytest.raises(InputError, match=said):
            simulator.reset(jobs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("GPT2/pipelin", "did you mean 'pipeline'"),
        ("GPT2/data/big", "NAME/STRATEGY/HIDDEN with a whole number"),
        ("GPT2/data/1184/4", "NAME/STRATEGY/HIDDEN"),
        ("VGG16/data/64", "no hidden size"),
        ("VGG16/tensor", "strategy of VGG16"),
    ],
)
def test_models_that_cannot_be(text, said):
    with pytest.raises(InputError, match=said):
        pattern_of(text, 4, 32)


def test_a_tree_sends_the_gradients_once():
    ring, tree = pattern_of("VGG16", 4, 512), pattern_of("VGG16", 4, 512, collective="tree")
    assert tree.phases.bytes == pytest.approx(ring.phases.bytes * 4 / 6) and tree.local_s == ring.local_s
    assert tree.phases.iteration_s == pytest.approx(ring.phases.iteration_s - ring.phases.up_s / 3)
    assert pattern_of("GPT2/tensor", 4, 32, collective="tree") == pattern_of("GPT2/tensor", 4, 32)


CSV = "model,workers,batch,iteration_s,local_s,start_s,duration_s,gbps\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.json", '{"models": {}}', "models"),
        ("p.json", '{"models": {"a": [{"iteration_s": -1}]}}', "iteration_s"),
        ("p.json", '{"models": {"a": [{"iteration_s": 1, "phase": []}]}}', "did you mean 'phases'"),
        ("p.json", '{"models": {"a": [{"iteration_s": 1}, {"iteration_s": 1}]}}', "given twice"),
        (
            "p.json",
            '{"models": {"a": [{"iteration_s": 1, "phases": [{"start_s": 0.9, "duration_s": 0.2, "gbps": 1}]}]}}',
            "inside the iteration",
        ),
        (
            "p.json",
            '{"models": {"a": [{"iteration_s": 1, "phases": [{"start_s": 0, "duration_s": 1, "gbps": 1}]}]}}',
            "expected local_s",
        ),
        ("p.csv", "model,workers\na,1\n", "column 'batch' is missing"),
        ("p.csv", CSV + ",,,1,,,,\n", "model is missing"),
        ("p.csv", CSV + "a,,,x,,,,\n", "line 2: iteration_s = 'x': expected a number"),
        ("p.csv", CSV + "a,,,1,,0.1,0.1,9\na,,,2,,0.3,0.1,9\n", "not that of the rows before"),
        ("p.csv", CSV + "a,,,1,,0.1,0.1\n", "gbps is missing"),
    ],
)
def test_phases_that_cannot_be(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        load_network(f"contention:models={path}")


@pytest.mark.parametrize("name", ["p.csv", "p.json"])
def test_a_network_has_the_phases_of_its_file_when_it_was_made(tmp_path, name):
    """0.2 s, then 0.4: a job made after the edit has the new ones, one made before keeps its own."""
    path, jct_s = tmp_path / name, []
    row = {"iteration_s": 0.0, "phases": [{"start_s": 0.1, "duration_s": 0.05, "gbps": 40}]}
    jobs = replace(workload((0.0, 2, "half", 10.0)), model=np.array(["a"], object))
    simulators = []
    for seconds in (0.2, 0.4):
        row["iteration_s"] = seconds
        text = CSV + f"a,,,{seconds},,0.1,0.05,40\n"
        path.write_text(text if name == "p.csv" else json.dumps({"models": {"a": [row]}}))
        simulators.append(Simulator(dumbbell(), f"contention:duration=compute,models={path}"))
    for simulator in simulators:
        simulator.reset(jobs)
        simulator.run(Script((0.0, Start(0, ACROSS))))
        jct_s.append(simulator.jobs()["jct_s"][0])
    # The workload's 0.18 s are computing; what is not computing comes on top.
    assert jct_s == pytest.approx([1.8 * 0.2 / 0.15, 1.8 * 0.4 / 0.35])


def test_own_phases_from_a_table(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(CSV + "a,2,,0.2,,0.1,0.05,40\na,2,,0.2,,0.16,0.02,20\na,,8,0.3,0.25,0.2,0.1,40\n")
    own = read_patterns(str(path))
    assert pattern_of("a", 2, 1, models=own).phases.start_s == (0.1, 0.16)
    assert pattern_of("a", 2, 1, models=own).local_s == pytest.approx(0.13)
    assert pattern_of("a", 3, 8, models=own).local_s == 0.25
    with pytest.raises(InputError, match="no phases for 3 workers and batch 9"):
        pattern_of("a", 3, 9, models=own)
    with pytest.raises(InputError, match="named whole"):
        pattern_of("a/data", 3, 9, models=own)
