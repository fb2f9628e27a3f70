"""What a `LinkNetwork` remembers of one topology, so that nothing is computed twice; it changes no result."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..cluster.routes import EqualPaths, LinkUse
from ..profiles.phases import Phases
from .link_states import LinkChanges, Outage

if TYPE_CHECKING:
    from ..cluster.topology import Topology

MOST_ALONE = 1 << 14  # jobs of a kind on some machines, a kB each
MOST_CHOICES = 256  # of paths for all jobs at once
MOST_JOINED = 64  # placements of all jobs at once
MOST_OUTAGES = 64

Own = tuple[Phases, LinkUse]  # of one job
K = TypeVar("K")
V = TypeVar("V")


class LinkMemo:
    """Answers by their inputs, of one topology (None: of none yet).

    Attributes:
        paths: its equal paths; None: it has no links.
        alone: phases and links of one job alone. routes: links of one job by its workers.
        choices: phases and links of all running jobs on least congested paths.
        joined: see `Joined`. outages: the links that are down, by their key.
        changes: of capacities over time, once read for the topology.
    """

    def __init__(self) -> None:
        self.joined: OrderedDict[tuple[Any, ...], Any] = OrderedDict()  # the topology is part of the key
        self.topology: Topology | None = None
        self._clear()

    def _clear(self) -> None:
        self.paths: EqualPaths | None = None
        self.alone: dict[tuple[Any, ...], Own] = {}
        self.routes: dict[tuple[Any, ...], LinkUse] = {}
        self.choices: OrderedDict[tuple[Any, ...], dict[int, Own]] = OrderedDict()
        self.outages: OrderedDict[bytes, Outage] = OrderedDict()
        self.changes: LinkChanges | None = None

    def expect(self, topology: Topology) -> None:
        """Forget what is remembered of another topology."""
        if self.topology is not topology:
            self._clear()
            self.topology = topology
            self.paths = None if topology.links is None else EqualPaths(topology.links)

    def make_room(self) -> None:
        """Forget single jobs where there are many: a training goes on for days."""
        if len(self.alone) >= MOST_ALONE:
            self.alone.clear()
            self.routes.clear()


def remembered(cache: OrderedDict[K, V], key: K, most: int, make: Callable[[], V]) -> V:
    """Modify `cache`: the entry of a key, made if it is not there; beyond so many the one asked first is forgotten."""
    if key not in cache:
        cache[key] = make()
        if len(cache) > most:
            cache.popitem(last=False)
    return cache[key]
