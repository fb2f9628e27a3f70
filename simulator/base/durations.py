"""Durations as text, in the unit that a person would use: the one home for tables, messages, charts and pictures."""

from __future__ import annotations

import math

UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
FEWEST_DAYS = 3.0  # below, hours


def unit(span_s: float) -> tuple[float, str]:
    """Seconds and sign of the largest unit of which a span has one; of days three."""
    for unit_s, sign in UNITS:
        if span_s >= unit_s * (FEWEST_DAYS if sign == "d" else 1.0):
            return unit_s, sign
    return 1.0, "s"


def duration(seconds: float, digits: int = 3) -> str:
    """A duration in readable units: 5400 -> `1.5 h`; `-` for inf and nan; `digits=2`: one width, for narrow columns."""
    if not math.isfinite(seconds):
        return "-"
    unit_s, sign = unit(abs(seconds))
    value = seconds / unit_s
    if digits == 2:
        return f"{value:.1f} {sign}" if 0.05 <= abs(value) < 9.95 else f"{value:.0f} {sign}"
    return f"{value:,.0f} {sign}" if abs(value) >= 999.5 else f"{value:.3g} {sign}"
