"""Network allreduce: exposed communication by layers and tiers; tables for collectives.py, and best placements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.errors import InputError
from ..base.said_once import say_once
from ..base.tiers import MACHINE, NETWORK, RACK, SLOT, TIERS
from ..jobs.workload import name_of_job
from ..record.state import LAYERS, MODELS, PROFILES, Capacity, empty_state
from .collectives import best_fraction, compute_fraction, flatten
from .isolated import ISOLATED, Duration, Shape, best_shape
from .network_model import Jobs
from .tiers_and_layers import KINDS, MOST_PASS_NS, Calibration, Link, ModelLayers, load_calibration
from .written import EVERYTHING, Used

if TYPE_CHECKING:
    from ..cluster.topology import Tier, Topology

TRIES = 3  # numbers of slots, machines and racks that the search of the best placement looks at, on each level


@dataclass(frozen=True, eq=False)
class AllReduce:
    """Ring all-reduces per layer and tier, overlapped with the backward pass.

    Attributes:
        default: the model that stands in for those that the calibration does not list; None: they are an error.
    """

    calibration: Calibration  # tiers and layer tables
    words: tuple[tuple[str, str], ...] = ()  # the parameters that made it, for `describe`
    default: str | None = None
    duration: Duration = ISOLATED  # what `duration_s` means (isolated.py)
    name: str = "allreduce"
    plain: AllReduce | None = None  # the network with the calibration's own numbers; None: this one has them

    def describe(self) -> str:
        """Its text with every parameter, for `load_network`."""
        return f"{self.name}:{','.join(f'{key}={value}' for key, value in self.words)}"

    def on(self, tiers: tuple[Tier, ...]) -> tuple[AllReduce, Used]:
        """The network with these tiers' numbers; see `written.TieredNetwork`. InputError: times beyond 64 bits."""
        plain = self.plain or self
        fabric = plain.calibration.fabric
        links = tuple(link.written_over(tier) for link, tier in zip(fabric.tiers, tiers, strict=True))
        size = max(int(layers.gradient_bytes.sum()) for layers in plain.calibration.models)
        for link in links:
            if 2 * size > MOST_PASS_NS * link.bandwidth_gb_s:
                raise InputError(
                    f"network allreduce: tier {link.name} has {link.bandwidth_gb_s * 8:.3g} Gbit/s in effect, expected "
                    f"at least {2 * size / MOST_PASS_NS * 8:.2g}, for models of {size:,} bytes"
                )
        calibration = replace(plain.calibration, fabric=replace(fabric, tiers=links))
        return replace(plain, calibration=calibration, plain=plain), EVERYTHING

    @property
    def notes(self) -> tuple[str, ...]:
        """What a topology's numbers changed, one for each tier."""
        if self.plain is None:
            return ()
        pairs = zip(self.plain.calibration.fabric.tiers, self.calibration.fabric.tiers, strict=True)
        return tuple(_change(own, now) for own, now in pairs if own != now)

    def layers_of(self, model: str) -> ModelLayers | None:
        """The layers of a model in any spelling, or of the default; None if there are none."""
        found = self.calibration.find(model)
        return self.calibration.find(self.default) if found is None and self.default is not None else found

    def is_extrapolated(self, model: str) -> bool:
        """Whether the compute times of a listed model are another GPU's than the tiers were measured on."""
        layers = self.layers_of(model)
        return layers is not None and self.calibration.is_extrapolated(layers)

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None) -> tuple[np.ndarray, np.ndarray]:
        """Slowdowns of the best placement on each tier per (model, gang size); see `base.Network`.

        An impossible tier (the gang does not fit, or cannot spread so far) has the value of the next possible one.
        Without a topology, tiers of any size are assumed.

        Raises:
            InputError: a job of several GPUs whose model the calibration does not list, without a default; more models
                or layers than a record holds.
        """
        gpus = np.asarray(workload.gpus, dtype=np.int64)
        if not len(gpus):
            return np.zeros(0, np.int64), np.ones((1, TIERS))
        pairs, first_job, profile_of_job = _profiles(workload.model, gpus)
        sizes = _sizes(topology)
        factors = np.ones((len(pairs), TIERS))
        used = {i: self._layers_of_job(workload, int(job)) for i, job in enumerate(first_job) if gpus[job] > 1}
        _check_room({layers.model: layers for layers in used.values()})
        self._warn_of_extrapolated(used.values())
        for profile, layers in used.items():
            factors[profile] = self._best(layers, int(gpus[first_job[profile]]), sizes)
        return profile_of_job.astype(np.int64, copy=False), factors

    def best_factors(self, workload: Jobs | Any, topology: Topology | None, profile_of_job: np.ndarray) -> np.ndarray:
        """Slowdown of each job on the best placement of the empty cluster, (n,); see `base.ShapedNetwork`."""
        gpus = np.asarray(workload.gpus, dtype=np.int64)
        profiles, first_job = np.unique(profile_of_job, return_index=True)
        best = np.ones(int(profiles.max(initial=0)) + 1)
        for profile, job in zip(profiles.tolist(), first_job.tolist(), strict=True):
            if gpus[job] > 1:
                shape = best_shape(topology, int(gpus[job]))
                best[profile] = 1.0 / self._fraction(self._layers_of_job(workload, job), int(gpus[job]), shape)
        return best[profile_of_job]

    def write_into(self, s: np.record, workload: Jobs | Any, profile_of_job: np.ndarray) -> None:
        """Modify `s`: write the tables of the models of the workload; see `base.ShapedNetwork`."""
        gpus = np.asarray(workload.gpus, dtype=np.int64)
        first_job = np.zeros(PROFILES, np.int64)
        first_job[profile_of_job[::-1]] = np.arange(len(gpus))[::-1]
        number: dict[str, int] = {}
        models: list[ModelLayers] = []
        for profile in range(int(profile_of_job.max()) + 1):
            job = int(first_job[profile])
            if gpus[job] == 1:
                s["profile_model"][profile] = -1
                continue
            layers = self._layers_of_job(workload, job)
            if layers.model not in number:
                number[layers.model] = len(models)
                models.append(layers)
            s["profile_model"][profile] = number[layers.model]
        self.write_models(s, models)

    def write_models(self, s: np.record, models: Sequence[ModelLayers]) -> None:
        """Modify `s`: write the tiers and the tables of `models`, numbered in this order."""
        fabric = self.calibration.fabric
        s["net_models"] = max(1, len(models))  # a workload of jobs of one GPU has none, and is not slowed down
        s["net_kind"] = [KINDS[tier.kind] for tier in fabric.tiers]
        s["net_links"] = [tier.links for tier in fabric.tiers]
        s["net_latency_ns"] = [tier.message_latency_ns for tier in fabric.tiers]
        s["net_bandwidth"] = [tier.bandwidth_gb_s for tier in fabric.tiers]
        s["net_memory_bandwidth"], s["net_endpoint_ns"] = fabric.memory_gb_s, fabric.endpoint_ns
        s["net_fifo"], s["net_flattened"] = fabric.order == "fifo", fabric.uneven == "flattened"
        s["net_single"] = fabric.single_precision
        first = 0
        for i, layers in enumerate(models):
            end = first + len(layers.names)
            issue_ns = layers.issue_ns(fabric.step_ns)
            s["model_first"][i : i + 2] = first, end
            s["model_compute_ns"][i] = layers.compute_ns
            s["model_end_ns"][i] = issue_ns[0] + fabric.step_ns
            s["layer_bytes"][first:end] = layers.gradient_bytes
            s["layer_ready_ns"][first:end] = issue_ns
            s["layer_update_ns"][first:end] = layers.update_ns
            first = end

    def _warn_of_extrapolated(self, used: Iterable[ModelLayers]) -> None:
        found = {layers.model: layers.measured_on for layers in used if self.calibration.is_extrapolated(layers)}
        if found:
            shown = ", ".join(f"{model} ({gpu})" for model, gpu in sorted(found.items()))
            tiers = self.calibration.fabric.measured_on
            say_once(
                f"network {self.name}: slowdowns of {shown} are extrapolated: compute of the GPU in brackets, "
                f"bandwidths of a cluster of {tiers}; docs/concepts/communication.md says what to believe"
            )

    def _layers_of_job(self, workload: Any, job: int) -> ModelLayers:
        model, gpus = str(workload.model[job]), int(workload.gpus[job])
        found = self.layers_of(model)
        if found is not None:
            return found
        raise InputError(
            f"{name_of_job(workload, job)} ({gpus} GPUs) has the model {model!r}, which the layer table of network "
            f"{self.describe()!r} does not list ({', '.join(self.calibration.model_names())}); give layers=PATH with "
            "it, or default=MODEL, one of these, for such models"
        )

    def _best(self, layers: ModelLayers, gpus: int, sizes: tuple[int, ...]) -> list[float]:
        known: dict[tuple[Any, ...], list[float]] = self._known
        key = (layers.model, gpus, sizes)
        if key not in known:
            states = self._record_of(layers)
            best: list[float | None] = []
            for tier in range(TIERS):
                shapes = np.array(list(_shapes(gpus, tier, sizes)), np.int64)
                best.append(1.0 / float(best_fraction(states, 0, gpus, shapes)) if len(shapes) else None)
            known[key] = _filled(best)
        return known[key]

    def _fraction(self, layers: ModelLayers, gpus: int, shape: Shape) -> float:
        key = layers.model, gpus, shape
        if key not in self._fractions:
            s = self._record_of(layers)[0]
            if self.calibration.fabric.uneven == "flattened":
                flatten(s, gpus, shape.slots, shape.machines, shape.racks)
            else:
                s["units"] = shape.most_gpus, shape.most_slots, shape.most_machines, shape.racks
            self._fractions[key] = float(compute_fraction(s, 0))
        return self._fractions[key]

    def _record_of(self, layers: ModelLayers) -> np.recarray:
        """Scratch records whose first one has the tables of one model, and no memo of another."""
        s = self._scratch[0]
        self.write_models(s, [layers])
        s["shape_second"], s["shapes"] = 0, 0
        return self._scratch

    @cached_property
    def _fractions(self) -> dict[tuple[str, int, Shape], float]:
        return {}

    @cached_property
    def _known(self) -> dict[tuple[Any, ...], list[float]]:
        return {}

    @cached_property
    def _scratch(self) -> np.recarray:
        return empty_state(Capacity.fitting(1, 1, layered=True))


