"""Executors of work: other processes of this machine, or a cluster (`on_ray.py`).

Evaluations, reproductions, tuning and trainings use them. Work is a function of a module and an item of plain data that
holds all it depends on; the caller keeps the results. So only this process writes into a folder of results.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ...agents.playing.sb3_zip import VARIABLE
from ...simulator.files.user_code import TRUST

TRUSTS = (TRUST, VARIABLE)  # variables of the environment: code that a user allows
LOOK_S = 1.0  # how often a process looks whether the one that began it is there
Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Does work elsewhere."""

    @property
    def count(self) -> int:
        """Number of items that are worked on at once, as in `command.json`."""

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The result of `work`, a function of a module, for each item of plain data, in the order in which they end.

        Items are taken as they are needed, so they may depend on earlier results. Relative paths in their words are of
        this process's present folder. Errors of `work` are raised here; it raises `InputError` for a bad item. Closing
        the iterator leaves the items that have not ended.
        """


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, each with one thread; `count` >= 1."""

    count: int = 1

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """See `Executor`."""
        from joblib import Parallel, delayed, parallel_config

        here = os.getcwd(), {name: os.environ.get(name, "") for name in TRUSTS}
        with parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = Parallel(n_jobs=self.count, return_as="generator_unordered")
            results = parallel(delayed(_for_parent)(os.getpid(), here, work, item) for item in items)
            try:
                for result in results:  # noqa: UP028  `yield from` would close it before we can
                    yield result
            finally:
                _close(results)


def _close(results: Generator[Any, None, None]) -> None:
    """Leave the items that have not ended, without joblib's warning after Ctrl-C."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results.close()


def _for_parent(parent: int, here: tuple[str, Mapping[str, str]], work: Callable[[Item], Result], item: Item) -> Result:
    _end_with(parent)
    return quietly(here, work, item)


@functools.cache
def _end_with(parent: int) -> None:
    """End this process when the parent has ended: after a SIGKILL there is no other notice.

    A terminal sends Ctrl-C to both; a process that hears it between two items prints a traceback into our sentence.
    """
    if os.getppid() == parent:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_await_end, args=(parent,), daemon=True).start()


def _await_end(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)


def quietly(here: tuple[str, Mapping[str, str]], work: Callable[[Item], Result], item: Item) -> Result:
    """Work on an item in another process, without warnings, which the first process has printed; prints go to stderr.

    Processes outlive the call that began them: `here` is the present folder, for relative paths in words, and the
    user's permissions now.
    """
    folder, trusted = here
    os.chdir(folder)
    os.environ.update(trusted)
    with warnings.catch_warnings(), redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        return work(item)


def elsewhere(executor: Executor | None, processes: int, items: int) -> Executor | None:
    """The executor of so many items: the given one, or so many processes; None: this process works, item by item."""
    if executor is not None:
        return executor
    return Processes(min(processes, items)) if processes > 1 and items > 1 else None


def count_of(executor: Any, processes: int) -> int:
    """Number of processes that work at once, for the log of commands."""
    return processes if executor is None else int(executor.count)
