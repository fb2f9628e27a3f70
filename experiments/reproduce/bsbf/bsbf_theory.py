"""Paper sjf-bsbf: Theorem 1 against a search over insertion times, and the time that one scheduling pass takes."""

from __future__ import annotations

import time

import numpy as np

from ....policies.bsbf.sjf_bsbf_partners import least_jct
from ....simulator.engine.simulator import Simulator
from ..case import Case
from ..engine import Play
from ..rows import Row, printed
from .bsbf_starts import count_starts

PAIRS, QUICK_PAIRS = 10_000, 1_000
RUNS, QUICK_RUNS = 200, 10
TIMES = 201  # insertion times that are tried, evenly spaced over the running job's remaining time, both ends included
LARGEST_XI = 6.0  # the paper's largest measured interference
ACCUMULATING = 0.5  # of the pairs
LONGEST_PASSES = 10.0  # times as long: what the 2080 Ti fits say of 8 to 16 passes is 1.5 to 9
SAME = 1e-9  # relative
PASS_S = 0.02
ALL = (100.0, 100.0)


def theorem1(play: Play) -> list[Row]:
    """10,000 random pairs: where the least sum of completion times lies, and which rules find it."""
    rng = np.random.default_rng(play.options.seed)
    pairs = QUICK_PAIRS if play.options.quick else PAIRS
    new_s, running_s = 10.0 ** rng.uniform(1.0, 5.0, (2, pairs))
    xi_new, xi_running = 1.0 + (LARGEST_XI - 1.0) * rng.random((2, pairs)) ** 2  # half of them below 2.25
    accumulates = rng.random(pairs) < ACCUMULATING
    beside_s = new_s * np.where(accumulates, LONGEST_PASSES ** rng.random(pairs), 1.0)
    pair = new_s, xi_new, running_s, xi_running
    sums = insertion_sums_s(*pair, beside_s)
    least = sums.min(axis=0)
    ends = np.minimum(sums[0], sums[-1])
    at_an_end = ends <= least * (1.0 + SAME)
    best_now = sums[0] <= sums[-1]
    decided = [least_jct(a, more, xi_a, b, xi_b)[1] for a, xi_a, b, xi_b, more in zip(*pair, beside_s, strict=True)]
    ours = np.array(decided)
    printed_now = 2.0 * xi_running + xi_new - 2.0 * xi_new * xi_running > 0.0
    lost = np.where(printed_now, sums[0], sums[-1]) / ends - 1.0
    wrong = (printed_now != best_now) & ~accumulates
    stretched_both = [
        least_jct(more, more, xi_a, b, xi_b)[1] for _, xi_a, b, xi_b, more in zip(*pair, beside_s, strict=True)
    ]
    rows = [
        Row("pairs whose best insertion time is 0 or the end", "all", _percent(at_an_end), ALL, unit="%"),
        *(
            Row(
                f"pairs that Theorem 1 decides as the search does{which}",
                "all",
                _percent((ours == best_now)[chosen]),
                ALL,
                unit="%",
            )
            for which, chosen in (("", ~accumulates), (", the new job accumulating", accumulates))
        ),
        printed("pairs that share", _percent(ours[~accumulates]), "%"),
        printed("pairs that share, the new job accumulating", _percent(ours[accumulates]), "%"),
        printed(
            "pairs that would, were the accumulation counted for waiting too",
            _percent(np.array(stretched_both)[accumulates]),
            "%",
        ),
        printed(
            "pairs that the printed condition, Eq. 25, decides as the search does",
            _percent(~wrong[~accumulates]),
            "%",
        ),
        printed(
            "sum of completion times above the least where Eq. 25 errs, mean", 100.0 * float(lost[wrong].mean()), "%"
        ),
    ]
    play.notes += _said(pairs)
    return [*rows, *_starts(play)]


