"""What a run's numbers depend on, as hashes: sources, versions of libraries, and what the words of a setting name."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ..policies import Policy
from ..simulator.errors import InputError
from ..simulator.topology import Topology
from .evaluate import Setting, network_of, workload_of
from .run_files import short_hash

PACKAGE = Path(__file__).resolve().parents[1]
PLAYING = ("simulator", "policies", "experiments/evaluate.py", "experiments/recording.py")
LOOKING = ("envs", "agents")  # an agent sees through an environment's eyes
LIBRARIES = ("numpy", "numba")
LEARNING_LIBRARIES = ("torch", "stable-baselines3", "sb3-contrib")


@functools.cache
def sources(*places: str) -> str:
    """Hash of the sources under some folders and files of the package, as this process found them first."""
    digest = hashlib.sha256()
    for place in places:
        root = PACKAGE / place
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and not (place == "agents" and path.suffix != ".py"):
                digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def expect_sources(known: str, *places: str, what: str) -> None:
    """Raise InputError if this process has other sources than the one that started it."""
    if sources(*places) != known:
        raise InputError(f"{what}: the sources changed while it ran; start it again")


def versions(*libraries: str) -> dict[str, str]:
    """Versions of clustergym, python, and those of `libraries` that are installed."""
    from .. import __version__

    found = {"clustergym": __version__, "python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def content(setting: Setting) -> dict[str, str]:
    """Hashes of what the words for topology, workload and network stand for, files and their companions included."""
    return {
        "topology": fingerprint(Topology.load(setting.topology)),
        "workload": fingerprint(workload_of(setting, 0)),
        "network": fingerprint(network_of(setting)),
    }


@functools.lru_cache(maxsize=4)
def content_once(setting: Setting, _stamps: tuple[Any, ...]) -> Mapping[str, str]:
    """The same, worked out once as long as the stamps of its files stay as they are; see `evaluate.stamps`."""
    return content(setting)


def of_agent(policy: Policy) -> str:
    """Hash of a trained agent: its files, and what plays it; "" for a policy that was not trained."""
    if not policy.files:
        return ""
    held = [path.name.encode() + b"\0" + path.read_bytes() for path in policy.files]
    return short_hash(*held, sources(*LOOKING), repr(versions(*LEARNING_LIBRARIES)))


def fingerprint(value: Any) -> str:
    """Hash of a value by content: dataclasses field by field, arrays, mappings, sequences, numbers and text."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()[:20]


def _feed(digest: Any, value: Any) -> None:
    if is_dataclass(value) and not isinstance(value, type):
        value = {"": type(value).__name__} | {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        digest.update(f"{{{len(value)}".encode())
        for key, item in value.items():
            _feed(digest, key)
            _feed(digest, item)
    elif isinstance(value, list | tuple | np.ndarray):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            _feed(digest, item)
    elif value is None or isinstance(value, str | int | float | np.generic):
        text = repr(value).encode()
        digest.update(f"{len(text)}:".encode() + text)
    else:
        raise TypeError(f"{type(value).__name__} has no content that could be hashed")
