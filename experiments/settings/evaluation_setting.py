"""The setting of a comparison, as words, and what they open: workload, network, a user's files."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from ...envs.configured import config_class, config_of, gang_room
from ...envs.registration import ENVIRONMENTS, resolve
from ...policies.own import installed
from ...policies.registry import OURS
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose, parse_name
from ...simulator.configuration.cluster_config import SimulatedCluster
from ...simulator.configuration.network_choice import Network, load_network
from ...simulator.engine.time_window import Window
from ...simulator.files.file_marks import MARK, MayBeFile, marked, read_by, without_files
from ...simulator.files.regular_files import stamp_of
from ...simulator.files.user_code import PREFIX, is_user_code, shown_word
from ...simulator.files.user_code_files import files_of
from ...simulator.rules.semantics import Semantics
from ...simulator.workloads import A_WORKLOAD, Workload, open_workload
from ...simulator.workloads import is_path as is_trace

GROUPS = ("user", "tenant", "model", "gpus", "level", "hour", "region", "copy")  # see playing/by_group.py


@dataclass(frozen=True)
class Setting:
    """The setting of a comparison: all but the policy and the seed.

    Attributes:
        environment: the id whose policies these are.
        workload: a word or the path of a file, or a user's own object, as `open_workload` takes it.
        config: the cluster, its topology and network words, paths or a user's own objects.
        format: of a trace; None recognises it.
        oversize: treatment of jobs larger than the cluster (`error`, `drop`, `cap`).
        window: "START/END", seconds since the first arrival: metrics are of that time and the jobs that arrive in it
            (simulator/engine/time_window.py); None: of the whole run.
        by: metrics are also of each group of jobs, by one of GROUPS, or of each kind of `copy` of a table
            (playing/by_group.py); several: `user/hour`; None: of all jobs alone.
    """

    environment: str
    workload: Any = field(metadata={MARK: A_WORKLOAD})
    config: SimulatedCluster
    format: str | None = None
    oversize: Literal["error", "drop", "cap"] = "error"
    window: str | None = None
    by: str | None = None

    @classmethod
    def of(
        cls,
        environment: str,
        topology: Any = None,
        workload: Any = None,
        network: Any = None,
        *,
        format: str | None = None,
        oversize: Literal["error", "drop", "cap"] = "error",
        window: str | None = None,
        by: str | None = None,
        **options: Any,
    ) -> Setting:
        """The setting of an environment, by id or short name; None stands for its default.

        Args:
            environment, topology, workload, network, format, oversize, window, by: see the class.
            options: of the cluster, as the environment's keyword arguments.

        Raises:
            InputError: a value that does not fit.
        """
        env_id = resolve(environment)
        workload = ENVIRONMENTS[env_id].defaults["workload"] if workload is None else workload
        window_text = Window.load(window).describe() if window else None
        for one in () if by is None else by.split("/"):
            choose(one, GROUPS, "by")
        return cls(env_id, workload, config_of(env_id, topology, network, **options), format, oversize, window_text, by)

    @classmethod
    def from_words(cls, words: Mapping[str, Any]) -> Setting:
        """The setting of `words`; None stands for a default."""
        given = {key: value for key, value in words.items() if value is not None}
        own = {one.name: given.pop(one.name) for one in fields(cls) if one.name in given}
        if isinstance(older := own.pop("config", ""), str):
            given |= parse_name(f"config:{older}")[1]
        kind = config_class(own["environment"])
        values = kind.from_words({key: value for key, value in given.items() if key in kind.options()}, "setting")
        return cls(**own, config=kind.of(given["topology"], given["network"], **values))

    def copy_with(self, **changes: Any) -> Setting:
        """A setting with other values of some of its fields, or of fields and options of its cluster."""
        own = {one.name: changes.pop(one.name) for one in fields(self) if one.name in changes}
        return replace(self, **{"config": self.config.copy_with(**changes), **own})

    @property
    def topology(self) -> Any:
        """The cluster's."""
        return self.config.topology

    @property
    def network(self) -> Any:
        """The cluster's."""
        return self.config.network

    @property
    def groupings(self) -> tuple[str, ...]:
        """Each of `by`."""
        return () if self.by is None else tuple(dict.fromkeys(self.by.split("/")))

    @property
    def is_drawn(self) -> bool:
        """Whether the workload is drawn anew for each seed: a generator without a seed of its own, or a user's."""
        if is_user_code(self.workload) or not isinstance(self.workload, str | Path):
            return not isinstance(self.workload, Workload)
        if self.format is not None or is_trace(str(self.workload)):
            return False
        return "seed" not in parse_name(str(self.workload), "workload")[1]

    def words(self) -> dict[str, Any]:
        """All that it is, in writing; an object by its name."""
        own = {"environment": self.environment, "workload": shown_word(self.workload)}
        more = {"format": self.format, "oversize": self.oversize, "window": self.window}
        more |= {} if self.by is None else {"by": self.by}
        return own | self.config.words() | more


