"""A simulated cluster as one value: a dataclass whose fields are its options, the one list of them.

Commands (`--set`, `--help`), environments (keyword arguments), stored runs and simulators read it, so a new option is a
new field. A field with the metadata `group` holds a dataclass of further options; its `of(**options)` makes one, or
None. Other metadata: `feature` and `needs` of `Option`; `said`, False for a field without a word of the user's; and the
mark of a possible file (files/file_marks.py).
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, Self

from ..base.arguments import expect_single, seconds
from ..base.errors import InputError
from ..base.names import choose, convert, loaded
from ..cluster.topology import A_TOPOLOGY, Topology
from ..cluster.unit_types import gpus_of
from ..costs.tariff import Tariff
from ..events.initialise import Failures
from ..events.outage_list import OutageList
from ..files.file_marks import MARK, path_unless
from ..files.user_code import shown_word
from ..jobs.estimates import Estimates
from ..network.simulated import RateProvider
from ..rules.semantics import Semantics, events, load_semantics
from ..sharing.sharing_model import Sharing, gpu_type
from .network_choice import A_NETWORK, Contention, load_network, network_for
from .unit_speeds import UnitSpeeds, no_types

RUN_TIMES, LEASES, SHARING, REGIONS, OUTAGES = "run times", "leases", "sharing", "regions", "outages"
EXACT, EVENTS = Estimates(), events()
WITHOUT = {  # what the error says where a cluster lacks the feature that an option is about
    RUN_TIMES: "run times are not used in {}",
    LEASES: "{} has no leases",
    SHARING: "jobs of {} do not share GPUs",
    REGIONS: "{} has no regions",
    OUTAGES: "machines of {} fail each by itself",
}
UNSAID: dict[str, Any] = {"said": False}  # of a field that is no option: it is given otherwise, or not in words


@dataclass(frozen=True)
class Option:
    """One option of a simulated cluster.

    Attributes:
        name: its key. kind: its type. default: in words. summary: from the docstring of its class.
        group: the field whose dataclass it is a field of; "": none.
        feature: what a cluster must have for it to mean anything; "": nothing.
        needs: it means something only where one of these options has a value.
    """

    name: str
    group: str
    kind: Any
    default: Any
    feature: str
    needs: tuple[str, ...]
    summary: str


@dataclass(frozen=True)
class SimulatedCluster:
    """What every simulator knows of its cluster.

    Args:
        topology: a `Topology`, a preset (`"dally:racks=2"`), a specification or its path.
        network: the network, by its word or as an object.
        horizon_s: stop after so many seconds from the first arrival, > 0; None: never.
        estimates: what policies and observations know of run times: exact, none, lognormal:sigma=S, user, or such an
            object; what happens does not depend on it.
        semantics: how leases end and when passes are made: events, artist-sim, or such an object.
        failures: failures of machines and regions; None: none.

    Raises:
        InputError: a value that does not fit.
    """

    simulator: ClassVar[str]  # `module:name` of the class that simulates it, which imports this module
    unit: ClassVar[str] = "GPUs"  # what jobs run on
    features: ClassVar[frozenset[str]] = frozenset(WITHOUT)  # what options may be about

    topology: Topology | str | dict[str, Any] = field(metadata={MARK: A_TOPOLOGY})
    network: Any = field(default="none", hash=False, metadata=UNSAID | {MARK: A_NETWORK})
    horizon_s: float = float("inf")
    estimates: Estimates = field(default=EXACT, metadata={"feature": RUN_TIMES})
    semantics: Semantics = field(default=EVENTS, metadata={"feature": LEASES})
    failures: Failures | None = field(default=None, metadata={"group": Failures})

    def __post_init__(self) -> None:
        self._keep(
            horizon_s=seconds("horizon_s", self.horizon_s),
            estimates=Estimates.load(self.estimates),
            semantics=load_semantics(self.semantics),
        )
        if not isinstance(self.failures, Failures | None):
            raise InputError(f"failures = {self.failures!r:.100}: expected Failures(...) or None")

    def _keep(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The options by name, in the order of the fields."""
        found: dict[str, Option] = _options(cls)  # type: ignore[arg-type]
        return found

    @classmethod
    def of(cls, topology: Any, network: Any = None, **given: Any) -> Self:
        """A description from options and fields by name; InputError: an unknown one, or a value that does not fit."""
        place = {} if network is None else {"network": network}
        return cls(topology, **place, **_gathered(cls, None, given))

    @classmethod
    def from_words(cls, words: Mapping[str, Any], what: str) -> dict[str, Any]:
        """Values of options; text is turned into what they are, `what` is what an error calls them."""
        known = cls.options()
        return {
            key: convert(value, known[key].kind, f"{what}: {key}") if isinstance(value, str) else value
            for key, value in words.items()
        }

    def copy_with(self, **changes: Any) -> Self:
        """A description with other values of some options or fields."""
        return replace(self, **_gathered(type(self), self, changes))

    def values(self) -> dict[str, Any]:
        """The value of every option by name; None of one whose group is not there."""
        holders = {key: getattr(self, one.group) if one.group else self for key, one in self.options().items()}
        return {key: None if holder is None else getattr(holder, key) for key, holder in holders.items()}

    def words(self) -> dict[str, Any]:
        """Topology, network and the values of all options, as one can write them down."""
        places = {"topology": shown_word(self.topology), "network": shown_word(self.network)}
        return places | {key: _word(value) for key, value in self.values().items()}

    def unusual(self) -> dict[str, Any]:
        """The words of the options that have not their usual values."""
        usual = {key: one.default for key, one in self.options().items()}
        return {key: word for key, word in self.words().items() if word not in (None, usual.get(key, word))}

    def terms(self) -> dict[str, str]:
        """What is simulated, field by field, in words that differ for a simulation of something else."""
        named = [one.name for one in fields(self) if one.name != "rate_provider"]
        return {name: describe_value(getattr(self, name)) for name in named}

    @staticmethod
    def gang_room(topology: Topology) -> int:
        """The most units that a job may ask there; InputError: neither GPUs nor regions, where jobs may do without."""
        if topology.region_network is None:
            return gpus_of(topology).num_gpus
        return topology.num_gpus - topology.num_cpu_machines

    def check(self) -> None:
        """InputError for what is not played there, or cannot be opened, beside topology and network."""
        known = self.options()
        for key in self.unusual():
            if key in known:
                expect_feature(known[key], self.features, "this simulator")

    def build(self, rule: Any = None) -> Any:
        """A simulator of it; `rule`: what holds there; None: the usual."""
        return loaded(self.simulator)(self, rule=rule)

    def on_network_for(self, policy: Any) -> Self:
        """The cluster on the network on which a policy is played."""
        return self

    def for_policy(self, policy: Any) -> Self:
        """The cluster as it is while a policy plays, which may bring something along."""
        return self


