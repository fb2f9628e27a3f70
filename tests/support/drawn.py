"""How many examples a property is tried on: a third where every change is tested, all with `make test-slow`."""

from __future__ import annotations

import os

from hypothesis import settings

WHOLE = os.environ.get("CLUSTERGYM_EXAMPLES") == "all"
SHARE, LEAST = 3, 10


def calm(examples: int) -> settings:
    """So many examples or their third, but at least ten; the same ones in every run, however long they take."""
    return settings(
        max_examples=examples if WHOLE else min(examples, max(LEAST, examples // SHARE)),
        deadline=None,
        derandomize=True,
    )
