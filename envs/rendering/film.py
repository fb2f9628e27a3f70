"""Frames as files: a picture (png), an animation (gif), a video (mp4), and a page that plays them (html)."""

from __future__ import annotations

import base64
import io
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...simulator.base.errors import InputError, MissingExtra
from .drawing.palette import THEME
from .drawing.pen import pillow

SUFFIXES = (".png", ".gif", ".mp4", ".html")
LAST_FRAME_S = 2.0  # pause of an animation before it repeats
PALETTE = 255  # of 256: a gif needs one for unchanged pixels


def kind_of(path: str | Path) -> str:
    """`png`, `gif`, `mp4` or `html`, by a path's ending; InputError for any other."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: the ending {suffix!r} is no kind of picture; expected one of {', '.join(SUFFIXES)}")
    return suffix[1:]


def expect_writer(kind: str) -> None:
    """MissingExtra if the writer of this kind of file is not installed."""
    if kind == "mp4":  # before Pillow, which the extra [video] has too
        try:
            import imageio_ffmpeg  # noqa: F401
        except ImportError:
            install = 'install it with: pip install "clustergym[video]"'
            raise MissingExtra(f"writing mp4 needs imageio-ffmpeg; {install}") from None
    pillow()


def save_png(frame: np.ndarray, path: str | Path) -> None:
    """Write one frame, uint8 (height, width, 3)."""
    pillow().Image.fromarray(frame).save(path, format="png", optimize=True)


def save_gif(frames: Iterable[np.ndarray], path: str | Path, fps: float) -> None:
    """Write an endless animation; at least one frame, all of one size. Times are rounded to 10 ms, as in the format."""
    images = _with_few_colours(frames)
    first = next(images)
    pause = max(20, round(100 / fps) * 10)
    rest = list(images)
    durations = [*[pause] * len(rest), max(pause, round(1000 * LAST_FRAME_S))]
    first.save(path, format="gif", save_all=True, append_images=rest, duration=durations, loop=0, optimize=True)


def save_mp4(frames: Iterable[np.ndarray], path: str | Path, fps: float) -> None:
    """Write a video (H.264); at least one frame, all of one size. A side of odd length loses its last pixel."""
    import imageio_ffmpeg

    each = iter(frames)
    first = _even(next(each))
    options = ["-crf", "20", "-preset", "medium", "-movflags", "+faststart", "-f", "mp4"]
    writer = imageio_ffmpeg.write_frames(
        str(path), (first.shape[1], first.shape[0]), fps=fps, codec="libx264", quality=None, macro_block_size=2,
        pix_fmt_out="yuv420p", output_params=options, ffmpeg_log_level="error",
    )  # fmt: skip
    writer.send(None)
    try:
        for frame in itertools.chain([first], each):
            writer.send(np.ascontiguousarray(_even(frame)))
    finally:
        writer.close()


def save_html(
    frames: Iterable[np.ndarray],
    path: str | Path,
    fps: float,
    *,
    title: str,
    captions: Sequence[str],
    facts: Sequence[tuple[str, str]] = (),
) -> None:
    """Write one page that plays frames of one size, a caption each, over a table of `facts`, and loads nothing else."""
    import jinja2

    pictures = []
    for image in _with_few_colours(frames):
        data = io.BytesIO()
        image.save(data, format="png")
        pictures.append(base64.b64encode(data.getvalue()).decode())
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(PAGE)
    texts = {"title": title, "captions": list(captions), "facts": facts}
    page = template.render(fps=fps, pictures=pictures, size=image.size, **texts)
    Path(path).write_text(page, encoding="utf-8")


def _even(frame: np.ndarray) -> np.ndarray:
    return frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2]


def _with_few_colours(frames: Iterable[np.ndarray]) -> Any:
    """Frames as images of one palette: the theme's colours exactly, then the most frequent of the first frames."""
    each = iter(frames)
    start = list(itertools.islice(each, 12))
    if not start:
        raise InputError("no frames: there is nothing to write")
    module = pillow().Image
    palette = module.new("P", (1, 1))
    palette.putpalette(_palette(start).tobytes())
    for frame in itertools.chain(start, each):
        yield module.fromarray(frame).quantize(palette=palette, dither=module.Dither.NONE)


def _palette(frames: Sequence[np.ndarray]) -> np.ndarray:
    weights = np.array([65_536, 256, 1])
    theme = np.array(THEME) @ weights
    codes = np.concatenate([(frame.reshape(-1, 3) @ weights.astype(np.int32)) for frame in frames])
    colours, counts = np.unique(codes, return_counts=True)
    common = colours[np.argsort(-counts, kind="stable")]
    chosen = list(dict.fromkeys([*theme.tolist(), *common.tolist()]))[:PALETTE]
    chosen += [chosen[-1]] * (PALETTE - len(chosen))
    return np.array([(code >> 16, code >> 8 & 255, code & 255) for code in chosen], np.uint8)


# A template of jinja2; no script, style or picture comes from elsewhere.
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; }
@media (prefers-color-scheme: dark) { img { filter: brightness(.9); } }
body { max-width: {{ size[0] }}px; margin: 0 auto; padding: 16px; font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 19px; }
img, input { display: block; width: 100%; height: auto; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 4px 26px; }
dl div { display: flex; justify-content: space-between; gap: 12px; }
dd { margin: 0; text-align: right; overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<img id="picture" alt="The cluster at one moment" width="{{ size[0] }}" height="{{ size[1] }}">
<input id="place" type="range" min="0" max="{{ pictures | length - 1 }}" value="0" aria-label="Frame">
<p><button id="play" type="button">Play</button> <output id="caption"></output></p>
<dl>{% for name, value in facts %}<div><dt>{{ name }}</dt><dd>{{ value }}</dd></div>{% endfor %}</dl>
<script>
"use strict";
const pictures = {{ pictures | tojson }};
const captions = {{ captions | tojson }};
const [picture, place, play, caption] = ["picture", "place", "play", "caption"].map(id => document.getElementById(id));
let timer = null;
function show(number) {
  place.value = number;
  picture.src = "data:image/png;base64," + pictures[number];
  caption.textContent = captions[number] + "  (frame " + (number + 1) + " of " + pictures.length + ")";
}
function pause() { clearInterval(timer); timer = null; play.textContent = "Play"; }
function next() { if (+place.value === pictures.length - 1) pause(); else show(+place.value + 1); }
function start() {
  if (+place.value === pictures.length - 1) show(0);
  play.textContent = "Pause";
  timer = setInterval(next, 1000 / {{ fps }});
}
play.addEventListener("click", () => timer === null ? start() : pause());
place.addEventListener("input", () => { pause(); show(+place.value); });
show(0);
</script>
</body>
</html>
"""
