"""Policies of a user: an object, a word `py:...`, or an entry point of an installed package.

An object needs `decide(view)`; other attributes of `Policy` are optional. A package declares policies by
`[project.entry-points."clustergym.policies"] name = "package.module:Thing"`. Every run plays a fresh copy.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import re
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from ..simulator.base.capabilities import environments_with
from ..simulator.base.decisions import Decision
from ..simulator.base.errors import ClustergymError, InputError
from ..simulator.base.names import full_name
from ..simulator.base.said_once import SettingWarning
from ..simulator.files.user_code import UserObject, blamed, line_in, own
from ..simulator.files.user_code_files import PACKAGE, files_of
from .base import Policy

GROUP = "clustergym.policies"
# (thing, said, files) -> a policy, for objects with `act(observation, mask)`
ACTING = "clustergym.agents.playing.acting:ActingPolicy"
# Optional attributes of an object.
ON_ITS_OWN = ("dedicated", "tables_everywhere", "tunes_workers", "on_links")  # state of the cluster while it plays
SAID = ("name", "knows_run_times", "clock", "elastic", *ON_ITS_OWN, "rule")
_WORD = re.compile(r"[^\s:,=]+")
_given: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # objects that words gave, by `id`


class PolicyFailed(InputError):
    """A mistake of a user's policy while it played; the setting and other policies are not to blame."""


class UserPolicy(Policy):
    """A plain object with `decide(view)` as a policy; `why`, `following` and attributes of `Policy` are optional."""

    def __init__(self, user_object: Any) -> None:
        self.user_object = user_object
        self.name = type(user_object).__name__
        for name in SAID:
            if hasattr(user_object, name):
                setattr(self, name, getattr(user_object, name))
        if self.clock is None:  # its former name
            self.clock = getattr(user_object, "terms", None)

    def decide(self, view: Any) -> Decision:
        """The decision of the object."""
        decision: Decision = self.user_object.decide(view)
        return decision

    def why(self, view: Any, decision: Decision) -> str:
        """The object's reason, if it gives one."""
        if not callable(getattr(self.user_object, "why", None)):
            return ""
        words: str = self.user_object.why(view, decision)
        return words

    def following(self, view: Any) -> tuple[Decision, ...]:
        """The rest of the object's decision."""
        return tuple(self.user_object.following(view)) if hasattr(self.user_object, "following") else ()


@dataclass(frozen=True)
class PolicyObject:
    """A policy that was handed over as an object."""

    word: str  # its name in tables
    user_object: Any  # the object; a copy plays
    files: tuple[Path, ...]  # its source files

    def made(self) -> Policy:
        """A copy that plays. Raises InputError if it cannot be copied, or is no policy."""
        try:
            user_object = copy.deepcopy(self.user_object)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(
                f"policy {self.word!r}: every run needs a copy of its own, and it has none ({reason})"
            ) from error
        return policy_from(user_object, f"policy {self.word!r}", self.files, self.word)


def as_player(source: Any) -> str | PolicyObject:
    """A word as it is, an object with its name for tables. Raises InputError if it is no policy."""
    if isinstance(source, str | PolicyObject):
        return source
    if inspect.isclass(source):
        files = files_of(source)
        with blamed(f"policy {source.__name__!r}", files):
            source = source()
    name = str(getattr(source, "name", "") or "")
    kind = type(source).__name__
    word = kind if name in ("", Policy.name) else name
    found = PolicyObject(word, source, tuple(dict.fromkeys((*_files_named_by(source), *files_of(type(source))))))
    found.made()
    return found


def word_of(player: str | PolicyObject) -> str:
    """The name of a policy in tables and stores."""
    return player if isinstance(player, str) else player.word


def by_word(found: UserObject, name: str, params: Mapping[str, Any]) -> Policy:
    """The policy of a word `py:...` or of an entry point; `params`: beside those of the word.

    Raises:
        InputError: a parameter that it does not take, or no policy.
    """
    user_object = replace(found, params={**found.params, **params}).made()
    if user_object is found.factory:  # an object of the file itself
        user_object = copy.deepcopy(user_object)
    else:
        _expect_another(user_object, found)
    return policy_from(user_object, str(found), found.files, name)


def _expect_another(user_object: Any, found: UserObject) -> None:
    """Raise InputError if a function returns the object of an earlier call: runs would share its state."""
    if _given.get(id(user_object)) is user_object:
        raise InputError(
            f"{found}: it gives the same object each time, and every run needs one of its own: make it inside, or name "
            "the object itself, which is copied"
        )
    with suppress(TypeError):  # no weak reference
        _given[id(user_object)] = user_object


