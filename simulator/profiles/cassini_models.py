"""The 13 models of paper cassini (Table 3): their phases from workers and batch. Numbers: data/cassini.json.

Every number of that file has its source, or says that it is assumed. The paper prints neither iteration times by batch
nor phases, so computing follows one rule per kind of model:

    vision            in proportion to the images of a batch and to the GFLOPS of the model, anchored at the 141 ms that
                      VGG16's Down phase takes in Figure 3
    encoder           the measured fit of BERT on A100: fixed + per sample
    decoder           6 FLOP per parameter and token at a stated part of the A100's peak
    recommendation    fixed + per sample, assumed

Communication follows the sizes: a ring all-reduce of fp32 gradients at 45 Gbps. Table 3's "memory requirement" is the
parameters in fp32 for VGG and ResNet50, so its low ends are read the same way for the models that have a range: data
parallel GPTs of 170, 425 and 512 M parameters, and a DLRM that replicates 890 MiB (0 to 1,962 MiB is allowed; chosen so
that its duty is more than VGG16's, as the text's "network-intensive" wants). Setting: cassini, Table 3.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import InputError
from ..base.names import choose
from ..cluster.traffic import HYBRID_SERVERS
from .phases import (
    HYBRID_MINIBATCHES,
    Phases,
    data_parallel,
    embeddings,
    hybrid,
    in_order,
    pipeline,
    ring_bytes,
    tensor_parallel,
)

DATA = Path(__file__).resolve().parent / "data" / "cassini.json"
FP32, FP16 = 4, 2  # bytes of a number: gradients of data parallel jobs; activations, and gradients of decoders
GBPS = 1e9 / 8
MINIBATCHES = 3  # paper cassini, Sec. 2.1: PipeDream divides the batch into three
STRATEGIES = {
    "vision": ("data",),
    "encoder": ("data",),
    "decoder": ("data", "pipeline", "tensor", "hybrid"),
    "recommendation": ("embeddings",),
}
Traffic = Mapping[str, float]  # bytes that a worker sends in an iteration, by pattern (cluster/traffic.py)


@dataclass(frozen=True)
class CassiniModel:
    """A model of Table 3.

    Attributes:
        name, kind: as the data file has them.
        memory_mb, batch: Table 3, smallest and largest; batch is per GPU.
    """

    name: str
    kind: str
    source: str  # of its numbers
    strategies: tuple[str, ...]  # those that it can be trained with, its own first
    memory_mb: tuple[float, float]
    batch: tuple[int, int]
    numbers: Mapping[str, float]  # the rest of its row

    def width(self, strategy: str, hidden: int | None = None) -> int:
        """Hidden size of a decoder that is trained so: `hidden`, or the listed one."""
        if hidden is not None:
            return hidden
        return int(self.numbers.get(f"{strategy}_hidden", self.numbers["hidden"]))

    def parameters(self, strategy: str, hidden: int | None = None) -> float:
        """Number of parameters; of a decoder 12 x layers x hidden^2 and the embedding of its vocabulary."""
        if self.kind != "decoder":
            return float(self.numbers["parameters"])
        width = self.width(strategy, hidden)
        return float(12 * self.numbers["layers"] * width**2 + self.numbers["vocabulary"] * width)


@functools.cache
def _file() -> dict[str, Any]:
    return dict(json.loads(DATA.read_text()))


@functools.cache
def cassini_models() -> dict[str, CassiniModel]:
    """The 13 models by name, in the order of Table 3."""
    models = {}
    for name, row in _file()["models"].items():
        known = STRATEGIES[row["kind"]]
        own = row.get("strategy", known[0])
        models[name] = CassiniModel(
            name=name,
            kind=row["kind"],
            source=row["source"],
            strategies=(own, *(other for other in known if other != own)),
            memory_mb=tuple(row["memory_mb"]),
            batch=tuple(row["batch"]),
            numbers={key: value for key, value in row.items() if isinstance(value, int | float)},
        )
    return models


def constant(name: str) -> float:
    """A number of data/cassini.json that is not of one model."""
    return float(_file()["constants"][name]["value"])


def phases_of(
    model: str,
    workers: int,
    batch: int,
    strategy: str | None = None,
    hidden: int | None = None,
    rate_gbps: float | None = None,
) -> Phases:
    """The phases of one iteration, alone on its links; see `phases_and_traffic`."""
    return phases_and_traffic(model, workers, batch, strategy, hidden, rate_gbps)[0]


def phases_and_traffic(
    model: str,
    workers: int,
    batch: int,
    strategy: str | None = None,
    hidden: int | None = None,
    rate_gbps: float | None = None,
) -> tuple[Phases, Traffic]:
    """The phases of one iteration, alone on its links, and the part of the bytes from each worker to each other.

    Args:
        model: one of Table 3. workers: GPUs, on a server each. batch: samples per GPU (of all stages together where a
            decoder is split), in Table 3's range or not: the rule is the same.
        strategy: data, pipeline, tensor, hybrid (decoders) or embeddings (DLRM); None: the model's own, as in Figure 1.
        hidden: hidden size of a decoder, where it is not the one listed for the strategy (GPT2-B has 1184).
        rate_gbps: what the network gives, more than 0; None: 45.

    Raises:
        InputError: an unknown model, strategy or hidden size, a number out of range, or hybrid workers not in fours.
    """
    known = cassini_models()[choose(model, cassini_models(), "model")]
    plan = known.strategies[0] if strategy is None else choose(strategy, known.strategies, f"strategy of {model}")
    for key, count in {"workers": workers, "batch": batch, "hidden": 1 if hidden is None else hidden}.items():
        if isinstance(count, bool) or count < 1 or int(count) != count:
            raise InputError(f"model {model}: {key} = {count!r}, expected a whole number of at least 1")
    if hidden is not None and known.kind != "decoder":
        raise InputError(f"model {model} has no hidden size to choose, GPT1, GPT2 and GPT3 have")
    rate = (constant("rate_gbps") if rate_gbps is None else float(rate_gbps)) * GBPS
    if not 0 < rate < float("inf"):
        raise InputError(f"model {model}: rate_gbps = {rate_gbps!r}, expected more than 0")
    if workers == 1:
        return in_order([(_compute_s(known, batch, known.parameters(plan, hidden)), 0.0)]), {}
    return _PATTERNS[plan](known, workers, batch, hidden, rate)


def _compute_s(model: CassiniModel, batch: int, parameters: float) -> float:
    """Seconds of computing of one iteration of the whole model on one GPU, by the rule of its kind."""
    if model.kind == "vision":
        return batch * constant("vision_sample_s") * model.numbers["gflops"] / constant("vision_gflops")
    if model.kind == "encoder":
        return constant("encoder_fixed_s") + batch * constant("encoder_sample_s")
    if model.kind == "decoder":
        return 6.0 * parameters * batch * model.numbers["sequence"] / constant("decoder_flops")
    return constant("dlrm_fixed_s") + batch * constant("dlrm_sample_s")


def _data(model: CassiniModel, workers: int, batch: int, hidden: int | None, rate: float) -> tuple[Phases, Traffic]:
    parameters = model.parameters("data", hidden)
    shortest_s = float(model.numbers.get("shortest_up_s", 0.0))
    phases = data_parallel(_compute_s(model, batch, parameters), FP32 * parameters, workers, rate, shortest_s)
    return phases, {"ring": phases.bytes}


def _activations(model: CassiniModel, samples: float, hidden: float) -> float:
    return samples * model.numbers["sequence"] * hidden * FP16


def _pipeline(model: CassiniModel, workers: int, batch: int, hidden: int | None, rate: float) -> tuple[Phases, Traffic]:
    width = float(model.width("pipeline", hidden))
    compute_s = _compute_s(model, batch, model.parameters("pipeline", hidden)) / workers
    shared = FP32 * model.numbers["vocabulary"] * width
    sent = _activations(model, batch / MINIBATCHES, width)
    phases = pipeline(compute_s, sent, shared, rate, MINIBATCHES)
    return phases, {"line": MINIBATCHES * sent, "first-last": ring_bytes(shared, 2)}


def _tensor(model: CassiniModel, workers: int, batch: int, hidden: int | None, rate: float) -> tuple[Phases, Traffic]:
    compute_s = _compute_s(model, batch, model.parameters("tensor", hidden)) / workers
    phases = tensor_parallel(compute_s, min(constant("tensor_gbps") * GBPS, rate))
    return phases, {"ring": phases.bytes}


def _hybrid(model: CassiniModel, workers: int, batch: int, hidden: int | None, rate: float) -> tuple[Phases, Traffic]:
    if workers % HYBRID_SERVERS:
        raise InputError(f"model {model.name}: hybrid on {workers} workers, expected a multiple of {HYBRID_SERVERS}")
    width = model.width("hybrid", hidden)
    parameters = model.parameters("hybrid", hidden)
    compute_s = _compute_s(model, batch, parameters) / HYBRID_SERVERS
    halves = min(constant("tensor_gbps") * GBPS, rate)
    activations = _activations(model, batch / HYBRID_MINIBATCHES, width)
    shared = FP16 * model.numbers["vocabulary"] * width
    gradients, replicas = FP16 * parameters / HYBRID_SERVERS, workers // HYBRID_SERVERS
    phases = hybrid(compute_s, halves, activations, shared, gradients, replicas, rate)
    return phases, {
        "halves": halves * compute_s,
        "stages": 2 * HYBRID_MINIBATCHES * activations,
        "ends": ring_bytes(shared, 2),
        "replicas": ring_bytes(gradients, replicas),
    }


def _embeddings(
    model: CassiniModel, workers: int, batch: int, hidden: int | None, rate: float
) -> tuple[Phases, Traffic]:
    exchanged = FP32 * model.numbers["tables"] * model.numbers["dimension"] * batch
    parameters = model.parameters("embeddings")
    phases = embeddings(_compute_s(model, batch, parameters), exchanged, FP32 * parameters, workers, rate)
    reduced = ring_bytes(FP32 * parameters, workers)
    return phases, {"all-to-all": 2 * exchanged * (workers - 1) / workers, "ring": reduced}


_PATTERNS: dict[str, Callable[[CassiniModel, int, int, int | None, float], tuple[Phases, Traffic]]] = {
    "data": _data,
    "pipeline": _pipeline,
    "tensor": _tensor,
    "hybrid": _hybrid,
    "embeddings": _embeddings,
}