def network_of(setting: Setting) -> Network:
    """The network of a setting; the semantics say what `duration_s` means, unless the network's words do."""
    return load_network(setting.network, setting.config.semantics.duration)


def workload_of(setting: Setting, seed: int) -> Workload:
    """The workload of one seed, checked against the cluster; the last two are kept while their files stay the same."""
    config = setting.config
    source = (setting.environment, setting.workload, setting.format, setting.oversize)
    cluster: Any = config.topology  # not a dict
    return _workload(source, cluster, config.semantics, seed, stamps(setting))


def named(setting: Setting) -> Iterator[tuple[str, MayBeFile, Any]]:
    """Values of a setting that may be a file, or a user's own: name, mark, value."""
    for name, mark, value in marked(setting):
        is_trace = name == "workload" and setting.format is not None and isinstance(value, str)
        yield name, mark, Path(value) if is_trace else value  # whose name may be a generator's too


def stamps(setting: Setting) -> tuple[Any, ...]:
    """Time and size of all files that a setting reads: they change when one is written."""
    return tuple(
        read_by(value, mark, name).stamps
        if isinstance(value, str | Path)
        else tuple((str(path), stamp_of(path)) for path in own_files(value))
        for name, mark, value in named(setting)
    )


def own_files(value: Any) -> tuple[Path, ...]:
    """The files that a user's class, function or object is written in."""
    return files_of(value if hasattr(value, "__qualname__") else type(value))


def words_without_files(setting: Setting) -> dict[str, Any]:
    """`Setting.words` with one placeholder for every path and user's object."""
    replaced = {name: without_files(str(shown_word(value)), mark) for name, mark, value in named(setting)}
    return setting.words() | replaced


def speeds_of(setting: Setting) -> str | None:
    """The word or the path of the speeds of models on unit types; None: there are none."""
    word: str = getattr(setting.config, "speeds", "none")
    return None if word in ("", "none") else word


@functools.lru_cache(maxsize=2)
def _workload(
    source: tuple[str, Any, str | None, Any], cluster: Any, semantics: Semantics, seed: int, _stamps: tuple[Any, ...]
) -> Workload:
    environment, word, format, oversize = source
    room = gang_room(environment, cluster)
    workload = open_workload(word, format=format, seed=seed, oversize=oversize, cluster_gpus=room)
    if "regions" in ENVIRONMENTS[environment].features and workload.geo is None and workload.ps is None:
        said = f"workload {workload.name!r} asks nothing of regions"
        raise InputError(f"{said}; {environment} expects one that does, as mast-like")
    semantics.chunk_on(workload)  # its warning appears here, in the first process
    return workload


def may_draw(setting: Setting, player: Any) -> bool:
    """Whether seeds can differ unseen by a run's record: a drawn workload, or parts of a user's own."""
    if setting.is_drawn or not isinstance(player, str):
        return True
    theirs = {PREFIX.removesuffix(":"), *installed(OURS)}
    if not theirs.isdisjoint(re.split("[:,=+]", player)):
        return True
    return any(is_user_code(value) or _is_foreign(value) for _, _, value in named(setting))


def _is_foreign(value: Any) -> bool:
    if isinstance(value, str | Path | Mapping):
        return False
    place = value if hasattr(value, "__qualname__") else type(value)
    return place.__module__.partition(".")[0] not in ("builtins", __name__.partition(".")[0])
