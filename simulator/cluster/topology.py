"""Where the GPUs are: regions > clusters > racks > machines > slots > GPUs, flat index arrays of contiguous ranges."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..base.errors import InputError
from ..base.names import bind, choose, parse_name
from ..base.tiers import TIER_NAMES
from ..files.file_marks import path_unless
from ..files.user_code import is_user_code, made_of, shown_word
from .region_network import CPU_TYPE, RegionNetwork, check_machines, check_region_network

if TYPE_CHECKING:
    import networkx

    from .links import LinkGraph

MAX_GPUS = 1_000_000
MOST_LATENCY_US = 1e6
NATURAL = "natural"
MOST_SEED = 10**18
_SEED = re.compile(r"[0-9]{1,18}")
_SPEC_SUFFIXES = (".yaml", ".yml", ".json")


Build = TypeVar("Build", bound=Callable[..., "Topology"])

# What makes topologies lies above them and registers here; simulator/__init__.py sees to it that it is imported.
BUILDERS: dict[str, Callable[..., Topology]] = {}  # of what they read: mapping, file, graph, node-link, regions
PRESETS: dict[str, Callable[..., Topology]] = {}  # by name
A_TOPOLOGY = path_unless(PRESETS, last="file")


def builder(what: str) -> Callable[[Build], Build]:
    """Decorates the function that builds topologies from `what`: a mapping, a file, a graph, ..."""

    def register(build: Build) -> Build:
        BUILDERS[what] = build
        return build

    return register


def preset(name: str) -> Callable[[Build], Build]:
    """Decorates the function that is the preset `name`; its arguments are the preset's parameters."""

    def register(build: Build) -> Build:
        PRESETS[name] = build
        return build

    return register


@dataclass(frozen=True, eq=False)
class Tier:
    """What connects the members of one level. Every number is nan where it is not known.

    Attributes:
        name: slot (inside a slot), machine (between slots), rack (between machines) or network (between racks).
        bandwidth_gbps: gigabits per second of one link, > 0.
        latency_s: seconds from one member to another, >= 0.
        oversubscription: bandwidth offered below divided by bandwidth above, >= 1.
    """

    name: str
    bandwidth_gbps: float = math.nan
    latency_s: float = math.nan
    oversubscription: float = math.nan

    def _numbers(self) -> tuple[float | None, ...]:
        numbers = (self.bandwidth_gbps, self.latency_s, self.oversubscription)
        return tuple(None if math.isnan(number) else float(number) for number in numbers)

    def __eq__(self, other: object) -> bool:
        """Two unknown numbers count as equal (nan would not)."""
        if not isinstance(other, Tier):
            return NotImplemented
        return self.name == other.name and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        return hash((self.name, self._numbers()))

    def over(self, other: Tier) -> Tier:
        """These numbers, and where they are not known those of `other`."""
        mine, others = self._numbers(), (other.bandwidth_gbps, other.latency_s, other.oversubscription)
        return Tier(self.name, *(theirs if own is None else own for own, theirs in zip(mine, others, strict=True)))


UNKNOWN_TIERS = tuple(Tier(name) for name in TIER_NAMES)


@dataclass(frozen=True)
class UserNumbers:
    """The user's words about a topology beside its shape, not a preset's; networks use them or say that they do not.

    Attributes:
        tiers: numbers of the tiers; nan where the user wrote none.
        gpu_type: a given GPU type has no effect; with `Topology.region_network`, parts of jobs ask for types.
        capacities: the name under which capacities of links were given, the source of `tiers`; "": none.
    """

    tiers: tuple[Tier, ...] = UNKNOWN_TIERS
    gpu_type: bool = False
    capacities: str = ""


NO_USER_NUMBERS = UserNumbers()


