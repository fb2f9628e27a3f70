"""Which bytes of a record are in use, where most of it is room that nobody uses: what to clear, to copy, to save."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

WHOLE = 0


class Block(NamedTuple):
    """Bytes that follow each other: `count` arrays of `length` entries of `size` bytes; WHOLE: so many bytes."""

    first: int
    count: int  # type: ignore[assignment]  # what a tuple has under the name is not asked for
    size: int
    length: int


def blocks_of(
    dtype: np.dtype, lengths: Collection[int], without: Collection[str], rows: Mapping[str, int] | None = None
) -> list[Block]:
    """The blocks of a record.

    Args:
        dtype: of the record.
        lengths: of the arrays of which a part may be in use: those whose first axis is as long, or else the last.
        without: fields to leave out.
        rows: of one-dimensional fields, how many arrays one behind the other each is meant as.
    """
    blocks: list[Block] = []
    for name in dtype.names or ():
        field, offset = dtype.fields[name][:2]  # type: ignore[index]
        if name in without:
            continue
        block = Block(offset, 1, field.itemsize, WHOLE)
        if name in (rows or {}):
            count = (rows or {})[name]
            block = Block(offset, count, field.base.itemsize, field.shape[0] // count)
        elif field.shape and field.shape[0] in lengths:
            block = Block(offset, 1, field.itemsize // field.shape[0], field.shape[0])
        elif field.shape and field.shape[-1] in lengths:
            length = field.shape[-1]
            block = Block(offset, field.itemsize // field.base.itemsize // length, field.base.itemsize, length)
        joined = _joined(blocks[-1], block) if blocks else None
        if joined is not None:
            blocks[-1] = joined
        else:
            blocks.append(block)
    return blocks


def _joined(one: Block, other: Block) -> Block | None:
    """Both as one, if the second follows the first and is like it."""
    if one.length != other.length or one.first + one.count * one.size * max(1, one.length) != other.first:
        return None
    if one.length == WHOLE:
        return one._replace(size=one.size + other.size)
    return one._replace(count=one.count + other.count) if one.size == other.size else None


def used_parts(data: np.ndarray, blocks: Iterable[Block], used: Mapping[int, int]) -> list[np.ndarray]:
    """Views of the bytes in use: of arrays of a length the first `used[length]` entries.

    Args:
        data: uint8, of one record.
    """
    parts = []
    for first, count, size, length in blocks:
        part = data[first : first + count * size * max(length, 1)]
        parts.append(part if length == WHOLE else part.reshape(count, -1)[:, : size * used[length]])
    return parts
