"""The bytes of a record that are in use, to clear, copy and save; most of a record is spare room."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from .field_axes import Axis, Field, declared, held, shape_of

ALL = ""


class Block(NamedTuple):
    """Bytes that follow each other: `count` arrays of `length` entries of `size` bytes.

    `of`: as many entries as these are in use, ALL: all; and `more`.
    """

    first: int
    count: int  # type: ignore[assignment]  # what a tuple has under the name is not asked for
    size: int
    length: int
    of: str = ALL
    more: int = 0


def blocks_of(fields: Collection[Field], dtype: np.dtype, of: Collection[str], holds: Collection[str]) -> list[Block]:
    """The blocks of a record `dtype`, with arrays `of` a partly used number; `holds` picks fields (field_axes.py)."""
    blocks: list[Block] = []
    for field, kind, first in declared(fields, dtype):
        if held(field) not in holds:
            continue
        block = _block(shape_of(field), kind, first, of)
        joined = _joined(blocks[-1], block) if blocks else None
        if joined is not None:
            blocks[-1] = joined
        else:
            blocks.append(block)
    return blocks


def _block(shape: tuple[Axis | int, ...], kind: np.dtype, first: int, of: Collection[str]) -> Block:
    for axis in (shape[0], shape[-1]) if shape else ():
        if not isinstance(axis, Axis) or axis.of not in of or axis.length == 1:
            continue
        if axis is shape[0] and axis.layers == 1:
            return Block(first, 1, kind.itemsize // axis.size, axis.size, axis.of, axis.more)
        count = axis.layers if axis is shape[0] else kind.itemsize // kind.base.itemsize // axis.size
        return Block(first, count, kind.base.itemsize, axis.size // axis.layers, axis.of, axis.more)
    return Block(first, 1, kind.itemsize, 1)


def _joined(one: Block, other: Block) -> Block | None:
    alike = (one.of, one.length, one.more) == (other.of, other.length, other.more)
    if not alike or one.first + one.count * one.size * one.length != other.first:
        return None
    if one.of == ALL:
        return one._replace(size=one.size + other.size)
    return one._replace(count=one.count + other.count) if one.size == other.size else None


def used_parts(data: np.ndarray, blocks: Iterable[Block], used: Mapping[str, int]) -> list[np.ndarray]:
    """Views of the bytes in use of one record, `data`, uint8: the first `used[something]` entries of its arrays."""
    parts = []
    for first, count, size, length, of, more in blocks:
        part = data[first : first + count * size * length]
        entries = length if of == ALL else min(length, used[of] + more)
        parts.append(part if entries == length else part.reshape(count, -1)[:, : size * entries])
    return parts
