"""What several rooms' tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from clustergym.tests.support.paths import TRACES

# Before scipy and torch are imported: on matrices of a few rows, as here, a second thread only waits, at full speed.
# L-BFGS-B takes 25 times the seconds with two, and tests run one on each core as it is.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# What is tested is the code that lasts, in processes that tests start too; what comes before: test_interpreting.py.
os.environ.setdefault("CLUSTERGYM_COMPILER", "own")

# A shell that runs the tests in its background has its programs ignore Ctrl-C, which some tests send to their own.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is drawn first may have to be compiled, on a busy machine: how long a draw takes says nothing about it.
settings.register_profile("kernels", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kernels")


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """Folder of the real traces, beside the repository; tests that ask for it are skipped without it."""
    if not TRACES.is_dir():
        pytest.skip("../shared/traces is not here: real traces are tested where it is")
    return TRACES


@pytest.fixture(scope="module")
def run_by_python() -> Iterator[None]:
    """Python runs what no cache holds, for a file about records of a size that no other has.

    Their kernels are those of all records; only putting them together for that size takes longer than the tests.
    """
    from clustergym.simulator.compiler import interpreting

    before = interpreting._patience_s[0]
    interpreting._patience_s[0] = float("inf")
    yield
    interpreting._patience_s[0] = before


@pytest.fixture(autouse=True)
def environment_variables() -> Iterator[None]:
    """A command that a test runs in this process tells its workers by them what is trusted: not the next test too."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})
