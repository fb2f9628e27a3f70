"""Paper harmony: what is checked of it."""

from __future__ import annotations

from . import harmony_model, harmony_reload, harmony_solvers
from .registry import Findings, Options, Reproduction


def model_error(options: Options) -> Findings:
    """Figure 13b."""
    return Findings(harmony_model.random_groups(options))


def oracle(options: Options) -> Findings:
    """Figure 14."""
    return Findings(harmony_solvers.quality(options))


def scale(options: Options) -> Findings:
    """Sec. V-F."""
    return Findings(harmony_solvers.scale(options))


REPRODUCTIONS = (
    Reproduction(
        "harmony-model-error", "harmony", "table", "Figure 13b: Eq. 1 against simulated group iteration times", model_error
    ),
    Reproduction("harmony-oracle", "harmony", "ratio", "Figure 14: Algorithm 1 against Oracle", oracle),
    Reproduction("harmony-scale", "harmony", "table", "Sec. V-F: the time of the scheduling algorithm", scale),
    *harmony_reload.REPRODUCTIONS,
)
