"""What the documentation shows: its fenced and indented blocks, and the commands of `clustergym` in them."""

from __future__ import annotations

import re
import shlex
import string
from dataclasses import dataclass
from pathlib import Path

from clustergym.tests.support.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELL = ("bash", "sh", "console")
NOT_RUN = "not run"  # <!-- not run: why --> stands above a block that needs what the page cannot show


def name_of(page: Path) -> str:
    """A page as others link to it: its path below docs/, or README.md."""
    return str(page.relative_to(ROOT)).removeprefix("docs/")


@dataclass(frozen=True)
class Block:
    """A block: its language (`` where none is said), its text, and whether it stands on its own."""

    language: str
    text: str
    runs: bool


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, and those that are indented by four, in order."""
    text = page.read_text(encoding="utf-8")
    fence = r"(?P<before>^<!--[^\n]*-->\n)?^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$"
    indented = r"(?<=\n\n)(?P<plain>(?:    \S[^\n]*\n)+)"
    found = []
    for match in re.finditer(f"{fence}|{indented}", text, re.DOTALL | re.MULTILINE):
        if match["plain"] is not None:
            found.append(Block("", re.sub(r"^    ", "", match["plain"], flags=re.MULTILINE), True))
        else:
            body = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
            found.append(Block(match["language"], body, NOT_RUN not in (match["before"] or "")))
    return found


def commands(page: Path) -> list[list[str]]:
    """The words of every command of `clustergym` in the blocks of a page, variables of the shell filled in."""
    found = []
    variables: dict[str, str] = {}
    for block in blocks(page):
        if block.language not in (*SHELL, ""):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            line = line.removeprefix("$ ")
            if match := re.fullmatch(r'([A-Z]+)="(.*)"', line):
                variables[match[1]] = match[2]
            if line.startswith("clustergym "):
                # as a shell does it: "$A" is one word, $R as many as it holds
                words = shlex.split(string.Template(line).safe_substitute(variables).partition(" > ")[0], comments=True)
                found.append(words[1:])
    return found


def mentions(page: Path) -> list[list[str]]:
    """The words of commands in running text, `clustergym evaluate Delay`, which may leave arguments out."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [shlex.split(found)[1:] for found in re.findall(r"`(clustergym [^`]*)`", text)]
