"""What a policy may see: the cluster now, read-only, its arrays too; jobs and GPUs are indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..base.codes import GONE, HELD, RUNNING
from ..base.errors import InputError
from ..base.names import choose
from ..base.tiers import MACHINE, NETWORK, RACK
from ..checks.table_decisions import TableDecision, check_table
from ..contention.link_network import LinkNetwork
from ..contention.link_states import Outage
from ..events.initialise import gpus_of
from ..flows.sessions import NEVER_S
from ..lifecycle.job_calls import write_gangs
from ..network.simulated import Simulated, may_resize
from ..numerics.bitset import members
from ..numerics.random import draw_seed
from ..record.record_view import sealed
from ..regions.part_places import choose_units, find_parts
from ..regions.region_view import RegionView
from ..rules.rule import PLACERS
from ..rules.rule_calls import find_gang, find_within, solo_gang_s
from ..sharing.sharing_calls import largest_sub_batch, slowdown_beside
from .rule_loop import rule_loop

if TYPE_CHECKING:
    from ..base.decisions import Decision
    from ..cluster.routes import LinkUse
    from ..jobs.estimates import Estimates
    from ..network.network_model import Network
    from ..network.simulated import RateProvider
    from ..profiles.phases import Phases
    from ..rules.rule import Rule
    from ..rules.semantics import Semantics
    from ..sharing.sharing_model import Sharing


class Viewed(Simulated, Protocol):
    """`Simulator` (simulator.py) is one; what its attributes and methods mean is said there."""

    rule: Rule
    semantics: Semantics
    sharing: Sharing | None
    estimates: Estimates

    @property
    def coming(self) -> tuple[Decision, ...]:
        """The decisions of its rule at this instant that have not been handed out."""

    def twin(self) -> Any:
        """A simulator on the same terms that has not run yet."""

    def preview_pass(self) -> list[Decision]:
        """The decisions that its rule would take now; nothing happens."""

    def next_decision(self) -> Decision:
        """The next decision of its rule."""


class ClusterView(RegionView):
    """The cluster at a decision point."""

    _simulator: Viewed

    @property
    def network(self) -> Network:
        """How placement slows jobs down."""
        return self._simulator.network

    @property
    def rate_provider(self) -> RateProvider | None:
        """What says how fast a job runs on its GPUs, if not the workload and the network."""
        return self._simulator.rate_provider

    @property
    def semantics(self) -> Semantics:
        """How leases end and when passes are made."""
        return self._simulator.semantics

    @property
    def rule(self) -> Rule:
        """The compiled rule that is installed, or the clock of a policy in Python."""
        return self._simulator.rule

    def next_decision(self) -> Decision:
        """What the installed rule decides next at this instant."""
        return self._simulator.next_decision()

    @property
    def coming(self) -> tuple[Decision, ...]:
        """What it will decide at this instant after what `next_decision` gave last."""
        return self._simulator.coming

    def copied(self, into: Any = None) -> Any:
        """A simulator that has taken over the present, to try decisions; this run stays as it is.

        Numbers are drawn there as here, so from now on this run depends on the seed. `into`: an earlier copy, of the
        same cluster, to be overwritten; None: a new one.
        """
        copy = self._simulator.twin() if into is None else into
        copy.copy_run(self._simulator)
        draw_seed(self._simulator.raw.record)
        return copy

    def preview_pass(self) -> list[Decision]:
        """All decisions of the pass that it would make now; nothing is carried out."""
        return self._simulator.preview_pass()

    def trainee(self, job: int) -> Any:
        """What the rate provider has measured of an elastic job so far (simulator/elastic/elastic.py)."""
        return self.rate_provider.trainee(self._simulator, job)  # type: ignore[union-attr]

    def check_table(self, decision: TableDecision) -> None:
        """Nothing, where a decision about a table can be carried out now.

        Raises:
            InvalidDecision: it cannot.
        """
        check_table(self._simulator, decision)

    @property
    def queue(self) -> np.ndarray:
        """Waiting jobs in order of arrival, held ones left out, int64."""
        s = self._simulator.raw.record
        ranks = members(s["window_low"], s["window_mid"], s["window_top"], int(s["waiting"]))
        return sealed(np.sort(s["job_at_rank"][ranks].astype(np.int64)))

    @property
    def held(self) -> np.ndarray:
        """Held jobs in order of arrival, int64."""
        s = self._simulator.state
        return sealed(np.flatnonzero(s.status[: s.next_arrival] == HELD))

    @property
    def running(self) -> np.ndarray:
        """Running jobs in order of arrival, int64."""
        s = self._simulator.raw.record
        return sealed(np.sort(s["runner"][: s["running"]].astype(np.int64)))

    @property
    def free_gpus(self) -> np.ndarray:
        """Free GPUs in index order, int64."""
        s = self._simulator.raw.record
        return sealed(members(s["free_low"], s["free_mid"], s["free_top"], int(s["free_gpus"])))

    @property
    def free_by_machine(self) -> np.ndarray:
        """Free GPUs of each machine, int64."""
        s = self._simulator.state
        return sealed(s.machine_free[: s.n_machines].astype(np.int64))

    @property
    def free_by_rack(self) -> np.ndarray:
        """Free GPUs of each rack, int64."""
        s = self._simulator.state
        return sealed(s.rack_free[: s.n_racks].astype(np.int64))

    def gpus(self, job: int) -> int:
        """Gang size of a job."""
        return int(self._simulator.raw.record["gpus"][job])

    def asked_gpus(self, job: int) -> int:
        """How many GPUs a job asks, whatever an elastic one has now."""
        return int(self.workload.gpus[job])

    def may_resize(self, job: int) -> bool:
        """Whether a job may run on another number of GPUs than it asks."""
        return may_resize(self._simulator, job)

    def gpus_of(self, job: int) -> list[int]:
        """The GPUs that a running job holds; empty if it does not run."""
        s = self._simulator.raw.record
        return gpus_of(s, job) if s["status"][job] == RUNNING else []

    def read_alike(self, entry: Callable[..., Any], *arguments: Any) -> Any:
        """As `read_by`, of an entry that is always given arguments of the same types: in a third of the time."""
        return self._simulator.raw.call(entry, *arguments)

    @property
    def gangs(self) -> dict[int, tuple[int, ...]]:
        """The GPUs of every running job, jobs in order of arrival; see `gpus_of`."""
        raw, jobs = self._simulator.raw, self.running
        ends, gpus = np.empty(len(jobs), np.int64), np.empty(self.jobs_per_gpu * int(raw.record["n_gpus"]), np.int64)
        raw.call(write_gangs, jobs, ends, gpus)
        held, first, found = gpus.tolist(), 0, {}
        for job, end in zip(jobs.tolist(), ends.tolist(), strict=True):
            found[job] = tuple(held[first:end])
            first = end
        return found

    def tier_of(self, job: int) -> int:
        """Tier code of a running job's placement (`clustergym.simulator.base.tiers`)."""
        return int(self._simulator.state.tier[job])

    def waited_s(self, job: int) -> float:
        """Seconds since a waiting job arrived or lost its GPUs."""
        return float(self._simulator.state.now_s - self._simulator.state.waiting_since_s[job])

    def _left(self, job: int) -> float:
        s = self._simulator.raw.record
        left = s["iterations_left"][job]
        if s["status"][job] == RUNNING:
            left = left - max(0.0, s["now_s"] - s["since_s"][job]) / s["iteration_s"][job]
        return float(left)

    def attained_gpu_s(self, job: int) -> float:
        """GPU-seconds held so far."""
        s = self._simulator.state
        held_s = s.now_s - s.started_s[job] if s.status[job] == RUNNING else 0.0
        if self._simulator.capacity.berths > 1:  # it may have held other numbers of GPUs
            return float(s.service_gpu_s[job] + held_s * s.gpus[job])
        return float((s.attained_s[job] + held_s) * s.gpus[job])

    def arrived_s(self, job: int) -> float:
        """When a job arrived, seconds."""
        return float(self._simulator.raw.record["arrival_s"][job])

    def lease_end_s(self, job: int) -> float:
        """When the lease of a running job ends, seconds; its rule has leases then."""
        return float(self._simulator.raw.record["lease_end_s"][job])

    def active_mean(self, job: int) -> float:
        """How many jobs have been there on average since a job arrived, itself among them; at first how many are."""
        s = self._simulator.raw.record
        age_s = s["now_s"] - s["arrival_s"][job]
        if age_s > 0.0:
            return float((s["active_integral"] - s["active_at_arrival"][job]) / age_s)
        return float(s["waiting"] + s["held"] + s["running"])

    def timer_s(self, job: int, tier: int) -> float:
        """Seconds until a job's delay timer of MACHINE or RACK runs out, also an `advisory` one; 0: it has, or none."""
        return float(rule_loop().timer_left_s(self._simulator.records, 0, job, self._timed_tier(tier)))

    def timer_end_s(self, job: int, tier: int) -> float:
        """The instant at which that timer runs out, as of now, seconds; inf: it has, or there is none."""
        return float(rule_loop().timer_end_s(self._simulator.records, 0, job, self._timed_tier(tier)))

    def _timed_tier(self, tier: int) -> int:
        if tier not in (MACHINE, RACK):
            raise InputError(f"tier {tier!r}: there are timers of {MACHINE} (machine) and {RACK} (rack)")
        return tier

    @property
    def jobs_per_gpu(self) -> int:
        """How many jobs may hold one GPU."""
        sharing = self._simulator.sharing
        return 1 if sharing is None else sharing.jobs_per_gpu

    @property
    def load(self) -> np.ndarray:
        """Jobs on each GPU, int64; 0 on failed ones."""
        s = self._simulator.raw.record
        if self._simulator.capacity.berths > 1:
            return sealed(s["gpu_load"][: s["n_gpus"]].astype(np.int64))
        return sealed((s["gpu_job"][: s["n_gpus"]] >= 0).astype(np.int64))

    @property
    def open_gpus(self) -> np.ndarray:
        """GPUs that hold a job and have room for another, in index order, int64."""
        load = self.load
        return sealed(np.flatnonzero((load > 0) & (load < self.jobs_per_gpu)))

    @property
    def free_memory(self) -> np.ndarray:
        """Bytes that are left on each GPU, float64; inf where memory has no limit."""
        s = self._simulator.state
        if self._simulator.capacity.berths == 1:
            return sealed(np.full(int(s.n_gpus), np.inf))
        return sealed(s.gpu_memory - s.gpu_memory_used[: s.n_gpus])

    def jobs_on(self, gpu: int) -> list[int]:
        """The jobs that hold a GPU, ascending."""
        s = self._simulator.raw.record
        held = s["gpu_job"][gpu :: len(s["gpu_slot"])]
        return sorted(held[held >= 0].tolist())

    def partners_of(self, job: int) -> list[int]:
        """The jobs that hold a GPU together with a running job, ascending."""
        found = {other for gpu in self.gpus_of(job) for other in self.jobs_on(gpu)}
        return sorted(found - {int(job)})

    def batch(self, job: int) -> int:
        """Samples of an iteration on each GPU of a job; 0 where GPUs are not shared."""
        s = self._simulator.raw.record
        return int(s["batch"][job]) if self._simulator.capacity.berths > 1 else 0

    def sub_batch(self, job: int) -> int:
        """Samples in one pass on each GPU; of a waiting job the most that an empty GPU admits; 0: not shared."""
        s = self._simulator.raw.record
        return int(s["sub_batch"][job]) if self._simulator.capacity.berths > 1 else 0

    def interference(self, job: int, partner: int) -> float:
        """xi: how many times longer an iteration of a job takes beside a partner, with their present sub-batches."""
        if self._simulator.capacity.berths == 1:
            return 1.0
        return float(slowdown_beside(self._simulator.records, 0, job, partner))

    def sub_batch_for(self, job: int, gpus: Sequence[int]) -> int | None:
        """The largest of batch, batch / 2, ..., 1 with which a waiting job fits these GPUs; None: not even with 1."""
        s = self._simulator.raw.record
        s["gang"][: len(gpus)], s["gang_size"] = gpus, len(gpus)
        return int(largest_sub_batch(self._simulator.records, 0, job)) or None

    def solo_s(self, job: int, gpus: Sequence[int], sub_batch: int) -> float:
        """Seconds per iteration of a job alone on these GPUs in passes of `sub_batch`, where GPUs are shared."""
        s = self._simulator.raw.record
        s["gang"][: len(gpus)], s["gang_size"] = gpus, len(gpus)
        return float(solo_gang_s(self._simulator.records, 0, job, sub_batch))

    def slowdown(self, job: int, tier: int) -> float:
        """Iteration time at a tier, in regions with every part there, over the one alone on the best placement."""
        s = self._simulator.raw.record
        profiles = s["profile"][job : job + 1]
        if self._simulator.capacity.regions > 0 and (s["part_profile"][job] >= 0).any():
            profiles = s["part_profile"][job][s["part_profile"][job] >= 0]
        return float(
            s["tier_factor"][profiles, tier].max() * s["compute_iteration_s"][job] / s["base_iteration_s"][job]
        )

    def iteration_s(self, job: int) -> float:
        """Seconds per iteration of a running job on its GPUs, the mean so far where it changes; nan: it does not run.

        Before its first progress: alone. On links an iteration is one of its present workers; else of the asked ones.
        """
        s = self._simulator.raw.record
        if s["status"][job] != RUNNING:
            return float("nan")
        ratio = s["gpus"][job] / s["own_gpus"][job] if self._simulator.capacity.links else 1.0
        return float(
            s["iteration_s"][job] * ratio if s["iteration_s"][job] < NEVER_S else self.phases_of(job).iteration_s
        )

    def phases_of(self, job: int, gpus: Sequence[int] | None = None) -> Phases:
        """An iteration of a job alone on these GPUs, or on its own; InputError: not network contention."""
        return self._alone(job, gpus)[0]

    def links_of(self, job: int, gpus: Sequence[int] | None = None) -> LinkUse:
        """The links of a job on these GPUs, or its own (`routes=least`: beside the running jobs); contention only."""
        return self._alone(job, gpus)[1]

    def _alone(self, job: int, gpus: Sequence[int] | None) -> tuple[Phases, LinkUse]:
        if not (self.gpus_of(job) if gpus is None else gpus):
            raise InputError(f"job {job} ({self.workload.job_id[job]}) holds no GPUs: say which")
        return self._contention.own(self._simulator, job, gpus)

    @property
    def outage(self) -> Outage | None:
        """Which links are down now, for requests of ways to the network (`alone`); None: none, or none can be."""
        return self._contention.outage(self._simulator)

    @property
    def link_capacity(self) -> np.ndarray:
        """What each link carries now, bytes per second, float64 (L,); only with network contention."""
        return self._contention.capacity(self._simulator)

    def contending(self) -> dict[int, list[int]]:
        """The running jobs on every link that carries several, by link; only with network contention."""
        return self._contention.contending(self._simulator)

    def component(self, job: int) -> list[int]:
        """The running jobs that a job is joined to by shared links, itself too, ascending; none: it sends nothing."""
        return self._contention.component(self._simulator, job)

    def period_s(self, job: int) -> float | None:
        """The period that a running job would get with a shift now; None: it sends nothing over the network."""
        return self._contention.joined(self._simulator).period_s.get(job)

    def shift_s(self, job: int) -> float | None:
        """The shift of a running job as last decided, seconds; None: it has none."""
        return self._shift(job)[0]

    def shift_period_s(self, job: int) -> float | None:
        """The period of the shift that a running job has; None: it has none."""
        return self._shift(job)[1]

    def _shift(self, job: int) -> tuple[float, float] | tuple[None, None]:
        s = self._simulator.state
        if self._simulator.capacity.links == 0 or s.status[job] != RUNNING:
            return None, None
        stays = s.stays[job] and s.is_leaver[job] != GONE
        shift_s, period_s = (s.shift_s, s.period_s) if stays else (s.asked_shift_s, s.asked_period_s)
        return (float(shift_s[job]), float(period_s[job])) if shift_s[job] >= 0.0 else (None, None)

    @property
    def _contention(self) -> LinkNetwork:
        network = self._simulator.network
        if not isinstance(network, LinkNetwork):
            raise InputError(f"network {network.describe()!r} knows no links; expected contention")
        return network

    def find_gpus(self, job: int, placer: str = "tier") -> list[int] | None:
        """Free GPUs for the job by a placer's rule (running/placers.py), or None if it finds none.

        Over regions: units part after part, as `Start` takes them (regions/part_places.py); the placer is `tier`.
        """
        code = PLACERS[choose(placer, PLACERS, "placer")]
        if self._simulator.capacity.regions == 0:
            return self._gang() if find_gang(self._simulator.records, 0, job, code) else None
        if placer != "tier":
            raise InputError(f"placer {placer!r}: it knows no parts of jobs; over regions expected tier")
        found = (self.find_gpus_within(job, tier) for tier in (MACHINE, RACK, NETWORK))
        return next(filter(None, found), None)

    def find_gpus_within(self, job: int, tier: int) -> list[int] | None:
        """Free GPUs for the job inside one machine, inside one rack, or anywhere (tier MACHINE, RACK, NETWORK).

        Over regions each part of the job lies so, inside one cluster.
        """
        if tier not in (MACHINE, RACK, NETWORK):
            raise InputError(f"tier {tier!r}: expected {MACHINE} (machine), {RACK} (rack) or {NETWORK} (network)")
        if self._simulator.capacity.regions > 0:
            return find_parts(self, self.free_gpus, job, tier)
        need = int(self._simulator.state.gpus[job])
        return self._gang() if find_within(self._simulator.records, 0, need, tier) else None

    def _gang(self) -> list[int] | None:
        """What a placer has found; where that lies in several regions and may not, GPUs of one region, or None."""
        s, topology = self._simulator.state, self.topology
        found = s.gang[: s.gang_size].astype(np.int64)
        if s.n_apart < 2 or len(np.unique(topology.cluster_region[topology.gpu_cluster[found]])) == 1:
            return found.tolist()
        free = self.free_gpus
        region = topology.cluster_region[topology.gpu_cluster[free]]
        tried = (choose_units(topology, free[region == one], len(found), NETWORK) for one in np.unique(region))
        return next((units.tolist() for units in tried if units is not None), None)


def simulator_behind(view: Any) -> Any:
    """The simulator behind a view, for rooms that play one as an environment does; policies read the view."""
    return view._simulator
