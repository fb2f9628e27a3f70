"""clustergym: scheduling deep-learning jobs on GPU clusters, as a fast simulator and Gymnasium environments.

The import registers the environments with Gymnasium and is cheap: rooms (`clustergym.policies`) and public names
(`clustergym.Start`, `clustergym.Simulator`) are imported at their first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .envs.registration import register as _register
from .simulator.engine.protocols import install_policies as _install_policies
from .simulator.engine.rule_loop import install_loop as _install_loop

if TYPE_CHECKING:  # what __getattr__ brings, for type checkers and editors
    from . import agents as agents
    from . import envs as envs
    from . import experiments as experiments
    from . import policies as policies
    from . import simulator as simulator
    from .envs.masks import action_masks as action_masks
    from .envs.registration import make_vec as make_vec
    from .envs.snapshot import Snapshot as Snapshot
    from .experiments import Run as Run
    from .experiments import Setting as Setting
    from .experiments import against as against
    from .experiments import evaluate as evaluate
    from .experiments import open_store as open_store
    from .experiments import read_evaluation as read_evaluation
    from .policies import Policy as Policy
    from .policies import RulePolicy as RulePolicy
    from .policies.planning import PlanningPolicy as PlanningPolicy
    from .simulator.base.decisions import Advance as Advance
    from .simulator.base.decisions import AssignGroup as AssignGroup
    from .simulator.base.decisions import Decision as Decision
    from .simulator.base.decisions import Drop as Drop
    from .simulator.base.decisions import Hold as Hold
    from .simulator.base.decisions import Migrate as Migrate
    from .simulator.base.decisions import Move as Move
    from .simulator.base.decisions import Preempt as Preempt
    from .simulator.base.decisions import Replicate as Replicate
    from .simulator.base.decisions import Resize as Resize
    from .simulator.base.decisions import SetMachines as SetMachines
    from .simulator.base.decisions import SetSpill as SetSpill
    from .simulator.base.decisions import Shift as Shift
    from .simulator.base.decisions import Start as Start
    from .simulator.base.errors import ClustergymError as ClustergymError
    from .simulator.base.errors import Endless as Endless
    from .simulator.base.errors import InputError as InputError
    from .simulator.base.errors import InvalidDecision as InvalidDecision
    from .simulator.base.errors import MissingExtra as MissingExtra
    from .simulator.base.errors import Stalled as Stalled
    from .simulator.base.tiers import MACHINE as MACHINE
    from .simulator.base.tiers import NETWORK as NETWORK
    from .simulator.base.tiers import RACK as RACK
    from .simulator.base.tiers import SLOT as SLOT
    from .simulator.cluster.topology import Topology as Topology
    from .simulator.engine.plans import Plan as Plan
    from .simulator.engine.plans import plan_now as plan_now
    from .simulator.engine.simulator import Simulator as Simulator
    from .simulator.engine.view import ClusterView as ClusterView
    from .simulator.events.initialise import Failures as Failures
    from .simulator.groups.group_config import GroupConfig as GroupConfig
    from .simulator.groups.group_config import GroupTerms as GroupTerms
    from .simulator.groups.group_simulator import GroupSimulator as GroupSimulator
    from .simulator.groups.group_view import GroupView as GroupView
    from .simulator.jobs.estimates import Estimates as Estimates
    from .simulator.jobs.ps_jobs import PsJobs as PsJobs
    from .simulator.network.network_model import Network as Network
    from .simulator.profiles.models import load_profiles as load_profiles
    from .simulator.rules.rule import Rule as Rule
    from .simulator.rules.rule import Tuner as Tuner
    from .simulator.sharing.sharing_model import Sharing as Sharing
    from .simulator.warehouse.demands import Demands as Demands
    from .simulator.workloads import Workload as Workload
    from .simulator.workloads import open_workload as open_workload

__version__ = "0.1.0"
_ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
# Module, relative to this package -> the public names that are imported from it at their first use.
_FACE = {
    ".envs.masks": "action_masks",
    ".envs.registration": "make_vec",
    ".envs.snapshot": "Snapshot",
    ".experiments": "Run Setting against evaluate open_store read_evaluation",
    ".policies": "Policy RulePolicy",
    ".policies.planning": "PlanningPolicy",
    ".simulator.base.decisions": "Advance AssignGroup Decision Drop Hold Migrate Move "
    "Preempt Replicate Resize SetMachines SetSpill Shift Start",
    ".simulator.base.errors": "ClustergymError Endless InputError InvalidDecision MissingExtra Stalled",
    ".simulator.base.tiers": "MACHINE NETWORK RACK SLOT",
    ".simulator.cluster.topology": "Topology",
    ".simulator.engine.plans": "Plan plan_now",
    ".simulator.engine.simulator": "Simulator",
    ".simulator.engine.view": "ClusterView",
    ".simulator.events.initialise": "Failures",
    ".simulator.groups.group_config": "GroupConfig GroupTerms",
    ".simulator.groups.group_simulator": "GroupSimulator",
    ".simulator.groups.group_view": "GroupView",
    ".simulator.jobs.estimates": "Estimates",
    ".simulator.jobs.ps_jobs": "PsJobs",
    ".simulator.network.network_model": "Network",
    ".simulator.profiles.models": "load_profiles",
    ".simulator.rules.rule": "Rule Tuner",
    ".simulator.sharing.sharing_model": "Sharing",
    ".simulator.warehouse.demands": "Demands",
    ".simulator.workloads": "Workload open_workload",
}
_LAZY = {name: module for module, names in _FACE.items() for name in names.split()}

_register()
_install_policies(f"{__name__}.policies:make_for")
_install_loop(f"{__name__}.policies.loop.loop_calls")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_LAZY})
