"""What may be read as a file: what a pipe or a device gives is neither whole nor over at some time."""

from __future__ import annotations

import os
from pathlib import Path

from ..base.errors import InputError


def expect_plain_file(path: str | Path, expected: str = "a file") -> None:
    """Refuse what is there but is no plain file (nor a link to one); what is not there is whoever opens it's to refuse.

    Args:
        path: of the file.
        expected: what it should be, for the message.

    Raises:
        InputError: a folder, a pipe, a device, a socket.
    """
    if os.path.isdir(path):
        raise InputError(f"{path}: is a directory; expected {expected}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"{path}: is a pipe or a device, which can be read only once; expected {expected}")
