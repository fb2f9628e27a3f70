"""The past of a run in its pictures: the policy, its mean JCT so far, and the last link that jobs shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ....simulator.base.codes import DONE
from ..drawing import palette
from ..drawing.pen import Pen
from ..drawing.picture_words import cut, span

if TYPE_CHECKING:
    from .link_scene import Crossing

RUN_LINE = 58  # units from the top
LONGEST_NAME = 24  # letters, so that the mean after it has room


@dataclass
class Seen:
    """Memory of the frames of one run, handed to each of them."""

    policy: str = ""  # its name; empty: unknown
    crossing: Crossing | None = None  # the worst link of the last frame with shared links; then its jobs, the clock
    labels: Mapping[int, str] = field(default_factory=dict)
    at_s: float = 0.0


def mean_jct_s(s: np.void) -> float:
    """Mean JCT of the finished jobs of a run's record, seconds; nan: none is."""
    n = int(s["n_jobs"])
    done = s["status"][:n] == DONE
    return float((s["finish_s"][:n][done] - s["arrival_s"][:n][done]).mean()) if done.any() else float("nan")


def run_words(jct_s: float, seen: Seen | None) -> str:
    """`policy greedy · mean JCT so far 1.2 h`; `jct_s` as from `mean_jct_s`."""
    jct = "no job finished yet" if np.isnan(jct_s) else f"mean JCT so far {span(jct_s)}"
    policy = cut(seen.policy, LONGEST_NAME) if seen is not None else ""
    return f"policy {policy} · {jct}" if policy else jct


def done_words(done: int, jobs: int, jct_s: float) -> str:
    """`18/128 done, mean JCT 12 min`, for a line of text."""
    return f"{done}/{jobs} done" + ("" if np.isnan(jct_s) else f", mean JCT {span(jct_s)}")


def draw_run(pen: Pen, jct_s: float, seen: Seen | None, within: int) -> None:
    """The line of `run_words` under the clock, at most `within` pixels wide."""
    pen.text((pen.unit(14) + 2, pen.unit(RUN_LINE)), run_words(jct_s, seen), 11, palette.INK, within=within)
