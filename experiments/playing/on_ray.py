"""Work on a Ray cluster: Ray hands it to machines, and again where one is lost.

The sources of clustergym go with the job (Ray's `working_dir`), files that words name as Ray's objects, each once; a
machine lays them out below its working directory, which Ray removes when the job has ended. Only this process keeps
results. So the machines need Python, Ray and the libraries in the same versions, and no shared disk.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import itertools
import logging
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...simulator.base.errors import InputError, MissingExtra
from ..console.versions import LIBRARIES, versions
from . import shipping
from .executors import Item, Result, quietly

Sent = tuple[str, str, Any]  # a file's place there, its hash, and its object of Ray
LOCAL = "local"
TRIES = 5  # of a task whose process or machine was lost: Ray hands it out again
AHEAD = 1  # tasks more than processors, so that a cluster that can grow sees that more is wanted
TASK_S = 1.0  # short runs go there several at a time: handing out a task costs some milliseconds
MOST_AT_ONCE = 100
REACH_S = 10.0
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS")
TAKEN_ALONG = ("CLUSTERGYM_",)  # beginnings of environment variables: trusted code, options of compiling


def expect_installed() -> None:
    """Raise MissingExtra without Ray, InputError where another module named ray hides it."""
    try:
        import ray

        there = hasattr(ray, "init")
    except ImportError:
        there = False
    if there:
        return
    found = importlib.util.find_spec("ray")
    if found is not None and found.origin is not None:  # None: a folder without modules hides nothing
        raise InputError(
            f"--ray: {Path(found.origin).parent} is called ray too, and Python finds it before Ray; "
            "rename it, or give the command in another folder"
        )
    raise MissingExtra('--ray needs Ray; install it with: pip install "clustergym[ray]"')


@dataclass
class RayCluster:
    """A Ray cluster: `auto` (of this machine), `local` (until the command ends), HOST:PORT, or ray://HOST:PORT.

    Raises:
        MissingExtra: Ray is not installed.
        InputError: there is no such cluster, or it has other versions of Python or Ray.
    """

    address: str
    _files: dict[str, shipping.Named] = field(default_factory=dict, repr=False)
    _moved: dict[str, str] = field(default_factory=dict, repr=False)
    _sent: dict[tuple[Path, tuple[int, int]], tuple[str, Any]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        expect_installed()
        _connect(self.address)

    @property
    def count(self) -> int:
        """Processors of the cluster now; machines may come and go."""
        import ray

        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """See `Executor`; items whose process or machine is lost are worked on again, TRIES times at most."""
        import ray

        shipping.forget()
        task = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_work)
        waiting = iter(items)
        running: dict[Any, Mapping[str, str]] = {}  # task -> other name there -> name here
        size = 1
        try:
            while True:
                self._hand_out(task, work, waiting, running, size)
                if not running:
                    return
                ended, _ = ray.wait(list(running), num_returns=1)
                for ref in ended:
                    back = running.pop(ref)
                    seconds, results = _outcome(ref, back)
                    size = max(1, min(MOST_AT_ONCE, int(TASK_S * len(results) / max(seconds, 1e-6))))
                    for result in results:
                        yield shipping.changed(result, back)
        finally:
            for ref in running:
                ray.cancel(ref, force=True)

    def _hand_out(self, task: Any, work: Any, waiting: Iterator[Any], running: dict[Any, Any], size: int) -> None:
        """Hand out waiting items until every processor has some; `size` items a task."""
        room = AHEAD + self.count
        while len(running) < room:
            items = list(itertools.islice(waiting, size))
            if not items:
                return
            sent, back = self._sent_with(items)
            running[task.remote(work, shipping.changed(items, self._moved), sent, versions(*LIBRARIES))] = back

    def _sent_with(self, items: list[Any]) -> tuple[list[Sent], dict[str, str]]:
        """All files that were named so far (a machine then lays out few folders), and their names there -> here."""
        files, moved = shipping.needed(items)
        self._files |= {one.place: one for one in files}
        self._moved |= moved
        sent = [(one.place, *self._object(one)) for _, one in sorted(self._files.items())]
        return sent, {after: before for before, after in self._moved.items()}

    def _object(self, one: shipping.Named) -> tuple[str, Any]:
        """A file as an object of Ray, and its hash; each goes to the cluster once."""
        import ray

        known = self._sent.get((one.path, one.stamp))
        if known is None:
            data = one.path.read_bytes()
            known = hashlib.sha256(data).hexdigest()[:20], ray.put(data)
            self._sent[one.path, one.stamp] = known
        return known


def _outcome(ref: Any, back: Mapping[str, str]) -> tuple[float, list[Any]]:
    """The seconds of a task, and results of its items; InputError of the work, or where the task was lost each time."""
    import ray
    from ray import exceptions as lost

    try:
        found: tuple[float, list[Any]] = ray.get(ref)
        return found
    except lost.RayTaskError as error:
        cause = error.cause if isinstance(getattr(error, "cause", None), Exception) else None
        if not isinstance(cause, InputError):
            raise
        raise type(cause)(shipping.changed(str(cause), back)) from None
    except (lost.NodeDiedError, lost.WorkerCrashedError, lost.ObjectLostError, lost.LocalRayletDiedError) as error:
        raise InputError(f"--ray: the same work was lost {TRIES} times, the last time so: {_short(error)}") from None
    except lost.OutOfMemoryError as error:
        raise InputError(f"--ray: a machine of the cluster ran out of memory ({_short(error)})") from None
    except lost.RuntimeEnvSetupError as error:
        raise InputError(f"--ray: a machine cannot be given the sources ({_short(error)})") from None


def _work(work: Any, items: list[Any], sent: list[Sent], known: Mapping[str, str]) -> tuple[float, list[Any]]:
    """On a machine of the cluster: lay out the files, and work beside them; returns seconds and results."""
    expect_libraries(known)
    here = str(_laid_out(sent)), dict[str, str]()  # trusted code is in the job's environment
    began_s = time.monotonic()
    results = [quietly(here, work, item) for item in items]
    return time.monotonic() - began_s, results


def expect_libraries(known: Mapping[str, str]) -> None:
    """InputError where a library that numbers depend on has another version here than in `known`: name -> version."""
    here = versions(*LIBRARIES)
    for name in LIBRARIES:
        if here.get(name) != known.get(name):
            raise InputError(
                f"--ray: {name} is {here.get(name, 'not there')} on {socket.gethostname()} and {known.get(name)} where "
                "results are kept; numbers may depend on it: install the same on all machines"
            )


def _laid_out(sent: list[Sent]) -> Path:
    """The folder of work with these files; made once a machine, as a whole or not at all."""
    import ray

    root = _home() / "work"
    listing = "\n".join(f"{place}\0{digest}" for place, digest, _ in sent)
    folder = root / hashlib.sha256(listing.encode()).hexdigest()[:20]
    if folder.is_dir():
        return folder
    root.mkdir(exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=root))
    for place, digest, ref in sent:
        blob = root / f"{digest}.file"
        if not blob.exists():
            part = root / f"{digest}.{os.getpid()}"
            part.write_bytes(ray.get(ref))
            os.replace(part, blob)
        (draft / place).parent.mkdir(parents=True, exist_ok=True)
        os.link(blob, draft / place)
    try:
        os.replace(draft, folder)
    except OSError:  # another process of this machine was faster
        shutil.rmtree(draft)
    return folder


@functools.cache
def _home() -> Path:
    """The job's working directory on this machine, with the sources; a process of Ray begins in it."""
    return Path.cwd()


