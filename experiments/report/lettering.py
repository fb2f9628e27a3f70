"""How wide words are, without a font at hand: the widths of DejaVu Sans, wider than what browsers have instead."""

from __future__ import annotations

# Hundredths of the size, of the characters 32 to 126; regular and bold.
_REGULAR = (
    *(32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34),
    *(84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68),
    *(99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41),
    *(52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84),
)
_BOLD = (
    *(35, 46, 52, 84, 70, 100, 87, 31, 46, 46, 52, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70, 70, 70, 40, 40),
    *(84, 84, 84, 58, 100, 77, 76, 73, 83, 68, 68, 82, 84, 37, 37, 77, 64, 100, 84, 85, 73, 85, 77, 72, 68, 81, 77),
    *(110, 77, 72, 73, 46, 37, 46, 84, 50, 50, 67, 72, 59, 72, 68, 44, 72, 71, 34, 34, 67, 34, 104, 71, 69, 72, 72),
    *(49, 60, 48, 71, 65, 92, 65, 65, 58, 71, 37, 71, 84),
)
_OTHER = 100  # of a character that is not among them


def width_of(text: str, size: float, bold: bool = False) -> float:
    """Pixels that a line takes at most."""
    table = _BOLD if bold else _REGULAR
    return size / 100.0 * sum(table[ord(one) - 32] if " " <= one <= "~" else _OTHER for one in text)


def shortened(text: str, room: float, size: float, bold: bool = False) -> str:
    """The text if it fits, else both its ends: words of policies differ in either."""
    if width_of(text, size, bold) <= room:
        return text
    for kept in range(len(text) - 1, 1, -1):
        head = (kept + 1) // 2
        found = f"{text[:head]}…{text[len(text) - (kept - head) :]}"
        if width_of(found, size, bold) <= room:
            return found
    return "…"


def wrapped(text: str, room: float, size: float, bold: bool = False) -> list[str]:
    """Lines of whole words; a word that is longer than a line is shortened."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, bold) <= room:
            lines[-1] = longer
        else:
            lines.append(shortened(word, room, size, bold))
    return lines
