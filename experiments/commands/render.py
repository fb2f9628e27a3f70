"""`clustergym render`: pictures of a run: a png of one moment; a gif, an mp4, a page or a chart of the whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...simulator.base.errors import InputError
from ..console import terminal
from ..console.terminal import BadArgument, arguments, expect_writable, print_json, print_lines, progress, written_whole
from . import options as opt
from .options import Env, Format, Json, Oversize, Quiet, Seed, TrustPy, TrustZip, chosen_policies, open_setting, option

if TYPE_CHECKING:
    import numpy as np

    from ...simulator.engine.simulator import Simulator
    from ..settings.evaluation_setting import Setting

DEFAULT_SIZE = "960x640"
POINTS_BETWEEN_REPORTS = 256
CHARTS = ("svg", "pdf")
Size = tuple[int, int]  # width and height, pixels
_OUT = "Ends in .png (one moment), .gif, .mp4, .html, or .svg, .pdf (which job held what when, as charts)."
To = Annotated[Path, option("--out", "FILE", _OUT)]
Options = Annotated[
    list[str] | None, option("--set", "KEY=VALUE...", "An option of the simulated cluster; several, or repeated.")
]


def render(
    env: Env,
    policy: Annotated[str, option("--policy", "NAME", "Policy with parameters.")],
    file: To,
    workload: Annotated[str | None, option("--workload", "NAME|PATH", "Generator with parameters, or a trace.")] = None,
    topology: Annotated[str | None, option("--topology", "NAME|PATH", "Preset with parameters, or a file.")] = None,
    network: Annotated[str | None, option("--network", "NAME", "Network model: none, penalty:table=...")] = None,
    format: Format = None,
    oversize: Oversize = "error",
    set_: Options = None,
    seed: Seed = 0,
    frames: Annotated[
        int, option("--frames", None, "At most so many frames, evenly among decision points.", min=1, max=1000)
    ] = 200,
    fps: Annotated[float, option("--fps", None, "Frames a second.", min=0.1, max=60.0)] = 10.0,
    at: Annotated[
        float | None, option("--at", "SECONDS", "png: when, by the run's clock; default: the longest queue.")
    ] = None,
    size: Annotated[str, option("--size", "WIDTHxHEIGHT", "Pixels.")] = DEFAULT_SIZE,
    trust_sb3_zip: TrustZip = False,
    trust_py: TrustPy = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Play a policy once and draw the cluster, its queue and its jobs."""
    with terminal.warnings_on_one_line(quiet):
        with arguments():
            kind = _kind_of(file)
        _expect_fitting(kind, at, size)
        pixels = _size(size)
        words = (workload, topology, network)
        setting = _described(env, words, tuple(set_ or ()), format=format, oversize=oversize, assume=True)
        if len(chosen_policies([policy], setting.environment, setting.config.semantics.describe())) > 1:
            raise BadArgument(f"--policy {policy!r}: expected one policy")
        open_setting(setting, seed)
        expect_writable(file, "--out")
        _expect_writer(kind)
        take = _ReplayableRun(setting, policy, seed)
        if kind in CHARTS:
            metrics, facts = _write_charts(take, kind, file, quiet)
        elif kind == "png":
            course = _watch(take, quiet)
            metrics, facts = course.metrics, _write_moment(take, course, at, pixels, file)
        else:
            course = _watch(take, quiet)
            metrics, facts = course.metrics, _write_film(take, course, kind, frames, fps, pixels, file, quiet)
    if json:
        names = {"policy": policy, "seed": seed, "environment": setting.environment, "out": str(file), "kind": kind}
        print_json({**names, **facts, "metrics": metrics})
    elif not quiet:
        print_lines(f"{file}: {facts['sentence']}")


def _described(env: str, words: tuple[str | None, ...], assignments: tuple[str, ...], **how: Any) -> Setting:
    setting = opt.described_setting(env, *words, assignments=assignments, **how)
    if setting.window is not None or setting.by is not None:
        raise BadArgument("--set: window= and by= are of metrics, not of pictures; leave them out")
    return setting


