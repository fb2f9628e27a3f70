"""Workloads: readers of formats, generators, and the function that opens any of them; seeds and words fix the jobs."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..base.arguments import checked_seed
from ..base.errors import InputError
from ..base.names import arguments_of, called, choose, parse_name
from ..files.file_marks import path_unless
from ..files.user_code import function_of, is_user_code, shown_word
from ..jobs.workload import Workload
from ..jobs.workload import WorkloadWarning as WorkloadWarning
from .generators import GENERATORS
from .log_samples import SAMPLED, is_sampled, samples_of
from .log_slices import beside
from .readers import FORMATS, read_trace
from .readers import recognise as recognise

Oversize = Literal["error", "drop", "cap"]
Source = Workload | str | Path | Callable[[np.random.Generator], Workload]
NAMED: Mapping[str, Callable[..., Workload]] = {**GENERATORS, **SAMPLED}
A_WORKLOAD = path_unless(NAMED, beside)
_SUFFIXES = {".csv", ".json", ".parquet", ".trace", ".txt", ".tsv"}


def open_workload(
    source: Source,
    *,
    format: str | None = None,
    seed: int = 0,
    oversize: Oversize = "error",
    cluster_gpus: int | None = None,
) -> Workload:
    """The workload that a word, a path or a Workload names.

    Args:
        source: a Workload (passed through), a path, a generator with its parameters (`poisson:jobs=100,load=0.9`), or
            samples of a log (`slices:file=log.csv,hours=24`, `resampled:file=log.csv,block_h=3`). A word is a path if
            it holds a "/", ends as a trace file does (.csv .json .parquet .trace .txt .tsv), or exists. A generator of
            one's own is a function from a numpy random generator to a Workload, or its word,
            `py:FILE.py:NAME[,key=value...]` (simulator/files/user_code.py).
        format: of a file, with its options (`artist-sim:scale=gang`); None recognises it.
        seed: of a generator that does not get its own (`poisson:seed=3`); of slices which one.
        oversize: jobs larger than the cluster are an "error", or "drop" or "cap" them.
        cluster_gpus: the size of the cluster; None: jobs are not checked. A generator with this parameter takes it too.

    Returns:
        The jobs, sorted by arrival.

    Raises:
        InputError: one sentence that names the place, the value and what was expected.
    """
    return workload_source(source, format=format, oversize=oversize, cluster_gpus=cluster_gpus)(checked_seed(seed))


def workload_source(
    source: Source, *, format: str | None = None, oversize: Oversize = "error", cluster_gpus: int | None = None
) -> Callable[[int], Workload]:
    """As `open_workload`, for many seeds: a function from the seed to the workload; files are read once, now."""
    choose(oversize, ("error", "drop", "cap"), "value of oversize")
    if is_user_code(source) or callable(source):
        if format is not None:
            raise InputError(f"format {format!r}: it is for files; workload {shown_word(source)!r} is a generator")
        return _own_generator(source, oversize, cluster_gpus)
    if format is not None and is_sampled(source):
        raise InputError(
            f"format {format!r}: samples of a log name that of their file in their word, as file=...,format=swf"
        )
    if isinstance(source, str) and format is None and not is_path(source):
        return _generator(source, oversize, cluster_gpus)
    if isinstance(source, Workload):
        workload = source
    elif isinstance(source, str | Path):
        workload = read_trace(source, format)
    else:
        raise InputError(f"workload {called(source)}: expected a path, a generator as poisson:jobs=100, or a Workload")
    if cluster_gpus is not None:
        workload = workload.oversize(cluster_gpus, oversize)
    return lambda _seed: workload


def is_path(word: str) -> bool:
    """Whether a workload word names a file rather than a generator."""
    if is_user_code(word):
        return False
    separators = {"/", os.sep, os.altsep or "/"}
    name, _, rest = word.partition(":")
    if name in NAMED or ("=" in rest and "/" not in name and not os.path.exists(word)):
        return False  # parameters may hold "/", and a misspelt generator deserves a suggestion
    return any(mark in word for mark in separators) or Path(word).suffix.lower() in _SUFFIXES or os.path.exists(word)


def list_workloads() -> list[dict[str, str]]:
    """Every generator and format: its name, kind ("generator", "format"), summary and parameters."""
    rows: list[tuple[str, str, str, Callable[..., Any]]] = [
        (name, "generator", (make.__doc__ or "").strip().splitlines()[0], make) for name, make in NAMED.items()
    ]
    rows += [(form.name, "format", form.summary, form.read) for form in FORMATS.values()]
    return [{"name": n, "kind": kind, "summary": s, "parameters": _parameters(make)} for n, kind, s, make in rows]


def _generator(word: str, oversize: Oversize, cluster_gpus: int | None) -> Callable[[int], Workload]:
    name, params = parse_name(word, "workload")
    function = NAMED[choose(name, NAMED, "workload" if params else "workload or missing file")]
    if name in SAMPLED:
        samples_of(word)  # reads the file
    if cluster_gpus is not None and "cluster_gpus" in inspect.signature(function).parameters:
        params = {"cluster_gpus": str(cluster_gpus), **params}
    arguments = arguments_of(function, params, f"workload {name}")

    def draw(seed: int) -> Workload:
        workload = function(**{"seed": seed, **arguments})
        return workload if cluster_gpus is None else workload.oversize(cluster_gpus, oversize)

    return draw


def _own_generator(source: Any, oversize: Oversize, cluster_gpus: int | None) -> Callable[[int], Workload]:
    offered = {} if cluster_gpus is None else {"cluster_gpus": cluster_gpus}
    function = function_of(source, "workload", 1, **offered)

    def draw(seed: int) -> Workload:
        workload = function(np.random.default_rng(seed))
        if not isinstance(workload, Workload):
            kind = type(workload).__name__
            raise InputError(f"workload {shown_word(source)!r}: it gave a {kind}; expected a Workload (from_arrays)")
        return workload if cluster_gpus is None else workload.oversize(cluster_gpus, oversize)

    return draw


def _parameters(function: Callable[..., Any]) -> str:
    shown = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in ("path", "seed"):
            default = "..." if parameter.default is parameter.empty else parameter.default
            text = "/".join(map(str, default)) if isinstance(default, tuple) else str(default)
            shown.append(f"{parameter.name}={text}")
    return ", ".join(shown)
