"""On how many examples a claim is tried: a sixth where every change is tested, all with `make test-slow`."""

from __future__ import annotations

import os

from hypothesis import settings

WHOLE = os.environ.get("CLUSTERGYM_EXAMPLES") == "all"
SHARE, LEAST = 6, 10


def some(examples: int, least: int = LEAST) -> int:
    """So many examples or their sixth, but at least ten, or as many as told."""
    return examples if WHOLE else min(examples, max(least, examples // SHARE))


def calm(examples: int) -> settings:
    """`some` examples of a property; the same ones in every run, however long they take."""
    return settings(max_examples=some(examples), deadline=None, derandomize=True)
