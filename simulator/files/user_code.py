"""A user's own objects by word: `py:FILE.py:NAME[,key=value,...]`, or `py:package.module:NAME[,key=value,...]`.

FILE is relative to the present folder, or absolute; it may hold ":" and ",". NAME depends on the place: a policy, a
generator of workloads, a reward, a topology, a network. A user who writes such a word runs its code; a word from a
folder, perhaps another user's, is refused unless that is allowed.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ..base.errors import ClustergymError, InputError
from ..base.names import LISTED, arguments_of, parse_name
from .user_code_files import expect_own_imports, expect_unchanged, files_of, files_with, stamp_of

PREFIX = "py:"
TRUST = "CLUSTERGYM_TRUST_PY"  # in the environment; 1: words out of folders may run too
EXPECTED = "expected py:FILE.py:NAME or py:package.module:NAME, then ,key=value..."
_OWN = "clustergym_own_"  # beginning of the names of modules that users' files become
_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_FILE_WORD = re.compile(rf"(?P<place>.+?\.py):(?P<name>{_NAME})(?:,(?P<rest>.*))?", re.DOTALL)
_MODULE_WORD = re.compile(rf"(?P<place>{_NAME}):(?P<name>{_NAME})(?:,(?P<rest>.*))?", re.DOTALL)

_files: dict[Path, tuple[tuple[int, int], ModuleType]] = {}  # loaded: when each was written, and what is in it
_loading: set[Path] = set()
_asked: set[str] = set()  # words of the user in this process: what they name runs anyway


@dataclass(frozen=True)
class UserObject:
    """The object of a word.

    Attributes:
        word: as it was written. what: its name in errors, as "policy". params: of the word, as text.
        factory: NAME: a class, a function, or another object.
        files: the file, or that of the module, and its imports from its folder, for comparisons of results.
    """

    word: str
    what: str
    factory: Any
    params: Mapping[str, str]
    files: tuple[Path, ...]

    def made(self) -> Any:
        """The result of the class or function with the parameters, or NAME itself if it is neither; or InputError."""
        if not (
            inspect.isclass(self.factory)
            or inspect.isroutine(self.factory)
            or isinstance(self.factory, functools.partial)
        ):
            if self.params:
                raise InputError(f"{self}: this is no class and no function, so it takes no parameters")
            return self.factory
        arguments = arguments_of(self.factory, self.params, str(self))
        with blamed(str(self), self.files):
            return self.factory(**arguments)

    def function(self, leading: int) -> Callable[..., Any]:
        """A function of `leading` arguments: NAME with the parameters, or the result of the class.

        Its errors become one sentence. InputError: a parameter that it does not take.
        """
        if callable(self.factory) and not inspect.isclass(self.factory):
            arguments = arguments_of(functools.partial(self.factory, *[None] * leading), self.params, str(self))
            call: Any = functools.partial(self.factory, **arguments)
        else:
            call = self.made()
        if not callable(call):
            raise InputError(f"{self}: this is {_kind(call)}, which cannot be called")

        def function(*given: Any) -> Any:
            with blamed(str(self), self.files):
                return call(*given)

        return function

    def __str__(self) -> str:
        return f"{self.what} {self.word!r}"


def plain_module(name: str | None) -> str | None:
    """The name of a module; of one that a user's file became, the same wherever the file lies."""
    return _OWN if name is not None and name.startswith(_OWN) else name


def is_user_code(word: Any) -> bool:
    """Whether a word begins with `py:`."""
    return isinstance(word, str) and word.strip().startswith(PREFIX)


def own(word: str, what: str, trusted: bool = True) -> UserObject:
    """The object of a word `py:...`, reloaded if the file changed; `trusted`: the user's own word; or InputError."""
    place, name, params = parsed(word, what)
    said = f"{what} {word!r}"
    if trusted:
        _asked.add(word.strip())
    else:
        expect_trusted(word, said)
    module, path = _imported(place, said)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise InputError(f"{said}: {_missing(found, part, place)}")
        found = getattr(found, part)
    files = files_with(module)
    if path is not None and place.endswith(".py"):
        expect_own_imports(path, files, said)
    expect_unchanged(files[1:] if place.endswith(".py") else files, said, shown)
    return UserObject(word.strip(), what, found, params, files)


def function_of(source: Any, what: str, leading: int, **offered: Any) -> Callable[..., Any]:
    """A user's function of `leading` arguments: itself, a class of callables, or what a word `py:...` names.

    `offered`: keyword arguments that it gets if it takes them and the word does not give them. InputError: not
    callable, or no such name.
    """
    return _offered(source, what, offered).function(leading)


def made_of(source: Any, what: str, **offered: Any) -> Any:
    """What a user's class or function gives: itself given, or what a word `py:...` names; see `function_of`."""
    return _offered(source, what, offered).made()


def _offered(source: Any, what: str, offered: Mapping[str, Any]) -> UserObject:
    found = (
        own(source, what) if isinstance(source, str) else UserObject(_named(source), what, source, {}, files_of(source))
    )
    taken = _parameters(found.factory)
    given = {key: value for key, value in offered.items() if key in taken and key not in found.params}
    return replace(found, params={**given, **found.params})


