"""Hooks of mkdocs: the notebooks of docs/examples as pages, the sources of the API reference, tables from the code.

Columns of observations are documented in the columns.py of an environment, metrics in
simulator/engine/metric_registry.py; `<!-- columns: delay -->` and `<!-- metrics: prices -->` in a page become tables.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
NOTEBOOKS = {"first_hour": "start"}  # notebook of examples/ -> folder of its page, beside examples/
_SOURCES = tempfile.TemporaryDirectory(prefix="clustergym-docs-")  # removed when the build ends


@event_priority(100)  # before mkdocstrings looks
def on_config(config: Any) -> Any:
    """Copy the package alone for mkdocstrings, which would walk .venv too in the repository, for minutes."""
    folder = Path(_SOURCES.name)
    for room in ROOMS:
        ignored = shutil.ignore_patterns("__pycache__", "data", "zoo")
        shutil.copytree(ROOT / room, folder / "clustergym" / room, ignore=ignored, dirs_exist_ok=True)
    shutil.copy(ROOT / "__init__.py", folder / "clustergym")
    config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [str(folder)]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add `start/first_hour.md` and the like; the notebook itself stays in examples/, to download."""
    for name, folder in NOTEBOOKS.items():
        source = Path(config["docs_dir"], "examples", f"{name}.ipynb")
        files.append(File.generated(config, f"{folder}/{name}.md", content=as_markdown(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Put tables of columns and of metrics where a page asks for them."""
    markdown = re.sub(r"<!-- columns: (\w+) -->", lambda found: columns(found[1]), markdown)
    return re.sub(r"<!-- metrics: (\w+) -->", lambda found: metrics(found[1]), markdown)


def metrics(section: str) -> str:
    """The table of a section of the metrics; `window`: their meaning in a window of time."""
    from clustergym.simulator.engine.metric_registry import SECTIONS

    rows = [f"| `{one.name}` | {one.unit} | {one.text} | {one.window} |" for one in SECTIONS[section]]
    return "\n".join(["| metric | unit | is | window |", "| --- | --- | --- | --- |", *rows])


def columns(environment: str) -> str:
    """The head of an environment's columns.py and its columns, each table to be unfolded."""
    from clustergym.agents.playing.windows import INTERFACES
    from clustergym.envs.columns import described

    tables = next(one.columns for name, one in INTERFACES.items() if _is_of(name, environment))
    module = importlib.import_module(f"clustergym.envs.{environment}.columns")
    head = (inspect.getdoc(module) or "").partition("\n\n")[2]
    return "\n\n".join([head, *(_folded(part, described(one)) for part, one in tables.items())])


def _is_of(env_id: str, environment: str) -> bool:
    return env_id.removeprefix("clustergym/").removesuffix("-v0").lower() == environment


def _folded(part: str, columns: Mapping[str, Any]) -> str:
    rows = []
    for number, (name, one) in enumerate(columns.items()):
        values = one.unit if one.unit == "0 or 1" else f"{one.unit}; {one.low:g} to {one.high:g}"
        text, values = (words.replace("|", "\\|").replace("*", "\\*") for words in (one.text, values))
        rows.append(f"    | {number} | `{name}` | {text} | {values} |")
    head = ["    | | column | is | unit, range |", "    | --- | --- | --- | --- |"]
    return "\n".join([f'??? info "`{part}`: {len(columns)} columns"', "", *head, *rows])


def as_markdown(notebook: Path) -> str:
    """A notebook's cells: text as it is, code in fences, results below."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [_shown(output) for output in cell.get("outputs", ())]
    head, *rest = [part for part in parts if part]
    return "\n\n".join([head, f"This page is [a notebook](../examples/{notebook.name}).", *rest]) + "\n"


def _shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![what the cell draws](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text") or data.get("text/plain") or ()).rstrip()
    return f"```text\n{text}\n```" if text else ""
