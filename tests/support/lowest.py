"""Whether the lower bounds of pyproject.toml are versions that can be installed together: `make test-lowest` asks.

`python tests/support/lowest.py FILE`: FILE is what `uv pip compile --resolution lowest-direct` found. A bound below it
is one that no user can have, so that nothing is known of it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("agents", "report", "render", "video", "tune", "dev")


def bounds() -> dict[str, Version]:
    """Name -> the highest lower bound that is given for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    given = [*project["dependencies"], *(one for name in EXTRAS for one in project["optional-dependencies"][name])]
    found: dict[str, Version] = {}
    for one in map(Requirement, given):
        for rule in one.specifier:
            name = canonicalize_name(one.name)
            found[name] = max(found.get(name, Version("0")), Version(rule.version))
    return found


def wrong(lowest: str) -> list[str]:
    """A sentence for every bound that is not the version in `lowest`."""
    pinned = dict(re.findall(r"^([\w.-]+)==([^\s+;]+)", lowest, re.M))
    held = {canonicalize_name(name): Version(version) for name, version in pinned.items()}
    return [
        f"pyproject.toml: {name}>={bound}: the lowest that goes with the others is {held[name]}"
        for name, bound in bounds().items()
        if held[name] != bound
    ]


if __name__ == "__main__":
    if sentences := wrong(Path(sys.argv[1]).read_text()):
        sys.exit("\n".join(sentences))