@dataclass(frozen=True, eq=False, repr=False)
class Topology:
    """A cluster of clusters, fixed for a whole simulation. Index arrays are int64 and read-only.

    Shapes: G GPUs, S slots, M machines, R racks, C clusters. Build one with `load`, `from_spec` or `from_counts`.

    Attributes:
        name: for tables.
        gpu_slot, gpu_machine: (G,), the slot and the machine of each GPU, ascending.
        slot_machine (S,), machine_rack (M,), rack_cluster (R,), cluster_region (C,): the next level's index.
        slot_first_gpu, slot_gpus (S,): the contiguous range of GPUs of each slot.
        machine_first_gpu, machine_gpus (M,): the contiguous range of GPUs of each machine.
        rack_first_machine, rack_machines (R,): the contiguous range of machines of each rack.
        cluster_gpu_type: GPU type per cluster, "" where it is not known.
        region_names, cluster_names: one each per region and per cluster.
        tiers: slot, machine, rack, network, in this order: all that is known of them.
        machine_order: the order in which first-fit placers scan machines: "natural" is ascending, a whole number is the
            seed of a random order of all machines; see `machine_scan`.
        links: the links between the machines; None: it has tiers only.
        region_network: storage of the regions and links between them; None: regions are only names. With it a cluster
            has machines of one type and size. A unit of a cluster of type "CPU" is always a machine without GPUs.
        written: the part of all this that the user wrote; the rest is a preset's.
        about: what was read from a file and what was assumed, in words; "": nothing.
    """

    name: str
    gpu_slot: np.ndarray
    gpu_machine: np.ndarray
    slot_machine: np.ndarray
    machine_rack: np.ndarray
    rack_cluster: np.ndarray
    cluster_region: np.ndarray
    slot_first_gpu: np.ndarray
    slot_gpus: np.ndarray
    machine_first_gpu: np.ndarray
    machine_gpus: np.ndarray
    rack_first_machine: np.ndarray
    rack_machines: np.ndarray
    cluster_gpu_type: tuple[str, ...]
    region_names: tuple[str, ...]
    cluster_names: tuple[str, ...]
    tiers: tuple[Tier, ...] = UNKNOWN_TIERS
    machine_order: str = NATURAL
    links: LinkGraph | None = None
    region_network: RegionNetwork | None = None
    written: UserNumbers = NO_USER_NUMBERS
    about: str = ""

    @classmethod
    def from_counts(
        cls,
        name: str,
        *,
        slot_gpus: Sequence[int] | np.ndarray,
        machine_slots: Sequence[int] | np.ndarray,
        rack_machines: Sequence[int] | np.ndarray,
        cluster_racks: Sequence[int] | np.ndarray = (),
        region_clusters: Sequence[int] | np.ndarray = (),
        cluster_gpu_type: Sequence[str] = (),
        region_names: Sequence[str] = (),
        cluster_names: Sequence[str] = (),
        tiers: Sequence[Tier] = UNKNOWN_TIERS,
        machine_order: str | int = NATURAL,
        links: LinkGraph | None = None,
        region_network: RegionNetwork | None = None,
        written: UserNumbers | None = None,
    ) -> Topology:
        """Build from how many children each element has, level by level, in natural order; all counts >= 1.

        Args:
            slot_gpus (S,), machine_slots (M,), rack_machines (R,), cluster_racks (C,), region_clusters: the counts; the
                last two default to one cluster, one region.
            name, cluster_gpu_type, cluster_names (one each per cluster), region_names: "" and numbered by default.
            tiers: exactly slot, machine, rack and network.
            machine_order: natural, or the seed of a random order, a whole number of at most 18 digits.
            links, region_network, written: see the attributes; `written`: None: the tiers and GPU types given here.

        Raises:
            InputError: counts that do not add up, too many GPUs, or names, an order, links or regions that do not fit.
        """
        racks, clusters = len(rack_machines), len(cluster_racks) or 1
        by_region = region_clusters if len(region_clusters) else [clusters]
        levels = {
            "slot_gpus": _counts("slot_gpus", slot_gpus, None),
            "machine_slots": _counts("machine_slots", machine_slots, len(slot_gpus)),
            "rack_machines": _counts("rack_machines", rack_machines, len(machine_slots)),
            "cluster_racks": _counts("cluster_racks", cluster_racks if len(cluster_racks) else [racks], racks),
            "region_clusters": _counts("region_clusters", by_region, clusters),
        }
        check_gpu_count(int(levels["slot_gpus"].sum()), f"topology {name!r}")
        regions = len(levels["region_clusters"])
        _check_network(name, tiers, links, len(machine_slots))
        topology = cls(
            name=name,
            **_index_arrays(levels),
            cluster_gpu_type=_per_item("cluster_gpu_type", cluster_gpu_type, [""] * clusters),
            region_names=_per_item("region_names", region_names, [f"region{i}" for i in range(regions)]),
            cluster_names=_per_item("cluster_names", cluster_names, [f"cluster{i}" for i in range(clusters)]),
            tiers=tuple(tiers),
            machine_order=checked_order(machine_order, f"topology {name!r}"),
            links=links,
            region_network=region_network,
            written=written or UserNumbers(tuple(tiers), region_network is None and any(cluster_gpu_type)),
            about="",  # named, so that mypy does not take an array for it
        )
        check_machines(topology)
        check_region_network(topology, region_network)
        return topology

    @classmethod
    def from_spec(cls, mapping: Mapping[str, Any], source: str = "topology") -> Topology:
        """Build from a mapping in the schema of `topology_files.py`; `source` names it in InputErrors."""
        return BUILDERS["mapping"](mapping, source)

    @classmethod
    def from_graph(cls, graph: networkx.Graph, name: str = "custom") -> Topology:
        """Build from a networkx graph of machines, switches and links: the attributes of `graph_files.py`."""
        return BUILDERS["graph"](graph, name)

    @classmethod
    def load(cls, source: Topology | Mapping[str, Any] | str | os.PathLike[str] | Callable[[], Topology]) -> Topology:
        """A Topology from itself, a preset (`"dally:racks=8"`), a mapping, or a path to a YAML or JSON file.

        Also from a function that returns one, or its word `py:FILE.py:NAME[,key=value...]` (user_code.py). A word whose
        part before ":" is a preset's name is that preset; write `./dally` for a file of that name.

        Raises:
            InputError: no such preset or file, a bad parameter, or a bad specification.
        """
        if isinstance(source, Topology):
            return source
        if isinstance(source, Mapping):
            return cls.from_spec(source)
        if is_user_code(source) or callable(source):
            found = made_of(source, "topology")
            if not isinstance(found, Topology):
                kind = type(found).__name__
                raise InputError(f"topology {shown_word(source)!r}: it gave a {kind}; expected a Topology (from_spec)")
            return found
        if not isinstance(source, str | os.PathLike):
            raise InputError(f"topology {source!r}: expected a preset, a mapping or a path to a YAML or JSON file")
        text = os.fspath(source)
        if isinstance(source, str) and text.strip().partition(":")[0] in PRESETS:
            name, params = parse_name(text, "topology", last="file")
            return bind(PRESETS[name], params, f"topology {name}")
        looks_like_path = os.sep in text or "/" in text or text.lower().endswith(_SPEC_SUFFIXES)
        if isinstance(source, str) and not looks_like_path and not os.path.exists(text):
            try:
                choose(parse_name(text, "topology")[0], PRESETS, "topology")
            except InputError as error:
                raise InputError(f"{error}; or the path of a YAML or JSON file") from None
        return BUILDERS["file"](text)

    @property
    def num_gpus(self) -> int:
        """GPUs, G, and the CPU machines, a unit each."""
        return len(self.gpu_slot)

    @cached_property
    def largest(self) -> np.ndarray:
        """GPUs of the largest slot, machine and rack, int64 (3,)."""
        racks = np.bincount(self.machine_rack, weights=self.machine_gpus)
        return np.array((self.slot_gpus.max(), self.machine_gpus.max(), int(racks.max())), np.int64)

    @cached_property
    def num_cpu_machines(self) -> int:
        """Units that are machines without GPUs; they count in `num_gpus`."""
        if CPU_TYPE not in self.cluster_gpu_type:
            return 0
        return int(np.count_nonzero(np.array([kind == CPU_TYPE for kind in self.cluster_gpu_type])[self.gpu_cluster]))

    @cached_property
    def parts(self) -> dict[frozenset[str], Topology]:
        """What unit_types.py has found of it, by the types of the units."""
        return {}

    @property
    def num_slots(self) -> int:
        """Slots, S."""
        return len(self.slot_machine)

    @property
    def num_machines(self) -> int:
        """Machines, M."""
        return len(self.machine_rack)

    @property
    def num_racks(self) -> int:
        """Racks, R."""
        return len(self.rack_cluster)

    @property
    def num_clusters(self) -> int:
        """Clusters, C."""
        return len(self.cluster_region)

    @property
    def num_regions(self) -> int:
        """Regions."""
        return len(self.region_names)

    @cached_property
    def gpu_rack(self) -> np.ndarray:
        """Rack of each GPU, int64 (G,)."""
        return _frozen(self.machine_rack[self.gpu_machine])

    @cached_property
    def gpu_nic(self) -> np.ndarray:
        """The NIC of each GPU, int64 (G,): GPU i of a machine of C NICs is on NIC i mod C."""
        nics = 1 if self.links is None else self.links.nics
        on_machine = np.arange(self.num_gpus) - self.machine_first_gpu[self.gpu_machine]
        return _frozen(self.gpu_machine * nics + on_machine % nics)

    @cached_property
    def gpu_cluster(self) -> np.ndarray:
        """Cluster of each GPU, int64 (G,)."""
        return _frozen(self.rack_cluster[self.gpu_rack])

    @cached_property
    def rack_gpus(self) -> np.ndarray:
        """GPUs of each rack, int64 (R,)."""
        return _frozen(np.add.reduceat(self.machine_gpus, self.rack_first_machine))

    @cached_property
    def machine_scan(self) -> np.ndarray:
        """The machines as first-fit placers scan them, int64 (M,); a seed gives `default_rng(seed).permutation(M)`."""
        if self.machine_order == NATURAL:
            return _frozen(np.arange(self.num_machines, dtype=np.int64))
        scan = np.random.default_rng(int(self.machine_order)).permutation(self.num_machines)
        return _frozen(scan.astype(np.int64))

    @cached_property
    def machine_numbers(self) -> dict[str, int]:
        """Machines by what files call them: their number, from 0, and of `hosts:` and graphs of links their name."""
        numbers = {str(machine): machine for machine in range(self.num_machines)}
        if self.links is None:
            return numbers
        nodes = enumerate(self.links.machine_node.tolist())
        return numbers | {self.links.node_names[node]: machine for machine, node in nodes}

    @cached_property
    def cluster_first_rack(self) -> np.ndarray:
        """First rack of each cluster, int64 (C,)."""
        return _frozen(np.searchsorted(self.rack_cluster, np.arange(self.num_clusters)).astype(np.int64))

    @cached_property
    def _prefix_cluster(self) -> dict[str, int]:
        return {self._prefix(cluster): cluster for cluster in range(self.num_clusters)}

    def _prefix(self, cluster: int) -> str:
        if self.num_clusters == 1:
            return ""
        return f"{self.region_names[self.cluster_region[cluster]]}.{self.cluster_names[cluster]}."

    def gpu_label(self, gpu: int) -> str:
        """The label "[region.cluster.]rack.machine.gpu" of a GPU, from 0 in each level; InputError: no such GPU."""
        if not 0 <= gpu < self.num_gpus:
            raise InputError(f"GPU {gpu}: topology {self.name!r} has GPUs 0 to {self.num_gpus - 1}")
        machine = self.gpu_machine[gpu]
        rack = self.machine_rack[machine]
        cluster = self.rack_cluster[rack]
        rack_in_cluster = rack - self.cluster_first_rack[cluster]
        machine_in_rack = machine - self.rack_first_machine[rack]
        gpu_in_machine = gpu - self.machine_first_gpu[machine]
        return f"{self._prefix(cluster)}{rack_in_cluster}.{machine_in_rack}.{gpu_in_machine}"

    def gpu_index(self, label: str) -> int:
        """The GPU that `gpu_label` calls `label`; InputError: another form, or no GPU of this topology."""
        form = "rack.machine.gpu" if self.num_clusters == 1 else "region.cluster.rack.machine.gpu"
        parts = label.rsplit(".", 3) if isinstance(label, str) else []
        prefix = f"{parts[0]}." if len(parts) == 4 else ""
        digits = parts[-3:]
        if len(digits) < 3 or not all(part.isascii() and part.isdigit() for part in digits):
            raise InputError(f"GPU label {label!r}: expected {form} with whole numbers, as in {self.gpu_label(0)!r}")
        if prefix not in self._prefix_cluster:
            known = ", ".join(repr(name) for name in list(self._prefix_cluster)[:5])
            raise InputError(f"GPU label {label!r}: expected {form}, beginning with one of {known}")
        cluster = self._prefix_cluster[prefix]
        rack, machine, gpu = (int(part[:19]) for part in digits)
        racks = int(np.count_nonzero(self.rack_cluster == cluster))
        self._check_place(label, "rack", rack, racks)
        rack += int(self.cluster_first_rack[cluster])
        self._check_place(label, "machine", machine, int(self.rack_machines[rack]))
        machine += int(self.rack_first_machine[rack])
        self._check_place(label, "gpu", gpu, int(self.machine_gpus[machine]))
        return int(self.machine_first_gpu[machine]) + gpu

    def _check_place(self, label: str, level: str, index: int, count: int) -> None:
        if index >= count:
            raise InputError(f"GPU label {label!r}: {level} {index} does not exist, expected 0 to {count - 1}")

    def graph(self) -> networkx.DiGraph:
        """The tree as a networkx.DiGraph, edges downwards, for checking and drawing (not for speed).

        Nodes are (kind, index) from ("network", 0) to ("gpu", i), with attributes `kind` and `label`; edges carry
        `tier`, `bandwidth_gbps`, `latency_s` and `oversubscription` of their tier.
        """
        import networkx

        graph: networkx.DiGraph = networkx.DiGraph(name=self.name)
        graph.add_node(("network", 0), kind="network", label=self.name)
        slot, machine, rack, network = self.tiers
        levels = [
            ("region", "network", np.zeros(self.num_regions, np.int64), network, self.region_names),
            ("cluster", "region", self.cluster_region, network, self.cluster_names),
            ("rack", "cluster", self.rack_cluster, network, None),
            ("machine", "rack", self.machine_rack, rack, None),
            ("slot", "machine", self.slot_machine, machine, None),
            ("gpu", "slot", self.gpu_slot, slot, None),
        ]
        for kind, parent_kind, parents, tier, names in levels:
            link = {
                "tier": tier.name,
                "bandwidth_gbps": tier.bandwidth_gbps,
                "latency_s": tier.latency_s,
                "oversubscription": tier.oversubscription,
            }
            for index, parent in enumerate(parents.tolist()):
                label = names[index] if names else self.gpu_label(index) if kind == "gpu" else f"{kind} {index}"
                graph.add_node((kind, index), kind=kind, label=label)
                graph.add_edge((parent_kind, parent), (kind, index), **link)
        return graph

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Topology):
            return NotImplemented
        return (
            self._plain() == other._plain()
            and self.links == other.links
            and all(
                np.array_equal(getattr(self, array), getattr(other, array))
                for array in ("slot_gpus", "slot_machine", "machine_rack", "rack_cluster", "cluster_region")
            )
        )

    def _plain(self) -> tuple[object, ...]:
        names = (self.name, self.machine_order, self.region_names, self.cluster_names)
        return (*names, self.cluster_gpu_type, self.tiers, self.region_network, self.written)

    def __hash__(self) -> int:
        return hash((self._plain(), self.num_gpus, self.num_slots, self.num_machines, self.num_racks))

    def __repr__(self) -> str:
        counts = [
            (self.num_regions, "region", self.num_regions > 1),
            (self.num_clusters, "cluster", self.num_clusters > 1),
            (self.num_racks, "rack", True),
            (self.num_machines, "machine", True),
            (self.num_gpus - self.num_cpu_machines, "GPU", True),
            (self.num_cpu_machines, "CPU machine", self.num_cpu_machines > 0),
        ]
        words = [f"{count} {noun}{'s' * (count != 1)}" for count, noun, shown in counts if shown]
        if self.links is not None:
            words.append(f"{self.links.num_links} links")
        if self.machine_order != NATURAL:
            words.append(f"machine order {self.machine_order}")
        return f"<Topology {self.name}: {', '.join(words)}>"


