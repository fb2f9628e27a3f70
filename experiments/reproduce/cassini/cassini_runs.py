"""Paper cassini: runs on links, how slow jobs are there, and which jobs share links, for how long.

Two jobs meet while both have flows on a link. A link is crowded while its jobs would send more than it has if all sent
at once at the rates of their Up phases: on others no job can slow another. Congestion is what jobs offer to
links above their capacity, in bytes of all traces together: the paper counts packets that are marked for it (ECN).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from typing import Any

import gymnasium
import numpy as np

from ....policies.registry import make
from ....simulator.cluster.routes import sharing
from ..case import Case, Outcome
from ..case_runs import Take
from ..engine import Play, RowContext
from ..rows import Row, bounded, clear_order, printed, ratio
from ..schema import Line

ROOM = 1.03  # of the slowdown under themis over that under ideal: less is nothing to win
MET_MOST = 3  # pairs of models that the note of such a trace names
PACKET_BYTES = 1500.0  # of an Ethernet frame: what a congestion of 0 is taken to be less than
MATTERS = 0.01  # of a link, by which the rotations of a shift that matters differ
SHARE = 1 / 3  # of the decisions, that shifts that matter are to be at least


class LinkSharing:
    """Seconds that jobs share links, counted while a run is played.

    Attributes:
        running_s, shared_s, crowded_s: of each job, on GPUs, on links with others, and on crowded ones, float64 (n,).
        partner_s: the others on its crowded links, times seconds, float64 (n,).
        together_s: seconds that two jobs, the lower number first, are on a crowded link.
    """

    def __init__(self, jobs: int) -> None:
        self.running_s, self.shared_s, self.crowded_s, self.partner_s = np.zeros((4, jobs))
        self.together_s: dict[tuple[int, int], float] = {}

    def advance(self, simulator: Any) -> None:
        """Let the simulator go on to its next decision; until then every job stays where it is."""
        joined, capacity = simulator.network.joined(simulator), simulator.state.link_capacity
        running = simulator.view.running
        crowded = []
        for link, jobs in sharing(joined.uses).items():
            offered = 0.0
            for job in jobs:
                use = joined.uses[job]
                offered += joined.phases[job].peak * float(use.flows[use.links == link].sum())
            if offered > capacity[link]:
                crowded.append(jobs)
        since_s = float(simulator.state.now_s)
        simulator.advance()
        spent_s = float(simulator.state.now_s) - since_s
        self.running_s[running] += spent_s
        self.shared_s[[job for job, jobs in joined.component.items() if len(jobs) > 1]] += spent_s
        self.crowded_s[sorted({job for jobs in crowded for job in jobs})] += spent_s
        for first, second in {pair for jobs in crowded for pair in combinations(sorted(jobs), 2)}:
            self.together_s[first, second] = self.together_s.get((first, second), 0.0) + spent_s
            self.partner_s[[first, second]] += spent_s


def on_links(case: Case, table: str = "") -> Mapping[str, Any]:
    """Play it; arrays of shape (jobs,), in order of arrival.

    Args:
        table: hash of the file that the topology names, if it names one: a run is known by it.

    Returns:
        `slowdown`: each job's mean iteration time, over that alone with as many workers; `congestion_bytes`: its part
        of the congestion; `model`: names, without how they are parallelised; `running_s`, `shared_s`, `crowded_s`,
        `partner_s`: of `LinkSharing`. Of shape (pairs,): `pair_first`, `pair_second`, `pair_s`: jobs that are on a
        crowded link together, and how long. Of a compiled rule, which is not asked, there are no pairs and no seconds.
        One
        number: `jobs_at_once`, how many hold GPUs on average until the last has finished.
    """
    simulator, policy = case.begun()
    meetings = LinkSharing(len(simulator.workload))
    decider = policy.decider(simulator)
    if decider is None:
        simulator.run()
    else:
        while not simulator.ended:
            for decision in simulator.asked(decider):
                simulator.apply(decision)
            meetings.advance(simulator)
    s, workload = simulator.state, simulator.workload
    jobs = len(workload)
    rounds = s.job_rounds[:jobs]
    # Of a job that never was in the network no iterations are counted: it ran as if alone.
    alone_s = np.where(rounds > 0, s.job_alone_s[:jobs], 1.0)
    metrics, played = simulator.metrics(), simulator.jobs()
    running_s = float((played["jct_s"] - played["queueing_delay_s"]).sum())
    pairs = sorted(meetings.together_s)
    return {
        "metrics": {**metrics, "jobs_at_once": running_s / metrics["makespan"]},
        "slowdown": np.where(rounds > 0, s.job_rounds_s[:jobs], 1.0) / alone_s,
        "congestion_bytes": s.job_congestion[:jobs].copy(),
        "model": [str(name).partition("/")[0] for name in workload.model],
        "running_s": meetings.running_s,
        "shared_s": meetings.shared_s,
        "crowded_s": meetings.crowded_s,
        "partner_s": meetings.partner_s,
        "pair_first": np.array([first for first, _ in pairs], np.int64),
        "pair_second": np.array([second for _, second in pairs], np.int64),
        "pair_s": np.array([meetings.together_s[pair] for pair in pairs], np.float64),
    }


def jobs_at_once(outcome: Outcome) -> float:
    """Jobs that hold GPUs, on average."""
    return outcome.metrics["jobs_at_once"]


def slowdown(outcome: Outcome, model: str | None = None) -> float:
    """Iteration time over that alone, mean over jobs, all or a model's: long iterations and short ones count alike."""
    found = outcome["slowdown"] if model is None else outcome["slowdown"][outcome["model"] == model]
    return float(found.mean()) if len(found) else float("nan")


