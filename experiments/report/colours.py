"""One colour and line a policy through the whole page: agents strong and thick, heuristics quieter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# (on white, on dark)
THEME = {
    "page": ("#f4f6f9", "#11151b"),
    "card": ("#fff", "#1a2029"),
    "ink": ("#1a222d", "#e7ebf0"),
    "faint": ("#5c6773", "#9aa5b2"),
    "edge": ("#d8dee6", "#2e3743"),
    "grid": ("#e6eaf0", "#29313c"),
    "accent": ("#2f6fb5", "#7ab0ea"),
    "best": ("#e3f1e6", "#173524"),
    "best-ink": ("#14622c", "#8fe0a8"),
}
AGENT_COLOURS = (("#cf2e1a", "#ff7a5c"), ("#0a58ca", "#5ba8ff"), ("#a3149a", "#ff6ade"), ("#007a5a", "#2fd6a3"))
HEURISTIC_COLOURS = (
    ("#4a79a8", "#82b4e3"),
    ("#b8860b", "#e0bd55"),
    ("#2e8b7d", "#5cc9ba"),
    ("#8a67ab", "#bd9de3"),
    ("#b5657f", "#eb9db5"),
    ("#6b8e3a", "#a9cf74"),
    ("#9a6f50", "#cfa587"),
    ("#7b838c", "#a8b1ba"),
)
JOB_COLOURS = (
    ("#4477aa", "#6f9fd0"),
    ("#ee8844", "#e38a4f"),
    ("#66c2d9", "#57b3cb"),
    ("#aa3377", "#c9609b"),
    ("#c9b63c", "#bda93a"),
    ("#229988", "#3aa796"),
    ("#e8798a", "#d9707f"),
    ("#5b4ba8", "#8a7bd0"),
)
DASHES = ("none", "7 3", "2 3", "9 3 2 3")


@dataclass(frozen=True)
class Style:
    """How a policy looks: a class of the page's style sheet, its colours and its line."""

    name: str
    light: str
    dark: str
    dash: str
    is_agent: bool

    @property
    def classes(self) -> str:
        """For the `class` attribute of what is drawn."""
        return f"{self.name} agent" if self.is_agent else self.name


def styles(agents: Sequence[str], heuristics: Sequence[str]) -> dict[str, Style]:
    """Label -> style; the first of each kind get the clearest."""
    found: dict[str, Style] = {}
    for labels, colours, is_agent in ((agents, AGENT_COLOURS, True), (heuristics, HEURISTIC_COLOURS, False)):
        for number, label in enumerate(dict.fromkeys(labels)):
            light, dark = colours[number % len(colours)]
            dash = DASHES[number // len(colours) % len(DASHES)]
            found[label] = Style(f"p{len(found)}", light, dark, dash, is_agent)
    return found