@dataclass(frozen=True)
class ClusterConfig(SimulatedCluster):
    """A GPU cluster.

    Args:
        network: the network fidelity (`"none"`, `"penalty:table=chronus"`) or a `Network`; text that does not say what
            `duration_s` means (network/isolated.py) takes it as the semantics does.
        sharing: several jobs a GPU; None: a job has its GPUs to itself.
        tables_every_s: in regions, seconds from one instant at which tables may move to the next: there is a decision
            point then, although no job waits (`ClusterView.tables_due`), the first at the first arrival; None: none.
        tariff: what electricity, traffic and storage cost in regions; None: nothing is said of costs.
        copy_time: in regions, how long a copy of a table takes: as its share of the links allows (`bandwidth`), or a
            time drawn from those of paper mast, and longer where the links do not allow that (`published`).
        copy_order: in regions, whether the copies on a link are equals (`equal`), or those on demand and for jobs of
            high priority go before the others (`urgent`).
        speeds: in regions, how fast models train on types of units: `gavel`, or a csv (configuration/unit_speeds.py);
            none: all types are as fast.
        replica_lag_s: in regions, how far replicas are behind their home, seconds > 0: a workload that needs fresh data
            may run beside them so long after it came (regions/region_starts.py); None: at home alone.
        rate_provider: the source of a job's speed on its GPUs (network/simulated.py); None: the network's, if it has
            one, else what the workload, the network and the partners give.

    Raises:
        InputError: a value that does not fit.
    """

    simulator: ClassVar[str] = "clustergym.simulator.engine.simulator:Simulator"

    sharing: Sharing | None = field(default=None, metadata={"group": Sharing, "feature": SHARING})
    tables_every_s: float = field(default=float("inf"), metadata={"feature": REGIONS})
    tariff: Tariff | None = field(default=None, metadata={"group": Tariff, "feature": REGIONS})
    copy_time: Literal["bandwidth", "published"] = field(default="bandwidth", metadata={"feature": REGIONS})
    copy_order: Literal["equal", "urgent"] = field(default="equal", metadata={"feature": REGIONS})
    speeds: str = field(default="none", metadata={"feature": REGIONS, MARK: path_unless(("none", "gavel"))})
    replica_lag_s: float = field(default=float("inf"), metadata={"feature": REGIONS})
    rate_provider: RateProvider | None = field(default=None, hash=False, metadata=UNSAID)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(
            # A copy, which opens its tables anew: a later play of a setting has the files as they are then.
            sharing=None if self.sharing is None else replace(Sharing.load(self.sharing)),
            tables_every_s=seconds("tables_every_s", self.tables_every_s),
            replica_lag_s=seconds("replica_lag_s", self.replica_lag_s),
        )
        choose(self.copy_time, ("bandwidth", "published"), "copy_time")
        choose(self.copy_order, ("equal", "urgent"), "copy_order")
        if not isinstance(self.speeds, str):
            raise InputError(f"speeds = {self.speeds!r}: expected none, gavel, or the path of a csv")

    @property
    def of_tables(self) -> tuple[float, bool, bool, float]:
        """For `write_regions`: seconds between looks, whether copy times are drawn, urgent ones go first; lag."""
        return self.tables_every_s, self.copy_time == "published", self.copy_order == "urgent", self.replica_lag_s

    def check(self) -> None:
        """See `SimulatedCluster`."""
        super().check()
        if self.sharing is not None:
            self.sharing.check()
            _ = self.gpu_type
        if self.tariff is not None:
            self.tariff.electricity(Topology.load(self.topology))
        self.outages()
        self.unit_speeds()

    @property
    def gpu_type(self) -> str:
        """The type of GPU whose fits say how fast elastic jobs are; see `sharing_model.gpu_type`."""
        return gpu_type(load_network(self.network, self.semantics.duration), self.sharing)

    def unit_speeds(self, topology: Topology | None = None) -> UnitSpeeds | None:
        """How fast models are on unit types; None: on all alike. A topology is opened only where there are speeds."""
        if self.speeds in ("", "none"):
            return None
        return UnitSpeeds.load(self.speeds, Topology.load(self.topology) if topology is None else topology)

    def outages(self, topology: Topology | None = None) -> OutageList | None:
        """What fails together, and the list of outages (`Failures.listed`), for which alone a topology is opened."""
        if self.failures is None or not (self.failures.outages or self.failures.fault_groups):
            return None
        return self.failures.listed(Topology.load(self.topology) if topology is None else topology)

    def expect_no_regions(self, workload: str) -> None:
        """InputError for what is said of regions, where a workload, called so, asks nothing of them."""
        listed = self.outages()
        if listed is not None and listed.gives_notice:
            raise InputError(
                f"outages: workload {workload!r} asks nothing of regions, and notice is given only there; "
                "expected notice_s = 0, or none"
            )
        if self.failures is not None and self.failures.region_mtbf_s < float("inf"):
            raise InputError(f"workload {workload!r} asks nothing of regions: they cannot fail")
        if self.tariff is not None:
            raise InputError(f"workload {workload!r} asks nothing of regions: there are no prices of them")
        if self.speeds not in ("", "none"):
            raise no_types(workload)

    def on_network_for(self, policy: Any) -> Self:
        """The cluster on the network on which a policy is played; see `network_for`."""
        network = load_network(self.network, self.semantics.duration)
        return replace(self, network=network_for(policy, network))

    def for_policy(self, policy: Any) -> Self:
        """The cluster while a policy plays: on its network, elastic jobs at its rates; InputError: not its network."""
        there = self.on_network_for(policy)
        if self.rate_provider is not None or isinstance(there.network, Contention):
            return there
        return replace(there, rate_provider=policy.rate_provider(there.gpu_type))


