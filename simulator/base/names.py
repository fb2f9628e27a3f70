"""`NAME[:key=value,...]`: a name with parameters; "/" separates the items of a list (`thresholds=3250/7200`)."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from .errors import InputError

T = TypeVar("T")
LISTED = 50  # names, in a message
ANYTHING = None | int | float | str  # of a parameter without annotation and default: what its text looks like


def parse_name(text: str, what: str = "name", last: str = "") -> tuple[str, dict[str, str]]:
    """Split `NAME[:key=value,...]` into its name and its parameters, both as text.

    `what`: the noun for errors. `last`: a key whose value is the rest of the word, commas included. InputError: an
    empty name, a part without "=", or a key given twice.
    """
    if not isinstance(text, str):
        raise InputError(f"{what} {text!r}: expected text, NAME or NAME:key=value,...")
    name, _, rest = text.strip().partition(":")
    if not name:
        raise InputError(f"{what} {text!r}: the name before ':' is empty; expected NAME or NAME:key=value,...")
    params: dict[str, str] = {}
    parts = rest.split(",") if rest else []
    for position, part in enumerate(parts):
        key, equals, value = part.partition("=")
        if last and key.strip() == last and equals:
            value = ",".join((value, *parts[position + 1 :]))
        if not equals or not key.strip():
            raise InputError(f"{what} {text!r}: {part!r} is not key=value")
        if key.strip() in params:
            raise InputError(f"{what} {text!r}: {key.strip()!r} is given twice")
        params[key.strip()] = value.strip()
        if last and key.strip() == last:
            break
    return name, params


def choose(name: str, known: Iterable[str], what: str) -> str:
    """Return `name` if it is known; else an InputError suggests the closest match and lists the (first) others."""
    names = list(dict.fromkeys(known))
    if not isinstance(name, str):
        raise InputError(f"{what} {name!r}: expected text, one of {', '.join(sorted(names))}")
    if name in names:
        return name
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    listed = ", ".join(sorted(names)[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    raise InputError(f"unknown {what} {name!r}; {hint}known: {listed}")


def bind(factory: Callable[..., T], params: Mapping[str, Any], what: str) -> T:
    """Call `factory(**params)`, turning text into the types that its annotations name; see `arguments_of`."""
    return factory(**arguments_of(factory, params, what))


def arguments_of(factory: Callable[..., Any], params: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The arguments of `factory` that `params` name; text becomes the type that the annotation names, the rest passes.

    Raises:
        InputError: an unknown or missing parameter, a value that the annotation does not admit, or a `seed` below 0.
    """
    try:
        parameters = inspect.signature(factory).parameters
    except ValueError:
        raise InputError(f"{what}: its parameters cannot be told") from None
    named = {key: one for key, one in parameters.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    kinds = kinds_of(factory, named)
    arguments: dict[str, Any] = {}
    for key, value in params.items():
        if (key not in named and not takes_any) or key.startswith("_"):
            known = [name for name in named if not name.startswith("_")]
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InputError(f"{what}: unknown parameter {key!r}; {hint}known: {', '.join(known) or 'none'}")
        text = isinstance(value, str)
        arguments[key] = convert(value, kinds.get(key, ANYTHING), f"{what}: {key}") if text else value
        if key == "seed" and isinstance(arguments[key], int) and arguments[key] < 0:
            raise InputError(f"{what}: seed = {arguments[key]}: expected a whole number of at least 0")
    missing = [key for key, one in named.items() if one.default is one.empty and key not in arguments]
    if missing:
        raise InputError(f"{what}: parameter {missing[0]!r} is required; write it as {missing[0]}=...")
    return arguments


def kinds_of(factory: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """The type of each parameter: what its annotation says, else what its default is."""
    plain = factory.func if isinstance(factory, functools.partial) else factory
    try:
        hints = typing.get_type_hints(plain.__init__ if inspect.isclass(plain) else plain)
    except Exception:  # annotations are anything in a user's function, names that are not there among them
        hints = {}
    kinds = {}
    for key, parameter in parameters.items():
        default = parameter.default
        if key in hints:
            kinds[key] = hints[key]
        elif parameter.annotation is not parameter.empty and not isinstance(parameter.annotation, str):
            kinds[key] = parameter.annotation
        elif isinstance(default, bool | str):
            kinds[key] = type(default)
        elif isinstance(default, int | float):
            kinds[key] = int | float
    return kinds


def convert(text: str, kind: Any, what: str) -> Any:
    """One value of the annotated type `kind` from its text; raises InputError where it does not fit."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(text, typing.get_args(kind), what)
    if origin is typing.Literal:
        return choose(text, [str(option) for option in typing.get_args(kind)], f"value of {what}")
    if origin is tuple:
        item = typing.get_args(kind)[0]
        return tuple(convert(part, item, what) for part in text.split("/")) if text else ()
    if kind is bool:
        words = {"true": True, "on": True, "yes": True, "1": True}
        words |= {"false": False, "off": False, "no": False, "0": False}
        if text.lower() not in words:
            raise InputError(f"{what} = {text!r}: expected true or false")
        return words[text.lower()]
    if kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            noun = "a whole number" if kind is int else "a number"
            raise InputError(f"{what} = {text!r}: expected {noun}") from None
        if kind is float and math.isnan(number):
            raise InputError(f"{what} = {text!r}: expected a number")
        return number
    return text


def _first_that_fits(text: str, kinds: tuple[Any, ...], what: str) -> Any:
    if type(None) in kinds and text.lower() == "none":
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    for position, kind in enumerate(rest):
        try:
            return convert(text, kind, what)
        except InputError:
            if position == len(rest) - 1:
                raise
    return text


def text_of(value: Any) -> str:
    """A value as text that `convert` takes."""
    if isinstance(value, tuple | list):
        return "/".join(map(text_of, value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def called(thing: Any) -> str:
    """What a sentence calls a thing: plain values as they are, an object by its name, or else by that of its class."""
    if isinstance(thing, str | int | float | tuple | list | dict | None):
        return f"{thing!r:.80}"
    return str(getattr(thing, "name", None) or getattr(thing, "__qualname__", type(thing).__qualname__))


def short_name(env_id: str) -> str:
    """What people call an environment: `Delay` of `clustergym/Delay-v0`; a short name is itself."""
    return env_id.removeprefix("clustergym/").removesuffix("-v0")


def full_name(name: str) -> str:
    """The id of what people call an environment; one of another namespace is itself."""
    short = short_name(name)
    return name if "/" in short else f"clustergym/{short}-v0"


def loaded(place: str) -> Any:
    """What `module:name` names: it is imported when it is needed."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def numbered(names: Iterable[str]) -> np.ndarray:
    """A number for each, int64 (n,), the same for the same name: 0 for the first, 1 for the next new one, and so on."""
    number_of: dict[str, int] = {}
    return np.array([number_of.setdefault(name, len(number_of)) for name in names], np.int64)
