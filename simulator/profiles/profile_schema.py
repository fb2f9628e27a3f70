"""The schema of a profile file (its text is in models.py), checked with pydantic when a file is read."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from ..base.errors import InputError
from ..files.yaml_files import validated
from .model_names import plain


def checked_models(mapping: Mapping[str, Any], place: str) -> dict[str, SimpleNamespace]:
    """The models of a file: name -> its entry with checked `fits` by GPU type; InputError names the place."""
    schema = _schema()
    top = validated(schema.File, mapping, place)
    if not top.models:
        raise InputError(f"{place}: models is empty; expected at least one")
    _check_spellings(top.models, place)
    return {name: _entry(schema, entry, f"{place}, model {name!r}") for name, entry in top.models.items()}


def _entry(schema: SimpleNamespace, given: Any, place: str) -> SimpleNamespace:
    if not isinstance(given, Mapping):
        raise InputError(f"{place} is not a mapping; expected source, fits, ...")
    spec = validated(schema.Model, given, place)
    fits: dict[str, Any] = {}
    for gpu, fit in spec.fits.items():
        if not isinstance(fit, Mapping):
            raise InputError(f"{place}, fits.{gpu} is not a mapping; expected a, b, ...")
        fits[gpu] = validated(schema.Fit, fit, f"{place}, fits.{gpu}")
        _check_fit(fits[gpu], f"{place}, fits.{gpu}")
    if spec.efficiency is not None:
        _check_efficiency(spec.efficiency, f"{place}, efficiency")
    rest = {name: getattr(spec, name) for name in ("source", "memory", "gradient_bytes", "efficiency")}
    return SimpleNamespace(fits=fits, **rest)


def _check_fit(fit: Any, place: str) -> None:
    for first, second in (("a", "b"), ("ai", "bi"), ("an", "bn")):
        if (getattr(fit, first) is None) != (getattr(fit, second) is None):
            raise InputError(f"{place}: one of {first} and {second} is given; expected both or neither")
    if fit.a is None and (fit.ai is not None or fit.an is not None):
        raise InputError(f"{place}: a and b are missing; expected them beside ai or an")
    for first, second in (("a", "b"), ("one_a", "one_b")):
        if getattr(fit, first) == 0 and getattr(fit, second) == 0:
            raise InputError(f"{place}: {first} and {second} are both 0; expected a computation that takes time")


def _check_efficiency(efficiency: Any, place: str) -> None:
    sizes = efficiency.steps
    if min(sizes) != efficiency.initial_batch or max(sizes) != efficiency.largest_batch:
        raise InputError(
            f"{place}.steps goes from batch {min(sizes)} to {max(sizes)}; expected the initial batch "
            f"{efficiency.initial_batch} to the largest batch {efficiency.largest_batch}"
        )


def _check_spellings(names: Iterable[str], place: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if not plain(name):
            raise InputError(f"{place}: model {name!r}; expected a name with letters or digits")
        if plain(name) in seen:
            raise InputError(f"{place}: models {seen[plain(name)]!r} and {name!r} are one name; expected it once")
        seen[plain(name)] = name


@functools.cache
def _schema() -> SimpleNamespace:
    from typing import Annotated, Literal

    from pydantic import BaseModel, ConfigDict, Field

    # Seconds up to 1e6: an iteration of eleven days is a slip of the unit.
    Seconds = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e6)]
    Bytes = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e15)]
    Batch = Annotated[int, Field(strict=True, ge=1, le=10**9)]
    Size = Annotated[int, Field(ge=1, le=10**9)]  # a key, so text in JSON
    Steps = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1e15)]
    Percent = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
    Source = Annotated[str, Field(strict=True, min_length=1, max_length=2000)]

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

    class Fit(Strict):
        a: Seconds | None = None
        b: Seconds | None = None
        ai: Seconds | None = None
        bi: Seconds | None = None
        an: Seconds | None = None
        bn: Seconds | None = None
        d: Annotated[float, Field(strict=True, ge=1, le=1e3)] = 1.0
        one_a: Seconds
        one_b: Seconds
        largest_batch: Batch
        source: Source
        error: dict[Literal["mape", "median", "p95"], Percent] = Field(default_factory=dict)

    class Memory(Strict):
        base_bytes: Bytes
        sample_bytes: Bytes
        source: Source
        sample_assumed: bool = False

    class Efficiency(Strict):
        initial_batch: Batch
        largest_batch: Batch
        epochs: Batch
        steps: Annotated[dict[Size, Steps], Field(min_length=1)]
        noise_scale: Annotated[list[Annotated[float, Field(ge=0, le=1e15)]], Field(min_length=1, max_length=1000)]
        source: Source

    class Model(Strict):
        source: Source
        fits: dict[str, object]
        memory: Memory | None = None
        gradient_bytes: Bytes | None = None
        efficiency: Efficiency | None = None

    class File(Strict):
        models: dict[str, object]

    return SimpleNamespace(File=File, Model=Model, Fit=Fit)
