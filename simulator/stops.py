"""Why a run stopped, of whatever simulator."""

from __future__ import annotations

from typing import Any

from .errors import Endless
from .kernels import codes
from .kernels.patience import A_JOB, PATIENCE


class Stops:
    """Knows the code for which the clock stopped last (`kernels/codes.py`)."""

    _code = codes.FINISHED

    def note(self, code: int) -> None:
        """Take over why the run stopped from a kernel that advanced the state itself."""
        self._code = code

    def expect_end(self) -> None:
        """Endless if the run stopped since it has no end (kernels/patience.py)."""
        if self._code != codes.ENDLESS:
            return
        s: Any = self.plain.record  # type: ignore[attr-defined]
        jobs, why = int(s["next_arrival"] - s["done"]), ""
        if s["mtbf_s"] > 0.0:
            why = f"; machines fail every {s['mtbf_s']:g} s on average (mtbf_s), faster than these jobs get on"
        elif "region_mtbf_s" in s.dtype.names and s["region_mtbf_s"] > 0.0:
            why = f"; regions fail every {s['region_mtbf_s']:g} s on average (region_mtbf_s)"
        raise Endless(
            f"the run has no end: {jobs} jobs are there at {s['now_s']:g} s, and in the last "
            f"{2 * (PATIENCE + A_JOB * jobs):,} events none has finished and no work got done{why}"
        )

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
