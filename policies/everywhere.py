"""`everywhere`: what data costs at most, as a bound beside the policies that must place it.

A scheduler plays with every table in every region, free, from time 0: no storage is used, nothing is copied, and every
copy is as fresh as the one at home. It bounds the value of data only: another scheduler may do better on fewer copies,
and an episode's best placement of workloads is not found by it.
"""

from __future__ import annotations

from .two_paths import SCHEDULER, Paths, fast_half


class Everywhere(Paths):
    """Places workloads as a scheduler does; nobody places tables, which lie everywhere.

    Args:
        scheduler: the policy whose fast half it is.
    """

    tables_everywhere = True

    def __init__(self, scheduler: str = SCHEDULER) -> None:
        super().__init__("everywhere", fast_half("everywhere", scheduler), None)