def policy_from(user_object: Any, said: str, files: Sequence[Path], name: str) -> Policy:
    """An object with `decide(view)`, or `act(observation, mask)` of an agent, as a policy; `said`: how errors call it.

    Raises:
        InputError: it has neither, or `decide` does not take one view.
    """
    policy: Policy
    if isinstance(user_object, Policy):
        policy = user_object
        if policy.rule is None and type(policy).decide is Policy.decide:
            raise InputError(
                f"{said}: {type(user_object).__name__} does not say what it decides: define decide(self, view)"
            )
    elif callable(getattr(user_object, "decide", None)):
        policy = UserPolicy(user_object)
    elif callable(getattr(user_object, "act", None)):
        policy = _acting(said)(user_object, said, tuple(files))
    else:
        kind = getattr(user_object, "__name__", type(user_object).__name__)
        raise InputError(f"{said}: {kind} has no decide(view); expected a policy: docs/tutorials/write-a-policy.md")
    if not isinstance(user_object, Policy) and callable(getattr(user_object, "decide", None)):
        _expect_one_argument(user_object.decide, said)
    _give(policy, "files", tuple(dict.fromkeys((*files, *_files_named_by(user_object)))), said)
    _give(policy, "name", name, said)
    environments_in(user_object, said)
    return policy


def _files_named_by(user_object: Any) -> tuple[Path, ...]:
    given = getattr(user_object, "files", ())
    return tuple(Path(file).resolve() for file in ((given,) if isinstance(given, str | Path) else given))


def _give(policy: Policy, attribute: str, value: Any, said: str) -> None:
    try:
        object.__setattr__(policy, attribute, value)
    except AttributeError:
        raise InputError(
            f"{said}: {attribute} of {type(policy).__name__} cannot be set; let it be a plain attribute"
        ) from None


def environments_in(user_object: Any, said: str) -> tuple[str, ...]:
    """Ids of the environments that something names, or of those that offer what it requires; none: all.

    Raises InputError if it does not name environments, or none of those offers what it requires.
    """
    given = getattr(user_object, "environments", ())
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{said}: environments = {given!r}: expected names of environments, such as ('Delay',)")
    named = tuple(map(full_name, names))
    required = getattr(user_object, "requires", "")
    if not required:
        return named
    if not isinstance(required, str):
        raise InputError(f"{said}: requires = {required!r:.80}: expected text, such as 'start, preempt; sharing'")
    found = tuple(env_id for env_id in environments_with(required, said) if env_id in named or not named)
    if not found:
        raise InputError(f"{said}: requires = {required!r}: no environment {'that it names ' * bool(named)}offers that")
    return found


@contextmanager
def playing(policy: Policy, seed: int) -> Iterator[None]:
    """Errors while a user's policy plays become PolicyFailed, with the policy, the seed and the line in its file."""
    files: tuple[Path | str, ...] = (
        *policy.files,
        *_code_files(policy.user_object if isinstance(policy, UserPolicy) else policy),
    )
    said = f"policy {policy.name!r}, seed {seed}"
    try:
        with blamed(said, files):
            yield
    except ClustergymError as error:
        if not files:
            raise
        place = line_in(error, files)
        message = str(error).removeprefix(f"policy {policy.name!r}: ")
        if not message.startswith(said):
            message = f"{said}: {message}" + (f" ({place})" if place else "")
        raise PolicyFailed(message) from (error.__cause__ or error)


def _code_files(user_object: Any) -> tuple[str, ...]:
    """The file of a user's `decide`, also of a notebook; none for policies of this package."""
    code = getattr(getattr(type(user_object), "decide", None), "__code__", None)
    if code is None or Path(code.co_filename).is_relative_to(PACKAGE):
        return ()
    return (code.co_filename,)


@functools.cache
def installed(taken: frozenset[str]) -> dict[str, metadata.EntryPoint]:
    """Entry points of policies in installed packages, by name, not loaded; names that are `taken` are left out."""
    found: dict[str, metadata.EntryPoint] = {}
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        whose = f"policy {point.name!r} of the package {package_of(point)}"
        if not _WORD.fullmatch(point.name):
            _warn(f"{whose} is left out: a policy's name has no space, colon, comma or equals sign")
        elif point.name in taken or point.name in found:
            _warn(f"{whose} is left out: there is another of that name; name it py:{point.module}:{point.attr}")
        else:
            found[point.name] = point
    return found


def package_of(point: metadata.EntryPoint) -> str:
    """The name of the package that declares it."""
    return point.dist.name if point.dist is not None else point.module.partition(".")[0]


def declared(point: metadata.EntryPoint, rest: str = "") -> UserObject:
    """The object of an entry point; `rest`: parameters, `key=value,...`. Raises InputError if it cannot be imported."""
    word = f"py:{point.module}:{point.attr}" + (f",{rest}" if rest else "")
    return own(word, f"policy {point.name!r} of the package {package_of(point)},")


def _warn(text: str) -> None:
    warnings.warn(text, SettingWarning, stacklevel=4)


def _acting(said: str) -> Any:
    module, _, name = ACTING.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise InputError(f"{said}: it has act, which needs {error.name}") from None


def _expect_one_argument(decide: Any, said: str) -> None:
    try:
        inspect.signature(decide).bind(None)
    except ValueError:  # compiled, without a signature
        return
    except TypeError as error:
        raise InputError(f"{said}: decide is to take one argument, the view: {error}") from None
