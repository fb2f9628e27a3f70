"""What the docstrings of the face say, against its signatures: Args for every parameter, Returns for every result."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import clustergym

GIVEN = ("ClusterView", "GroupView")  # users make none: simulators give them


def faces() -> dict[str, Any]:
    """The classes and functions that users import from `clustergym` and its rooms' faces, by name."""
    found = {name: getattr(clustergym, name) for name in clustergym._LAZY}
    found |= {f"policies.{name}": getattr(clustergym.policies, name) for name in ("make", "list")}
    return {name: thing for name, thing in found.items() if inspect.isclass(thing) or inspect.isfunction(thing)}


def section(text: str, *titles: str) -> str:
    """The lines of a docstring below one of these titles, down to the next title."""
    found = re.search(rf"^ *(?:{'|'.join(titles)}):\n(.*?)(?=^\S[\w ]*:\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def told(text: str) -> set[str]:
    """Names that the Args, or Attributes, of a docstring tell about; `a (n,), b (m,): both ...` tells about two."""
    lines = re.sub(r" ?\([^()\n:]*\)", "", section(text, "Args", "Attributes"))
    entries = re.findall(r"(?:^ +|; )([\w*, ]+):", lines, re.MULTILINE)
    return {name.strip(" *`") for entry in entries for name in entry.split(",")}


def expected(thing: Any) -> list[str]:
    """The parameters that a caller may give."""
    if inspect.isclass(thing) and (issubclass(thing, BaseException) or thing.__name__ in GIVEN):
        return []
    if dataclasses.is_dataclass(thing):
        return [each.name for each in dataclasses.fields(thing) if each.init and not each.name.startswith("_")]
    names = inspect.signature(thing).parameters
    return [name for name in names if name not in ("self", "args", "kwargs") and not name.startswith("_")]


def gives(function: Any) -> bool:
    """Whether a function's annotation promises a result."""
    return inspect.signature(function).return_annotation not in (None, "None", inspect.Signature.empty)


def lacking() -> list[str]:
    """What the docstrings of the face do not say, a line each."""
    wrong = []
    for name, thing in faces().items():
        text = inspect.getdoc(thing) or ""
        wrong += [f"{name}: Args says nothing of {each}" for each in expected(thing) if each not in told(text)]
        if inspect.isfunction(thing) and gives(thing) and not section(text, "Returns", "Yields"):
            wrong.append(f"{name}: no Returns")
    return wrong
