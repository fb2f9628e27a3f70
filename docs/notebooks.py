"""A hook of mkdocs: the notebooks of docs/examples as pages, what they printed and drew included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

NOTEBOOKS = ("first_hour",)


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
