"""Hooks of mkdocs: the notebooks of docs/examples as pages, the sources of the API reference, tables from the code.

Columns of observations are documented beside the kernels that write them, metrics in
simulator/engine/metric_registry.py; `<!-- columns: delay -->` and `<!-- metrics: prices -->` in a page become tables.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
NOTEBOOKS = {"first_hour": "start"}  # notebook of examples/ -> folder of its page, beside examples/
# Name of the tuple in observation.py -> key of the observation, in the order of the observation.
TABLES = {"CLUSTER": "cluster", "QUEUE": "queue", "RUNNING": "running", "REGIONS": "regions"}
TABLES |= {"GROUP": "groups", "CANDIDATES": "candidates"}
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
    """The head of an environment's observation.py and its columns, each table to be unfolded."""
    module = importlib.import_module(f"clustergym.envs.{environment}.observation")
    head = (inspect.getdoc(module) or "").partition("\n\n")[2]
    tables = [_folded(key, getattr(module, name)) for name, key in TABLES.items() if hasattr(module, name)]
    return "\n\n".join([head, *tables])


def _folded(key: str, texts: tuple[str, ...]) -> str:
    shown = [text.replace("|", "\\|").replace("*", "\\*") for text in texts]
    rows = [f"    | {number} | {text} |" for number, text in enumerate(shown)]
    return "\n".join([f'??? info "`{key}`: {len(texts)} columns"', "", "    | column | |", "    | --- | --- |", *rows])


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
