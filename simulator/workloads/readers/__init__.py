"""One module per trace format, and how a file's format is recognised from its first bytes.

A format is a module with `NAME`, `SUMMARY`, `recognises(head)` and `read(path, **options)`, and a line in `_MODULES`.
The annotated keyword parameters of `read` are the options of the word: `artist-sim:scale=gang,caps=batch`. `bad_rows`
says whether bad rows are left out, or the first is refused. InputErrors name file, line (or job), column and value.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.errors import InputError
from ...base.names import arguments_of, choose, parse_name
from ...jobs.trace_head import Head, read_head
from ...jobs.workload import Workload, clip
from ..own_schema import own_format
from . import (
    artist_sim_trace,
    chronus_trace,
    gavel_trace,
    helios_trace,
    muri_trace,
    openb_trace,
    pai_trace,
    philly_json_trace,
    philly_trace,
    pollux_trace,
    sacct_trace,
    simple_trace,
    tiresias_trace,
)


@dataclass(frozen=True)
class Format:
    """A trace format: its name, one line about it, its test on a file's head, and its reader."""

    name: str
    summary: str
    recognises: Callable[[Head], bool]
    read: Callable[..., Workload]


def _formats() -> Iterator[Format]:
    # the order matters where one format's columns include another's: the more specific first
    yield Format("parquet", own_format.PARQUET_SUMMARY, own_format.recognises_parquet, own_format.read_parquet)
    for module in (
        sacct_trace,
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
        gavel_trace,
    ):
        yield Format(module.NAME, module.SUMMARY, module.recognises, module.read)


FORMATS: Mapping[str, Format] = {form.name: form for form in _formats()}


def recognise(path: str | Path) -> str:
    """The name of a trace file's format, by its first bytes; InputError: unreadable, empty, or unknown."""
    head = read_head(path)
    for form in FORMATS.values():
        if form.recognises(head):
            return form.name
    if b"\0" in head.data:
        raise InputError(f"{path}: a binary file, or text that is not UTF-8; expected csv, json or parquet")
    begins = f"it begins with {clip(head.text.strip()[:40])}"
    seen = f"its columns are {clip(', '.join(head.columns), 200)}" if len(head.columns) > 1 else begins
    raise InputError(
        f"{path}: the format is not recognised ({seen}); one of your own begins with the line "
        f"job_id,arrival_s,gpus,duration_s; that of others is said with --format, one of: {', '.join(FORMATS)}"
    )


def read_trace(path: str | Path, format: str | None = None) -> Workload:
    """Read a file in a `format` with its options, None: recognised; InputError names file, place, value."""
    name, options = parse_name(format if format is not None else recognise(path), "format")
    choose(name, FORMATS, "format")
    reader = _with_options_only(FORMATS[name].read, path)
    arguments = arguments_of(reader, options, f"format {name}")
    try:
        return reader(**arguments)
    except InputError as error:
        if format is None or (other := _likely(path)) in ("", name):
            raise
        raise InputError(f"{error}; the file looks as --format {other} reads it") from None


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
