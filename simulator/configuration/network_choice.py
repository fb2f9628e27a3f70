"""How placement slows a job down: network models by name (`network_model.py` has the interface)."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from ..base.errors import InputError
from ..base.names import bind, called, choose, parse_name
from ..base.tiers import TIERS
from ..cluster.topology import Topology
from ..contention.contention import Contention
from ..files.file_marks import A_FILE, A_FOLDER, path_unless
from ..files.user_code import is_user_code, made_of, shown_word
from ..network.allreduce import AllReduce
from ..network.allreduce import allreduce as rings
from ..network.isolated import ISOLATED, Duration
from ..network.looked_up import LookedUp
from ..network.measured import Measured, measured
from ..network.network_model import Jobs, Network
from ..network.penalty import Penalty, penalty
from ..network.tiers_and_layers import A_CALIBRATION, A_TIERS_FILE
from ..network.written import on_topology


@dataclass(frozen=True)
class NoNetwork:
    """No network: every placement runs at full speed, so `duration_s` means the same either way (isolated.py)."""

    duration: Duration = ISOLATED
    name: str = "none"

    def describe(self) -> str:
        """Its text, for `load_network`."""
        return self.name

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None = None) -> tuple[np.ndarray, np.ndarray]:
        """One profile, 1 on every tier; see `Network`."""
        return np.zeros(len(workload.gpus), np.int64), np.ones((1, TIERS))


def none(duration: Duration = ISOLATED) -> NoNetwork:
    """Every placement runs at full speed; what `duration_s` means makes no difference."""
    return NoNetwork(duration)


def allreduce(
    calibration: Annotated[str, A_CALIBRATION] = "measured",
    tiers: Annotated[str | None, A_TIERS_FILE] = None,
    layers: Annotated[str | None, A_FILE] = None,
    uneven: Literal["flattened", "largest"] | None = None,
    default: str | None = None,
    gpu: str | None = None,
    profiles: Annotated[str | None, A_FILE] = None,
    tables: Annotated[str | None, A_FOLDER] = None,
    duration: Duration = ISOLATED,
) -> AllReduce | Measured | LookedUp:
    """Exposed communication of each placement: ring all-reduces per layer on every tier that the gang spans.

    Args:
        calibration: measured, artist (the simulator behind paper dally), or the path of a tiers file.
        tiers, layers: paths of a tiers file (tiers_and_layers.py) and a layer table in place of the calibration's.
        uneven: shape of gangs that divide unevenly, flattened or largest; None: as the tiers file says.
        default: the listed model that stands in for models that are not.
        gpu: with calibration=measured: t4, 2080ti or a100, whose fitted iteration times (measured.py) hold instead.
        profiles: with gpu: path of the user's own profiles beside the shipped ones.
        tables: with gpu: folder of measured tables (looked_up.py), for what the fits only come near to.
        duration: isolated or compute: what `duration_s` means (isolated.py).

    Raises:
        InputError: files that cannot be used, a default that is not listed, or parameters that do not go together.
    """
    if gpu is None and profiles is None and tables is None:
        return rings(calibration, tiers, layers, uneven, default, duration)
    if gpu is None or calibration != "measured" or any((tiers, layers, uneven, default)):
        raise InputError(
            "network allreduce: gpu, profiles and tables go with calibration=measured,gpu=TYPE, and nothing else"
        )
    fits = measured(gpu, profiles or "", duration)
    return fits if tables is None else LookedUp(fits, tables)


NETWORKS: dict[str, Callable[..., Network]] = {
    "none": none,
    "penalty": penalty,
    "allreduce": allreduce,
    "contention": Contention,
}
A_NETWORK = path_unless(NETWORKS)

__all__ = [
    "A_NETWORK",
    "NETWORKS",
    "AllReduce",
    "Contention",
    "Measured",
    "Network",
    "NoNetwork",
    "Penalty",
    "allreduce",
    "list_networks",
    "load_network",
    "measured",
    "network_for",
    "on_topology",
    "penalty",
    "resizing_for",
]


def load_network(source: str | Network | Callable[..., Network], duration: Duration = ISOLATED) -> Network:
    """A network from its text, e.g. "penalty:table=gavel,default=1/1.2/1.5", or an object that is one.

    Args:
        source: the text, the object, a class or function that gives one, or its word `py:FILE.py:NAME[,key=value...]`
            (simulator/files/user_code.py); it gets `duration` if it has this parameter.
        duration: the semantics' meaning of `duration_s`, for a text that does not give one; see isolated.py.

    Raises:
        InputError: an unknown name, an unknown or bad parameter, or an object of another kind.
    """
    if is_user_code(source) or inspect.isclass(source) or inspect.isroutine(source):
        found = made_of(source, "network", duration=duration)
        if not isinstance(found, Network):
            expected = "expected an object with name, describe and tier_factors"
            raise InputError(f"network {shown_word(source)!r}: it gave a {type(found).__name__}; {expected}")
        return found
    if isinstance(source, str):
        name, params = parse_name(source, "network")
        factory = NETWORKS[choose(name, NETWORKS, "network")]
        return bind(factory, {"duration": duration} | params, f"network {name}")
    if not isinstance(source, Network):
        expected = "expected a name, or an object with name, describe and tier_factors"
        raise InputError(f"network {called(source)}: {expected}")
    return source


def network_for(policy: Any, network: Network) -> Network:
    """The network on which a policy is played: this one with the policy's options (`on_links`).

    For a `dedicated` policy jobs never meet; for one that `tunes_workers` jobs may have other numbers of workers.
    InputError: the network has no such mode or options.
    """
    options, dedicated = getattr(policy, "on_links", {}), getattr(policy, "dedicated", False)
    if options or dedicated:
        if not isinstance(network, Contention):
            said = "mode dedicated" if dedicated else ", ".join(f"{key}={value}" for key, value in options.items())
            expected = f"expected contention, whose {said} it is played in"
            raise InputError(f"policy {policy.name}: network {network.describe()!r}, {expected}")
        network = dataclasses.replace(network.dedicated() if dedicated else network, **options)
    return resizing_for(policy, network)


def resizing_for(policy: Any, network: Network) -> Network:
    """The network with free numbers of workers, for a policy that `tunes_workers`; InputError: not contention."""
    if not getattr(policy, "tunes_workers", False):
        return network
    if not isinstance(network, Contention):
        expected = "expected contention, which says how fast other numbers of workers are, or workers=fixed"
        raise InputError(f"policy {policy.name}: network {network.describe()!r}, {expected}")
    return network.resizing()


def list_networks() -> list[dict[str, Any]]:
    """One dict per network: name, summary (one line) and parameters (name -> default)."""
    return [
        {
            "name": name,
            "summary": (inspect.getdoc(factory) or "").splitlines()[0],
            "parameters": {key: value.default for key, value in inspect.signature(factory).parameters.items()},
        }
        for name, factory in NETWORKS.items()
    ]
