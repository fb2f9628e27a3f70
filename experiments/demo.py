"""`make demo`: the main job from training to report.

It trains a small agent, plays it and every heuristic on the same unseen workloads, prints the table, and writes
TensorBoard logs, pictures and one HTML page, all by commands of `clustergym`, which are printed before they run.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import cli
from .console.terminal import out, say

if TYPE_CHECKING:
    from .playing.runs import Run

ENVIRONMENT = "Delay"
SEEDS = "0-9"
BASELINE = "greedy"
TIMESTEPS = 250_000
# 24,000 decisions of the baseline are cloned, and PPO goes on from there: some 80 s of a core.
BRIEFLY = "evaluations=5 validation_seeds=5 imitation_steps=24000"
DEFAULT_FOLDER = Path("demo-results")
TRAINING, EVALUATION, PAGE = "training", "evaluation", "report.html"
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def demo(
    to: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where agent, pictures and logs go.")
    ] = DEFAULT_FOLDER,
    timesteps: Annotated[int, typer.Option("--timesteps", metavar="N", help="Decisions to train for.")] = TIMESTEPS,
) -> None:
    """Train a small agent, evaluate it beside every heuristic, and write tables, logs, pictures and a report."""
    from ..policies import list as policies_of
    from ..policies import shipped

    began_s = time.monotonic()
    training, evaluation, page = to / TRAINING, to / EVALUATION, to / PAGE
    for folder in (training, evaluation):
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier demo
    to.mkdir(parents=True, exist_ok=True)
    learning = ("--timesteps", str(timesteps), "--set", BRIEFLY)
    heuristics = policies_of(ENVIRONMENT)
    with _beside("evaluate", *_played(heuristics), "--logdir", str(evaluation)):
        _run("train", ENVIRONMENT, *learning, "--logdir", str(training))
    agent = f"maskable-ppo:{training / 'best'}"
    own = [str(one["name"]) for one in shipped() if one["name"] == f"zoo:{ENVIRONMENT}"]
    _run("evaluate", *_played([agent, *heuristics, *own]), "--logdir", str(evaluation))
    _run("compare", str(evaluation), str(training), "--out", str(page))
    film = to / "winner.gif"
    winner = _print_winner(evaluation, agent)
    if cli.run(["render", ENVIRONMENT, "--policy", winner, "--out", str(film), "--quiet"]):
        say("the animation was left out; everything else is there")
    out().print(
        f"\nIn {to}/ ({time.monotonic() - began_s:.0f} s):\n"
        f"  report       {page}: open it in a browser\n"
        f"  pictures     {evaluation}/: jct-cdf.svg, gantt-POLICY.svg and more; {film}: the winner at work\n"
        f"  results      {evaluation / 'results.parquet'}: one row a policy and seed\n"
        f"  agent        {training / 'best'}\n"
        f"  TensorBoard  {_tensorboard()} --logdir {training}\n"
        f"\nNext, on a trace of yours: clustergym evaluate {ENVIRONMENT} --workload YOUR.csv --network none",
        markup=False,
        soft_wrap=True,
    )


def _played(words: list[str]) -> list[str]:
    return [ENVIRONMENT, "--policies", " ".join(words), "--seeds", SEEDS, "--baseline", BASELINE]


@contextmanager
def _beside(*arguments: str) -> Iterator[None]:
    """Run a command on another core, silently; the next `evaluate` does the work that it leaves."""
    command = [sys.executable, "-m", "clustergym", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            yield
        except BaseException:
            running.terminate()
            raise


def _run(*arguments: str) -> None:
    out().print(f"\n$ clustergym {shlex.join(arguments)}", style="bold", markup=False, soft_wrap=True)
    sys.stdout.flush()
    if status := cli.run(arguments):
        raise typer.Exit(status)


def _print_winner(evaluation: Path, agent: str) -> str:
    """Print the policy with the lowest mean JCT and the rank of the fresh agent; returns the winner's word."""
    from .storing import store

    means = _means(list(store.read(evaluation, timelines=False).runs))
    ranked = sorted(means, key=lambda word: means[word])
    winner = ranked[0]
    heuristic = next(word for word in ranked if ":" not in word)
    lines = [
        f"{winner} wins: mean JCT {means[winner]:,.0f} s over the seeds {SEEDS}; the best heuristic, {heuristic}, has "
        f"{means[heuristic]:,.0f} s, and {ranked[-1]}, the last, {means[ranked[-1]]:,.0f} s."
    ]
    if winner != agent:
        lines.append(
            f"The agent just trained is number {ranked.index(agent) + 1} of {len(ranked)} with {means[agent]:,.0f} s; "
            "it had seconds where the shipped one had minutes."
        )
    out().print("\n" + "\n".join(lines), style="bold", markup=False, soft_wrap=True)
    return winner


def _means(runs: list[Run]) -> dict[str, float]:
    from .comparing.intervals import by_policy

    return {policy: row["jct_mean"].mean for policy, row in by_policy(runs).items()}


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
