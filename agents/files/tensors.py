"""Named tensors in safetensors files: numbers only, so that opening one can run nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ...simulator.base.errors import InputError
from ...simulator.files.regular_files import expect_plain_file

MOST_BYTES = 2**30
PICKLE, ZIP = b"\x80", b"PK"
HEADER = b"{"  # of a safetensors file, after eight bytes with its length, which may begin like a pickle


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors by name, those that share memory separately; InputError if the file cannot be written."""
    whole = torch.contiguous_format
    alone = {name: tensor.detach().cpu().clone(memory_format=whole) for name, tensor in tensors.items()}
    try:
        save_file(alone, path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: it cannot be written ({error})") from None


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a file by name, in memory of their own; InputError: none, too large, or not whole."""
    expect_plain_file(path)
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            begins = file.read(9)
    except OSError as error:
        raise InputError(f"{path}: it cannot be read: {error.strerror}") from None
    if size > MOST_BYTES:
        raise InputError(f"{path}: {size:,} bytes; expected at most {MOST_BYTES:,}")
    for start, kind in ((PICKLE, "a pickle, which could run code when opened"), (ZIP, "a zip file")):
        if begins.startswith(start) and begins[8:] != HEADER:
            raise InputError(f"{path}: this is {kind}; expected a safetensors file, and nothing was opened")
    try:
        return {name: tensor.clone() for name, tensor in load_file(path).items()}
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise InputError(f"{path}: expected a safetensors file, but it is not whole or not one ({error})") from None
