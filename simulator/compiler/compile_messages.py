"""Messages to the user while code is compiled: what, for what size, and how long it has taken so far."""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PATIENCE_S = 0.7  # what is over sooner is not worth a word
TICK_S = 1.0
LINE_S = 15.0  # between two lines where stderr is no terminal

_about: ContextVar[str] = ContextVar("about")
_last = ["kernels"]  # what it was about last, for what is called outside
_spent: defaultdict[str, float] = defaultdict(
    float
)  # seconds by what they were spent on: several entries may be compiled for one step


@contextmanager
def about(what: str) -> Iterator[None]:
    """What is compiled inside is called so: "Delay-v0 for up to 136 jobs on 72 GPUs"."""
    before = _about.set(what)
    _last[0] = what
    try:
        yield
    finally:
        _about.reset(before)


@contextmanager
def waiting_message(doing: str = "compiling") -> Iterator[None]:
    """The block inside waits for code that is compiled: say so if it takes long."""
    what, began, over = f"{doing} {_about.get(_last[0])}", time.monotonic(), threading.Event()

    def tick() -> None:
        wait_s = max(0.0, PATIENCE_S - _spent[what])
        while not over.wait(wait_s):
            _messages[-1].say(what, _spent[what] + time.monotonic() - began)
            wait_s = TICK_S

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()
        _spent[what] += time.monotonic() - began
        _messages[-1].over()


def remark(sentence: str) -> None:
    """Say it on stderr, whatever is shown there meanwhile."""
    _messages[-1].over()
    sys.stderr.write(f"clustergym: {sentence}\n")
    sys.stderr.flush()


class Messages:
    """Says it on stderr: a line that is refreshed on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._lines: dict[str, float] = {}  # when the last one was written, by what
        self._is_shown = False

    def say(self, what: str, seconds: float) -> None:
        """`what` has taken so many seconds."""
        if sys.stderr.isatty():
            self._is_shown = True
            self._write(f"\r\x1b[2Kclustergym: {what} (once): {seconds:.0f} s")
        elif what not in self._lines:
            self._lines[what] = time.monotonic()
            self._write(f"clustergym: {what} (once) ...\n")
        elif time.monotonic() - self._lines[what] >= LINE_S:
            self._lines[what] = time.monotonic()
            self._write(f"clustergym: {what}: {seconds:.0f} s so far\n")

    def over(self) -> None:
        """The wait is over."""
        if self._is_shown:
            self._is_shown = False
            self._write("\r\x1b[2K")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class MessagesTo(Messages):
    """Says it by a function, which is given None when it is over."""

    def __init__(self, show: Callable[[str | None], None]) -> None:
        super().__init__()
        self._show = show

    def say(self, what: str, seconds: float) -> None:
        """`what` has taken so many seconds."""
        self._show(f"{what} (once): {seconds:.0f} s")

    def over(self) -> None:
        """The wait is over."""
        self._show(None)


_messages = [Messages()]


@contextmanager
def messages_to(show: Callable[[str | None], None]) -> Iterator[None]:
    """Inside, `show` is called with what to say, once a second and from another thread, and at last with None."""
    _messages.append(MessagesTo(show))
    try:
        yield
    finally:
        _messages.pop()
