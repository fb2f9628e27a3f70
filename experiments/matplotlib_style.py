"""What the pictures that matplotlib draws have in common: its extra, colours, lines and resolution."""

from __future__ import annotations

from ..simulator.base.errors import MissingExtra

# Okabe and Ito's colours, told apart by everyone; black is for text, yellow is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES = ("-", "--", ":", "-.")
DPI = 120


def expect_installed(what: str = "these pictures") -> None:
    """Raise MissingExtra, naming the command that helps, where matplotlib is not installed.

    Args:
        what: is drawn with it, in the plural.
    """
    try:
        import matplotlib.figure  # noqa: F401  # the package alone may be there in part
    except ImportError:
        raise MissingExtra(f'{what} need matplotlib; install it with: pip install "clustergym[report]"') from None