def _said(pairs: int) -> list[str]:
    return [
        f"{pairs} pairs: isolated times left drawn evenly in their logarithm from 10 s to 100,000 s, xi from 1 to "
        f"{LARGEST_XI:g}; {TIMES} insertion times a pair, from now to the end of the running job",
        f"in {100 * ACCUMULATING:g} % of them the new job must accumulate beside the running one, and takes 1 to "
        f"{LONGEST_PASSES:g} times as long for it; it does so at every insertion time but the last, when it has the "
        "GPU to itself and its whole batch",
        "starts: random runs of sjf-bsbf on one machine, with and without a limit of memory. A gang that needs several "
        "partners is decided pair by pair, as if the others were not there, and goes at the pace of its slowest GPU",
        "Eq. 25, printed: share where 2 xi_B + xi_A - 2 xi_A xi_B > 0. It does not ask how long the jobs are, is for "
        "the case that the new job ends first, and is the rate of the sum where A, not B, has begun (simulator/rules/"
        "sjf_bsbf_partners.py); comparing the two ends, as the paper says in words, is what the search finds",
    ]


def _starts(play: Play) -> list[Row]:
    """What Algorithm 2, which decides by pairs, predicts of whole gangs."""
    counts = count_starts(range(QUICK_RUNS if play.options.quick else RUNS))
    worse = 100.0 * counts.one_worse / max(counts.one, 1)
    return [
        Row("shared starts beside one partner whose sum is above that of waiting", "none", worse, (0.0, 0.0), unit="%"),
        printed(
            "the same of starts beside several partners, all jobs together", 100.0 * counts.several_worse_share, "%"
        ),
        printed("starts beside one partner", counts.one),
        printed("starts beside several partners", counts.several),
    ]


def insertion_sums_s(
    new_s: np.ndarray,
    xi_new: np.ndarray,
    running_s: np.ndarray,
    xi_running: np.ndarray,
    beside_s: np.ndarray | None = None,
) -> np.ndarray:
    """Sum of both completion times by insertion time, played out: (TIMES, pairs), seconds.

    Args:
        new_s, running_s: (pairs,) seconds left alone of the new and the running job.
        xi_new, xi_running: (pairs,) how many times slower each is beside the other.
        beside_s: (pairs,) seconds alone of the new job if it accumulates because it began beside the other; None: it
            need not.
    """
    begin_s = np.linspace(0.0, 1.0, TIMES)[:, None] * running_s
    work_s = np.broadcast_to(new_s if beside_s is None else beside_s, begin_s.shape).copy()
    work_s[-1] = new_s  # when the other has ended
    left_s = running_s - begin_s
    slow_new, slow_left = xi_new * work_s, xi_running * left_s
    both_s = np.minimum(slow_new, slow_left)
    ends_new = begin_s + both_s + np.maximum(work_s - both_s / xi_new, 0.0)
    ends_running = begin_s + both_s + np.maximum(left_s - both_s / xi_running, 0.0)
    return ends_new + ends_running


def _percent(which: np.ndarray) -> float:
    return 100.0 * float(np.mean(which))


def overhead(play: Play) -> list[Row]:
    """Scheduling passes of SJF-BSBF on the testbed's 16 GPUs, timed one by one."""
    spent: list[float] = []
    for case in play.cases("sjf-bsbf", "testbed"):
        spent += _passes_s(case)
    taken = np.array(spent)
    play.notes.append(
        f"{len(taken)} passes, each with the call from Python; this machine, while whatever else ran on it"
    )
    return [
        Row("one scheduling pass, 16 GPUs, mean", f"under {PASS_S:g} s", float(taken.mean()), (0.0, PASS_S), unit="s"),
        printed("one scheduling pass, median", float(np.median(taken)), "s"),
        printed("one scheduling pass, longest", float(taken.max()), "s"),
    ]


def _passes_s(case: Case) -> list[float]:
    simulator, _ = case.begun()
    _time_passes(simulator)  # the first run compiles
    simulator.reset(simulator.workload, case.seed)
    return _time_passes(simulator)


def _time_passes(simulator: Simulator) -> list[float]:
    spent = []
    while not simulator.ended:
        began = time.perf_counter()
        simulator.schedule()
        spent.append(time.perf_counter() - began)
        simulator.advance()
    return spent
