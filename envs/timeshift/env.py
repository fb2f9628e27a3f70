"""TimeShift-v0: where jobs run, and in which phase, on links that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...simulator.base.errors import InputError
from ...simulator.cluster.topology import Topology
from ...simulator.engine.network_choice import Network, load_network
from ...simulator.engine.protocols import CandidateSource, Policy
from ...simulator.engine.simulator import Decider, Simulator
from ...simulator.jobs.estimates import Estimates
from ...simulator.rules.rule import Rule
from ...simulator.sharing.sharing_model import Sharing, Slowdowns
from ...simulator.workloads import Workload
from ..cluster_env import failures_of, horizon_of
from ..forms import Form
from ..played import PlayedEnv
from ..snapshot import Reward
from .defaults import NETWORK, SCHEDULER, TOPOLOGY, WORKLOAD
from .lookout import TimeShiftLookout


class TimeShiftEnv(PlayedEnv):
    """Choose among a scheduler's placements by how well jobs get along on links, then each job's time-shift.

    Source       CASSINI (network-aware scheduling by interleaving communication phases); docs/timeshift.md.
    Observation  Dict of float32 Boxes in [0, 1]: cluster (13,), queue (slots x 10,), running (running_slots x 18,),
                 rotations (72,): the excess on the job's links at each rotation, others as they are, and candidates
                 ((1 + candidates) x 29,); columns in observation.py. `observation="flat"`: the five in one Box.
    Action       MultiDiscrete([1 + candidates, 72]). A decision point has two stages. Placing: 0 leaves all as it is, k
                 takes the k-th placement that the scheduler proposes. Shifting, for each running job of a component of
                 jobs joined by links that has changed since, in order of arrival: 1 shifts the job by b / 72 of its
                 period, b being the second part; 2 leaves its shift as it is; 3 takes it away, where it has one; 0: no
                 more now. Then the clock goes on.
    Mask         action_masks(): bool, both parts in a row; info["action_mask"]: the same as int8. Never empty.
    Reward       `reward`: jct (default: minus the mean JCT in mean isolated run times, summed over the episode),
                 makespan, slowdown, slo; envs/reward.py. Decisions often take no time: train with gamma = 1.
    Episode      terminated when every job is done; truncated at `horizon_s` or after `max_decisions`, and then
                 charged for the jobs that it leaves (envs/reward.py).
    Info         active_jobs, waiting_jobs, running_jobs, finished_jobs, used_gpus; elapsed_s, action_mask,
                 invalid_action (the action was not legal: it counted as 0), forced_action (and
                 as the first legal candidate, since no time could pass), adjusted_action (a bucket out of range became
                 the nearest); max_decisions of reset and on the last step; metrics on the last step.
    Versions     v0 first release.

    Args:
        topology: preset with arguments, specification, path, or a `Topology`; it must have links.
        workload: generator with arguments (drawn anew at each reset), path, or a `Workload`; or several of them in a
            list, one of which is drawn at each reset.
        network: `contention`, with arguments.
        scheduler: who proposes placements: the name of a policy that can, or such a policy.
        candidates: how many placements it is asked for, 3 to 64.
        slots, running_slots: waiting and running jobs in the window, 1 to 256 and 0 to 256.
        order: which jobs the window shows first: `arrival`, `shortest` (isolated run time) or `smallest` (GPUs).
        jobs_per_gpu, interference, memory_gb, gpu: several jobs a GPU, as in Sharing-v0; 1: a job has its GPUs alone.
        max_decisions: truncate after so many steps, >= 1; None: 50 a job of the workload; `math.inf`: never.
        horizon_s: truncate so many seconds after the first arrival; None: never.
        skip_idle: pass over decision points where there is nothing to place and no shift to choose; the first of an
            episode never.
        observation: `dict`, or `flat` for plain MLPs.
        action: `parts`, or `discrete`: a candidate alone, the other parts are 0 (envs/forms.py).
        mask: `info`, or also in the observation: `observation`, `KEY` or `KEY/MASK` (envs/forms.py).
        reward: `jct`, `makespan`, `slowdown` or `slo`; or a function (before, after) of two snapshots, or its word
            `py:FILE.py:NAME` (envs/snapshot.py).
        reference: with reward `jct`, whom a step's job-seconds are compared with, on the same workload: a policy's
            name, a policy or a `Rule`; None: nobody.
        estimates: what policies and the observation know of run times: `exact`, `none`, `lognormal:sigma=1`, `user`, or
            `Estimates` (simulator/jobs/estimates.py); rewards go by what happens.
        mtbf_s, mttr_s, checkpoint_s: machine failures (simulator/events/initialise.py); 0 mean time between failures:
            none.
        render_mode: `ansi`, `rgb_array` or `human`.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """

    part = "TimeShift-v0"
    others = ("rotation bucket",)
    lookout: TimeShiftLookout

    def __init__(
        self,
        topology: Topology | str | dict[str, Any] = TOPOLOGY,
        workload: Workload | str | Sequence[Workload | str] = WORKLOAD,
        network: Network | str | None = None,
        *,
        scheduler: str | CandidateSource = SCHEDULER,
        candidates: int = 10,
        slots: int = 32,
        running_slots: int = 24,
        order: str = "arrival",
        jobs_per_gpu: int = 1,
        interference: str | Slowdowns = "measured",
        memory_gb: float | None = None,
        gpu: str = "a100",
        max_decisions: float | None = None,
        horizon_s: float | None = None,
        skip_idle: bool = True,
        observation: str = "dict",
        action: str = "parts",
        mask: str | Mapping[str, str] = "info",
        reward: str | Reward = "jct",
        reference: Policy | Rule | str | None = None,
        estimates: Estimates | str = "exact",
        mtbf_s: float = 0.0,
        mttr_s: float = 3600.0,
        checkpoint_s: float = 1800.0,
        render_mode: str | None = None,
    ) -> None:
        fidelity = load_network(network or NETWORK)
        if not hasattr(fidelity, "alone"):
            raise InputError(f"network = {network!r}: expected contention, with or without arguments")
        lookout = TimeShiftLookout(
            scheduler=scheduler,
            candidates=candidates,
            slots=slots,
            running_slots=running_slots,
            order=order,
            skip_idle=skip_idle,
            horizon_s=horizon_of(horizon_s),
        )
        simulator = Simulator(
            topology,
            fidelity,
            rule=lookout.clock,
            failures=failures_of(mtbf_s, mttr_s, checkpoint_s),
            horizon_s=horizon_of(horizon_s),
            sharing=None if jobs_per_gpu == 1 else Sharing(jobs_per_gpu, interference, memory_gb, gpu),
            estimates=estimates,
        )
        if getattr(lookout.scheduler, "knows_run_times", False):
            simulator.estimates.expect_known(f"scheduler {getattr(lookout.scheduler, 'name', scheduler)}")
        form = Form.of(lookout, observation, action, mask, self.others)
        self._open(simulator, lookout, workload, max_decisions, form, reward, reference, render_mode)

    def act_of(self, policy: Decider) -> Any:
        """The action that plays what `policy` does next; mask and observation are then those that it belongs to.

        Raises:
            InputError: its jobs are to meet nobody, and here they do.
            InvalidDecision: a time-shift that is none of the 72 rotations of a period.
        """
        if getattr(policy, "dedicated", False) and getattr(self.simulator.network, "mode", "") != "dedicated":
            raise InputError(f"policy {policy!r}: expected an environment with network='contention:mode=dedicated'")
        return super().act_of(policy)
