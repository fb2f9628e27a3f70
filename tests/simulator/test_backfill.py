"""EASY and conservative backfilling: hand-worked schedules, a reference by brute force, and what was promised."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym import policies
from clustergym.simulator.base.decisions import Advance
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule, Tuner
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import backfill_reference, random_backfill
from clustergym.tests.support.drawn import calm, some
from clustergym.tests.support.invariants import check_gangs as check_record
from clustergym.tests.support.paths import SUPPORT
from clustergym.tests.support.random_backfill import RULES, hard, random_case

CASES = 100
PLAINLY = some(20, 6)  # as Python functions too
FOUR = "flat:machines=1,gpus_per_machine=4"
needs_estimates = pytest.mark.skipif(
    "estimates" not in inspect.signature(Simulator).parameters, reason="a simulator whose run times are estimates"
)


def played(jobs, topology, rule, estimates=None, **options):
    """A simulator that has played (arrival_s, gpus, duration_s) to the end, with these expected durations or exact."""
    columns = {}
    if estimates is not None:
        columns, options = {"estimate_s": list(estimates)}, {**options, "estimates": "user"}
    simulator = Simulator(topology, rule=rule, **options)
    simulator.reset(Workload.from_arrays("by hand", *map(list, zip(*jobs, strict=True)), **columns))
    simulator.run()
    return simulator


def starts(jobs, topology, rule, estimates=None, **options):
    simulator = played(jobs, topology, rule, estimates, **options)
    return simulator.state.first_start_s[: len(jobs)].tolist()


A, B, C, D, E, F = (0, 3, 6), (1, 3, 8), (2, 4, 12), (3, 1, 16), (4, 1, 12), (5, 4, 4)
SIX = [A, B, C, D, E, F]
EXACT = {
    # A runs until 6; B is promised 6, with one GPU to spare: D takes it at 3, until 19. B 6-14. At 14 C is promised
    # 19, nothing to spare: E would end at 26. C 19-31, then E until 43 beside which F does not fit.
    ("fifo", "reserve"): [0, 6, 19, 3, 31, 43],
    # B is promised 6-14, C 14-26. D at 3 would run until 19, E at 4 until 16: into C's time. Both start at 26, F 42.
    ("fifo", "conservative"): [0, 6, 14, 26, 26, 42],
    # D starts at 3 as under fifo. At 6 the line is made anew: F is promised 19, when D ends; B is gone by 14. At 14 E
    # would end at 26. F 19-23, C 23-35, E.
    ("sjf", "reserve"): [0, 6, 23, 3, 35, 19],
    # Until 6 the promises are those of fifo, F behind all. At 6 the line is made anew: F 6-10, B 10-18, C 18-30, D, E.
    ("sjf", "conservative"): [0, 10, 18, 30, 30, 6],
}
TWICE = {
    # As before: at 14 C is promised 3 + 32 = 35, when D is expected to end; E is expected to end at 14 + 24 = 38.
    ("fifo", "reserve"): [0, 6, 19, 3, 31, 43],
    # B is promised 12-28, C 28-52. D at 3 is expected to run until 35, into C's time, but E at 4 until 28. B starts at
    # 6, until 14. C starts when E ends, at 16, until 28; then D until 44, beside which F does not fit.
    ("fifo", "conservative"): [0, 6, 16, 28, 4, 44],
    # At 6 F is promised 35; B is expected to be gone by 22. At 14 E would be gone by 38. F 19-23, C 23-35, E.
    ("sjf", "reserve"): [0, 6, 23, 3, 35, 19],
    # E starts at 4. At 6 F is promised 28, when E is expected to end, and B is gone by 22. E ends at 16: F 16-20. Then
    # C 20-32, and D.
    ("sjf", "conservative"): [0, 6, 20, 32, 4, 16],
}
HALF = {
    # At 3 A has outlived its estimate and is expected to need 3 s more: B is promised 6, D takes the GPU to spare. At
    # 14 D has run 11 s of 8: it is expected to need 11 more, and C is promised 25. E is expected to be gone by 20, and
    # runs until 26. C 26-38, F.
    ("fifo", "reserve"): [0, 6, 26, 3, 14, 38],
    # At 3 B is promised 6-10, C 10-16; D would run until 11. At 4 A is expected to need 4 s more: B is promised 8-12, C
    # 12, and D at 4 is gone by 12. B 6-14. At 14 C is promised 14 + 10 = 24; E is gone by 20, as expected. C 26-38, F.
    ("fifo", "conservative"): [0, 6, 26, 4, 14, 38],
    # At 6 F is promised 11, when D is expected to end; B is gone by 10. At 14 F is promised 25; E is gone by 20. It
    # ends at 26: F 26-30, C.
    ("sjf", "reserve"): [0, 6, 30, 3, 14, 26],
    # D starts at 4, as for fifo. At 6 F is promised 12, B gone by 10. At 14 F is promised 24, E gone by 20. F 26-30, C.
    ("sjf", "conservative"): [0, 6, 30, 4, 14, 26],
}


@pytest.mark.parametrize(("order", "head"), EXACT)
def test_six_jobs_by_hand(order, head):
    """4 GPUs; EASY and conservative differ; the schedules are worked out beside `EXACT`."""
    assert starts(SIX, FOUR, Rule(order, head)) == EXACT[order, head]


@needs_estimates
@pytest.mark.parametrize(("order", "head"), EXACT)
@pytest.mark.parametrize(("factor", "expected"), [(2.0, TWICE), (0.5, HALF)], ids=["too long", "too short"])
def test_six_jobs_with_wrong_estimates_by_hand(order, head, factor, expected):
    """All estimates twice, or half, of what they should be; a job that outlives its own needs as long again."""
    estimates = [factor * duration for _, _, duration in SIX]
    assert starts(SIX, FOUR, Rule(order, head), estimates) == expected[order, head]


@pytest.mark.parametrize(("order", "head"), RULES)
def test_starts_are_those_of_the_reference(order, head):
    cases = [random_case(seed) for seed in range(CASES)]
    ours = [starts(case.jobs, case.topology, Rule(order, head)) for case in cases]
    theirs = [backfill_reference.start_times(case.jobs, case.gpus, order, head) for case in cases]
    assert [seed for seed in range(CASES) if ours[seed] != theirs[seed]] == []


@needs_estimates
@pytest.mark.parametrize(("order", "head"), RULES)
def test_starts_are_those_of_the_reference_with_wrong_estimates(order, head):
    """Estimates between an eighth and eight times the duration."""
    differ = []
    for seed in range(CASES):
        case = random_case(seed)
        factors = 2.0 ** np.random.default_rng(seed).integers(-3, 4, len(case.jobs))
        estimates = [float(f * duration) for f, (_, _, duration) in zip(factors, case.jobs, strict=True)]
        ours = starts(case.jobs, case.topology, Rule(order, head), estimates)
        if ours != backfill_reference.start_times(case.jobs, case.gpus, order, head, estimates):
            differ.append(seed)
    assert differ == []


@cache
def interpreted():
    """What random_backfill.py prints when Python starts with NUMBA_DISABLE_JIT."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_") or key.endswith("_DIR")}
    command = [sys.executable, "-P", str(SUPPORT / "random_backfill.py"), str(PLAINLY)]
    outcome = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environ | {"NUMBA_DISABLE_JIT": "1"}, timeout=300
    )
    assert outcome.returncode == 0, outcome.stderr[-2000:]
    return json.loads(outcome.stdout)