def _profiles(models: np.ndarray, gpus: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of model and gang size, the first job of each, and the pair of each job; all jobs of one GPU are one."""
    code_of: dict[str, int] = {}
    codes = np.array([code_of.setdefault(model, len(code_of)) for model in models.tolist()], np.int64)
    codes[gpus == 1] = 0
    return np.unique(codes * (int(gpus.max()) + 1) + gpus, return_index=True, return_inverse=True)


def _check_room(used: dict[str, ModelLayers]) -> None:
    layers = sum(len(model.names) for model in used.values())
    if len(used) > MODELS or layers > LAYERS:
        raise InputError(
            f"the workload has {len(used)} models of {layers} layers in the layer table; network allreduce holds at "
            f"most {MODELS} models of {LAYERS} layers in all"
        )


def _change(own: Link, now: Link) -> str:
    words = []
    if now.bandwidth_gb_s != own.bandwidth_gb_s:
        words.append(f"bandwidth {own.bandwidth_gb_s:.4g} -> {now.bandwidth_gb_s:.4g} GB/s")
    if now.latency_ns != own.latency_ns:
        words.append(f"latency {own.message_latency_ns / 1e3:g} -> {now.message_latency_ns / 1e3:g} us")
    measured = "" if own.nominal_gbps is None else f" (measured on {own.nominal_gbps:g} Gbit/s)"
    return f"{own.name}: {', '.join(words)}{measured}"


def _sizes(topology: Topology | None) -> tuple[int, ...]:
    """GPUs of the largest slot, machine and rack, slots of a machine, machines of a rack, racks."""
    if topology is None:
        return (2**40,) * 6
    rack_gpus = np.bincount(topology.machine_rack, weights=topology.machine_gpus)
    machine_slots = np.bincount(topology.slot_machine)
    largest = (topology.slot_gpus, topology.machine_gpus, rack_gpus, machine_slots, topology.rack_machines)
    return (*(int(sizes.max()) for sizes in largest), topology.num_racks)


def _shapes(gpus: int, tier: int, sizes: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """Numbers of slots, machines and racks of compact placements whose innermost common tier is `tier`."""
    slot_gpus, machine_gpus, rack_gpus, machine_slots, rack_machines, most_racks = sizes
    for racks in _counts(tier == NETWORK, 1, -(-gpus // rack_gpus), min(gpus, most_racks)):
        if tier < NETWORK and racks > 1:
            continue
        most_machines = min(gpus, racks * rack_machines)
        for machines in _counts(tier >= RACK, racks, -(-gpus // machine_gpus), most_machines):
            if tier < RACK and machines > 1:
                continue
            most_slots = min(gpus, machines * machine_slots)
            for slots in _counts(tier >= MACHINE, machines, -(-gpus // slot_gpus), most_slots):
                if tier > SLOT or slots == 1:
                    yield slots, machines, racks


def _counts(spread: bool, groups: int, needed: int, most: int) -> list[int]:
    """Up to TRIES numbers of members for `groups` groups, the least first; several in all if `spread`."""
    least = max(groups, needed, 2 if spread and groups == 1 else 1)
    return [count for count in range(least, least + TRIES) if count <= most]


def _filled(best: list[float | None]) -> list[float]:
    """The values, with those of the next tier outwards where there is none, and else of the next inwards."""
    values = [value for value in best if value is not None] or [1.0]
    filled: list[float] = []
    for tier in range(TIERS):
        outward = [value for value in best[tier:] if value is not None]
        filled.append(outward[0] if outward else values[-1])
    return filled


def allreduce(
    calibration: str = "measured",
    tiers: str | None = None,
    layers: str | None = None,
    uneven: Literal["flattened", "largest"] | None = None,
    default: str | None = None,
    duration: Duration = ISOLATED,
) -> AllReduce:
    """Exposed communication of each placement; arguments and errors as `configuration.network_choice.allreduce`."""
    loaded = load_calibration(calibration, tiers, layers, uneven)
    if default is not None and loaded.find(default) is None:
        known = ", ".join(loaded.model_names())
        raise InputError(f"network allreduce: default = {default!r}, expected a model of its layer table ({known})")
    given = {"calibration": calibration, "tiers": tiers, "layers": layers, "uneven": uneven, "default": default}
    given["duration"] = duration
    words = tuple((key, "none" if value is None else value) for key, value in given.items())
    return AllReduce(loaded, words, default, duration)
