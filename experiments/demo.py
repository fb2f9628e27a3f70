"""`make demo`: every policy of Delay on the same generated workloads: a table, pictures, TensorBoard scalars."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import cli
from .terminal import out, say

if TYPE_CHECKING:
    from .evaluate import Run

ENVIRONMENT = "Delay"
SEEDS = (0, 1, 2, 3, 4)
DEFAULT_FOLDER = Path("demo-results")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def demo(
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where pictures and logs go.")] = DEFAULT_FOLDER,
) -> None:
    """Evaluate every policy of Delay, print the table, and write pictures and TensorBoard scalars."""
    from .commands import evaluate as command

    began_s = time.monotonic()
    runs = command.evaluate_to(to, ENVIRONMENT, SEEDS)
    best, worst = _winner(runs)
    pictures = sorted(path.name for path in to.glob("*.png"))
    film = _film(best[0], to / f"{ENVIRONMENT.lower()}-{best[0]}.gif")
    console = out()
    console.print(
        f"\n{best[0]} has the shortest mean JCT: {best[1]:,.0f} s over {len(SEEDS)} seeds; "
        f"{worst[0]}, the longest, needs {worst[1] / best[1]:.2f} times as long.",
        style="bold",
    )
    console.print(
        f"\nIn {to}/ ({time.monotonic() - began_s:.0f} s):\n"
        f"  pictures     {', '.join([*pictures, *film])}\n"
        "  results      results.parquet: one row a policy and seed\n"
        f"  TensorBoard  {_tensorboard()} --logdir {to}\n"
        f"\nNext, on a trace of yours: clustergym evaluate {ENVIRONMENT} --workload YOUR.csv --network none",
        markup=False,
        soft_wrap=True,
    )


def _winner(runs: Sequence[Run]) -> tuple[tuple[str, float], tuple[str, float]]:
    """(policy, mean JCT in seconds) of the best and of the worst."""
    from .estimates import by_policy

    means = {policy: row["jct_mean"].mean for policy, row in by_policy(runs).items()}
    ranked = sorted(means.items(), key=lambda item: item[1])
    return ranked[0], ranked[-1]


def _film(policy: str, path: Path) -> list[str]:
    """Draw a run of `policy` as an animation; the names of what was written."""
    status = cli.run(["render", ENVIRONMENT, "--policy", policy, "--out", str(path), "--quiet"])
    if status:
        say("the animation was left out; everything else is there")
    return [path.name] if path.exists() else []


def _tensorboard() -> str:
    """The command of this Python's TensorBoard, which need not be on the path."""
    beside = Path(sys.executable).with_name("tensorboard")
    if not beside.exists():
        return "tensorboard"
    try:
        return str(beside.relative_to(Path.cwd()))
    except ValueError:
        return str(beside)


def main() -> None:
    """Run the demo; a mistake is one sentence on stderr, as with `clustergym`."""
    sys.exit(cli.run_app(app, sys.argv[1:], "python -m clustergym.experiments.demo"))


if __name__ == "__main__":
    main()
