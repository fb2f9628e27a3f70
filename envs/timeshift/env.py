"""TimeShift-v0: where jobs run, and in which phase, on links that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.base.names import called
from ...simulator.cluster.topology import Topology
from ...simulator.configuration.network_choice import Network, load_network, resizing_for
from ...simulator.contention.contention import Contention
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.protocols import CandidateSource
from ...simulator.workloads import Workload
from ..batch import Rows, Stepper
from ..cluster_env import ClusterEnv
from ..vector import ClusterVectorEnv
from .timeshift_interface import SCHEDULER, Shifts, TimeShiftInterface


class FollowingStepper(Stepper):
    """A stepper whose rows may follow a policy that decides in Python.

    Attributes:
        before_step: by row, what is called before each step.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.before_step: dict[int, Callable[[], None]] = {}

    def like(self, n: int) -> FollowingStepper:
        """Another stepper, of `n` rows."""
        return FollowingStepper(self.rows.like(n), self.part, self.kernel, self.solver)

    def play(self, chosen: np.ndarray) -> int:
        """As `step`, for actions whose parts all lie there."""
        for row in chosen.tolist():
            self.before_step[row]()
        return super().play(chosen)


class TimeShiftEnv(ClusterEnv):
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
    _is_followed = False

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

    def _stepper(self, rows: Rows) -> Stepper:
        return FollowingStepper(rows, self.part, self.interface.kernels.step_rows, self.interface.fields)

    def join(self, stepper: Stepper, row: int) -> None:
        """Move into a row of shared arrays; before the first reset."""
        assert isinstance(stepper, FollowingStepper)
        super().join(stepper, row)
        self.interface.remember_in(stepper, row)
        stepper.answers[row] = self.interface.answer
        stepper.before_step[row] = self.begin_step

    def begin_step(self) -> None:
        """A step begins; a policy is followed on as long as each step is the one that `act_of` gave."""
        if not self._is_followed and self.interface.expert is not None:
            self.interface.expert = None
            self.simulator.use(self.rule)
        self._is_followed = False

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
        self._expect_reset()
        self.simulator.expect_decider(policy)
        self.player = getattr(policy, "name", "")
        self._is_followed = True
        self.interface.follow(policy)
        rows = self.stepper.rows
        run = rows.records, rows.windows, rows.solvers, self.row
        self.stepper.call(self.interface.kernels.turn, *run, self._features, self._mask)
        return self._said(self.interface.expert_action())

    def demonstration(self, policy: Decider) -> tuple[Any, np.ndarray, bool]:
        """See `ClusterEnv`; there is nothing to learn where the decision of `policy` is no candidate of its own."""
        action = self.act_of(policy)
        return action, self._features.copy(), self._is_said and not self.interface.memory["is_expert_only"]

    def python_state(self) -> dict[str, Any]:
        """The part of the state that the arrays of the row do not hold."""
        followed = {"expert": self.interface.expert}
        return {**super().python_state(), "followed": self._is_followed, "instant": followed}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue in a row whose arrays were just replaced, with what `python_state` returned."""
        super().take_python_state(python_state)
        self._is_followed = python_state["followed"]
        self.interface.expert = python_state["instant"]["expert"]


class TimeShiftVectorEnv(ClusterVectorEnv):
    """N environments `TimeShiftEnv`, whose schedulers decide in Python, one after the other."""

    env_class = TimeShiftEnv