def test_interpreted_kernels_give_the_same_bit_for_bit():
    """Every placer, slow gangs, costs, rounds and failures too."""
    assert interpreted() == [random_backfill.play(seed) for seed in range(PLAINLY)]


@pytest.mark.parametrize(("order", "head"), RULES)
def test_a_pass_asked_anew_in_the_middle_of_an_instant_goes_on_the_same_way(order, head):
    """After each of its decisions, the pass that would be made now is the rest of the one that was made."""
    longest = 0
    for seed in range(40):
        simulator = hard(random_case(seed), order, head, seed)
        while not simulator.ended:
            plan = simulator.preview_pass()
            longest = max(longest, len(plan))
            while plan:
                simulator.apply(plan.pop(0))
                assert simulator.preview_pass() == plan, seed
            simulator.advance()
    assert longest >= 5


@pytest.mark.parametrize(("order", "head"), RULES)
def test_gpus_are_conserved_and_counters_exact(order, head):
    for seed in range(20):
        simulator = hard(random_case(seed), order, head, seed)
        policy = policies.RulePolicy("any", simulator.rule)
        while not simulator.ended:
            simulator.apply(simulator.ask(policy))
            check_record(simulator)


@st.composite
def crowds(draw):
    """A simulator at its first decision, without a rule yet, and its jobs."""
    gpus = draw(st.integers(2, 9))
    job = st.tuples(st.integers(0, 60), st.integers(1, gpus), st.integers(1, 30))
    jobs = sorted(draw(st.lists(job, min_size=2, max_size=14)))
    simulator = Simulator(f"flat:machines=1,gpus_per_machine={gpus}")
    simulator.reset(Workload.from_arrays("random", *map(list, zip(*jobs, strict=True))))
    return simulator, jobs, gpus


