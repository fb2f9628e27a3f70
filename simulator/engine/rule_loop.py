"""The loop that plays compiled rules, which is above, in policies/loop/loop_calls.py; the root package installs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from ..base.errors import InputError

if TYPE_CHECKING:
    from ..rules.rule import Rule
    from ..rules.semantics import Semantics


class Loop(Protocol):
    """Functions of an array of records and a row, named after methods of `Simulator` unless described.

    Attributes:
        advance: to the next decision point; why it stopped (`base.codes`).
        run: the same with passes of the rule, until so many events have happened.
        schedule: one pass of the rule; how many jobs it has started.
        start: a job starts on the gang that lies in the record.
        adopt: the jobs of a run get into the order of another rule.
    """

    advance: Callable[[np.recarray, int], int]
    run: Callable[[np.recarray, int, int], int]
    schedule: Callable[[np.recarray, int], int]
    start: Callable[[np.recarray, int, int], None]
    adopt: Callable[[np.recarray, int], None]
    hold_for_tier: Callable[[np.recarray, int, int, float, int], None]
    serve_holds: Callable[[np.recarray, int], None]
    timer_end_s: Callable[[np.recarray, int, int, int], float]
    timer_left_s: Callable[[np.recarray, int, int, int], float]


FEWEST_EVENTS, MOST_EVENTS = 500, 200_000
_place: list[str] = []


def install_loop(module: str) -> None:
    """From now on the loop is this module; it is imported at the first use."""
    _place[:] = [module]


@cache
def rule_loop() -> Loop:
    """The loop; InputError if there is none."""
    if not _place:
        raise InputError("nothing that plays a simulator is installed; import clustergym")
    return cast(Loop, import_module(_place[0]))


def parts_of_a_run() -> Iterator[int]:
    """How many events `run` is asked for at a time: few at first, so that no call lasts before the loop is compiled."""
    events = FEWEST_EVENTS
    while True:
        yield events
        events = min(2 * events, MOST_EVENTS)


def hand_over(states: np.recarray, s: np.void, rule: Rule, skewed: np.ndarray | None, semantics: Semantics) -> None:
    """Hand the cluster over to `rule`, now; `states`: an array of the one record `s`; the rest as for `write_rule`."""
    from ..events.initialise import write_rule  # it brings the compiler; importing the project imports this

    write_rule(s, rule, skewed, semantics)
    s["class_count"][:] = 0
    s["waiting"] = 0
    for level in (s["window_low"], s["window_mid"], s["window_top"]):
        level[:] = 0
    rule_loop().adopt(states, 0)