def check_gpu_count(gpus: int, what: str) -> None:
    """Raise an InputError if a topology of `gpus` GPUs would be larger than MAX_GPUS."""
    if gpus > MAX_GPUS:
        raise InputError(f"{what}: {gpus} GPUs are too many, expected at most {MAX_GPUS}")


def checked_order(value: object, what: str) -> str:
    """A machine order as text, "natural" or a whole number without leading zeros; else InputError, naming `what`."""
    if isinstance(value, str) and value.strip() == NATURAL:
        return NATURAL
    if isinstance(value, str) and _SEED.fullmatch(value.strip()):
        return str(int(value))
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < MOST_SEED:
        return str(int(value))
    try:
        shown = repr(value)
    except ValueError:  # an integer of thousands of digits
        shown = "a number of thousands of digits"
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    raise InputError(
        f"{what}: machine_order = {shown}: expected natural, or a whole number, the seed of a random order"
    )


def _check_network(name: str, tiers: Sequence[Tier], links: LinkGraph | None, machines: int) -> None:
    if tuple(tier.name for tier in tiers) != TIER_NAMES:
        raise InputError(f"topology {name!r}: tiers must be {', '.join(TIER_NAMES)}, in this order")
    if links is not None and links.num_machines != machines:
        raise InputError(f"topology {name!r}: links of {links.num_machines} machines, expected {machines}")


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _counts(what: str, counts: Sequence[int] | np.ndarray, total: int | None) -> np.ndarray:
    array = np.asarray(counts)
    if array.ndim != 1 or not len(array) or not np.issubdtype(array.dtype, np.integer) or array.min() < 1:
        raise InputError(f"{what}: expected whole numbers of at least 1, one per element")
    if total is not None and int(array.sum()) != total:
        raise InputError(f"{what} adds up to {int(array.sum())}, expected {total}, the number of elements below")
    return array.astype(np.int64)


