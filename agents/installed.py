"""The extra [agents]: a sentence, not a traceback, where it is missing."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from ..simulator.base.errors import MissingExtra

ALL = ("torch", "stable_baselines3", "sb3_contrib", "safetensors", "pydantic")
INSTALL = 'install it with: pip install "clustergym[agents]"'


def expect_installed(doing: str, modules: Sequence[str]) -> None:
    """MissingExtra if one of these modules cannot be imported; `doing`: the purpose."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing = str(error.name or module).partition(".")[0].replace("_", "-")
            raise MissingExtra(f"{doing} needs {missing}; {INSTALL}") from None
