"""Where work is done: in other processes of this machine, or on a cluster (`on_ray.py`).

Evaluations, reproductions, tuning and trainings hand their work out here and nowhere else. Work is a function of a
module and an item of plain data that says all it depends on; its result comes back and is kept by who handed it out.
So nothing but this process writes into a folder of results, wherever the work was done.
"""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ...agents.playing.sb3_zip import VARIABLE
from ...simulator.files.own_code import TRUST

TRUSTS = (TRUST, VARIABLE)  # in the environment: what a user allows to run
LOOK_S = 1.0  # how often a process looks whether the one that began it is there
Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Who does work elsewhere."""

    @property
    def count(self) -> int:
        """How many items are worked on at once, as `command.json` has it."""

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """What `work` gives for each item, in the order in which they end.

        Items are taken as they are needed, so they may depend on what has come back before. What `work` raises is
        raised here; closing the iterator leaves what has not ended.

        Args:
            work: a function of a module; what is wrong with an item it says by `InputError`.
            items: of plain data; relative paths in their words are of this process's present folder.
        """


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, each with one thread.

    Attributes:
        count: how many, >= 1.
    """

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
    """Leave what has not ended; joblib would warn of it, where somebody has pressed Ctrl-C."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results.close()


def _for_parent(parent: int, here: tuple[str, Mapping[str, str]], work: Callable[[Item], Result], item: Item) -> Result:
    """Work on an item for the process that began this one, and as long as that is there."""
    _end_with(parent)
    return quietly(here, work, item)


@functools.cache
def _end_with(parent: int) -> None:
    """From now on this process ends when the one that began it has: after a SIGKILL nobody else would tell it.

    A terminal sends Ctrl-C to both; who hears it between two items says so at length, in the middle of our sentence.
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
    """Work on an item in another process, without warnings, which the first process has said.

    Processes outlive the call that began them: `here` is the present folder, which words may be relative to, and what
    the user allows now.
    """
    folder, trusted = here
    os.chdir(folder)
    os.environ.update(trusted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(item)


def elsewhere(executor: Executor | None, processes: int, items: int) -> Executor | None:
    """Who does so many items of work; None: this process, one after the other.

    Args:
        executor: who was asked for; None: processes of this machine.
        processes: how many of these.
        items: how many there are to do.
    """
    if executor is not None:
        return executor
    return Processes(min(processes, items)) if processes > 1 and items > 1 else None


def count_of(executor: Any, processes: int) -> int:
    """How many processes work at once, for the log of commands."""
    return processes if executor is None else int(executor.count)
