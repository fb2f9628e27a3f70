"""Who of a gang sends to whom: rings, trees, all-to-all, and the ways between the stages of a pipeline.

A worker sends at the rate of its phase; what goes to one other worker is a part of that, its streams: 1 where a ring
passes all on to the next, 1 / (n - 1) to each of the others in an all-to-all. Workers stand in the order of their GPUs,
which keeps machines and racks together, and so do the stages of a pipeline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from ..base.names import choose

Flow = tuple[int, int]
Streams = Mapping[Flow, float]  # from one machine to another -> streams
HYBRID_SERVERS = 4  # paper cassini, Figure 1(d): two stages of two tensor halves; more servers are replicas of these


def ring_flows(machines: Sequence[int]) -> list[Flow]:
    """A ring through the machines in the given order: each sends to the next one, the last to the first."""
    if len(machines) < 2:
        return []
    return list(zip(machines, [*machines[1:], machines[0]], strict=True))


def tree_flows(machines: Sequence[int]) -> list[Flow]:
    """A binary tree over the machines in the given order; every edge carries a reduction up and a broadcast down.

    The tree of NCCL (src/graph/trees.cc, ncclGetBtree): machine 0 is the root, odd ones are leaves, and the parent of
    another one is found at its lowest set bit, so neighbours in the order are near in the tree.
    """
    flows: list[Flow] = []
    for rank in range(1, len(machines)):
        bit = rank & -rank
        parent = (rank ^ bit) | (bit << 1)
        parent = rank ^ bit if parent >= len(machines) else parent
        flows += [(machines[rank], machines[parent]), (machines[parent], machines[rank])]
    return flows


def _ring(workers: Sequence[int]) -> Streams:
    """One ring through the machines, each once: workers of one machine are neighbours in it."""
    return Counter(ring_flows(list(dict.fromkeys(workers))))


def _tree(workers: Sequence[int]) -> Streams:
    return Counter(tree_flows(list(dict.fromkeys(workers))))


def _all_to_all(workers: Sequence[int]) -> Streams:
    """Each worker sends as much to each of the others."""
    there = Counter(workers)
    part = 1.0 / max(1, len(workers) - 1)
    return {(a, b): there[a] * there[b] * part for a in there for b in there if a != b}


def _line(workers: Sequence[int]) -> Streams:
    """Each stage sends to the next one."""
    return _between(pairwise(workers))


def _first_last(workers: Sequence[int]) -> Streams:
    """The first and the last stage all-reduce between the two of them what they have in common."""
    return _pairs([(workers[0], workers[-1])])


def _halves(workers: Sequence[int]) -> Streams:
    """The two tensor halves of each stage of a hybrid all-reduce between them."""
    return _pairs(zip(workers[::2], workers[1::2], strict=True))


def _stages(workers: Sequence[int]) -> Streams:
    """Each tensor half of a hybrid's first stage sends to that of the second, and back: half of the bytes each way."""
    return {flow: streams / 2.0 for flow, streams in _ends(workers).items()}


def _ends(workers: Sequence[int]) -> Streams:
    """The same halves of a hybrid's two stages all-reduce between them what these have in common."""
    firsts = (server + half for server in range(0, len(workers), HYBRID_SERVERS) for half in (0, 1))
    return _pairs((workers[first], workers[first + 2]) for first in firsts)


def _replicas(workers: Sequence[int]) -> Streams:
    """Each server of a hybrid all-reduces its gradients in a ring with those that hold the same part of the model."""
    found: Counter[Flow] = Counter()
    for part in range(HYBRID_SERVERS):
        found.update(_ring(workers[part::HYBRID_SERVERS]))
    return found


def _pairs(pairs: Iterable[Flow]) -> Streams:
    """Rings of two."""
    return _between(flow for a, b in pairs for flow in ((a, b), (b, a)))


def _between(flows: Iterable[Flow]) -> Streams:
    """One stream each, of those that leave their machine."""
    return Counter((a, b) for a, b in flows if a != b)


PATTERNS: dict[str, Callable[[Sequence[int]], Streams]] = {
    "ring": _ring,
    "tree": _tree,
    "all-to-all": _all_to_all,
    "line": _line,
    "first-last": _first_last,
    "halves": _halves,
    "stages": _stages,
    "ends": _ends,
    "replicas": _replicas,
}


def streams_of(pattern: str, workers: Sequence[int]) -> Streams:
    """What a gang's machines send to each other, in streams of one worker.

    Args:
        pattern: one of `PATTERNS`: `ring` and `tree` over the machines, `all-to-all`, `line` and `first-last` of a
            pipeline's stages, and of a hybrid of several times 4 workers `halves`, `stages`, `ends` and `replicas`.
        workers: the machine of each worker, in order.

    Raises:
        InputError: no such pattern.
    """
    return PATTERNS[choose(pattern, PATTERNS, "collective")](workers)
