"""TimeShift-v0: where jobs run, and in which phase, on links that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...simulator.base.errors import InputError
from ...simulator.base.names import called
from ...simulator.cluster.topology import Topology
from ...simulator.configuration.network_choice import Network, load_network, resizing_for
from ...simulator.contention.contention import Contention
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.protocols import CandidateSource
from ...simulator.workloads import Workload
from ..python_step import PythonStepEnv
from ..vector import ClusterVectorEnv
from .timeshift_interface import SCHEDULER, Shifts, TimeShiftInterface


class TimeShiftEnv(PythonStepEnv):
    """Choose among a scheduler's placements by their contention on links, then each job's time-shift.

    Source       CASSINI (network-aware scheduling by interleaving communication phases);
                 docs/environments/timeshift.md.
    Observation  cluster (13,), queue (slots x 10,), running (running_slots x 18,), rotations (72,): the excess on the
                 job's links at each rotation, others as they are, and candidates ((1 + candidates) x 29,).
    Action       MultiDiscrete([1 + candidates, 72]). A decision point has two stages. Placing: 0 leaves all as it is, k
                 takes the k-th placement of the scheduler. Shifting, for each running job of a changed component (jobs
                 joined by links), in order of arrival: 1 shifts the job by b / 72 of its period, b being the second
                 part; 2 keeps its shift; 3 removes it; 0: no more now. Then the clock advances.

    `ClusterEnv` has the rest: mask, reward, episode, info, and further arguments.

    Args:
        topology: as everywhere; it must have links.
        network: `contention`, with arguments.
        scheduler: proposes placements: the name of a policy that can, or such a policy. The default gives jobs all the
            workers that they ask, or none; `themis` tunes their number.
        candidates: number of proposed placements, 3 to 64.
        shifts: `asked`: the agent shifts jobs one by one; `cassini`: CASSINI shifts all jobs after the placement,
            without a second stage, and a policy that is played decides on placements alone.
        jobs_per_gpu, interference, memory_gb, gpu: several jobs a GPU, as in Sharing-v0; 1: a job has its GPUs alone.
        skip_idle: pass over decision points without a placement or a shift to choose, except the first of an episode.
    """

    part = "TimeShift-v0"
    others = ("rotation bucket",)
    interface: TimeShiftInterface

    def __init__(
        self,
        topology: Topology | str | dict[str, Any] | None = None,
        workload: Workload | str | Sequence[Workload | str] | None = None,
        network: Network | str | None = None,
        *,
        scheduler: str | CandidateSource = SCHEDULER,
        candidates: int = 10,
        slots: int = 32,
        running_slots: int = 24,
        shifts: Shifts = "asked",
        order: str = "arrival",
        jobs_per_gpu: int = 1,
        skip_idle: bool = True,
        **given: Any,
    ) -> None:
        sharing = {"jobs_per_gpu": None if isinstance(jobs_per_gpu, int) and jobs_per_gpu == 1 else jobs_per_gpu}
        config, common_options = self.configured(topology, network, {**sharing, **given})
        interface = TimeShiftInterface(
            scheduler=scheduler,
            candidates=candidates,
            slots=slots,
            running_slots=running_slots,
            shifts=shifts,
            order=order,
            skip_idle=skip_idle,
            horizon_s=config.horizon_s,
        )
        network = load_network(config.network, config.semantics.duration)
        if scheduler == SCHEDULER and isinstance(network, Contention):
            network = network.resizing()  # so that policies that tune workers can be played, too
        else:
            network = resizing_for(interface.scheduler, network)
        simulator = replace(config, network=network).build(interface.clock)
        if not hasattr(simulator.network, "alone"):
            raise InputError(f"network = {network.describe()!r}: expected contention, with or without arguments")
        if getattr(interface.scheduler, "knows_run_times", False):
            simulator.estimates.expect_known(f"scheduler {getattr(interface.scheduler, 'name', scheduler)}")
        super().__init__(simulator, interface, workload, common_options)

    def act_of(self, policy: Decider) -> Any:
        """The action that plays the next decision of `policy`; mask and observation are then those that it belongs to.

        InputError: the policy needs dedicated links, other routes, or other numbers of workers than this environment
        has; InvalidDecision: a time-shift that is none of the 72 rotations of a period.
        """
        if getattr(policy, "dedicated", False) and getattr(self.simulator.network, "mode", "") != "dedicated":
            raise InputError(f"policy {called(policy)}: expected network='contention:mode=dedicated'")
        for name, value in getattr(policy, "on_links", {}).items():
            if getattr(self.simulator.network, name, None) != value:
                raise InputError(f"policy {called(policy)}: expected network='contention:{name}={value}'")
        if getattr(policy, "tunes_workers", False) and not getattr(self.simulator.rate_provider, "elastic", False):
            expected = "expected an environment with the default scheduler, or one that tunes workers, such as 'themis'"
            raise InputError(f"policy {called(policy)} tunes the number of workers: {expected}")
        return super().act_of(policy)


class TimeShiftVectorEnv(ClusterVectorEnv):
    """N environments `TimeShiftEnv`, stepped one after the other, since their schedulers decide in Python."""

    env_class = TimeShiftEnv
