"""Sharing-v0: a waiting job takes free GPUs, shares those of running jobs, or waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...simulator.base.errors import InputError
from ...simulator.base.names import called
from ...simulator.cluster.topology import Topology
from ...simulator.configuration.network_choice import Network
from ...simulator.network.simulated import RateProvider
from ...simulator.rules.rule import Rule
from ...simulator.workloads import Workload
from ..cluster_env import ClusterEnv
from ..vector import ClusterVectorEnv
from .sharing_interface import EXPONENTS, PARTNERS, SharingInterface


class SharingEnv(ClusterEnv):
    """Decide for waiting jobs whether and whose GPUs they share, and how small their sub-batches are.

    Source       SJF-BSBF (GPU sharing with gradient accumulation); docs/environments/sharing.md.
    Observation  cluster (14,), queue (slots x 15,), running (running_slots x 14,), candidates ((1 + (4 + K) slots + 2
                 running_slots) x 28,); K = partners.
    Action       MultiDiscrete([1 + (4 + K) slots + 2 running_slots, exponents]).
                 0: no more now, advance. 1 + (4 + K) i + k: waiting slot i starts on free GPUs (k = 0), beside the
                 partners of best benefit (1), beside those that fit first (2), beside one partner alone, the first
                 to the K-th (3 to 2 + K), or holds until GPUs are freed (3 + K). 1 + (4 + K) slots + 2 i + k: running
                 slot i is preempted (k = 0), or resized (1): it gets larger passes, e.g. when a partner has left; an
                 elastic job other GPUs. The second part is e: a start or a resize takes passes of batch >> e samples a
                 GPU, the resize of an elastic job 2^e GPUs; share_gangs.py.

    `ClusterEnv` has the rest: mask, reward, episode, info, and further arguments.

    Args:
        network: `none`, `penalty` or `allreduce`, with arguments, or a `Network`; None: measured step times.
        jobs_per_gpu: C, 1 to 8. Only GPUs with one job are offered to others.
        interference: slowdown by partners: `measured`, `gavel:gpu=p100,quantile=p90`, `lucid`, `constant:xi=1.5`,
            `mig:slices=2`, or the path of a csv.
        memory_gb: memory of a GPU in GiB, which limits sub-batches; None: no limit.
        memory: memory of a sample without a measurement: `assumed`, `middle` or `measured`
            (simulator/sharing/sharing_model.py).
        gpu: type whose measurements give the cost of gradient accumulation; None: the network's, or 2080ti.
        placer: of free GPUs: `tier`, `count`, `first`, `random` and others of running/placers.py.
        elastic: True: running jobs can be resized, take the batch that suits their GPUs, and run at the speed that the
            profiles' fits give (simulator/elastic/elastic.py); or a `RateProvider` whose jobs are elastic, e.g. over
            measured tables.
        round: seconds; decision points come at its multiples only (0: at every event).
        partners: K, 0 to 8: single partners that a waiting job is offered.
        exponents: number of sub-batches, 1 to 32: batch >> 0, batch >> 1, and so on.
        preemption: whether running jobs can be stopped.
        preemption_cost: seconds without progress when a stopped job starts anew; or (small, large gangs).
    """

    part = "Sharing-v0"
    others = ("sub-batch exponent",)

    def __init__(
        self,
        topology: Topology | str | dict[str, Any] | None = None,
        workload: Workload | str | Sequence[Workload | str] | None = None,
        network: Network | str | None = None,
        *,
        elastic: bool | RateProvider = False,
        round: float = 0.0,
        placer: str = "tier",
        partners: int = PARTNERS,
        exponents: int = EXPONENTS,
        slots: int = 32,
        running_slots: int = 16,
        order: str = "arrival",
        preemption: bool = True,
        preemption_cost: tuple[float, ...] | float = 0.0,
        skip_idle: bool = True,
        **given: Any,
    ) -> None:
        config, common_options = self.configured(topology, network, given)
        interface = SharingInterface(
            slots=slots,
            running_slots=running_slots,
            order=order,
            placer=placer,
            partners=partners,
            exponents=exponents,
            elastic=elastic is not False,
            preemption=preemption,
            skip_idle=skip_idle,
            horizon_s=config.horizon_s,
        )
        rule = Rule("fifo", placer=placer, preemption_cost=preemption_cost, round=round)  # type: ignore[arg-type]
        simulator = config.copy_with(rate_provider=_pace_of(elastic, config.gpu_type)).build(rule)
        simulator.list_partners()
        super().__init__(simulator, interface, workload, common_options)


def _pace_of(elastic: bool | RateProvider, gpu: str) -> RateProvider | None:
    if elastic is False:
        return None
    if elastic is True:
        from ...simulator.elastic.applications import fitted_applications
        from ...simulator.elastic.elastic import TrainingRates

        return TrainingRates(fitted_applications(gpu))
    if not getattr(elastic, "elastic", False):
        raise InputError(f"elastic = {called(elastic)}: expected True, False, or one of elastic rates")
    return elastic


class SharingVectorEnv(ClusterVectorEnv):
    """N environments `SharingEnv`, stepped by one kernel call."""

    env_class = SharingEnv
