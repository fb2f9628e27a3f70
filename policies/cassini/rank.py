"""What a candidate placement is worth, from the scores of its shared links. Higher is better."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .candidates import Interleaving


def mean_score(found: Interleaving) -> float:
    """The paper's: the mean score of all shared links (Algorithm 2, Sec. 4.2); 1 if no link is shared.

    It forgets how many links a job shares and with how many others: one bad link among many good ones hardly counts.
    """
    return sum(found.scores.values()) / len(found.scores) if found.scores else 1.0


def worst_links(found: Interleaving) -> float:
    """Minus the sum over jobs of 1 - score on the worst of their links: at most 0.

    A job runs as its worst link does.
    """
    worst: dict[Hashable, float] = {}
    for link, jobs in found.jobs_on.items():
        for job in jobs:
            worst[job] = max(worst.get(job, 0.0), 1.0 - found.scores[link])
    return -sum(worst.values())


RANKINGS: dict[str, Callable[[Interleaving], float]] = {"mean": mean_score, "worst": worst_links}
