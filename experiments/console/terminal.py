"""Output of the commands: consoles, JSON, warnings on one line, progress, errors of arguments."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ...simulator.base.errors import InputError
from ...simulator.compiler.compile_messages import messages_to

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
PIPE_WIDTH = 120  # columns where the output is no terminal
typed: ContextVar[str] = ContextVar("typed", default="")  # the command that runs, on one line
_json_to: ContextVar[TextIO | None] = ContextVar("json_to", default=None)  # stdout, inside `json_alone`
PLAIN_PROGRESS_S = 15.0  # between two lines of progress where stderr is no terminal


class BadArgument(InputError):
    """A mistake in the arguments: exit status 2, as for an unknown option."""


@contextmanager
def arguments() -> Iterator[None]:
    """Mistakes in names and values inside are mistakes of the command line."""
    try:
        yield
    except InputError as error:
        raise BadArgument(str(error)) from None


@contextmanager
def word_or_file(word: str) -> Iterator[None]:
    """A mistake inside is the argument's, unless `word` names a file: then its content is at fault."""
    try:
        yield
    except InputError as error:
        if _exists(word):
            raise
        raise BadArgument(str(error)) from None


def _exists(word: str) -> bool:
    try:
        return os.path.exists(word)
    except ValueError:  # a NUL byte
        return False


def out() -> Console:
    """The console on stdout; wide enough for a table where it is a pipe."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(shown(text), **options)

        def render(self, *what: Any, **options: Any) -> Iterator[Segment]:
            for segment in super().render(*what, **options):  # those of texts that were made elsewhere too
                yield segment if segment.control else segment._replace(text=shown(segment.text))

    console = Shown(file=sys.stdout, highlight=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Shown(file=sys.stdout, highlight=False, width=PIPE_WIDTH)
    return console


def print_lines(*lines: str) -> None:
    """Lines on stdout, each as long as it is."""
    for line in lines:
        out().print(line, markup=False, soft_wrap=True)


def shown(text: str) -> str:
    """`text` with control characters (as ESC) escaped as Python writes them."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def styled(content: str, style: str = "") -> Text:
    """`content` as it is, without markup, in a style."""
    from rich.text import Text

    return Text(content, style=style)


def plain_table(**style: Any) -> Table:
    """An empty table in the style of all commands."""
    from rich import box
    from rich.table import Table

    return Table(**{"box": box.SIMPLE_HEAD, "pad_edge": False, **style})


@contextmanager
def json_alone() -> Iterator[None]:
    """Inside, only `print_json` writes to stdout; what anything else prints, as a user's module, goes to stderr."""
    before = _json_to.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _json_to.reset(before)


def print_json(value: Any) -> None:
    """`value` as one JSON document on stdout; what is not a finite number becomes null."""
    (_json_to.get() or sys.stdout).write(json.dumps(jsonable(value), indent=2, allow_nan=False) + "\n")


def jsonable(value: Any) -> Any:
    """`value` in the types of JSON: numpy numbers unwrapped, tuples as lists, nan and infinities as None."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def one_line(text: object) -> str:
    """`text` without line breaks and control characters."""
    return shown(" ".join(str(text).split()))


def say(text: object) -> None:
    """One line on stderr."""
    print(f"clustergym: {one_line(text)}", file=sys.stderr, flush=True)


@contextmanager
def warnings_on_one_line(quiet: bool) -> Iterator[None]:
    """Print each different warning inside as one line on stderr; if `quiet`, no warnings and no notes on compiling."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not quiet and str(message) not in said:
            said.add(str(message))
            say(f"warning: {message}")

    from ...simulator.base.said_once import SettingWarning
    from ...simulator.jobs.workload import WorkloadWarning

    with warnings.catch_warnings(), messages_to(lambda text: None) if quiet else nullcontext():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", WorkloadWarning)
        warnings.simplefilter("always", SettingWarning)
        warnings.showwarning = show
        yield


@contextmanager
def progress(what: str, total: float, quiet: bool) -> Iterator[Callable[[float], None]]:
    """A function that takes the part of `total` that is done: a bar on a terminal, else a line now and then."""
    if quiet:
        with messages_to(lambda text: None):
            yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield _plain_progress(what, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        with messages_to(lambda text: bar.update(task, description=what if text is None else f"{what}, {text}")):
            yield lambda done: bar.update(task, completed=done)


def _plain_progress(what: str, total: float) -> Callable[[float], None]:
    last_s = time.monotonic()

    def show(done: float) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= PLAIN_PROGRESS_S:
            last_s = time.monotonic()
            say(f"{what}: {100 * done / total:.0f} %")

    return show


def expect_writable(path: Path, what: str, *sources: str | Path) -> None:
    """Raise InputError before the work if a file cannot be written there, or is one of those that are read."""
    folder = path.parent
    if path.is_dir():
        raise InputError(f"{what} {path}: this is a folder; expected the name of a file")
    if not folder.is_dir():
        raise InputError(f"{what} {path}: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"{what} {path}: permission denied")
    if path.exists() and any(_exists(str(source)) and path.samefile(source) for source in sources):
        raise InputError(f"{what} {path}: this is the file that is read; name another one")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A path to write to; it takes the place of `path` when the block ends well, and vanishes otherwise."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield draft
        os.replace(draft, path)
    except OSError as error:  # the error of a full disk has no file name
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        draft.unlink(missing_ok=True)
