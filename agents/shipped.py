"""The agents that come with the package, in `agents/zoo/`: one an environment, and one of Delay that may stop jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..envs.registration import ENVIRONMENTS
from ..simulator.base.names import short_name
from ..simulator.jobs.estimates import Estimates

ZOO = Path(__file__).with_name("zoo")


def shipped() -> dict[str, Path]:
    """Their folders, by the short names of their environments; `Delay-preemptive` is a second one of Delay."""
    found = {}
    for env_id in ENVIRONMENTS:
        name = short_name(env_id)
        for folder in sorted((*ZOO.glob(name.lower()), *ZOO.glob(f"{name.lower()}-*"))):
            if (folder / "agent.json").is_file():
                found[name + folder.name[len(name) :]] = folder
    return found


def describe_shipped() -> list[dict[str, Any]]:
    """One dict an agent, as `policies.describe` has one a policy."""
    rows = []
    for name, folder in shipped().items():
        found = json.loads((folder / "agent.json").read_text(encoding="utf-8"))
        summary = f"the agent that comes with {name}: {found['algo']}, network {found['network']}, "
        summary += f"{found['steps']:,} steps; needs the extra `agents`"
        knows = not Estimates.load(found["env_kwargs"].get("estimates", "exact")).hides
        row = {"name": f"zoo:{name}", "summary": summary, "environments": [found["environment"]], "parameters": {}}
        rows.append({**row, "knows_run_times": knows})
    return rows
