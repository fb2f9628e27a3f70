"""The best trial against the defaults, on seeds that no trial has been played on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..comparing.intervals import FEWEST_TO_TELL, Comparison, against
from ..playing.evaluation import evaluate
from ..playing.executors import Executor
from ..playing.runs import Run
from ..settings.evaluation_setting import Setting
from .of_policy import direction_of

JUDGED = "judged"


@dataclass(frozen=True)
class Judged:
    """How the best trial does beside the defaults in one setting.

    Attributes:
        name: of the scenario; empty: there is one.
        runs: of both.
        comparison: its mean over that of the defaults, and the difference.
        metric: what is compared.
    """

    name: str
    runs: tuple[Run, ...]
    comparison: Comparison
    metric: str

    @property
    def verdict(self) -> str:
        """What the interval says: `better`, `worse`, `as good` (no difference to be told), or `one run`."""
        ratio = self.comparison.ratio
        if self.comparison.seeds < 2:
            return "one run"
        is_above = ratio.runs >= FEWEST_TO_TELL and not ratio.is_sure and ratio.low > 1.0
        if not (is_above or ratio.is_below(1.0)):
            return "as good"
        return "better" if is_above == (direction_of(self.metric) == "maximize") else "worse"


def judge(
    settings: Mapping[str, Setting],
    defaults: str,
    best: str,
    seeds: Sequence[int],
    *,
    metric: str = "jct_mean",
    processes: int = 1,
    executor: Executor | None = None,
    folder: Path | None = None,
    progress: Callable[[float], None] = lambda done: None,
) -> list[Judged]:
    """Play both on the same workloads.

    Args:
        settings: what to play on, by name; the name of a single one may be empty.
        defaults, best: words of policies.
        seeds: that nothing was tuned on.
        metric: what is compared.
        processes: how many to use.
        executor: who plays, in place of processes of this machine.
        folder: DIR, where the runs are kept as `clustergym evaluate --logdir` does.
        progress: told how many of all runs are done.
    """
    from ..storing.store import open_store, write_table

    found = []
    for number, (name, setting) in enumerate(settings.items()):

        def show(done: float, before: int = number * 2 * len(seeds)) -> None:
            progress(before + done)

        store = None
        if folder is not None:
            place = folder / JUDGED / name
            place.mkdir(parents=True, exist_ok=True)
            store = open_store(place, setting, [defaults, best])
        runs = evaluate(
            setting, [defaults, best], seeds, processes=processes, executor=executor, progress=show, store=store
        )
        if store is not None:
            write_table(store)
        found.append(Judged(name, tuple(runs), against(runs, defaults, metric)[best], metric))
    return found


def overall(judged: Sequence[Judged]) -> str:
    """One verdict of several: what they have in common, else `mixed`."""
    verdicts = {one.verdict for one in judged}
    return verdicts.pop() if len(verdicts) == 1 else "mixed"
