"""Where things lie in the repository that the tests belong to, and the real traces beside it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of the repository, which is the package
SUPPORT = ROOT / "tests" / "support"
DATA = ROOT / "tests" / "data"
WORKLOADS = DATA / "workloads"
TRACES = ROOT.parent / "shared" / "traces"  # where they are: not in every checkout
