"""The least that an event on shared links can cost: what `bench network` prints beside its last row.

A run is recorded, then played again by somebody who knows all that max-min filling has to find out: which jobs get
another rate, which, and at which links they are held back. What is left is to read those links once, in the order in
which they are full, and to write: the rates, the ends of phases, the sums of links. Whoever keeps these in such a
record must do that too, however he finds the rates; one who kept less, or wrote it later, might do with less.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from _measure import cpu_seconds

from clustergym.simulator.compiler.jit import entry, kernel
from clustergym.simulator.contention.phase_run import Contender, PhaseRun
from clustergym.simulator.flows.link_use import book_waiting
from clustergym.simulator.flows.max_min import set_end
from clustergym.simulator.flows.max_min_changes import _full_at, _set_turn

RUNS = 5
COLUMNS = ("network", "workers", "rates", "links", "us, known", "us, found", "at most")


def measure_known(capacity: np.ndarray, jobs: list[Contender], warm_s: float, until_s: float) -> dict[str, Any]:
    """Microseconds of an event, with rates that are known and with those found; rates and links that an event changes.

    The fastest of several runs each.
    """
    run = PhaseRun(capacity, jobs)
    run.play(warm_s)
    start = run.records.copy()
    events = -int(run.state.phase_events)
    when, rates, stops = _recorded(run, until_s)
    events += int(run.state.phase_events)
    known_s = min(cpu_seconds(lambda: _write_again(start.copy(), 0, when, *rates, *stops)) for _ in range(RUNS))
    return {
        "events": events,
        "rates": len(rates[1]) / events,
        "links": len(stops[1]) / events,
        "known_us": 1e6 * known_s / events,
        "found_us": 1e6 * min(_played_s(start, capacity, jobs, until_s) for _ in range(RUNS)) / events,
    }


def _played_s(start: np.recarray, capacity: np.ndarray, jobs: list[Contender], until_s: float) -> float:
    run = PhaseRun(capacity, jobs)
    run.records[:] = start
    return cpu_seconds(lambda: run.play(until_s))


def _recorded(run: PhaseRun, until_s: float) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Seconds of every instant; (first, job, rate, link that holds it back); (first, link, its level)."""
    when: list[float] = []
    jobs: list[tuple[int, float, int]] = []
    links: list[tuple[int, float]] = []
    first_job, first_link = [0], [0]
    state, count = run.state, len(run.jobs)
    before = np.array(state.send_rate[:count])
    while state.phase_key[0] <= until_s:
        run.play(float(state.phase_key[0]))
        rate, held_at = np.array(state.send_rate[:count]), np.array(state.stop_link[:count])
        changed = np.flatnonzero(rate != before)
        when.append(run.now_s)
        jobs += [(int(job), float(rate[job]), int(held_at[job])) for job in changed]
        full = np.unique(held_at[changed])
        links += [(int(link), float(state.link_level[link])) for link in full if link >= 0]
        first_job.append(len(jobs))
        first_link.append(len(links))
        before = rate
    job, new_rate, at = (np.array(column) for column in zip(*jobs, strict=True))
    link, level = (np.array(column) for column in zip(*links, strict=True))
    return np.array(when), (np.array(first_job), job, new_rate, at), (np.array(first_link), link, level)


@entry
def _write_again(records, row, when, first_job, jobs, rates, stops, first_link, links, levels):
    """Modify the record: these rates at these instants; see the module."""
    s = records[row]
    read = 0.0
    for i in range(when.size):
        s.phase_now_s = when[i]
        for k in range(first_link[i], first_link[i + 1]):
            _set_turn(s, links[k], levels[k])
        for k in range(first_job[i], first_job[i + 1]):
            _write(s, jobs[k], rates[k], stops[k])
        while s.n_turns > 0:
            read += _full_at(s, s.turn_link[0], s.turn_level[0], math.inf)
            _set_turn(s, s.turn_link[0], math.inf)
    return read


@kernel
def _write(s, job, rate, at):
    """Modify `s`: a job has another rate, with all that follows from it."""
    change = rate - s.send_rate[job]
    book_waiting(s, job)
    s.bytes_left[job] = max(0.0, s.bytes_left[job] - s.send_rate[job] * (s.phase_now_s - s.sent_since_s[job]))
    s.sent_since_s[job] = s.phase_now_s
    s.send_rate[job] = s.fill_rate[job] = rate
    s.stop_link[job] = at
    set_end(s, job, s.phase_now_s + s.bytes_left[job] / max(rate, 1.0))
    use = s.first_binding[job]
    while use >= 0:
        s.link_load[s.use_link[use]] += s.use_flows[use] * change
        use = s.use_binding[use]


def table_row(row: dict[str, Any]) -> tuple[Any, ...]:
    """A row of `measure_known`, with its names, for the columns `COLUMNS`."""
    return (
        row["network"],
        row["placement"],
        f"{row['rates']:.1f}",
        f"{row['links']:.1f}",
        f"{row['known_us']:.2f}",
        f"{row['found_us']:.2f}",
        f"{row['found_us'] / row['known_us']:.1f} times",
    )
