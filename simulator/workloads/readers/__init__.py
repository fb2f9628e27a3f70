"""One module per trace format, and how a file's format is recognised from its first bytes.

A format is a module with `NAME`, `SUMMARY`, `recognises(head)`, `read(path, **options)` and perhaps `KNOWN`, the
columns that it knows, and a line in `_formats`. Of those that recognise a file the one that knows most of its columns
reads it. The annotated keyword parameters of `read` are the options of the word: `artist-sim:scale=gang,caps=batch`.
`bad_rows` says whether bad rows are left out, or the first is refused. InputErrors name file, line (or job), column and
value.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.errors import InputError
from ...base.names import arguments_of, choose, parse_name
from ...jobs.trace_head import Head, read_head
from ...jobs.workload import REQUIRED, Workload, WorkloadWarning, clip
from ..own_schema import own_format
from . import (
    acme_trace,
    artist_sim_trace,
    chronus_trace,
    gavel_trace,
    gpu_v2026_trace,
    helios_trace,
    muri_trace,
    openb_trace,
    pai_trace,
    philly_json_trace,
    philly_trace,
    pollux_trace,
    sacct_trace,
    simple_trace,
    spot_gpu_trace,
    supercloud_trace,
    swf_trace,
    tiresias_trace,
)


@dataclass(frozen=True)
class Format:
    """A trace format: its name, one line about it, its test on a file's head, its reader, the columns it knows."""

    name: str
    summary: str
    recognises: Callable[[Head], bool]
    read: Callable[..., Workload]
    known: Collection[str] = ()


def _formats() -> Iterator[Format]:
    yield Format("parquet", own_format.PARQUET_SUMMARY, own_format.recognises_parquet, own_format.read_parquet)
    for module in (
        artist_sim_trace,
        philly_json_trace,
        helios_trace,
        own_format,
        philly_trace,
        openb_trace,
        pai_trace,
        pollux_trace,
        chronus_trace,
        muri_trace,
        tiresias_trace,
        simple_trace,
        swf_trace,
        gavel_trace,
        acme_trace,
        spot_gpu_trace,
        gpu_v2026_trace,
        supercloud_trace,
        sacct_trace,
    ):
        known = getattr(module, "KNOWN", ())
        yield Format(module.NAME, module.SUMMARY, module.recognises, module.read, known)


PACKED = b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"  # gzip, zip, bzip2, xz, zstd
FORMATS: Mapping[str, Format] = {form.name: form for form in _formats()}


def recognise(path: str | Path) -> str:
    """The name of a trace file's format, by its beginning; InputError: unreadable, empty, unknown, or two fit alike."""
    head = read_head(path)
    fits = {form.name: len({*form.known} & {*head.columns}) for form in FORMATS.values() if form.recognises(head)}
    best = [name for name, known in fits.items() if known == max(fits.values())]
    if not best:
        raise _unrecognised(path, head)
    if len(best) > 1:
        raise InputError(f"{path}: it may be {' or '.join(best)} alike; say which with --format")
    return best[0]


def _unrecognised(path: str | Path, head: Head) -> InputError:
    if head.data.startswith(PACKED):
        return InputError(f"{path}: a packed file or a spreadsheet; unpack it, or save it as csv")
    if b"\0" in head.data:
        return InputError(f"{path}: a binary file, or text that is not UTF-8; expected csv, json or parquet")
    begins = f"it begins with {clip(head.text.strip()[:40])}"
    is_swf = head.text.lstrip().startswith(";")
    seen = f"its columns are {clip(', '.join(head.columns), 200)}" if len(head.columns) > 1 and not is_swf else begins
    others = {name.lower(): name for name in head.columns if name not in REQUIRED}
    near = {name: difflib.get_close_matches(name, others, 1) for name in REQUIRED if name not in head.columns}
    meant = [f"{name} for {clip(others[close[0]])}" for name, close in near.items() if close]
    hint = f"did you mean {', '.join(meant)}? " if meant and len(near) - len(meant) < 2 else ""
    if is_swf:
        hint = "after lines with ';' --format swf looks for 18 numbers between blanks; "
    return InputError(
        f"{path}: the format is not recognised ({seen}); {hint}one of your own begins with the line "
        f"{','.join(REQUIRED)}; commas, semicolons, tabs or bars separate columns; that of others is said with "
        f"--format, one of: {', '.join(FORMATS)}"
    )


def read_trace(path: str | Path, format: str | None = None) -> Workload:
    """Read a file in a `format` with its options, None: recognised; InputError names file, place, value."""
    name, options = parse_name(format if format is not None else recognise(path), "format")
    choose(name, FORMATS, "format")
    reader = _with_options_only(FORMATS[name].read, path)
    arguments = arguments_of(reader, options, f"format {name}")
    try:
        read = reader(**arguments)
    except InputError as error:
        if format is None or (other := _likely(path)) in ("", name):
            raise
        raise InputError(f"{error}; the file looks as --format {other} reads it") from None
    _warn_of_unheeded(path, read)
    return read


def _warn_of_unheeded(path: str | Path, read: Workload) -> None:
    """Say which columns were read that only regions heed, types of GPU or levels, tenants with them; and priority."""
    if read.geo is None and read.priority.any():
        said = "priority is read, but no policy here heeds it; in regions the column level counts"
        warnings.warn(f"{path}: {said} (docs/concepts/workloads.md)", WorkloadWarning, stacklevel=4)
    if read.geo is not None or not (any(read.gpu_type) or read.level.any()):
        return
    given = [name for name in ("gpu_type", "level", "tenant") if any(getattr(read, name))]
    which, them = (f"{given[0]} is", "it") if len(given) == 1 else (f"{', '.join(given)} are", "them")
    warnings.warn(
        f"{path}: {which} read, but nothing outside regions heeds {them} yet: there the column parts gives types, as "
        "A100:16 (docs/concepts/workloads.md)",
        WorkloadWarning,
        stacklevel=4,
    )


def _likely(path: str | Path) -> str:
    try:
        return recognise(path)
    except InputError:
        return ""


def _with_options_only(read: Callable[..., Workload], path: str | Path) -> Callable[..., Workload]:
    @functools.wraps(read)
    def reader(**options: Any) -> Workload:
        return read(path, **options)

    signature = inspect.signature(read)
    reader.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return reader
