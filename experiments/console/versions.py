"""Versions of the installed libraries that numbers depend on."""

from __future__ import annotations

import platform
from importlib import metadata

LIBRARIES = ("numpy", "numba")
LEARNING_LIBRARIES = ("torch", "stable-baselines3", "sb3-contrib")


def versions(*libraries: str) -> dict[str, str]:
    """Versions of clustergym, python, and those of `libraries` that are installed."""
    from ... import __version__

    found = {"clustergym": __version__, "python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
