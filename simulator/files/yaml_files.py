"""A user's YAML or JSON: read safely, of bounded size and depth, without repeated keys; errors name the place."""

from __future__ import annotations

import difflib
import functools
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.errors import InputError
from . import regular_files

MAX_FILE_BYTES = 4 * 2**20
MAX_DEPTH = 100  # of lists and mappings in each other
MAX_NODES = 200_000  # values in one file, aliases counted as often as they are used


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """The text of a UTF-8 file of at most MAX_FILE_BYTES; InputError: it cannot be read, is empty, or not text."""
    return regular_files.read_text(path, "a YAML or JSON file", f"{what} {os.fspath(path)!r}", MAX_FILE_BYTES)


def load_mapping(path: str | os.PathLike[str], what: str = "file") -> dict[str, Any]:
    """The mapping in a YAML or JSON file (JSON if the name ends in .json); nothing in it is run.

    InputError: the file cannot be read, is malformed or truncated, uses tags such as !!python/object, gives a key
    twice, nests too deep, or is no mapping.
    """
    text = read_text(path, what)
    place = f"{what} {os.fspath(path)!r}"
    parse = _parse_json if os.fspath(path).lower().endswith(".json") else parse_yaml
    try:
        value = parse(text, place)
        _check_size(value, place)
    except RecursionError:
        raise InputError(f"{place} nests too deep") from None
    if not isinstance(value, dict):
        raise InputError(f"{place} holds {shown(value)}, expected a mapping (key: value)")
    return value


def validated(model: Any, mapping: Mapping[str, Any], source: str) -> Any:
    """An instance of the pydantic `model` from `mapping`; InputError naming `source` and the first bad place."""
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(mapping))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=True)
    except (RecursionError, TypeError) as error:  # TypeError: keys that are not text, at the top
        raise InputError(f"{source}: {error}") from None
    # A misspelt key also shows as a missing one; the misspelling is the useful half.
    problem = next((one for one in problems if one["type"] == "extra_forbidden"), problems[0])
    raise InputError(f"{source}: {_sentence(problem, model)}")


def _sentence(problem: Mapping[str, Any], model: Any) -> str:
    location = tuple(part for part in problem["loc"] if part != "[key]")
    place = _place(location)
    kind = problem["type"]
    if kind == "missing":
        return f"{place} is missing"
    if kind == "extra_forbidden":
        known = _keys_at(model, location[:-1])
        close = difflib.get_close_matches(str(location[-1]), known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        return f"{place}: unknown key; {hint}known: {', '.join(known)}"
    return f"{place} = {shown(problem['input'])}: expected {_expected(kind, problem)}"


def _expected(kind: str, problem: Mapping[str, Any]) -> str:
    context = problem.get("ctx", {})
    fixed = {
        "int_type": "a whole number",
        "float_type": "a number",
        "string_type": "text",
        "list_type": "a list",
        "tuple_type": "a list",
        "finite_number": "a finite number",
        "model_type": "a mapping",
        "dict_type": "a mapping",
        "string_pattern_mismatch": "letters, digits, '_' and '-'",
        "invalid_key": "keys that are text",
    }
    if kind in fixed:
        return fixed[kind]
    for short_or_long, key, words in (("too_short", "min_length", "at least"), ("too_long", "max_length", "at most")):
        if kind == short_or_long:
            count = context[key]
            return f"a list with {words} {'one item' if count == 1 else f'{count} items'}"
    for key, words in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("max_length", "at most")):
        if key in context:
            return f"{words} {context[key]}{' characters' if key == 'max_length' else ''}"
    if kind == "literal_error":
        return str(context["expected"])
    return str(problem["msg"])


def _place(location: Sequence[str | int]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the whole"


def _keys_at(model: Any, location: Sequence[str | int]) -> list[str]:
    from typing import get_args

    for part in location:
        if isinstance(part, str):
            model = get_args(model.model_fields[part].annotation)[0]
    return list(model.model_fields)


def shown(value: Any) -> str:
    """A bad value in an error: short, and no more of a container than what it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing"
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check_size(value: Any, place: str) -> None:
    """Refuse what would take for ever to walk: aliases can make a small file huge, or endless."""
    stack, seen = [value], 0
    while stack:
        item = stack.pop()
        seen += 1
        if seen + len(stack) > MAX_NODES:
            raise InputError(f"{place} holds more than {MAX_NODES} values")
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _parse_json(text: str, place: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = Counter(key for key, _ in pairs)
        for key, count in keys.items():
            if count > 1:
                raise InputError(f"{place}: the key {shown(key)} is given {count} times in one mapping")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InputError(f"{place}: line {error.lineno}, column {error.colno}: not JSON, {error.msg}") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{place}: {error}") from None


def parse_yaml(text: str, place: str, loader: Any = None) -> Any:
    """The content of a YAML text by a safe `loader`, None: without repeated keys; InputError: malformed, too deep."""
    import yaml

    loader = loader or _yaml_loader()
    try:
        _check_depth(yaml.parse(text, Loader=loader), place)
        return yaml.load(text, Loader=loader)  # a subclass of the safe loader
    except yaml.constructor.ConstructorError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"{place}: {at}{_one_line(error.problem)}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"{place}: {at}not YAML, {_one_line(error.problem or error.context)}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{place}: not YAML, {_one_line(error)}") from None
    except (ValueError, TypeError, OverflowError) as error:  # dates such as 2024-13-45, integers of 5,000 digits
        raise InputError(f"{place}: not YAML, {_one_line(error)}") from None


def _check_depth(events: Iterable[Any], place: str) -> None:
    """Refuse deep nesting before anything is built: libyaml's composer recurses until the process dies."""
    from yaml.events import CollectionEndEvent, CollectionStartEvent

    depth = 0
    for event in events:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise InputError(f"{place} nests too deep: more than {MAX_DEPTH} levels")


def _one_line(message: object) -> str:
    return " ".join(str(message).split())[:200]


@functools.cache
def _yaml_loader() -> Any:
    """PyYAML's safe loader, with each key once and with 1e9 as a number (YAML 1.1 would make it text)."""
    import re

    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[Any] = set()
            for key_node, _ in node.value:
                key = (key_node.tag, key_node.value) if isinstance(key_node.value, str) else None
                if key is not None and key in seen:
                    problem = f"the key {shown(key_node.value)} is given twice in one mapping"
                    raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
                seen.add(key)
            return super().construct_mapping(node, deep=deep)

    exponent = re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", exponent, list("-+0123456789"))
    return Loader