def newcomer(outcome: Outcome, model: str) -> float:
    """The same of the last job of a model: a newcomer of a dynamic trace."""
    return float(outcome["slowdown"][outcome["model"] == model][-1])


def shared_part(outcome: Outcome) -> float:
    """Which part of the time that jobs hold GPUs they share links, %."""
    return _part(outcome, "shared_s", None)


def crowded_part(outcome: Outcome, model: str | None = None) -> float:
    """The same of crowded links, of all jobs or of a model's."""
    return _part(outcome, "crowded_s", model)


def _part(outcome: Outcome, name: str, model: str | None) -> float:
    mine = np.ones(len(outcome["model"]), bool) if model is None else outcome["model"] == model
    running_s = outcome["running_s"][mine].sum()
    return 100.0 * float(outcome[name][mine].sum() / running_s) if running_s > 0 else float("nan")


def partners(outcome: Outcome) -> float:
    """How many others are on a job's crowded links, on average over the time that it is on such; nan: never."""
    crowded_s = outcome["crowded_s"].sum()
    return float(outcome["partner_s"].sum() / crowded_s) if crowded_s > 0 else float("nan")


def congested(outcome: Outcome, model: str | None = None) -> float:
    """Bytes of congestion of all jobs, or of a model's."""
    mine = outcome["congestion_bytes"] if model is None else outcome["congestion_bytes"][outcome["model"] == model]
    return float(mine.sum())


def _bound(play: Play, at: str) -> Any:
    """The most that there is to win: how slow jobs are under themis, over that where no jobs meet."""
    return play.runs.ratio(slowdown, "themis", "ideal", at)