def _kind_of(file: Path) -> str:
    from ...envs.rendering.film import SUFFIXES

    kinds = (*(suffix[1:] for suffix in SUFFIXES), *CHARTS)
    kind = file.suffix.lower()[1:]
    if kind not in kinds:
        raise InputError(
            f"{file}: the ending {file.suffix!r} is no kind of picture; expected one of .{', .'.join(kinds)}"
        )
    return kind


def _expect_fitting(kind: str, at: float | None, size: str) -> None:
    if at is not None and (kind != "png" or not math.isfinite(at)):
        raise BadArgument(f"--at {at:g}: expected seconds, and an --out that ends in .png")
    if kind in CHARTS and size != DEFAULT_SIZE:
        raise BadArgument(f"--size {size}: charts have a size of their own; leave it out")


def _expect_writer(kind: str) -> None:
    if kind in CHARTS:
        from ..charts.chart_files import expect_installed

        expect_installed([kind])
    else:
        from ...envs.rendering.film import expect_writer

        expect_writer(kind)


@dataclass(frozen=True)
class _ReplayableRun:
    """A run that can be played again and again, and is the same each time."""

    setting: Setting
    policy: str
    seed: int

    def play(self) -> Iterator[Simulator]:
        """The simulator at each decision point after the decisions, and at the end of the run."""
        from ...policies import make_for, playing
        from ..playing.evaluation import simulator_of
        from ..settings.evaluation_setting import workload_of

        policy = make_for(self.policy, self.setting.environment)
        simulator = simulator_of(self.setting.config, policy)
        workload = workload_of(self.setting, self.seed if self.setting.is_drawn else 0)
        simulator.reset(policy.workload_for(workload), self.seed)
        decider = policy.decider(simulator)
        while not simulator.ended:
            if decider is None:
                simulator.schedule()
            else:
                with playing(policy, self.seed):
                    for decision in simulator.asked(decider):
                        simulator.apply(decision)
            yield simulator
            simulator.advance()
        yield simulator


@dataclass(frozen=True)
class _RunOutline:
    """The decision points of a run, the busiest of them, and its end."""

    times_s: list[float]
    busiest: int  # the decision point with the longest queue
    longest_queue: int
    metrics: dict[str, float]


def _watch(take: _ReplayableRun, quiet: bool) -> _RunOutline:
    times_s: list[float] = []
    busiest, longest = 0, -1
    with progress("playing", 1.0, quiet) as show:
        for number, simulator in enumerate(take.play()):
            s = simulator.state
            times_s.append(float(s.now_s))
            if (queue := int(s.waiting + s.held)) > longest:
                busiest, longest = number, queue
            if number % POINTS_BETWEEN_REPORTS == 0:
                show(float(s.done) / float(s.n_jobs))
        return _RunOutline(times_s, busiest, longest, simulator.metrics())


def _write_charts(take: _ReplayableRun, kind: str, file: Path, quiet: bool) -> tuple[dict[str, float], dict[str, Any]]:
    """The Gantt chart, use and queue, one under the other; returns metrics and the facts to print."""
    from ..charts.chart_files import content_of
    from ..playing.evaluation import play
    from ..report.pictures import of_run

    with progress("playing", 1.0, quiet) as show:
        run = play(take.setting, take.policy, take.seed, record=True, progress=show)
    with written_whole(file) as draft:
        draft.write_bytes(content_of(of_run(run), kind))
    return run.metrics, {"sentence": f"{take.policy}, which job held what when, seed {take.seed}", "frames": 1}


