"""Colours: one a job, four tiers, and greys. All are (red, green, blue), 0 to 255.

The hues of jobs are those of Paul Tol's schemes "bright" and "vibrant" (SRON/EPS/TN/09-002), for any colour vision,
without the greens, which mean tiers here; five lightnesses of each. A tier also has its own height of band.
"""

from __future__ import annotations

Colour = tuple[int, int, int]


def _hex(code: str) -> Colour:
    return int(code[0:2], 16), int(code[2:4], 16), int(code[4:6], 16)


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """`one` with `share` (0 to 1) of `other` in it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


BLACK, WHITE = (0, 0, 0), (255, 255, 255)
HUES = tuple(map(_hex, ("4477aa", "ee7733", "66ccee", "aa3377", "ccbb44", "009988", "ee6677", "332288")))
SHADES = ((WHITE, 0.0), (WHITE, 0.45), (BLACK, 0.36), (WHITE, 0.24), (BLACK, 0.18))
JOB_COLOURS: tuple[Colour, ...] = tuple(mix(hue, other, share) for other, share in SHADES for hue in HUES)
TIER_COLOURS: tuple[Colour, ...] = tuple(map(_hex, ("1a7f45", "7cc36a", "f5a80b", "d1242f")))

PAGE = _hex("f3f5f8")
CARD = WHITE
CARD_EDGE = _hex("d9dfe7")
MACHINE = _hex("eef1f5")
GPU_FREE = _hex("dde3ea")
GPU_DOWN = _hex("3d444d")
GPU_CROSS = _hex("f08a8a")
INK = _hex("1c2430")
FAINT = _hex("66707d")
TRACK = _hex("e4e9ef")
USED = _hex("2f6fb5")
WAITED = (_hex("bcd6f2"), _hex("08306b"))
THEME = (
    *JOB_COLOURS, *TIER_COLOURS, PAGE, CARD, CARD_EDGE, MACHINE, GPU_FREE, GPU_DOWN, GPU_CROSS, INK, FAINT, TRACK, USED
)  # fmt: skip


def job_colour(job: int) -> Colour:
    """The colour of a job, by its index; the same in every frame. Neighbours in order of arrival differ in hue."""
    return JOB_COLOURS[job % len(JOB_COLOURS)]


def ink_on(colour: Colour) -> Colour:
    """Black or white, whichever reads better on `colour` (luma of ITU-R BT.601)."""
    red, green, blue = colour
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else WHITE


def waited_colour(waited_s: float) -> Colour:
    """Light for a new job, dark after a day, logarithmic in between."""
    from math import log10

    share = log10(max(waited_s, 60.0) / 60.0) / log10(86_400.0 / 60.0)
    return mix(*WAITED, min(1.0, share))
