"""Names of the modes in which a vector environment resets rows whose episode has ended."""

from __future__ import annotations

from gymnasium.vector import AutoresetMode

from ..simulator.base.names import choose

MODES = {"next-step": AutoresetMode.NEXT_STEP, "same-step": AutoresetMode.SAME_STEP, "disabled": AutoresetMode.DISABLED}


def autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """The mode of this name, ours or Gymnasium's; InputError if there is none."""
    if isinstance(mode, AutoresetMode):
        return mode
    known = {**MODES, **{value.value: value for value in MODES.values()}}
    return known[choose(mode, known, "autoreset_mode")]
