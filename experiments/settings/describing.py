"""A setting in words: the head of every table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...policies import Policy
from ...simulator.base.names import parse_name
from ...simulator.cluster.topology import Topology
from ...simulator.configuration.network_choice import on_topology
from ...simulator.configuration.offered_load import offered_load
from ...simulator.files.user_code import is_user_code, shown_word
from ...simulator.rules.rule import Rule
from ...simulator.workloads.log_samples import is_sampled, samples_of
from .evaluation_setting import Setting, network_of, speeds_of, workload_of

LOADS, MOST_JOBS = 10, 100_000  # workloads whose load is shown, and jobs that are drawn for it before it is enough


def semantics_of(policy: Policy, setting: Setting) -> dict[str, Any]:
    """Every parameter of a policy's rule; of one that decides in Python, its clock's, or none."""
    semantics = setting.config.semantics
    rule = policy.rule_under(semantics)
    if rule is None:
        terms = policy.clock
        if terms is not None and not isinstance(terms, Rule):
            return asdict(terms)
        return {} if terms is None else {key: getattr(terms, key) for key in ("preemption_cost", "round", "lease")}
    unused = {name for name in ("timers", "tuner", "margin") if getattr(rule, name) is None}
    if not rule.advisory:
        unused.add("advisory")
    if not rule.preempt:
        unused |= {"preempt", "theta", "exponent"}
    if rule.order != "las":
        unused |= {"thresholds", "quantum"}
    if not rule.migrates:
        unused |= {"migrates", "fallback", "slicing"}
    if semantics.auctions:
        unused |= {"lease", "round"}
    parameters = {key: value for key, value in asdict(rule).items() if key not in unused}
    return parameters | parameters.pop("tuner", {})


def describe_workload(setting: Setting, seed: int) -> str:
    """The workload's word, its size, and whether the seed matters."""
    workload = workload_of(setting, seed if setting.is_drawn else 0)
    how = "drawn anew for each seed, the same for all policies" if setting.is_drawn else "the same for all seeds"
    if is_sampled(setting.workload):
        found, own = samples_of(setting.workload)
        how = found.describe(own)
    return f"{shown_word(setting.workload)} ({len(workload):,} jobs; {how})"


def describe_network(setting: Setting) -> str:
    """The network with every parameter, and the effect of the topology's own link numbers."""
    network = on_topology(network_of(setting), Topology.load(setting.topology))
    notes = "; ".join(getattr(network, "notes", ()))
    return f"{network.describe()} ({notes})" if notes else network.describe()


def describe_load(setting: Setting, seeds: Sequence[int]) -> str:
    """The load of the workloads in a setting, mean over the first few seeds; on the fastest and slowest GPU types."""
    topology, network = Topology.load(setting.topology), network_of(setting)
    speeds = None if speeds_of(setting) is None else setting.config.unit_speeds(topology)  # type: ignore[attr-defined]
    loads: list[float] = []
    slowest: list[float] = []
    jobs = at_once = 0
    for seed in seeds[:LOADS] if setting.is_drawn else (0,):
        workload = workload_of(setting, seed)
        load = offered_load(workload, topology, network, speeds)
        most = load if speeds is None else offered_load(workload, topology, network, speeds, slowest=True)
        if load is None or most is None:
            return "all jobs are there at once"
        loads.append(load)
        slowest.append(most)
        jobs, at_once = jobs + len(workload), int((workload.arrival_s == workload.arrival_s[0]).sum())
        if jobs > MOST_JOBS:
            break
    there = f", after {at_once:,} jobs that are there at once" if at_once > 1 else ""
    several = f"; from {min(loads):.3g} to {max(loads):.3g} in the first {len(loads)} workloads" if loads[1:] else ""
    types = f" on the fastest types that they accept, {_mean(slowest)} on the slowest" if slowest != loads else ""
    asked = _load_asked(setting)
    drawn = f"{_mean(loads)} of the {setting.config.unit}{there}, as jobs run alone{types}{several}"
    return f"{asked} asked; drawn {drawn}" if asked else drawn


def _load_asked(setting: Setting) -> str:
    """The load that a generator's word asks for; empty: none."""
    word = setting.workload
    if not setting.is_drawn or not isinstance(word, str) or is_user_code(word) or is_sampled(word):
        return ""
    return parse_name(word, "workload")[1].get("load", "")


def _mean(loads: Sequence[float]) -> str:
    return f"{sum(loads) / len(loads):.3g}"


def describe_topology(word: Any, unit: str = "GPUs") -> str:
    """The topology's word, its size, and its assumptions; `unit`: of what jobs run on. CPU machines stand apart."""
    topology = Topology.load(word)
    cpus = topology.num_cpu_machines
    counts = {unit: topology.num_gpus - cpus, "machines": topology.num_machines, "racks": topology.num_racks}
    if 0 < cpus < topology.num_gpus:
        own = {"GPU machines": topology.num_machines - cpus, "CPU machines": cpus}
        counts = {unit: topology.num_gpus - cpus, **own, "racks": topology.num_racks}
    sizes = ", ".join(f"{count:,} {noun if count > 1 else noun.removesuffix('s')}" for noun, count in counts.items())
    about = f"; {topology.about}" if topology.about else ""
    return f"{shown_word(word)} ({sizes}{about})"