def shown_word(value: Any) -> str:
    """A word as it is; of a function or an object what to call it in tables."""
    return value if isinstance(value, str) else _named(value)


def _named(thing: Any) -> str:
    module = getattr(thing, "__module__", None) or ""
    return f"{module}:{getattr(thing, '__qualname__', type(thing).__qualname__)}"


def _parameters(factory: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return {}


def parsed(word: str, what: str) -> tuple[str, str, dict[str, str]]:
    """File or module, name and parameters of a word `py:...`, without an import; InputError: it is no such word."""
    rest = word.strip().removeprefix(PREFIX)
    found = _MODULE_WORD.fullmatch(rest)
    if found is None or found["place"].endswith(".py"):
        found = _FILE_WORD.fullmatch(rest)
    if found is None or not is_user_code(word):
        raise InputError(f"{what} {word!r}: {EXPECTED}")
    name, given = found["name"], found["rest"] or ""
    return found["place"], name, parse_name(f"{name}:{given}", f"{what} {word!r},")[1]


def expect_trusted(value: Any, where: str) -> None:
    """InputError if a value holds a word `py:...`, at any depth, unless the user trusts these; `where`: its place."""
    if os.environ.get(TRUST) == "1":
        return
    for word in _words(value):
        if word.strip() in _asked:
            continue
        _, name, _ = parsed(word, where)
        raise InputError(
            f"{where}: it names {word!r}, whose code would run; if you trust it say so with --trust-py or {TRUST}=1 "
            f"({name} is not imported until then)"
        )


def _words(value: Any) -> Iterator[str]:
    if is_user_code(value):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _words(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _words(item)


@contextmanager
def blamed(what: str, files: Iterable[Path | str]) -> Iterator[None]:
    """Turn an exception through these files of a user's code into one sentence with the last of their lines."""
    try:
        yield
    except (ClustergymError, KeyboardInterrupt, GeneratorExit):
        raise
    except (Exception, SystemExit) as error:
        place = line_in(error, files)
        if place is None:
            raise
        raise InputError(f"{what}: {_message_of(error)} ({place})") from error


def line_in(error: BaseException, files: Iterable[Path | str]) -> str | None:
    """`FILE, line N`: the last line of these files in the traceback of an error; None if it went through none."""
    wanted = {os.path.realpath(file) for file in files}
    found = None
    if isinstance(error, SyntaxError) and error.filename and os.path.realpath(error.filename) in wanted:
        return f"{shown(Path(error.filename))}, line {error.lineno}"
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file in wanted or os.path.realpath(file) in wanted:
            found = f"{shown(Path(file))}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found


def shown(path: Path) -> str:
    """A path as a message has it: relative to the present folder if it is in there."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _message_of(error: BaseException) -> str:
    text = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _imported(place: str, said: str) -> tuple[ModuleType, Path | None]:
    if place.endswith(".py"):
        path = Path(place).expanduser().resolve()
        if not path.is_file():
            raise InputError(f"{said}: there is no file {path}")
        return _from_file(path, said), path
    _let_import(Path.cwd())
    try:
        module = importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            raise InputError(f"{said}: there is no module {place!r}; {EXPECTED}") from None
        raise InputError(f"{said}: {_message_of(error)}") from error
    except (Exception, SystemExit) as error:
        raise InputError(f"{said}: importing {place}: {_message_of(error)}{_last_line(error)}") from error
    file = getattr(module, "__file__", None)
    return module, None if file is None else Path(file).resolve()


def _from_file(path: Path, said: str) -> ModuleType:
    try:
        stamp = stamp_of(path)
        source = path.read_bytes()
    except OSError as error:
        raise InputError(f"{said}: {path}: {error.strerror}") from None
    if path in _files and _files[path][0] == stamp:
        return _files[path][1]
    if path in _loading:
        raise InputError(
            f'{said}: {shown(path)} names itself while it is imported; put what it runs under if __name__ == "__main__"'
        )
    stem = re.sub(r"\W", "_", path.stem)
    name = f"{_OWN}{stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    before = sys.modules.get(name)
    sys.modules[name] = module
    _let_import(path.parent)
    _loading.add(path)
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        if isinstance(error, Exception | SystemExit) and not isinstance(error, ClustergymError):
            raise InputError(f"{said}: {_message_of(error)}{_last_line(error, path)}") from error
        raise
    finally:
        _loading.discard(path)
    _files[path] = (stamp, module)
    return module


def _last_line(error: BaseException, path: Path | None = None) -> str:
    place = line_in(error, [path]) if path is not None else None
    if place is None and isinstance(error, SyntaxError) and error.filename:
        place = f"{shown(Path(error.filename))}, line {error.lineno}"
    trace = error.__traceback__
    while place is None and trace is not None:
        if trace.tb_next is None and trace.tb_frame.f_code.co_filename != __file__:
            place = f"{shown(Path(trace.tb_frame.f_code.co_filename))}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return f" ({place})" if place else ""


def _let_import(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _missing(found: Any, part: str, place: str) -> str:
    inside = getattr(found, "__name__", None)
    names = [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", None) == inside
    ]
    close = difflib.get_close_matches(part, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{place} has no {part!r}; {hint}it has {', '.join(sorted(names)[:LISTED]) or 'no classes or functions'}"
