"""What a replay shows (policies/replay.py): where a log does not fit a cluster, and how long its jobs really waited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...simulator.base.durations import duration
from ..playing.runs import Run, distinct, grouped

REPLAYED = "late_jobs"  # a figure that only replays have


def notes_of_replays(runs: Iterable[Run]) -> dict[str, str]:
    """A sentence for each policy that replays a log, by its word."""
    found = {word: distinct(mine) for word, mine in grouped(runs).items() if REPLAYED in mine[0].metrics}
    return {word: note(mine) for word, mine in found.items()}


def note(runs: Sequence[Run]) -> str:
    """The same of one policy's runs; of several, jobs are counted together, and means are those of the runs."""

    def total(name: str) -> float:
        return sum(run.metrics[name] for run in runs)

    late = [run.metrics for run in runs if run.metrics[REPLAYED]]
    fits = "every job starts when it did"
    if late:
        most_s = max(metrics["most_late_s"] for metrics in late)
        has_failed = any(run.metrics.get(name) for run in runs for name in ("failures", "outages"))
        fits = (
            f"the log does not fit this cluster{' with its failures' * has_failed}: "
            f"{total(REPLAYED):,.0f} of {sum(run.jobs for run in runs):,} jobs "
            f"started later than in the log, the first at {duration(late[0]['first_late_s'])}, by at most "
            f"{duration(most_s)}"
        )
    waits = [f"{total(name) / len(runs):,.0f} s" for name in ("observed_wait_mean", "queueing_delay_mean")]
    said = [fits, f"mean wait as it was {waits[0]}, replayed {waits[1]}"]
    if total("jobs_without_start"):
        said.append(f"jobs without a logged start, which start as they come: {total('jobs_without_start'):,.0f}")
    if total("jobs_elsewhere"):
        said.append(
            f"jobs placed by placer=: {total('jobs_elsewhere'):,.0f}, as their machines are not free, or not known "
            "(topology hosts:file=FILE names machines as logs do)"
        )
    return "; ".join(said)
