"""Kernels of a test's own, anew: whatever an earlier run has left compiled counts for nothing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from clustergym.simulator.compiler import jit
from clustergym.simulator.compiler.code_files import Store


def anew(name: str, monkeypatch: Any, folder: Path) -> ModuleType:
    """The module of this name, executed once more, with its compiled code in an empty folder."""
    monkeypatch.setattr(jit, "_store", lambda: Store(lambda: folder))
    spec = importlib.util.spec_from_file_location(f"{name}_anew", sys.modules[name].__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
