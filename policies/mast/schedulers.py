"""The schedulers of paper mast by their names: `mast`, `federated`, `global`, and `scope`, any valid cell of Table 1.

| queue | allocation: cluster | region | global |
| --- | --- | --- | --- |
| cluster | (1) | - | - |
| region | (2) | (5), `federated` | - |
| global | (3) | (6), `mast` | (9), `global` |

A queue of a region, or of a cluster, is one that workloads are bound to when they arrive (binding.py); a global one
binds late. Priorities, credits and quotas are those of GMS everywhere, so that cells differ in nothing else.
Allocation in a cluster: each cluster says for itself whether it can run a workload, and the least loaded one is asked
first. Load counts what workloads of the same or a higher priority hold. In a region, RMS takes the best cluster. Global
allocation places several workloads jointly. The other parts of a workload go where RMS puts them in the same region.
"""

from __future__ import annotations

from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ..base import Policy
from ..paths import Paths
from .binding import Binding
from .gms import DAY_S
from .passes import SCAN_S, Passes, Weights

SCOPES = ("cluster", "region", "global")
DEMANDS = ("now", "day")
JOINT = 8  # workloads that global allocation places jointly; the paper gives no number
SLOW = "tetris-v2"


def cell(
    name: str,
    queue: str = "global",
    allocation: str = "region",
    slow: str = SLOW,
    scan_s: float = SCAN_S,
    joint: int | None = None,
    demand: str | None = None,
    age_weight: float = 1.0,
    age_cap_s: float = DAY_S,
    fair_weight: float = 1.0,
    window_s: float = DAY_S,
    cache: bool = True,
) -> Paths:
    """A cell of Table 1.

    Args:
        name: how tables and logs call it.
        queue, allocation: `cluster`, `region` or `global`; the allocation's scope may not be the larger one.
        slow: the policy that places tables, or `none`.
        scan_s: seconds from one pass over the queue to the next; 0: at every event.
        joint: workloads that global allocation places jointly, 8 unless told; 1: one at a time.
        demand: which demand binds a workload to a region: `now`, unless told, or `day` (binding.py).
        age_weight, age_cap_s, fair_weight, window_s: of the credit, see `simulator.geo.gms.lay_ranking`.
        cache: whether RMS keeps its negative cache.

    Raises:
        InputError: a cell that the paper calls invalid, or a number out of range.
    """
    places = [SCOPES.index(choose(word, SCOPES, f"scope of policy {name}")) for word in (queue, allocation)]
    if places[1] > places[0]:
        raise InputError(
            f"policy {name}: queue={queue}, allocation={allocation}: Table 1 of paper mast has no such cell; expected "
            "an allocation of no larger scope than the queue's"
        )
    if joint is not None and allocation != "global":
        raise InputError(f"policy {name}: joint = {joint}: expected none, as allocation={allocation} is not global")
    if demand is not None and queue != "region":
        raise InputError(f"policy {name}: demand = {demand}: expected none, as the queue is not a region's")
    daily = choose(demand or "now", DEMANDS, f"demand of policy {name}") == "day"
    fast = Passes(
        name,
        binding=None if queue == "global" else Binding(queue == "cluster", daily),
        first_fit=allocation == "cluster" and queue != "cluster",
        joint=(joint if joint is not None else JOINT) if allocation == "global" else 1,
        scan_s=scan_s,
        weights=Weights(age_weight, age_cap_s, fair_weight, window_s),
        use_cache=cache,
    )
    return Paths(name, fast, _slow_half(slow))


def _slow_half(word: str) -> Policy | None:
    """The policy that decides about tables; None: nobody does."""
    if word == "none":
        return None
    from ..tetris.slow import slow_half

    return slow_half(word)
