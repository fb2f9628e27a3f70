"""The simulated cluster of an environment, from its entry and from given arguments."""

from __future__ import annotations

import math
from typing import Any

from ..simulator.base.errors import InputError
from ..simulator.base.names import choose, loaded
from ..simulator.cluster.topology import Topology
from ..simulator.configuration.cluster_config import Option, SimulatedCluster, expect_feature
from ..simulator.rules.semantics import load_semantics
from .registration import ENVIRONMENTS, resolve


def config_class(name: str) -> type[SimulatedCluster]:
    """The class of an environment's cluster, by id or short name."""
    found: type[SimulatedCluster] = loaded(ENVIRONMENTS[resolve(name)].config)
    return found


def config_of(name: str, topology: Any = None, network: Any = None, **options: Any) -> SimulatedCluster:
    """The cluster of an environment, by id or short name, which gives what is None or missing.

    Without a network it is that of the semantics, if any. InputError: an option that the cluster does not have or that
    has no effect there, or a value that does not fit.
    """
    env_id = resolve(name)
    entry, kind = ENVIRONMENTS[env_id], config_class(env_id)
    for key in options:
        expect_option(env_id, key)
    if network is None:
        network = load_semantics(options.get("semantics", "events")).network or entry.defaults["network"]
    place = entry.defaults["topology"] if topology is None else topology
    config = kind.of(place, network, **{**entry.options, **options})
    values = config.values()
    for key, value in options.items():
        needs = kind.options()[key].needs
        if needs and value is not None and all(values[other] in (None, math.inf) for other in needs):
            raise InputError(f"{key}: it means nothing without {' or '.join(needs)}")
    return config


def gang_room(name: str, topology: Any) -> int:
    """The most that a job may ask of a topology in an environment, by id or short name: GPUs, or machines."""
    return config_class(name).gang_room(Topology.load(topology))


def options_of(name: str) -> dict[str, Option]:
    """The options of an environment's cluster that have an effect there, by name."""
    features, options = ENVIRONMENTS[resolve(name)].features, config_class(name).options()
    return {key: one for key, one in options.items() if not one.feature or one.feature in features}


def expect_option(env_id: str, key: str, *others: str) -> None:
    """InputError for a name that is no option of the cluster, nor of `others`; it names an environment that has it."""
    known = config_class(env_id).options()
    if key in known:
        expect_feature(known[key], ENVIRONMENTS[env_id].features, env_id)
    elif key not in others:
        if key in ("workload", "topology", "network"):
            raise InputError(f"{key}: it has an option of its own, --{key}")
        for other in ENVIRONMENTS:
            if key in config_class(other).options():
                raise InputError(f"{key}: {env_id} has nothing of the kind; {other} has")
        choose(key, [*options_of(env_id), *others], "option")
