"""Times and names as a picture writes them."""

from __future__ import annotations

import math

from ....simulator.base.durations import duration


def clock(time_s: float) -> str:
    """A point in time: `03:25:10`, from one day on `12 d 03:25:10`."""
    whole = math.floor(time_s)
    days, rest = divmod(whole, 86_400)
    text = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days:,} d {text}" if days else text


def span(seconds: float) -> str:
    """A duration for narrow columns: `12 s`, `3.1 min`, `2.4 h`, `12 d`; `-` if infinite."""
    return duration(seconds, digits=2)


def _number(value: float) -> str:
    return f"{value:.1f}" if 0.05 <= value < 9.95 else f"{value:.0f}"


def amount(size: float) -> str:
    """Bytes in one short unit, powers of 1,000: `640 MB`, `1.2 TB`."""
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if size < 999.5 or unit == "PB":
            break
        size /= 1000.0
    return f"{_number(size)} {unit}"


def cut(text: str, length: int) -> str:
    """`text` in at most `length` characters; what is cut off ends in `..`."""
    return text if len(text) <= length else text[: max(0, length - 2)] + ".."[: max(0, length)]
