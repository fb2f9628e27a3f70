"""What a run's numbers depend on, as hashes: sources, versions of libraries, and what the words of a setting name."""

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

from ...policies import Handed, Policy
from ...simulator.base.errors import InputError
from ...simulator.cluster.topology import Topology
from ...simulator.files.file_marks import marks_of, read_by
from ...simulator.files.own_code import is_own, plain_module
from ..console.versions import LEARNING_LIBRARIES, versions
from ..settings.evaluation_setting import Setting, named, network_of, own_files, workload_of
from .run_files import short_hash

PACKAGE = Path(__file__).resolve().parents[2]
PLAYING = (
    *("simulator", "policies", "experiments/settings/evaluation_setting.py"),
    *("experiments/playing/evaluation.py", "experiments/playing/recording.py"),
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
    """Hashes of what a setting reads, by the name of the option: of files, whatever their paths, and of a user's own.

    What its words say by themselves is not among them. Of a user's own code it is what it gives as well, for it may
    read more than the files of which its word speaks.

    Raises:
        InputError: a file or an object that cannot be used, or an object that cannot be told from others.
    """
    found = {}
    for name, mark, value in named(setting):
        is_word = isinstance(value, str | Path)
        read = read_by(value, mark, name) if is_word else None
        if read is not None and not read.files:
            continue
        parts: list[str | bytes] = list(_held(own_files(value))) if read is None else [read.content]
        if not is_word or is_own(value):
            parts.append(_told_apart(name, _opened(setting, name, value)))
        found[name] = short_hash(*parts)
    return found


def _opened(setting: Setting, name: str, value: Any) -> Any:
    """What stands for a user's own."""
    opens = {
        "topology": lambda: Topology.load(value),
        "workload": lambda: workload_of(setting, 0),
        "network": lambda: network_of(setting),
    }
    return opens[name]() if name in opens else value


def _told_apart(name: str, value: Any) -> str:
    try:
        return fingerprint(value)
    except Exception as error:  # a user's network: whatever the objects inside raise
        raise InputError(f"{name}: a folder cannot tell it from others ({error})") from error


@functools.lru_cache(maxsize=4)
def content_once(setting: Setting, _stamps: tuple[Any, ...]) -> Mapping[str, str]:
    """The same, worked out once as long as the `stamps` of its files stay as they are."""
    return content(setting)


def of_policy(policy: Policy) -> str:
    """Hash of the files of a trained agent or of a user's policy, and of what plays it; "" for our own policies.

    Raises:
        InputError: one of the files cannot be read.
    """
    if not policy.files:
        return ""
    return short_hash(*_held(policy.files), sources(*LOOKING), repr(versions(*LEARNING_LIBRARIES)))


def of_object(player: str | Handed) -> str:
    """Hash of what a policy that was handed over as an object holds; "" for one that a word names.

    Raises:
        InputError: it holds what cannot be told apart.
    """
    if isinstance(player, str):
        return ""
    try:
        text = "" if player.files else inspect.getsource(type(player.thing))  # as in a notebook
        return short_hash(text, fingerprint(player.thing))
    except Exception as error:  # whatever the objects inside raise
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

    Of another object, what it would be copied from; of a class its name, of a function its code and what it encloses.

    Raises:
        TypeError: it cannot be copied.
    """
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()[:20]


def _feed(digest: Any, value: Any, around: tuple[int, ...] = ()) -> None:
    """`around`: the objects that it is in, the outermost first: one may hold itself."""
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
    """The fields of a dataclass, of one that may be a file what stands there."""
    kind: Any = type(value)
    marks = marks_of(kind)
    for one in fields(value):
        held = getattr(value, one.name)
        is_named = one.name in marks and isinstance(held, str | PurePath)
        yield one.name, read_by(held, marks[one.name], one.name).content if is_named else held


def _parts_of(value: Any) -> Any:
    """Simpler values that stand for an object."""
    if isinstance(value, set | frozenset):
        return sorted(map(fingerprint, value))
    if isinstance(value, FunctionType):
        return _name_of(value), value.__code__, value.__defaults__, value.__kwdefaults__, _enclosed(value)
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


def _enclosed(function: FunctionType) -> list[Any]:
    """The values that a function encloses, as far as they are there yet."""
    return [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]


def _name_of(value: Any) -> str:
    return f"{plain_module(value.__module__)}:{value.__qualname__}"