def ahead(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Which policy is ahead, judged where there is something to win."""
    room, head = _bound(play, here.at), f"{play.label(here.at)}: slowdown of jobs,"
    said = None if room.mean > ROOM else "nothing to win"
    yield printed(f"{head} themis / ideal: the bound", room, "x", said)
    for worse, better in pairwise(line.policies):
        quantity, over = f"{head} {better} / {worse}", play.runs.ratio(slowdown, better, worse, here.at)
        yield clear_order(quantity, "clearly below 1", over) if said is None else printed(quantity, over, "x")
    list(met_note(play, line, here))


def met_note(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """A note why there is nothing to win; none where there is something."""
    at, room = here.at, _bound(play, here.at)
    if room.mean > ROOM:
        return
    together: Counter[str] = Counter()
    for outcome in play.runs.of("themis", at):
        pairs = zip(*(outcome[f"pair_{name}"].tolist() for name in ("first", "second", "s")), strict=True)
        for first, second, seconds in pairs:
            together[" with ".join(sorted(str(outcome["model"][job]) for job in (first, second)))] += seconds
    shared, crowded = (play.runs.mean(take, "themis", at).mean for take in (shared_part, crowded_part))
    most = ", ".join(f"{pair} ({seconds / together.total():.0%})" for pair, seconds in together.most_common(MET_MOST))
    play.notes.append(
        f"{play.label(at)}: nothing to win, since jobs are only {100 * (room.mean - 1):.2g} % slower than where no "
        f"jobs meet: they share links {shared:.3g} % of their time, crowded ones {crowded:.3g} %"
        + (f"; most together are {most}" if together else "")
    )
    yield from ()


def congestion_of(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Ratios of congestion: those of published marks, of a model's jobs or of all, and of links counted alone."""
    at = here.at

    def pooled(plain: str, augmented: str, model: str | None) -> tuple[Row, bool]:
        take: Take = lambda outcome: congested(outcome, model)  # noqa: E731
        plain_bytes, augmented_bytes = (float(sum(play.runs.each(take, one, at))) for one in (plain, augmented))
        what = f"{play.label(at)}: congestion{'' if model is None else f' of {model}'}, {plain} / {augmented}"
        if augmented_bytes == 0.0:
            return printed(what, plain_bytes / PACKET_BYTES, "x"), True
        return printed(what, play.runs.ratio(take, plain, augmented, at), "x"), False

    for plain, augmented, model, times in line.given["marks"]:
        row, none = pooled(plain, augmented, model)
        if none:  # no congestion at all where it is augmented meets it
            yield Row(f"{row.quantity}, at least", float(times), row.ours, (0.0, math.inf), unit="x")
        else:
            said = ratio(f"{row.quantity}{', up to' if model is None else ''}", float(times), row.ours, "x")
            yield Row(said.quantity, said.paper, said.ours, said.within, row.low, row.high, "x")
    if line.given["all"]:
        yield pooled("themis", "themis+cassini", None)[0]
    yield pooled("themis", "least-shared", None)[0]


def decisions(case: Case) -> Mapping[str, Any]:
    """Play an episode of TimeShift-v0 step by step; `steps`, how many are `shifts`, and such that `matter`.

    A shift matters where the rotations of the job differ: the excess on its links, as the observation has it in
    `rotations`, by more than a hundredth of a link from the best of them to the worst.
    """
    env: Any = gymnasium.make(case.setting.environment, workload=case.workload, max_decisions=math.inf).unwrapped
    policy = make(case.policy)
    env.reset(seed=case.seed)
    steps = shifts = matter = 0
    ended = False
    while not ended:
        action = policy.act(env)
        steps += 1
        if env.interface.memory["n_turning"]:
            rotations = env.observe()["rotations"]
            shifts += 1
            matter += bool(rotations.max() - rotations.min() > MATTERS)
        *_, ended, _, info = env.step(action)
    return {"metrics": info["metrics"], "steps": steps, "shifts": shifts, "matter": matter}


def steps(outcome: Outcome) -> float:
    """Decisions of an episode."""
    return float(outcome["steps"])


def decided(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Which part of the decisions are shifts, and shifts that matter."""
    played = play.runs.of(line.policies[0], "default")
    all_, shifts, matter = ([float(one[name]) for one in played] for name in ("steps", "shifts", "matter"))
    shares = [found / of for found, of in zip(matter, all_, strict=True)]
    yield printed("part of them that are shifts", sum(shifts) / sum(all_))
    yield bounded("part that are shifts that matter", "at least 1/3", sum(matter) / sum(all_), (SHARE, 1.0), "")
    yield printed("the same, least of all episodes", min(shares))
    yield printed("the same, most", max(shares))