def _per_item(what: str, given: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    if len(given) not in (0, len(default)):
        raise InputError(f"{what}: {len(given)} given, expected {len(default)}")
    return tuple(given) if len(given) else tuple(default)


def _parents(counts: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


def _firsts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[:-1])])


def _index_arrays(levels: Mapping[str, np.ndarray]) -> dict[str, Any]:
    slot_machine = _parents(levels["machine_slots"])
    gpu_slot = _parents(levels["slot_gpus"])
    machine_gpus = np.add.reduceat(levels["slot_gpus"], _firsts(levels["machine_slots"]))
    arrays = {
        "gpu_slot": gpu_slot,
        "gpu_machine": slot_machine[gpu_slot],
        "slot_machine": slot_machine,
        "machine_rack": _parents(levels["rack_machines"]),
        "rack_cluster": _parents(levels["cluster_racks"]),
        "cluster_region": _parents(levels["region_clusters"]),
        "slot_first_gpu": _firsts(levels["slot_gpus"]),
        "slot_gpus": levels["slot_gpus"],
        "machine_first_gpu": _firsts(machine_gpus),
        "machine_gpus": machine_gpus,
        "rack_first_machine": _firsts(levels["rack_machines"]),
        "rack_machines": levels["rack_machines"],
    }
    return {name: _frozen(array) for name, array in arrays.items()}
