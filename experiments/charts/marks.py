"""The looks of charts: a colour and line a policy, and one table of the looks of shapes.

The page's style sheet and the strokes of files come from this table. A shape has classes, as `line p3 agent`: its kind,
its policy or job, and more. Colours are variables: those of the theme, `c` and `dash` of a policy, `j` of a job. Agents
are strong and thick, heuristics quieter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# (on white, on dark)
THEME = {
    **{"page": ("#f4f6f9", "#11151b"), "card": ("#fff", "#1a2029"), "ink": ("#1a222d", "#e7ebf0")},
    **{"faint": ("#5c6773", "#9aa5b2"), "edge": ("#d8dee6", "#2e3743"), "grid": ("#e6eaf0", "#29313c")},
    **{"accent": ("#2f6fb5", "#7ab0ea"), "best": ("#e3f1e6", "#173524"), "best-ink": ("#14622c", "#8fe0a8")},
}
AGENT_COLOURS = (("#cf2e1a", "#ff7a5c"), ("#0a58ca", "#5ba8ff"), ("#a3149a", "#ff6ade"), ("#007a5a", "#2fd6a3"))
HEURISTIC_COLOURS = (
    *(("#4a79a8", "#82b4e3"), ("#b8860b", "#e0bd55"), ("#2e8b7d", "#5cc9ba"), ("#8a67ab", "#bd9de3")),
    *(("#b5657f", "#eb9db5"), ("#6b8e3a", "#a9cf74"), ("#9a6f50", "#cfa587"), ("#7b838c", "#a8b1ba")),
)
JOB_COLOURS = (
    *(("#4477aa", "#6f9fd0"), ("#ee8844", "#e38a4f"), ("#66c2d9", "#57b3cb"), ("#aa3377", "#c9609b")),
    *(("#c9b63c", "#bda93a"), ("#229988", "#3aa796"), ("#e8798a", "#d9707f"), ("#5b4ba8", "#8a7bd0")),
)
DASHES = ("none", "7 3", "2 3", "9 3 2 3")


@dataclass(frozen=True)
class Style:
    """The look of a policy: a class of the page's style sheet, its colours and its line."""

    name: str
    light: str
    dark: str
    dash: str
    is_agent: bool

    @property
    def classes(self) -> str:
        """For the `class` attribute of a shape."""
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


SHADES = 8  # classes s1 .. s8: how much of a row is in use

# What has all classes of a key has its properties; later keys win.
MARKS: Mapping[str, Mapping[str, str]] = {
    "grid": {"stroke": "var(--grid)", "stroke-width": "1px"},
    "one": {"stroke": "var(--faint)", "stroke-width": "1px", "stroke-dasharray": "4 3"},
    "line": {
        **{"stroke": "var(--c)", "stroke-width": "1.4px"},
        **{"stroke-dasharray": "var(--dash)", "stroke-linejoin": "round"},
    },
    "line.agent": {"stroke-width": "2.8px"},
    "band": {"fill": "var(--c)", "fill-opacity": ".13"},
    "band.agent": {"fill-opacity": ".2"},
    "dot": {"stroke": "var(--c)", "stroke-width": "5px", "stroke-linecap": "round"},
    "dot.agent": {"stroke-width": "7px"},
    "bar": {"fill": "var(--c)"},
    "error": {"stroke": "var(--ink)", "stroke-width": "1.2px"},
    "thin": {"stroke": "var(--c)", "stroke-width": ".6px", "opacity": ".4", "stroke-linejoin": "round"},
    "line.level": {"stroke-width": "1.2px"},
    "seed": {"stroke": "var(--c)", "stroke-width": "4px", "stroke-linecap": "round", "opacity": ".28"},
    "interval": {"stroke": "var(--c)", "stroke-width": "2.2px", "stroke-linecap": "round"},
    "interval.agent": {"stroke-width": "4px"},
    "mean": {"stroke": "var(--c)", "stroke-width": "9px", "stroke-linecap": "round"},
    "mean.agent": {"stroke-width": "12px"},
    "whisker": {"stroke": "var(--c)", "stroke-width": "1.3px"},
    "box": {"fill": "var(--c)", "fill-opacity": ".22", "stroke": "var(--c)", "stroke-width": "1.2px"},
    "box.agent": {"fill-opacity": ".5"},
    "median": {"stroke": "var(--c)", "stroke-width": "2.6px"},
    "job": {"stroke": "var(--card)", "stroke-width": ".7px", "fill": "var(--j)"},
    "job.same": {"opacity": ".22"},
    "parting": {"stroke": "var(--ink)", "stroke-width": "1.3px", "stroke-dasharray": "5 3"},
    "machines": {"stroke": "var(--faint)", "stroke-width": ".8px", "opacity": ".7"},
    "shade": {"fill": "var(--accent)"},
    **{f"s{level}": {"fill-opacity": f"{level / SHADES:g}"} for level in range(1, SHADES + 1)},
}
DEFAULTS: Mapping[str, str] = {"fill": "none"}


def css() -> str:
    """The rules of all marks."""
    return "\n".join(f".{key} {{ {_declared(rule)} }}" for key, rule in MARKS.items())


def theme_css(dark: bool) -> str:
    """The theme's colours as declarations of variables."""
    return " ".join(f"--{name}: {pair[dark]};" for name, pair in THEME.items())


def properties(classes: str, variables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Properties of a shape with these classes, on white; `variables`: class -> variable -> value, of policies."""
    own = set(classes.split())
    known = {name: pair[0] for name, pair in THEME.items()}
    known |= {f"j{number}": light for number, (light, _) in enumerate(JOB_COLOURS)}
    for name in own:
        known |= variables.get(name, {})
        if name in known:  # the hue of a job
            known["j"] = known[name]
    found = dict(DEFAULTS)
    for key, rule in MARKS.items():
        if set(key.split(".")) <= own:
            found |= rule
    return {name: re.sub(r"var\(--(\w+)\)", lambda match: known[match[1]], value) for name, value in found.items()}


def variables_of(styles: Mapping[str, Style]) -> dict[str, dict[str, str]]:
    """The variables of policies, by class."""
    return {style.name: {"c": style.light, "dash": style.dash} for style in styles.values()}


def _declared(rule: Mapping[str, str]) -> str:
    return " ".join(f"{name}: {value};" for name, value in rule.items())
