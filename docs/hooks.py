"""Hooks of mkdocs: the notebooks of docs/examples as pages, and the sources that the API reference is made of."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
NOTEBOOKS = ("first_hour",)
_SOURCES = tempfile.TemporaryDirectory(prefix="clustergym-docs-")  # removed when the build ends


@event_priority(100)  # before mkdocstrings looks
def on_config(config: Any) -> Any:
    """Copy the package alone for mkdocstrings: its root is the repository, and to walk .venv too takes minutes."""
    folder = Path(_SOURCES.name)
    for room in ROOMS:
        ignored = shutil.ignore_patterns("__pycache__", "data", "zoo")
        shutil.copytree(ROOT / room, folder / "clustergym" / room, ignore=ignored, dirs_exist_ok=True)
    shutil.copy(ROOT / "__init__.py", folder / "clustergym")
    config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [str(folder)]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add `first_hour.md` and the like; the notebook itself stays beside it, to download."""
    for name in NOTEBOOKS:
        source = Path(config["docs_dir"], "examples", f"{name}.ipynb")
        files.append(File.generated(config, f"{name}.md", content=as_markdown(source)))
    return files


def as_markdown(notebook: Path) -> str:
    """A notebook's cells: text as it is, code in fences, results below."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"]).replace("](../", "](")  # its links are those of its own folder
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [_shown(output) for output in cell.get("outputs", ())]
    head, *rest = [part for part in parts if part]
    return "\n\n".join([head, f"This page is [a notebook](examples/{notebook.name}).", *rest]) + "\n"


def _shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![what the cell draws](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text") or data.get("text/plain") or ()).rstrip()
    return f"```text\n{text}\n```" if text else ""
