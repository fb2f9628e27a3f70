"""Hashes of all that a run's numbers depend on: sources, versions of libraries, and the content that settings name."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePath
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...policies import Policy, PolicyObject
from ...simulator.base.errors import InputError
from ...simulator.cluster.topology import Topology
from ...simulator.files.file_marks import marks_of, read_by
from ...simulator.files.user_code import is_user_code, plain_module
from ..console.versions import LEARNING_LIBRARIES, versions
from ..settings.evaluation_setting import Setting, named, network_of, own_files, workload_of
from .run_files import short_hash

PACKAGE = Path(__file__).resolve().parents[2]
PLAYING = (
    *("simulator", "policies", "experiments/settings/evaluation_setting.py"),
    *(f"experiments/playing/{name}.py" for name in ("evaluation", "recording", "by_group")),
)
LOOKING = ("envs", "agents")  # an agent sees through an environment's eyes


@functools.cache
def sources(*places: str) -> str:
    """Hash of the sources under some folders and files of the package, as this process found them first."""
    digest = hashlib.sha256()
    for place in places:
        root = PACKAGE / place
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if any(part.startswith(".") for part in path.relative_to(PACKAGE).parts):  # of editors and of desktops
                continue
            if path.is_file() and path.suffix != ".pyc" and not (place == "agents" and path.suffix != ".py"):
                digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def expect_sources(known: str, *places: str, what: str) -> None:
    """Raise InputError if this process has other sources than the one that started it."""
    if sources(*places) != known:
        raise InputError(f"{what}: the sources changed while it ran; start it again")


def content(setting: Setting) -> dict[str, str]:
    """Hashes of the content that a setting reads, by option: of files, whatever their paths, and of a user's own.

    The words themselves do not count. Of a user's own code its result counts too, for it may read other files.
    InputError for a file or an object that cannot be used, or an object that cannot be told from others.
    """
    found = {}
    for name, mark, value in named(setting):
        is_word = isinstance(value, str | Path)
        read = read_by(value, mark, name) if is_word else None
        if read is not None and not read.files:
            continue
        parts: list[str | bytes] = list(_held(own_files(value))) if read is None else [read.content]
        if not is_word or is_user_code(value):
            parts.append(_fingerprint_of(name, _opened(setting, name, value)))
        found[name] = short_hash(*parts)
    return found


def _opened(setting: Setting, name: str, value: Any) -> Any:
    if name == "topology":
        return Topology.load(value)
    return workload_of(setting, 0) if name == "workload" else network_of(setting) if name == "network" else value


def _fingerprint_of(name: str, value: Any) -> str:
    try:
        return fingerprint(value)
    except Exception as error:  # any error of a user's network
        raise InputError(f"{name}: a folder cannot tell it from others ({error})") from error


@functools.lru_cache(maxsize=4)
def content_once(setting: Setting, _stamps: tuple[Any, ...]) -> Mapping[str, str]:
    """`content`, computed once as long as the `stamps` of its files stay the same."""
    return content(setting)


def of_policy(policy: Policy) -> str:
    """Hash of the files of a trained agent or of a user's policy, and of what plays it; "" for our own policies."""
    if not policy.files:
        return ""
    return short_hash(*_held(policy.files), sources(*LOOKING), repr(versions(*LEARNING_LIBRARIES)))


def of_object(player: str | PolicyObject) -> str:
    """Hash of a policy that was handed over as an object; "" for one that a word names."""
    if isinstance(player, str):
        return ""
    try:
        text = "" if player.files else inspect.getsource(type(player.user_object))  # as in a notebook
        return short_hash(text, fingerprint(player.user_object))
    except Exception as error:  # any error of the objects inside
        reason = " ".join(str(error).split())
        raise InputError(
            f"policy {player.word!r}: a folder cannot tell it from others ({reason}); name it py:FILE.py:NAME"
        ) from error


def _held(files: Sequence[Path]) -> Iterator[bytes]:
    for path in files:
        try:
            yield path.name.encode() + b"\0" + path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None


def fingerprint(value: Any) -> str:
    """Hash of a value by content: dataclasses field by field, arrays, mappings, sequences, numbers and text.

    Of another object its copy's parts count (TypeError without), of a class its name, of a function its code and
    values.
    """
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()[:20]


def _feed(digest: Any, value: Any, around: tuple[int, ...] = ()) -> None:
    """`around`: the objects that hold the value, the outermost first: one may hold itself."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {"": type(value).__name__} | dict(_fields_of(value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        digest.update(f"{{{len(value)}".encode())
        for key, item in value.items():
            _feed(digest, key, around)
            _feed(digest, item, around)
    elif isinstance(value, list | tuple | np.ndarray):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            _feed(digest, item, around)
    elif value is None or isinstance(value, str | bytes | int | float | np.generic):
        text = repr(value).encode()
        digest.update(f"{len(text)}:".encode() + text)
    elif id(value) in around:
        digest.update(f"^{around.index(id(value))}".encode())
    else:
        _feed(digest, _parts_of(value), (*around, id(value)))


def _fields_of(value: Any) -> Iterator[tuple[str, Any]]:
    kind: Any = type(value)
    marks = marks_of(kind)
    for one in fields(value):
        held = getattr(value, one.name)
        is_named = one.name in marks and isinstance(held, str | PurePath)
        yield one.name, read_by(held, marks[one.name], one.name).content if is_named else held


def _parts_of(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(map(fingerprint, value))
    if isinstance(value, FunctionType):
        enclosed = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]  # those that are set
        return _name_of(value), value.__code__, value.__defaults__, value.__kwdefaults__, enclosed
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, CodeType):
        return value.co_code, value.co_consts, value.co_names
    if isinstance(value, MethodType):
        return value.__self__, value.__func__
    if isinstance(value, type) or inspect.isroutine(value):
        return _name_of(value)
    if isinstance(value, PurePath):
        return str(value)
    parts = value.__reduce_ex__(4)
    if isinstance(parts, str):
        return parts
    made, arguments, state, items, pairs = (*parts, *[None] * 3)[:5]
    return made, arguments, state, None if items is None else list(items), None if pairs is None else list(pairs)


def _name_of(value: Any) -> str:
    return f"{plain_module(value.__module__)}:{value.__qualname__}"
