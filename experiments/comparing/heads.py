"""Policies under which jobs pass one that finds no room (`head=skip`): tables and legends name them."""

from __future__ import annotations

from collections.abc import Mapping

from ...policies import make_for
from ...policies.registry import POLICIES, parameters_of
from ...simulator.base.errors import InputError
from ..settings.evaluation_setting import Setting


def note_of_heads(words: Mapping[str, str], setting: Setting) -> str:
    """The sentence about those of some policies, name in tables -> word; "" without one.

    Only words of this package's orders count; no file that a word names is opened.
    """
    passing = [name for name, word in words.items() if _passes(word, setting)]
    return f"{', '.join(passing)}: jobs pass one that finds no room (head=skip)" if passing else ""


def _passes(word: str, setting: Setting) -> bool:
    name = word.partition(":")[0]
    if name not in POLICIES or "head" not in parameters_of(POLICIES[name].factory):
        return False
    try:
        rule = make_for(word, setting.environment).rule_under(setting.config.semantics)
    except InputError:  # a folder of an older version may hold words that are none now
        return False
    return rule is not None and rule.head == "skip"
