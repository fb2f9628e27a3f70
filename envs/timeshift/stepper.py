"""Stepping rows whose decisions are made in Python: row after row, each by its own environment."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..batch import Rows, Stepper


class Player(Protocol):
    """An environment that plays the action in its row by itself."""

    def play(self) -> bool:
        """Play it; True if the row needs a look: the episode has ended, or the run has stalled."""


class PlayedStepper(Stepper):
    """A stepper without a kernel of its own.

    Attributes:
        players: the environments by row.
    """

    def __init__(self, rows: Rows, part: str) -> None:
        super().__init__(rows, part, _no_kernel)
        self.players: list[Player] = []

    def like(self, n: int) -> PlayedStepper:
        """Another one of `n` rows."""
        return PlayedStepper(self.rows.like(n), self.part)

    def step(self, chosen: np.ndarray) -> int:
        """Play the actions that lie in the chosen rows, int64 (k,); returns how many need a look."""
        return sum(self.players[row].play() for row in chosen.tolist())


def _no_kernel(*_: object) -> int:
    raise TypeError("these rows are played by their environments")
