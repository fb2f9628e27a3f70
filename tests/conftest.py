"""What several rooms' tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """Folder of the real traces, beside the repository; tests that ask for it are skipped without it."""
    folder = REPOSITORY.parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("../shared/traces is not here: real traces are tested where it is")
    return folder