@cache
def _options(kind: Any, group: str = "", feature: str = "") -> dict[str, Option]:
    kinds, about = typing.get_type_hints(kind), summaries(kind)
    found: dict[str, Option] = {}
    for one in fields(kind):
        metadata = one.metadata
        if "group" in metadata:
            found |= _options(metadata["group"], one.name, metadata.get("feature", ""))
        elif metadata.get("said", one.name != "topology"):
            own = (metadata.get("feature", feature), tuple(metadata.get("needs", ())), about.get(one.name, ""))
            default = None if one.default is MISSING else _word(one.default)
            found[one.name] = Option(one.name, group, kinds[one.name], default, *own)
    return found


def summaries(kind: type) -> dict[str, str]:
    """What the `Args` of a class, and of those that it is made from, say of each field."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        _, _, arguments = (inspect.cleandoc(one.__doc__ or "")).partition("Args:\n")
        for block in re.split(r"\n(?=    \w)", re.split(r"\n(?=\S)", arguments)[0]):
            names, _, text = block.strip().partition(":")
            found |= dict.fromkeys(re.split(r",\s*", names), " ".join(text.split()))
    return found


def _gathered(kind: Any, before: SimulatedCluster | None, given: Mapping[str, Any]) -> dict[str, Any]:
    known = kind.options()
    own = {one.name for one in fields(kind)}
    found: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    expect_single({key: value for key, value in given.items() if key in known})
    for key, value in given.items():
        group = known[key].group if key in known else ""
        if not group and key not in own:
            choose(key, known, "option of a simulated cluster")
        (groups.setdefault(group, {}) if group else found)[key] = value
    for group, values in groups.items():
        held = None if before is None else getattr(before, group)
        stays = {} if held is None else {one.name: getattr(held, one.name) for one in fields(held)}
        kinds = next(one.metadata["group"] for one in fields(kind) if one.name == group)
        found[group] = kinds.of(**{**stays, **values})
    return found


def _word(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    return value.describe() if hasattr(value, "describe") else shown_word(value)


def describe_value(value: Any) -> str:
    """A value in words that differ for another one: an object by what it says of itself."""
    if hasattr(value, "machine_rack"):
        return f"{value.name} ({value.num_gpus} GPUs, {value.num_machines} machines, {value.num_racks} racks)"
    found = value.describe() if hasattr(value, "describe") else repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", str(found))  # which differs from process to process


def expect_feature(option: Option, features: frozenset[str], where: str) -> None:
    """InputError where a cluster, `where`, has not what an option is about."""
    if option.feature and option.feature not in features:
        raise InputError(f"{option.name}: {WITHOUT[option.feature].format(where)}")
