"""Names for the columns of an agent that was trained before they had any."""

from __future__ import annotations

import json
from pathlib import Path

from ...envs.columns import names_of
from ...simulator.base.errors import InputError
from ..files.folders import replaced_whole
from ..files.saved import DESCRIPTION, WEIGHTS, content_of
from .windows import Window


def name_columns(folder: str | Path) -> dict[str, list[str]]:
    """Write the names of an agent's columns into its description; its weights stay.

    Returns:
        Their names, by part of the observation.

    Raises:
        InputError: the agent has named columns, or others than its environment has now.
    """
    folder = Path(folder)
    path, content = folder / DESCRIPTION, content_of(folder)
    if "columns" in content:
        raise InputError(f"{path}: its columns have names already")
    window = Window(content.get("environment", ""), content.get("env_kwargs", {}), str(path))
    own, tables = window.interface.tables.to_json(), content.get("policy_kwargs", {}).get("tables")
    # Its `hold_column` is what its network was trained with, whatever stands there.
    if not isinstance(tables, dict) or {**tables, "hold_column": own["hold_column"]} != own:
        raise InputError(f"{path}: it was trained on other columns than its environment has now; train it anew")
    content["columns"] = names_of(window.interface.columns)
    text, weights = json.dumps(content, indent=2, ensure_ascii=False), (folder / WEIGHTS).read_bytes()
    with replaced_whole(folder) as draft:
        (draft / WEIGHTS).write_bytes(weights)
        (draft / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
    named: dict[str, list[str]] = content["columns"]
    return named