def holds(simulator, jobs):
    """Runs until when: (start, planned end, GPUs)."""
    s = simulator.state
    return [(s.started_s[j], s.planned_finish_s[j], jobs[j][1]) for j in simulator.view.running.tolist()]


def first_promises(simulator, jobs, rule, promised):
    """Play; `promised(simulator)` says after each pass which job is promised which time; the first of each job."""
    simulator.use(rule)
    found: dict[int, float] = {}
    while not simulator.ended:
        simulator.schedule()
        for job, time in promised(simulator).items():
            found.setdefault(job, time)
        simulator.apply(Advance())
    return found


@calm(150)
@given(crowds())
def test_under_easy_the_first_job_starts_no_later_than_it_was_first_promised(crowd):
    """The first waiting job is promised the first end at which enough GPUs are free, if all end as planned."""
    simulator, jobs, gpus = crowd

    def promised(simulator):
        line, held = sorted(simulator.view.queue.tolist()), holds(simulator, jobs)
        free_at = backfill_reference.free_at
        return {j: min(end for _, end, _ in held if free_at(end, held, gpus) >= jobs[j][1]) for j in line[:1]}

    found = first_promises(simulator, jobs, Rule("fifo", "reserve"), promised)
    assert all(simulator.state.first_start_s[job] <= time for job, time in found.items())


@calm(150)
@given(crowds())
def test_under_conservative_no_job_starts_later_than_it_was_first_promised(crowd):
    simulator, jobs, gpus = crowd
    run_s = [float(duration) for _, _, duration in jobs]

    def promised(simulator):
        line, held = sorted(simulator.view.queue.tolist()), holds(simulator, jobs)
        return backfill_reference.reservations(line, held, jobs, run_s, gpus, simulator.view.now_s)

    found = first_promises(simulator, jobs, Rule("fifo", "conservative"), promised)
    assert all(simulator.state.first_start_s[job] <= time for job, time in found.items())


def test_a_short_newcomer_does_not_put_off_a_promise_until_the_next_end():
    """sjf, 4 GPUs: A has 3 for 10 s, so B (4 GPUs, 6 s) is promised 10. C (1 GPU, 1 s) comes at 1 and would be gone by
    10; D (1 GPU, 5 s) comes at 7 and would not: it stands behind B, although it is shorter.

    At 10, when A ends, the line is made anew: D comes first, and B starts when it ends. Without C at 1 or with it.
    """
    assert starts([(0, 3, 10), (1, 4, 6), (7, 1, 5)], FOUR, Rule("sjf", "reserve")) == [0, 15, 10]
    assert starts([(0, 3, 10), (1, 4, 6), (1, 1, 1), (7, 1, 5)], FOUR, Rule("sjf", "reserve")) == [0, 15, 1, 10]
    # D of 7 s is longer than B: it comes behind B at 10, too.
    assert starts([(0, 3, 10), (1, 4, 6), (7, 1, 7)], FOUR, Rule("sjf", "reserve")) == [0, 10, 16]


def test_with_rounds_the_line_is_made_anew_at_the_first_after_an_end():
    """sjf, 4 GPUs, passes every 10 s: A ends at 3, B (4 GPUs, 9 s) comes at 1 and C (4 GPUs, 2 s) at 7: C is first."""
    rule = Rule("sjf", "reserve", round=10.0)
    assert starts([(0, 4, 3), (1, 4, 9), (7, 4, 2)], FOUR, rule) == [0, 20, 10]


TWO_MACHINES = "flat:machines=2,gpus_per_machine=4"


def test_a_slow_gang_counts_for_as_long_as_it_is_held():
    """Two machines of 4, twice as long across both. A and B hold 3 GPUs each until 20 and 12; C (4 GPUs) is promised 12
    with one GPU to spare. D (2 GPUs, 6 s) finds one GPU on each machine, where it would end at 15: it is refused, E (1
    GPU, 30 s) gets the one to spare, on A's machine, C starts at 12 on B's, and D when that ends."""
    jobs = [(0, 3, 20), (0, 3, 12), (1, 4, 5), (3, 2, 6), (4, 1, 30)]
    plain = starts(jobs, TWO_MACHINES, Rule("fifo", "reserve", "tier"))
    slow = starts(jobs, TWO_MACHINES, Rule("fifo", "reserve", "tier"), network="penalty:default=1/2/2")
    assert (plain, slow) == ([0, 0, 12, 3, 9], [0, 0, 12, 17, 4])


