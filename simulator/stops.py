"""Why a run stopped, of whatever simulator."""

from __future__ import annotations

from .kernels import codes


class Stops:
    """Knows the code for which the clock stopped last (`kernels/codes.py`)."""

    _code = codes.FINISHED

    def note(self, code: int) -> None:
        """Take over why the run stopped from a kernel that advanced the state itself."""
        self._code = code

    @property
    def done(self) -> bool:
        """Every job is finished."""
        return self._code == codes.FINISHED

    @property
    def at_horizon(self) -> bool:
        """The horizon was reached before every job had finished."""
        return self._code == codes.HORIZON

    @property
    def ended(self) -> bool:
        """Nothing more can be decided."""
        return self.done or self.at_horizon
