"""What asking for a policy imports: that policy, and none of the others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clustergym.policies import registry
from clustergym.tests.support.paths import ROOT

OF_OTHERS = ("policies.tetris", "policies.mast", "policies.cassini", "policies.harmony", "simulator.groups")


def loaded_by(code: str) -> list[str]:
    """The modules of the project that are loaded after some lines, without its name."""
    told = "import sys; print(*[name[11:] for name in sys.modules if name.startswith('clustergym.')])"
    command = [sys.executable, "-P", "-c", f"{code}\n{told}"]
    return subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout.split()


def test_making_dally_loads_dally_and_what_all_policies_are_made_with():
    """Before, 325 modules of the project, MILP and auction among them."""
    loaded = loaded_by("import clustergym; clustergym.policies.make('dally')")
    own = [name for name in loaded if name.startswith("policies.")]
    assert sorted(own) == [
        f"policies.{name}" for name in ("base", "dally", "joined_parameters", "own", "registry", "transports")
    ]
    assert [name for name in loaded if name.startswith((*OF_OTHERS, "simulator.table_placement"))] == []
    assert len(loaded) <= 120


def test_listing_the_policies_of_an_environment_loads_none():
    loaded = loaded_by("import clustergym; clustergym.policies.list('Geo')")
    assert [name for name in loaded if name.startswith(OF_OTHERS)] == []


@pytest.mark.parametrize("name", list(registry.POLICIES))
def test_every_entry_names_what_builds_its_policy(name):
    assert callable(registry.POLICIES[name].factory) and registry.make(name).name