def test_promises_count_gpus_where_the_placer_wants_whole_machines():
    """Two machines of 4, consolidated. A and B (3 GPUs each, until 10 and 12) take one each; C asks 2 GPUs: 2 are free,
    but on two machines. It is promised 10, when A ends; D (1 GPU, 8 s) is gone by 10 and starts at 2, E (1 GPU, 20 s)
    waits although a GPU would be to spare at 10, as which is unknown: it starts with C."""
    jobs = [(0, 3, 10), (0, 3, 12), (1, 2, 5), (2, 1, 8), (3, 1, 20)]
    assert starts(jobs, TWO_MACHINES, Rule("fifo", "reserve", "consolidated")) == [0, 0, 10, 2, 10]
    assert starts(jobs, TWO_MACHINES, Rule("fifo", "conservative", "consolidated")) == [0, 0, 10, 2, 10]


@pytest.mark.parametrize("head", ["reserve", "conservative"])
def test_a_job_whose_gpus_are_never_on_one_machine_does_not_starve(head):
    """Two machines of 4, consolidated. One GPU of each is held, until 13 and 14. A job of 4 GPUs comes at 2, and then
    jobs of one GPU and 30 s, one a second: they would keep both machines in part for ever. It starts at 13."""
    small = [(3 + i, 1, 30) for i in range(40)]
    jobs = [(0, 3, 1), (0, 1, 14), (0, 3, 1), (0, 1, 13), (2, 4, 5), *small]
    assert starts(jobs, TWO_MACHINES, Rule("fifo", head, "consolidated"))[4] == 13


@pytest.mark.parametrize("head", ["reserve", "conservative"])
def test_a_job_that_asks_more_than_is_up_blocks_no_other(head):
    """Of two machines of 2 GPUs, the second is down from 6.0 to 29.4 s (seed 813). A runs on the first until 20. B (4
    GPUs) at 10 asks more than is up and is promised none: C (30 s) starts at 11, D when A ends, E when D does. At 29.4
    B is promised 41, when C ends. F (1 GPU) at 30 would run until 42, and waits."""
    jobs = [(0, 1, 20), (10, 4, 5), (11, 1, 30), (12, 1, 4), (13, 1, 1), (30, 1, 12)]
    simulator = Simulator(
        "flat:machines=2,gpus_per_machine=2", rule=Rule("fifo", head), failures=Failures(300.0, 50.0, 0.0)
    )
    simulator.reset(Workload.from_arrays("by hand", *map(list, zip(*jobs, strict=True))), 813)
    simulator.run()
    assert simulator.state.first_start_s[:6].tolist() == [0, 41, 11, 20, 24, 46]


REFUSED = {
    "another order": (lambda: Rule("srtf", "reserve"), "order with head=reserve = 'srtf': expected one of fifo, sjf"),
    "las": (lambda: Rule("las", "conservative"), "expected one of fifo, sjf"),
    "leases": (lambda: Rule("fifo", "reserve", lease=60.0), "head=reserve goes without .*leases"),
    "timers": (lambda: Rule("fifo", "reserve", "tier", timers=(1.0, 2.0)), "goes without delay timers"),
    "a tuner": (lambda: Rule("fifo", "reserve", "tier", tuner=Tuner()), "goes without delay timers"),
    "migration": (lambda: Rule("sjf", "conservative", migrates=True), "migration"),
    "margin": (lambda: Rule("sjf", "conservative", "tier", margin=0.9), "margin"),
    "sharing": (lambda: Rule("fifo", "reserve", sharing="first-fit"), "order with sharing"),
    "a placer of Gandiva": (lambda: Rule("fifo", "reserve", "affinity"), "placer with head=reserve = 'affinity'"),
    "by name": (lambda: policies.make("las:head=reserve"), "strict"),
    "by name, leases": (lambda: policies.make("fifo:head=reserve,lease=60"), "head=reserve goes without .*leases"),
    "auctions": (
        lambda: played(SIX, FOUR, Rule("fifo", "reserve"), semantics="artist-sim:chunk=0"),
        "semantics=artist-sim",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_backfilling_does_not_go_with_is_refused_in_a_sentence(what):
    make, said = REFUSED[what]
    with pytest.raises(InputError, match=said) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("order", "head"), RULES)
def test_by_name(order, head):
    policy = policies.make(f"{order}:head={head},placer=tier,round=60")
    assert policy.rule == Rule(order, head, "tier", round=60.0)