def _write_moment(
    take: _ReplayableRun, course: _RunOutline, at: float | None, size: tuple[int, int], file: Path
) -> dict[str, Any]:
    """The picture at a time, or at the longest queue; returns the facts to print."""
    from bisect import bisect_right

    from ...envs.registration import drawn_as
    from ...envs.rendering.film import save_png
    from ...envs.rendering.scenes.seen import Seen

    number = course.busiest if at is None else max(0, bisect_right(course.times_s, at) - 1)
    simulator = next(simulator for i, simulator in enumerate(take.play()) if i == number)
    with written_whole(file) as draft:
        save_png(drawn_as(take.setting.environment)(simulator, size, Seen(take.policy)), draft)
    s = simulator.state
    queue = int(s.waiting + s.held)
    why = "the longest queue of the run" if at is None else f"the decision point at or before {at:.15g} s"
    if at is not None and at < course.times_s[0]:
        why = f"the first decision point, after {at:.15g} s"
    sentence = f"{take.policy} at {s.now_s:,.1f} s, {why}: {queue:,} waiting, {int(s.running):,} running"
    return {"sentence": sentence, "time_s": float(s.now_s), "waiting": queue, "running": int(s.running), "frames": 1}


def _write_film(
    take: _ReplayableRun, course: _RunOutline, kind: str, frames: int, fps: float, size: Size, file: Path, quiet: bool
) -> dict[str, Any]:
    """Frames evenly among the decision points, the first and the last included; returns the facts to print."""
    from ...envs.rendering import film
    from ...envs.rendering.drawing.picture_words import clock

    last = len(course.times_s) - 1
    count = min(frames, last + 1)
    chosen = [round(i * last / (count - 1)) for i in range(count)] if count > 1 else [last]
    with progress("drawing", count, quiet) as show, written_whole(file) as draft:
        pictures = _pictures(take, chosen, size, show)
        if kind == "gif":
            film.save_gif(pictures, draft, fps)
        elif kind == "mp4":
            film.save_mp4(pictures, draft, fps)
        else:
            captions = [f"{clock(course.times_s[at])}, decision point {at + 1:,} of {last + 1:,}" for at in chosen]
            title = f"{take.policy} on {take.setting.topology}"
            film.save_html(pictures, draft, fps, title=title, captions=captions, facts=_facts(take, course))
    of = f"{count:,} frames of {last + 1:,} decision points" if count <= last else f"all {count:,} decision points"
    return {"sentence": f"{take.policy}, {of}, {count / fps:.1f} s at {fps:g} a second", "frames": count}


def _pictures(
    take: _ReplayableRun, chosen: list[int], size: Size, show: Callable[[float], None]
) -> Iterator[np.ndarray]:
    from ...envs.registration import drawn_as
    from ...envs.rendering.scenes.seen import Seen

    draw, wanted, seen = drawn_as(take.setting.environment), set(chosen), Seen(take.policy)
    drawn = 0
    for number, simulator in enumerate(take.play()):
        if number in wanted:
            drawn += 1
            show(drawn)
            yield draw(simulator, size, seen)


def _facts(take: _ReplayableRun, course: _RunOutline) -> list[tuple[str, str]]:
    setting = take.setting
    places = [(name, getattr(setting, name)) for name in ("workload", "topology", "network")]
    words = [("policy", take.policy), *places, ("seed", str(take.seed))]
    words += [("longest queue", f"{course.longest_queue:,}")]
    values = {name: value for name, value in course.metrics.items() if math.isfinite(value)}
    return words + [(name, f"{value:,.0f}" if value >= 1000 else f"{value:.4g}") for name, value in values.items()]


def _size(text: str) -> tuple[int, int]:
    from ...envs.rendering.drawing.pen import LARGEST, SMALLEST

    sides = text.lower().split("x")
    if len(sides) == 2 and all(side.isascii() and side.isdigit() and len(side) < 6 for side in sides):
        width, height = int(sides[0]), int(sides[1])
        if SMALLEST[0] <= width <= LARGEST[0] and SMALLEST[1] <= height <= LARGEST[1]:
            return width, height
    limits = "{}x{} to {}x{}".format(*SMALLEST, *LARGEST)
    raise BadArgument(f"--size {text!r}: expected WIDTHxHEIGHT in pixels, {limits}, such as {DEFAULT_SIZE}")
