"""How the shapes of charts look: one table, from which the page has its style sheet and files have their strokes.

A shape has classes, as `line p3 agent`: what it is, which policy's or job's it is, and what else is so. Colours are
variables: those of the theme, `c` and `dash` of a policy, `j` of a job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .colours import JOB_COLOURS, THEME, Style

SHADES = 8  # classes s1 .. s8: how much of a row is in use

# What has all classes of a key has its properties; later keys win.
MARKS: Mapping[str, Mapping[str, str]] = {
    "grid": {"stroke": "var(--grid)", "stroke-width": "1px"},
    "one": {"stroke": "var(--faint)", "stroke-width": "1px", "stroke-dasharray": "4 3"},
    "line": {
        "stroke": "var(--c)",
        "stroke-width": "1.4px",
        "stroke-dasharray": "var(--dash)",
        "stroke-linejoin": "round",
    },
    "line.agent": {"stroke-width": "2.8px"},
    "band": {"fill": "var(--c)", "fill-opacity": ".13"},
    "band.agent": {"fill-opacity": ".2"},
    "dot": {"stroke": "var(--c)", "stroke-width": "5px", "stroke-linecap": "round"},
    "dot.agent": {"stroke-width": "7px"},
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
    """What the marks say of a shape with these classes, variables resolved, on white.

    Args:
        classes: of the shape.
        variables: class -> variable -> value, of policies; see `variables_of`.
    """
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
