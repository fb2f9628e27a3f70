"""Ctrl-C: within a second the results so far are kept, and the command to go on is printed.

Python hands a signal to the main thread between two lines of Python. While that thread compiles, or a library has
swallowed the exception, there would be no answer for seconds. So another thread waits for signals too; where the main
thread does not answer in time, it does, and ends the process. That is safe: files on disk are replaced whole.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from .terminal import say

INTERRUPTED = 130
ANSWER_S = 0.6  # that the main thread has to answer,
LEAVE_S = 20.0  # and then to keep the results and to end


@dataclass(frozen=True)
class _Work:
    words: str
    keep: Callable[[], None]
    said: threading.Lock = field(default_factory=threading.Lock)  # held once the words are printed


_work: list[_Work] = []  # the work in progress, the outermost first
_answered = threading.Event()


@contextmanager
def leaving(words: str, keep: Callable[[], None] = lambda: None) -> Iterator[None]:
    """On Ctrl-C inside: call `keep`, in any thread, and say `words`; only the outermost of several does."""
    _answered.clear()
    _work.append(_Work(words, keep))
    try:
        yield
    except KeyboardInterrupt:
        leave()
        raise
    finally:
        _work.pop()


def leave() -> None:
    """After Ctrl-C: keep the results so far and say how to go on; once."""
    is_first, work = not _answered.is_set(), next(iter(_work), None)
    _answered.set()
    if work is None:
        if is_first:
            say("interrupted")
        return
    if not work.said.acquire(blocking=False):
        return
    try:
        work.keep()
    except Exception as error:
        say(f"interrupted; not kept: {error}")
    else:
        say(work.words)


def watch() -> None:
    """From now on this process answers Ctrl-C in time."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(read_end,), daemon=True).start()


def _wait(heard: int) -> None:
    while (number := os.read(heard, 1)) and number[0] != signal.SIGINT:
        pass
    if _answered.wait(ANSWER_S):
        threading.Event().wait(LEAVE_S)  # the main thread ends the process, unless it hangs
    else:
        leave()
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # a bar of progress hides the cursor
        sys.stderr.flush()
    os._exit(INTERRUPTED)
