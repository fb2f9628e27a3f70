"""Traffic between the workers of a gang: rings, trees, all-to-all, and the ways between the stages of a pipeline.

A worker sends at the rate of its phase; a part of that goes to one other worker, its streams: 1 in a ring, 1 / (n - 1)
in an all-to-all. Workers and stages are in the order of their GPUs. A worker is the network card (NIC) of its GPU: NIC
c of machine m is number m C + c on machines of C. Inside a machine all is fast, so traffic leaves it by the best NIC:

* A ring, or tree, splits into as many as the gang has NICs on the machine where it has fewest, each through one NIC of
  every machine, with an equal part of the bytes: "4 rings, each using a different NIC" (github.com/NVIDIA/nccl, issue
  601), the same NIC on all machines (a rail) where the gang has a GPU there (NCCL_CROSS_NIC=2). Each ring has a share
  of a full link (`rings_of`). Which NICs a gang with unequal numbers of them takes is ours (`_rails`).
* Traffic from one worker to another leaves by the NIC of the receiver's rail, if the gang has a GPU there, else by the
  sender's own (NCCL's PXN, on by default).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from ..base.names import choose

Flow = tuple[int, int]
Streams = Mapping[Flow, float]  # from one NIC to another -> streams
HYBRID_SERVERS = 4  # paper cassini, Figure 1(d): two stages of two tensor halves; more servers are replicas of these


def ring_flows(machines: Sequence[int]) -> list[Flow]:
    """A ring through the machines in the given order: each sends to the next one, the last to the first."""
    if len(machines) < 2:
        return []
    return list(zip(machines, [*machines[1:], machines[0]], strict=True))


def tree_flows(machines: Sequence[int]) -> list[Flow]:
    """A binary tree over the machines in the given order; every edge carries a reduction up and a broadcast down.

    The tree of NCCL (src/graph/trees.cc, ncclGetBtree): machine 0 is the root, odd ones are leaves, and the lowest set
    bit of another one gives its parent, so neighbours in the order are near in the tree.
    """
    flows: list[Flow] = []
    for rank in range(1, len(machines)):
        bit = rank & -rank
        parent = (rank ^ bit) | (bit << 1)
        parent = rank ^ bit if parent >= len(machines) else parent
        flows += [(machines[rank], machines[parent]), (machines[parent], machines[rank])]
    return flows


def _rails(workers: Sequence[int], nics: int) -> list[list[int]]:
    """The members of each ring of a gang: one NIC on every machine, machines in the order of the workers.

    There are as many rings as the smallest machine has NICs, which it takes in order. Other machines take the same
    rails where they have them, and the remaining ones, in order, for the others.
    """
    if nics == 1:
        return [list(dict.fromkeys(workers))]
    own: defaultdict[int, set[int]] = defaultdict(set)
    for worker in workers:
        own[worker // nics].add(worker % nics)
    fewest = min(map(sorted, own.values()), key=len)
    rings: list[list[int]] = [[] for _ in fewest]
    for machine, cards in own.items():
        others = iter(sorted(cards.difference(fewest)))
        for ring, card in zip(rings, fewest, strict=True):
            ring.append(machine * nics + (card if card in cards else next(others)))
    return rings


def _collective(flows_of: Callable[[Sequence[int]], list[Flow]], workers: Sequence[int], nics: int) -> Streams:
    rings = _rails(workers, nics)
    return {flow: many / len(rings) for ring in rings for flow, many in Counter(flows_of(ring)).items()}


def _ring(workers: Sequence[int], nics: int) -> Streams:
    return _collective(ring_flows, workers, nics)


def _tree(workers: Sequence[int], nics: int) -> Streams:
    return _collective(tree_flows, workers, nics)


def _all_to_all(workers: Sequence[int]) -> Streams:
    there = Counter(workers)
    part = 1.0 / max(1, len(workers) - 1)
    return {(a, b): there[a] * there[b] * part for a in there for b in there if a != b}


def _line(workers: Sequence[int]) -> Streams:
    return _between(pairwise(workers))


def _first_last(workers: Sequence[int]) -> Streams:
    """The first and the last stage all-reduce between the two of them what they have in common."""
    return _pairs([(workers[0], workers[-1])])


def _halves(workers: Sequence[int]) -> Streams:
    return _pairs(zip(workers[::2], workers[1::2], strict=True))


def _stages(workers: Sequence[int]) -> Streams:
    """Each tensor half of a hybrid's first stage sends to that of the second, and back: half of the bytes each way."""
    return {flow: streams / 2.0 for flow, streams in _ends(workers).items()}


def _ends(workers: Sequence[int]) -> Streams:
    """The same halves of a hybrid's two stages all-reduce between them what these have in common."""
    firsts = (server + half for server in range(0, len(workers), HYBRID_SERVERS) for half in (0, 1))
    return _pairs((workers[first], workers[first + 2]) for first in firsts)


def _replicas(workers: Sequence[int], nics: int) -> Streams:
    """Each server of a hybrid all-reduces its gradients in a ring with those that hold the same part of the model."""
    found: defaultdict[Flow, float] = defaultdict(float)
    for part in range(HYBRID_SERVERS):
        for flow, many in _ring(workers[part::HYBRID_SERVERS], nics).items():
            found[flow] += many
    return found


def _pairs(pairs: Iterable[Flow]) -> Streams:
    return _between(flow for a, b in pairs for flow in ((a, b), (b, a)))


def _between(flows: Iterable[Flow]) -> Streams:
    return Counter((a, b) for a, b in flows if a != b)


def _between_machines(streams: Streams, workers: Sequence[int], nics: int) -> Streams:
    """Those that leave their machine, by the NIC of the receiver's rail where the gang has a GPU there."""
    there, found = set(workers), defaultdict[Flow, float](float)
    for (a, b), many in streams.items():
        if a // nics != b // nics:
            near = a - a % nics + b % nics
            found[near if near in there else a, b] += many
    return found


COLLECTIVES: dict[str, Callable[[Sequence[int], int], Streams]] = {"ring": _ring, "tree": _tree, "replicas": _replicas}
PAIRS: dict[str, Callable[[Sequence[int]], Streams]] = {
    "all-to-all": _all_to_all,
    "line": _line,
    "first-last": _first_last,
    "halves": _halves,
    "stages": _stages,
    "ends": _ends,
}


def rings_of(traffic: Iterable[str], workers: Sequence[int], nics: int = 1) -> int:
    """How many rings or trees a gang splits into, if `traffic` has only these; else 1. Arguments as in `streams_of`."""
    return len(_rails(workers, nics)) if nics > 1 and {"ring", "tree"}.issuperset(traffic) else 1


def streams_of(pattern: str, workers: Sequence[int], nics: int = 1) -> Streams:
    """The transfers between the NICs of a gang's machines, in streams of one worker. InputError: no such pattern.

    Args:
        pattern: `ring` and `tree` over the machines, `all-to-all`, `line` and `first-last` of a pipeline's stages, and
            of a hybrid of several times 4 workers `halves`, `stages`, `ends` and `replicas`.
        workers: the NIC of each worker, in order. nics: of each machine.
    """
    if choose(pattern, (*COLLECTIVES, *PAIRS), "collective") in COLLECTIVES:
        return COLLECTIVES[pattern](workers, nics)
    return _between_machines(PAIRS[pattern](workers), workers, nics)
