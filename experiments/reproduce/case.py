"""One run of a reproduction, whatever the paper: the player, the setting, and what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...envs.configured import gang_room
from ...policies import Policy, make_for
from ...simulator.workloads import Workload, open_workload
from ..playing.evaluation import play, simulator_of
from ..settings.evaluation_setting import Setting
from ..storing.run_files import short_hash
from . import named


@dataclass(frozen=True)
class Case:
    """One run: its fields say all that its numbers depend on besides sources and versions.

    Attributes:
        policy: its word.
        setting: what it is played on; the workload a generator with all its parameters, or a path of prepared jobs.
        seed: of the workload, unless that has its own, of random orders and of policies that draw.
        how: the player, `module:function` of this folder: it takes the case, and returns what is kept of the run.
        given: what that takes besides, by name.
        digest: hash of the content of the workload's file; "" for a generator.
    """

    policy: str
    setting: Setting
    seed: int = 0
    how: str = "case:played"
    given: tuple[tuple[str, Any], ...] = ()
    digest: str = ""

    def on(self, policy: str, seed: int = 0, digest: str = "", **setting: Any) -> Case:
        """The same with another policy and seed, and other fields of its setting."""
        return replace(self, policy=policy, seed=seed, digest=digest, setting=self.setting.copy_with(**setting))

    @property
    def text(self) -> str:
        """The configuration as JSON; where the jobs lie does not matter, what they are does."""
        words = self.setting.words()
        if self.digest:
            words["workload"] = Path(self.setting.workload).name
        own = {name: getattr(self, name) for name in ("policy", "seed", "how", "given", "digest")}
        return json.dumps({**own, "setting": words}, sort_keys=True)

    @property
    def key(self) -> str:
        """Hash of the configuration, which names the file."""
        return short_hash(self.text)

    @property
    def workload(self) -> Workload:
        """The jobs."""
        setting, seed = self.setting, self.seed if self.setting.is_drawn else 0
        return _workload(setting.environment, setting.workload, setting.topology, seed)

    def begun(self, workload: Workload | None = None) -> tuple[Any, Policy]:
        """The simulator at the first decision, on these jobs or its own, and the policy."""
        policy = make_for(self.policy, self.setting.environment)
        simulator = simulator_of(self.setting.config, policy)
        simulator.reset(self.workload if workload is None else workload, self.seed)
        return simulator, policy

    def columns(self) -> Mapping[str, Any]:
        """Play it: what is kept (`run_files.save`)."""
        kept: Mapping[str, Any] = named(self.how)(self, **dict(self.given))
        return kept

    def outcome(self) -> Outcome:
        """Play it: what it gave."""
        return Outcome.of(self.columns())


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run gave; see the function that played it.

    Attributes:
        metrics: by the names of `simulator/engine/metrics.py`, and what else is one number.
        columns: name -> array; `outcome["jct_s"]` is one of them.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, held: Mapping[str, Any]) -> Outcome:
        """From what was kept."""
        columns = {
            name: value if isinstance(value, np.ndarray) else np.array(value, dtype=str)
            for name, value in held.items()
            if name != "metrics"
        }
        return cls(held.get("metrics", {}), columns)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]


@lru_cache(maxsize=128)
def _workload(environment: str, word: str, topology: str, seed: int) -> Workload:
    return open_workload(word, seed=seed, cluster_gpus=gang_room(environment, topology))


def played(case: Case) -> Mapping[str, Any]:
    """As `evaluate` plays: metrics, and `jct_s` of the finished jobs."""
    run = play(case.setting, case.policy, case.seed)
    return {"metrics": run.metrics, "jct_s": run.jct_s}
