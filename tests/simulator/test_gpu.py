"""Kernels stay fit for a GPU: the step of an environment compiles to PTX. No card is needed, and none runs anything."""

from __future__ import annotations

import importlib.util
import re
import time
from types import SimpleNamespace
from typing import Any

import gymnasium
import numba
import numpy as np
import pytest

import clustergym  # noqa: F401  # registers the environments

HOPPER = (9, 0)  # compute capability of an H100

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing compiles"),
    pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="needs the extra `gpu`: make test-gpu"),
]


def ptx_of(entry: Any, arguments: tuple[Any, ...], monkeypatch: Any) -> str:
    """A compiled function for arguments of these types, as a device function of an H100."""
    from numba import cuda
    from numba.cuda import dispatcher

    # Functions that kernels call ask the driver for the card, which is not there.
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=HOPPER))
    kinds = tuple(map(numba.typeof, arguments))
    ptx, _ = cuda.compile_ptx(entry.py_func, kinds, device=True, cc=HOPPER)
    return ptx


@pytest.mark.parametrize("name", ["Delay", "Sharing"])
def test_a_step_compiles_to_ptx_that_calls_nothing_outside(name, monkeypatch):
    env: Any = gymnasium.make(f"clustergym/{name}-v0").unwrapped
    env.draw(0, None)
    rows, began_s = env.stepper.rows, time.process_time()
    chosen, state = np.zeros(1, np.int64), (rows.records, rows.windows, rows.solvers, rows.references)
    written = rows.actions, rows.outcomes, rows.features, rows.masks
    ptx = ptx_of(env.stepper.kernel, (*state, chosen, *written), monkeypatch)
    assert ".target sm_90" in ptx and re.search(r"\.visible \.func .*step_rows", ptx)
    assert not re.search(r"\.extern \.func", ptx)
    print(f"{name}-v0: {len(ptx) / 1000:,.0f} kB of PTX in {time.process_time() - began_s:.0f} CPU s")
