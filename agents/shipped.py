"""The agents that come with the package, one an environment, in `agents/zoo/<environment>/`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..envs.registration import ENVIRONMENTS

ZOO = Path(__file__).with_name("zoo")


def shipped() -> dict[str, Path]:
    """Their folders, by the short names of their environments."""
    names = [env_id.removeprefix("clustergym/").removesuffix("-v0") for env_id in ENVIRONMENTS]
    return {name: ZOO / name.lower() for name in names if (ZOO / name.lower() / "agent.json").is_file()}


def describe_shipped() -> list[dict[str, Any]]:
    """One dict an agent, as `policies.describe` has one a policy."""
    rows = []
    for name, folder in shipped().items():
        found = json.loads((folder / "agent.json").read_text(encoding="utf-8"))
        rows.append(
            {
                "name": f"zoo:{name}",
                "summary": f"the agent that comes with {name}: {found['algo']}, network {found['network']}, "
                f"{found['steps']:,} steps; needs the extra `agents`",
                "environments": [found["environment"]],
                "parameters": {},
            }
        )
    return rows
