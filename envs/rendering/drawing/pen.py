"""Boxes and text on a picture, through Pillow, with matplotlib's font."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....simulator.base.errors import InputError, MissingExtra
from .palette import CARD, CARD_EDGE, FAINT, INK, PAGE, TRACK, WHITE, Colour

if TYPE_CHECKING:
    from PIL.Image import Image

SIZE = (960, 640)
SMALLEST, LARGEST = (640, 420), (7680, 4320)
INSTALL = 'install it with: pip install "clustergym[render]"'


class Pillow(NamedTuple):
    """The modules of Pillow used here."""

    Image: Any
    ImageDraw: Any
    ImageFont: Any


@lru_cache(maxsize=1)
def pillow() -> Pillow:
    """Pillow; MissingExtra without it."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise MissingExtra(f"drawing needs Pillow; {INSTALL}") from None
    return Pillow(Image, ImageDraw, ImageFont)


@lru_cache(maxsize=64)
def _font(size: int, bold: bool) -> Any:
    found = importlib.util.find_spec("matplotlib")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(f"drawing needs matplotlib; {INSTALL}")
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    path = Path(found.submodule_search_locations[0]) / "mpl-data" / "fonts" / "ttf" / name
    fonts = pillow().ImageFont
    return fonts.truetype(str(path), size, layout_engine=fonts.Layout.BASIC)


@lru_cache(maxsize=16_384)
def _length(text: str, size: int, bold: bool) -> int:
    return int(np.ceil(_font(size, bold).getlength(text)))


