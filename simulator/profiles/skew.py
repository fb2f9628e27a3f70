"""Skew of a model, its largest tensor over all its gradients, and the placement rule of Tiresias.

Source: Tiresias (Gu et al., NSDI 2019) as paper dally describes it: skew is "the ratio of the largest tensor size to
the overall model size" (Sec. I), "Tiresias consolidates jobs with high skew, while other jobs accept any resource offer
they receive" (Sec. III-B); Table I calls VGG11, AlexNet and MobileNetV3 high, ResNet18, ResNet50 and BERT-large low, as
the authors' simulator hard-codes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from ..base.errors import InputError
from ..jobs.workload import Workload, WorkloadWarning
from .model_names import normalised

# Neither paper prints the threshold. Every one in [0.2020, 0.4150) gives the column "Skew" of paper dally,
# Table I.
DEFAULT_THRESHOLD = 0.3


@dataclass(frozen=True)
class SkewProfile:
    """Largest tensor and sum of all tensors, in one unit (bytes, MB or parameters), and their source."""

    model: str
    largest: float
    total: float
    source: str

    @property
    def skew(self) -> float:
        """Largest over total, in (0, 1]."""
        return self.largest / self.total


# Largest and total all-reduce payload, bytes: the layer files of the simulator behind paper dally
# (aakash-sharma/ cluster-sim, astra-sim/workload). Its BERT-large has 140.5 M parameters (no embeddings),
# its MobileNetV3 is the small.
_DALLY = "layer files of the simulator of paper dally, all-reduce bytes"
# Tensor sizes in MB from Tiresias' own simulator (SymbioticLab/Tiresias, simulator/models.py): largest and
# sum. It lists no tensor under 1 MB; where both sources have a model they differ by little (VGG11 .774/.773,
# ResNet50 .112/.093).
_TIRESIAS = "SymbioticLab/Tiresias, simulator/models.py, MB"
# Counted from the architecture; totals as in the sources named.
_COUNTED = "parameters counted from the architecture: "

PROFILES: tuple[SkewProfile, ...] = (
    SkewProfile("VGG11", 411_041_792, 531_405_568, _DALLY),
    SkewProfile("AlexNet", 150_994_944, 244_361_984, _DALLY),
    SkewProfile("MobileNetV3", 4_096_000, 9_870_144, _DALLY),
    SkewProfile("ResNet18", 9_437_184, 46_715_648, _DALLY),
    SkewProfile("ResNet50", 9_437_184, 102_011_648, _DALLY),
    SkewProfile("BERT-large", 16_777_216, 562_044_928, _DALLY),
    SkewProfile("vgg16", 392.0, 526.8, _TIRESIAS),
    SkewProfile("vgg19", 392.0, 547.1, _TIRESIAS),
    SkewProfile("resnet101", 9.0, 119.7, _TIRESIAS),
    SkewProfile("resnet152", 9.0, 149.6, _TIRESIAS),
    SkewProfile("inception3", 7.8, 56.6, _TIRESIAS),
    SkewProfile("inception4", 5.9, 132.8, _TIRESIAS),
    SkewProfile("mobilenet_v2", 1280 * 1000, 3_504_872, _COUNTED + "classifier 1280 x 1000; torchvision total"),
    SkewProfile("cifar10", 512 * 512 * 9, 11_173_962, _COUNTED + "3x3 convolution 512 x 512 of ResNet-18, 10 classes"),
    SkewProfile("bert-base", 30_522 * 768, 109_482_240, _COUNTED + "word embeddings, bert-base-uncased"),
    SkewProfile("ncf", 6040 * 128, 1_602_657, _COUNTED + "user embeddings of the MLP, NeuMF on ml-1m, factor 32"),
    SkewProfile("yolov3", 1024 * 512 * 9, 61_626_049, _COUNTED + "3x3 convolution 512 to 1024; head of 20 classes"),
    SkewProfile("deepspeech2", 2400 * 1312, 41_187_968, _COUNTED + "input weights of the first of 5 GRUs of 800"),
)

_SKEW = {normalised(profile.model): profile.skew for profile in PROFILES}


def skew_of(model: str) -> float:
    """Skew of a model in (0, 1], whatever the spelling of its name; nan where it is not known."""
    return _SKEW.get(normalised(model), float("nan"))


def is_skewed(models: np.ndarray, threshold: float = DEFAULT_THRESHOLD, unknown: bool = True) -> np.ndarray:
    """Which jobs Tiresias consolidates, bool (n,): those of models whose skew is above `threshold`.

    Args:
        models: model names, any spelling, shape (n,).
        threshold: in [0, 1], else InputError.
        unknown: the answer for models without a profile; True, as Tiresias consolidates unless it has learnt more.

    Paper: tiresias, skew, as in paper dally, Sec. I and III-B.
    """
    if not 0.0 <= threshold <= 1.0:
        raise InputError(f"skew threshold = {threshold!r}: expected a number from 0 to 1")
    verdicts: dict[str, bool] = {}
    for model in dict.fromkeys(models):
        skew = skew_of(str(model))
        verdicts[model] = unknown if np.isnan(skew) else bool(skew > threshold)
    return np.fromiter((verdicts[model] for model in models), dtype=bool, count=len(models))


def jobs_taken_for_skewed(workload: Workload, network: str) -> np.ndarray:
    """Which jobs of a workload Tiresias consolidates, bool (n,).

    A warning names unknown models of larger jobs, unless the name of the network is `none`, where no model matters.
    """
    models = workload.model
    several = dict.fromkeys(models[workload.gpus > 1])
    unknown = [model for model in several if np.isnan(skew_of(str(model)))]
    if unknown and network != "none":
        which = "no model" if len(unknown) == len(several) else f"{len(unknown)} of the {len(several)} models"
        what = "has a known skew" if len(unknown) == len(several) else "have no known skew"
        warnings.warn(
            f"workload {workload.name!r}: {which} of its jobs on several GPUs {what}, so Tiresias' placement takes "
            "those for skewed and consolidates them",
            WorkloadWarning,
            stacklevel=2,
        )
    return is_skewed(models)