def _connect(address: str) -> None:
    import ray

    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    variables = dict.fromkeys(THREADS, "1")
    variables |= {name: value for name, value in os.environ.items() if name.startswith(TAKEN_ALONG)}
    with tempfile.TemporaryDirectory(prefix="clustergym-") as folder:
        _expect_reachable(address)
        shipping.write_package(Path(folder))
        try:
            quiet: Any = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
            job = {"working_dir": folder, "env_vars": variables}
            ray.init(address, runtime_env=job, include_dashboard=False if address == LOCAL else None, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InputError(
                f"--ray {address}: {_short(error)}; expected auto in a cluster that runs (ray start "
                "--head begins one), its HOST:PORT, or local"
            ) from None
    with suppress(Exception):  # it says on stdout, where JSON may be, that machines were lost; we do so ourselves
        from ray._private import worker

        worker.print_to_stdstream = lambda data, ignore_prefix: None
    atexit.register(ray.shutdown)


def _expect_reachable(address: str) -> None:
    """InputError where nothing listens at HOST:PORT; Ray would try for minutes."""
    found = re.fullmatch(r"(?:ray://)?\[?(?P<host>[^/]+?)\]?:(?P<port>\d{1,5})", address)
    if found is None:
        if address not in (LOCAL, "auto"):
            raise InputError(f"--ray {address}: expected auto, local, HOST:PORT or ray://HOST:PORT")
        return
    try:
        socket.create_connection((found["host"], int(found["port"])), timeout=REACH_S).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--ray {address}: no answer from there ({reason}); expected a cluster that runs") from None


def _short(error: object) -> str:
    return " ".join(str(error).split()).partition(". ")[0].rstrip(".")[:300]
