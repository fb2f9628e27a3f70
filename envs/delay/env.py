"""Delay-v0: a waiting job is offered GPUs: take them at a tier, make room, or hold for a tier for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...simulator.base.arguments import check_flag
from ...simulator.cluster.topology import Topology
from ...simulator.configuration.network_choice import Network
from ...simulator.rules.rule import Tuner
from ...simulator.workloads import Workload
from ..cluster_env import ClusterEnv
from ..vector import ClusterVectorEnv
from .delay_interface import DELAYS_S, DelayInterface
from .terms import TUNER, terms


class DelayEnv(ClusterEnv):
    """Place waiting jobs at a tier of the network, or let them wait for a better one.

    Source       Dally (delay scheduling over the tiers of a network); docs/environments/delay.md.
    Observation  cluster (11,), queue (slots x 17,), running (running_slots x 12,), candidates ((1 + 5 slots + 3
                 running_slots) x 18,).
    Action       MultiDiscrete([1 + 5 slots + 3 running_slots, 2 + len(delays), 2]).
                 0: no more now, advance. 1 + 5 i + k: waiting slot i starts inside a machine, inside a rack, across
                 racks, makes room and starts there, or holds (k = 0..4). 1 + 5 slots + 3 i + k: running slot i is
                 preempted, moves to a better tier, or moves to the fullest place with room at its own (k = 0, 1, 2).
                 The second part is how long a hold lasts: 0 until GPUs are freed, 1 until the job's own delay timer
                 of the hold's tier runs out (as 0 where it has, and without `tuner`), then `delays`. The third is the
                 worst tier at which the job starts by itself meanwhile (0 machine, 1 rack), as soon as it has room;
                 until GPUs are freed nothing starts by itself.

    `ClusterEnv` has the rest: mask, reward, episode, info, and further arguments.

    Args:
        network: `none`, `penalty` or `allreduce`, with arguments, or a `Network`; None: that of the semantics, else
            measured penalties.
        semantics: `events`, or `artist-sim`: leases, chunks and auctions of the simulator behind paper dally, with a
            decision point at each auction (simulator/rules/semantics.py).
        placer: of the GPUs at a tier: `tier` or `first`; or `count`, `consolidated`, `skew`, `random` and others of
            running/placers.py with one gang a job, so only the target of this gang is legal.
        order: of the window: `arrival`, `shortest` (isolated run time), `smallest` (GPUs), or `classes`: the shortest
            of every size of gang, then the second shortest of each, ...
        running_order: of running jobs, if there are more than slots: `priority` (largest isolated run time left x
            sqrt(GPUs), which a rule would stop first), `movable` (a better tier has room, then those that may be
            stopped), `worst` (slowdown now) or `arrival`.
        delays: seconds, > 0, of the delay buckets from 2 on.
        tuner: Algorithm 2 of paper dally on accepted offers, for any policy: the timers of the delay bucket 1; a
            `Tuner`, or its arguments in a dict; None: no timers.
        preemption: whether running jobs can be stopped or moved.
        migration: decision points also while no job waits, if a running job lies on several machines and could move.
        preemption_cost: seconds without progress when a stopped or moved job starts anew; or (small, large gangs).
        round: seconds; decision points come at its multiples only (0: at every event).
        lease: seconds; a started job cannot be stopped or moved before its lease ends, nor, if it is not then, before
            the next one does (0: no leases).
    """

    part = "Delay-v0"
    others = ("delay bucket", "tier of the hold")

    def __init__(
        self,
        topology: Topology | str | dict[str, Any] | None = None,
        workload: Workload | str | Sequence[Workload | str] | None = None,
        network: Network | str | None = None,
        *,
        placer: str = "tier",
        slots: int = 32,
        running_slots: int = 16,
        order: str = "arrival",
        running_order: str = "priority",
        delays: tuple[float, ...] = DELAYS_S,
        tuner: Tuner | Mapping[str, Any] | None = TUNER,
        preemption: bool = True,
        migration: bool = False,
        preemption_cost: tuple[float, ...] | float = 0.0,
        round: float = 0.0,
        lease: float = 0.0,
        skip_idle: bool = True,
        **given: Any,
    ) -> None:
        check_flag("migration", migration)
        config, common_options = self.configured(topology, network, given)
        interface = DelayInterface(
            slots=slots,
            running_slots=running_slots,
            order=order,
            running_order=running_order,
            delays=delays,
            placer=placer,
            preemption=preemption,
            skip_idle=skip_idle,
            horizon_s=config.horizon_s,
        )
        rule = terms(
            placer=placer, preemption_cost=preemption_cost, round=round, lease=lease, migration=migration, tuner=tuner
        )
        super().__init__(config.build(rule), interface, workload, common_options)


class DelayVectorEnv(ClusterVectorEnv):
    """N environments `DelayEnv`, stepped by one kernel call."""

    env_class = DelayEnv