def checked_size(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height of a picture; InputError if they are out of range."""
    width, height = (int(side) for side in size)
    if not (SMALLEST[0] <= width <= LARGEST[0] and SMALLEST[1] <= height <= LARGEST[1]):
        raise InputError(f"size {width}x{height}: expected {SMALLEST[0]}x{SMALLEST[1]} to {LARGEST[0]}x{LARGEST[1]}")
    return width, height


def scale_of(size: tuple[int, int]) -> float:
    """Pixels a unit in a picture of this size; `SIZE` has 1."""
    return min(size[0] / SIZE[0], size[1] / SIZE[1])


def new_image(size: tuple[int, int], colour: Colour) -> Image:
    """An image of one colour."""
    return pillow().Image.new("RGB", size, colour)


class Pen:
    """Draws on `image`. Places and boxes are pixels; sizes of text and radii are units of `scale` pixels."""

    def __init__(self, image: Image, scale: float) -> None:
        self.image = image
        self.scale = scale
        self._draw = pillow().ImageDraw.Draw(image)

    @classmethod
    def over(cls, pixels: np.ndarray, scale: float) -> Pen:
        """A pen on a copy of uint8 (height, width, 3)."""
        return cls(pillow().Image.fromarray(pixels), scale)

    @classmethod
    def page(cls, size: tuple[int, int]) -> Pen:
        """A pen on an empty picture of this size."""
        return cls(new_image(size, PAGE), scale_of(size))

    def pixels(self) -> np.ndarray:
        """The picture, uint8 (height, width, 3), a fresh array."""
        return np.array(self.image, np.uint8)

    def unit(self, units: float) -> int:
        """Pixels of so many units, at least 1."""
        return max(1, round(units * self.scale))

    def text(
        self,
        place: tuple[int, int],
        words: str,
        size: float,
        colour: Colour,
        *,
        bold: bool = False,
        anchor: str = "la",
        within: int | None = None,
    ) -> int:
        """Write; returns the pixel column where the text ends.

        `place` is the anchor's, two letters as Pillow has them ("la" left top, "rm" right middle). Text longer than
        `within` pixels loses its end, or is left out.
        """
        pixels = self._font_pixels(size)
        if within is not None and _length(words, pixels, bold) > within:
            words = _shortened(words, pixels, bold, within)
        if words:
            self._draw.text(place, words, fill=colour, font=_font(pixels, bold), anchor=anchor)
        return place[0] + _length(words, pixels, bold)

    def fitting_size(self, words: str, size: float, room: int, *, bold: bool = False) -> float:
        """The size in units, at most `size`, at which the text takes no more than `room` pixels."""
        wanted = self._font_pixels(size)
        return min(1.0, room / max(1, _length(words, wanted, bold))) * wanted / self.scale

    def _font_pixels(self, size: float) -> int:
        return max(6, int(size * self.scale + 1e-9))

    def box(self, box: tuple[int, int, int, int], colour: Colour) -> None:
        """Fill a box; nothing if it is empty."""
        if box[2] > box[0] and box[3] > box[1]:
            self._draw.rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=colour)

    def frame(self, box: tuple[int, int, int, int], colour: Colour) -> None:
        """Draw the outline of a box."""
        self._draw.rectangle((box[0], box[1], box[2] - 1, box[3] - 1), outline=colour)

    def card(self, box: tuple[int, int, int, int], colour: Colour, edge: Colour | None, radius: float) -> None:
        """A box with round corners."""
        corners = (box[0], box[1], box[2] - 1, box[3] - 1)
        self._draw.rounded_rectangle(corners, self.unit(radius), fill=colour, outline=edge)

    def panels(self, *boxes: tuple[int, int, int, int]) -> None:
        """Empty cards."""
        for box in boxes:
            self.card(box, CARD, CARD_EDGE, 8)

    def title(self, box: tuple[int, int, int, int], words: str, note: str = "") -> None:
        """The title of a panel, and a note at its other end."""
        self.text((box[0] + self.unit(12), box[1] + self.unit(9)), words, 12, INK, bold=True)
        self.text((box[2] - self.unit(12), box[1] + self.unit(11)), note, 9, FAINT, anchor="ra")

    def swatches(self, x: int, y: int, side: int, entries: Iterable[tuple[str, Colour]]) -> int:
        """Squares with the meaning of their colours, from the left top `x`, `y` on; returns the x of the next one."""
        for words, colour in entries:
            self.box((x, y, x + side, y + side), colour)
            middle = (x + side + self.unit(5), y + side // 2)
            x = self.text(middle, words, 10, FAINT, anchor="lm") + self.unit(14)
        return x

    def shades(self, box: tuple[int, int, int, int], steps: int, colour_of: Callable[[float], Colour]) -> None:
        """A bar of the colours from 0 to 1."""
        ends = [box[0] + (box[2] - box[0]) * step // steps for step in range(steps + 1)]
        for step in range(steps):
            self.box((ends[step], box[1], ends[step + 1], box[3]), colour_of(step / (steps - 1)))

    def line(self, start: tuple[int, int], end: tuple[int, int], colour: Colour, width: float) -> None:
        """A line; its width is in units."""
        self._draw.line((*start, *end), fill=colour, width=self.unit(width))

    def arrow(self, start: tuple[int, int], end: tuple[int, int], colour: Colour, width: float) -> None:
        """A line with a head at its end; its width is in units."""
        angle = math.atan2(end[1] - start[1], end[0] - start[0])
        long, half = (5.0 + 1.6 * width) * self.scale, (2.2 + 1.1 * width) * self.scale
        neck = end[0] - long * math.cos(angle), end[1] - long * math.sin(angle)
        sideways = half * math.sin(angle), half * math.cos(angle)
        self._draw.line((*start, *neck), fill=colour, width=self.unit(width))
        corners = [end, (neck[0] - sideways[0], neck[1] + sideways[1]), (neck[0] + sideways[0], neck[1] - sideways[1])]
        self._draw.polygon(corners, fill=colour)

    def tag(self, place: tuple[int, int], words: str, size: float, ink: Colour, ground: Colour) -> None:
        """Words in the middle of a box of their own."""
        half = _length(words, self._font_pixels(size), False) // 2 + self.unit(3)
        high = self.unit(0.7 * size)
        self.card((place[0] - half, place[1] - high, place[0] + half, place[1] + high), ground, None, 3)
        self.text(place, words, size, ink, anchor="mm")

    def arc(self, box: tuple[int, int, int, int], first: float, last: float, colour: Colour, width: int) -> None:
        """A part of the ring inside a box, `width` pixels wide; degrees clockwise from the top."""
        self._draw.arc((box[0], box[1], box[2] - 1, box[3] - 1), first - 90.0, last - 90.0, fill=colour, width=width)

    def cross(self, box: tuple[int, int, int, int], colour: Colour) -> None:
        """A diagonal cross in a box."""
        inset = max(2, (box[2] - box[0]) // 4)
        left, top, right, bottom = box[0] + inset, box[1] + inset, box[2] - 1 - inset, box[3] - 1 - inset
        width = max(1, (box[2] - box[0]) // 12)
        self._draw.line((left, top, right, bottom), fill=colour, width=width)
        self._draw.line((left, bottom, right, top), fill=colour, width=width)

    def fade(self, box: tuple[int, int, int, int], share: float) -> None:
        """Remove the colour of a box, and mix in `share` (0 to 1) of white."""
        grey = self.image.crop(box).convert("L").convert("RGB")
        white = new_image(grey.size, WHITE)
        self.image.paste(pillow().Image.blend(grey, white, share), box[:2])

    def upright(self, place: tuple[int, int], words: str, size: float, colour: Colour, ground: Colour) -> None:
        """Write from the bottom up, on a ground of one colour; `place`: the middle of the lower end."""
        pixels = self._font_pixels(size)
        long, high = _length(words, pixels, False) + 2, round(1.25 * pixels)
        strip = Pen(new_image((long, high), ground), self.scale)
        strip.text((1, high // 2), words, size, colour, anchor="lm")
        turned = strip.image.transpose(pillow().Image.Transpose.ROTATE_90)
        self.image.paste(turned, (place[0] - high // 2, place[1] - long))

    def bar(self, box: tuple[int, int, int, int], parts: Sequence[tuple[int, Colour]], whole: float) -> None:
        """A bar of consecutive parts, on a track of length `whole`; a part above 0 shows."""
        self.box(box, TRACK)
        left = box[0]
        for part, colour in parts:
            right = min(box[2], left + (max(1, round((box[2] - box[0]) * part / whole)) if part > 0 else 0))
            self.box((left, box[1], right, box[3]), colour)
            left = right


@lru_cache(maxsize=16_384)
def _shortened(words: str, size: int, bold: bool, within: int) -> str:
    while words and _length(words + "…", size, bold) > within:
        words = words[:-1]
    return words + "…" if words else ""
