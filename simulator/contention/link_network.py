"""Network contention: jobs on several machines share links, phase by phase (paper cassini, Sec. 2 and 3).

In the Up phases of its iteration (patterns.py) a job sends over the links of its collectives (cluster/traffic.py,
routes.py), at max-min fair rates beside all other senders (flows/max_min.py). A job on one machine sends nothing. Of
several collectives a link has the mean, weighted by bytes, in all phases: a job has one set of links and flows.

Phases are stretched, Down times and bytes alike, until the iteration alone, placed best, takes the workload's iteration
time: inside one machine where one is large enough for the gang, else between machines. With `duration=compute` it is
the iteration inside one machine, for every gang. Setting: cassini, Sec. 2 and 3.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..base.errors import InputError
from ..base.tiers import RACK, TIERS
from ..cluster.routes import NO_LINKS, EqualPaths, LinkUse, Paths, drawn_path, link_use, nics_of, sharing
from ..cluster.traffic import rings_of
from ..files.file_marks import A_FILE, MARK
from ..jobs.workload import name_of_job
from ..network.isolated import ISOLATED, Duration
from ..network.measured import batch_of, factors_by_batch
from ..network.network_model import Jobs
from ..network.simulated import Simulated
from ..profiles.phases import Phases
from ..record.state import PROFILES
from .circle import TOLERANCE, unify
from .least_paths import Flow, Sender, flows_of, least_congested
from .link_memo import MOST_CHOICES, MOST_JOINED, MOST_OUTAGES, LinkMemo, Own, remembered
from .link_states import Degraded, LinkChanges, Outage
from .own_patterns import OwnPatterns, read_patterns
from .patterns import Pattern, has_pattern, is_data_parallel, pattern_of, scaled, throttled
from .phase_run import Growth

if TYPE_CHECKING:
    from ..cluster.topology import Topology
    from ..jobs.workload import Workload

SAME = 1e-6  # relative: iteration times that are nearer are the same (jobs/workload.py: AGREEMENT)
MOST_CHANNELS = 64
_LATER = ("routes", "route_seed", "channels", "link_mtbf_s", "link_mttr_s", "degraded")
SAID_IF_SET = ("models", "default", "workers", *_LATER)
ONLY_WITH = (  # a parameter, and the value of another without which it means nothing
    *(("route_seed", "routes", "hash"), ("channels", "routes", "hash"), ("levels", "rates", "crux")),
    *(("base", "rates", "mltcp"), ("slope", "rates", "mltcp")),
)


class _Gang(NamedTuple):
    """The inputs of phases and links of a job on its GPUs.

    Attributes:
        model: None: it sends nothing. asked: GPUs. batch: samples of an iteration on each. base_s: of an iteration.
        workers: the NIC of each. drawn: the job, if its paths are drawn.
    """

    model: str | None
    asked: int
    batch: int
    base_s: float
    workers: tuple[int, ...]
    drawn: int | None


@dataclass(frozen=True, eq=False)
class Joined:
    """The sharing of links at an instant, of a workload and topology, `of`.

    Attributes:
        phases, uses: of every running job that sends over the network, jobs in ascending order.
        component: the jobs joined to each by shared links, itself among them, ascending.
        period_s: seconds from one slot of its iterations to the next, if it had a shift.
    """

    of: tuple[Workload, Topology]
    phases: dict[int, Phases]
    uses: dict[int, LinkUse]
    component: dict[int, list[int]]
    period_s: dict[int, float]

    def groups(self) -> list[list[int]]:
        """The components, each once."""
        return list({id(jobs): jobs for jobs in self.component.values()}.values())


@dataclass(frozen=True, eq=False)
class LinkNetwork:
    """Network contention as a value (`contention.Contention`).

    Args:
        mode: exact: phases go on from event to event; averaged: jobs that share links have the average rate of their
            steady state; dedicated: jobs never meet.
        collective: ring or tree: the all-reduce of data parallel jobs, and phases of the user's own, over the machines
            of a gang in ascending order. Others send as they are split (cluster/traffic.py).
        gbps: top rate of a flow, gigabits per second.
        offsets: random: the first iteration on new GPUs begins up to an iteration later, uniformly; none: at once.
        jitter: coefficient of variation of Down times, which are lognormal with mean as given.
        pacing: jobs with a shift begin every iteration at a slot; else only the first one.
        adjust: how late, as a part of an iteration, a job with a shift may begin before it waits for its next slot
            (paper cassini, Sec. 5.7: 0.05); off: any.
        padding: how much longer than an iteration the period of a shift may be, a fraction, for a short common circle
            (contention/circle.py).
        carried: what arrives of a link to which more is offered than fits, a part of its capacity, in (0, 1]. The
            paper's own figures leave no room for less than 1 (`clustergym reproduce cassini-congestion`).
        rates: shares of a full link: fair: max-min; crux: jobs of higher priority first (crux.py); mltcp: in proportion
            to base + slope x the part of its iteration's bytes that a job has sent (`growth`).
        levels: priorities of crux, >= 1.
        base, slope: of mltcp, > 0 and >= 0.
        link_mtbf_s: mean time between failures of a cable, exponential as those of machines, > 0; inf: none. Both
            directions fail, routes avoid them, and a job without a way waits where it would send.
        link_mttr_s: mean time until it is up again, > 0.
        degraded: path of a csv of scales of capacities over time (link_states.py); "": none.
        routes: table: one path to each machine from everywhere, balanced over equal ones (`LinkGraph.next_link`); hash:
            each flow, from one NIC of a job to another, takes one of all equal paths by a hash, so that flows collide
            (routes.py, `drawn_path`). least: running jobs are spread over equal paths, those that compute most for
            their bytes first (least_paths.py).
        route_seed: of the hash, >= 0, whatever the seed of the run.
        channels: queue pairs of a flow, each with an even part of it and its own hash, 1 to MOST_CHANNELS.
        models: path of the user's own phases (own_patterns.py), read when the network is made; "": none.
        default: silent: jobs whose model has no phases or whose batch is not known send nothing; None: an error.
        duration: isolated or compute: what `duration_s` means (isolated.py). Computing is an iteration on one machine.
        workers: fixed: a job runs on as many GPUs as it asks; elastic: a data parallel one (`may_resize`) runs on any
            number, with the same samples a worker and iteration. So an iteration computes as long, all-reduces among
            more or fewer, and does more or less of the work, in proportion (our choice: Pollux' gradient noise of these
            models is not published). Schedulers that resize jobs set it.

    Raises:
        InputError: a number out of range, or a file of phases that cannot be used.
    """

    mode: Literal["exact", "averaged", "dedicated"] = "exact"
    collective: Literal["ring", "tree"] = "ring"
    gbps: float = 45.0
    offsets: Literal["none", "random"] = "none"
    jitter: float = 0.0
    pacing: bool = True
    adjust: float | Literal["off"] = "off"
    padding: float = TOLERANCE
    carried: float = 1.0
    rates: Literal["fair", "crux", "mltcp"] = "fair"
    levels: int = 8
    base: float = 0.25
    slope: float = 1.75
    link_mtbf_s: float = math.inf
    link_mttr_s: float = 3600.0
    degraded: str = field(default="", metadata={MARK: A_FILE})
    routes: Literal["table", "hash", "least"] = "table"
    route_seed: int = 0
    channels: int = 1
    models: str = field(default="", metadata={MARK: A_FILE})
    default: Literal["silent"] | None = None
    duration: Duration = ISOLATED
    workers: Literal["fixed", "elastic"] = "fixed"
    name: str = field(default="contention", init=False)
    memo: LinkMemo = field(default_factory=LinkMemo, init=False, repr=False)

    def __post_init__(self) -> None:
        limits = {"gbps": (0.0, False), "jitter": (0.0, True), "padding": (0.0, True)}
        limits |= {"base": (0.0, False), "slope": (0.0, True), "levels": (1.0, True), "link_mttr_s": (0.0, False)}
        if self.adjust != "off":
            limits["adjust"] = (0.0, False)
        for key, (least, is_in) in limits.items():
            value = getattr(self, key)
            if not (value > least or (is_in and value == least)) or not math.isfinite(value):
                bound = "of at least" if is_in else "above"
                raise InputError(f"network contention: {key} = {value!r}: expected a finite number {bound} {least:g}")
        if not 0.0 < self.carried <= 1.0:
            raise InputError(f"network contention: carried = {self.carried!r}: expected a part above 0, at most 1")
        _ = self._own_models
        if not self.link_mtbf_s > 0.0:
            raise InputError(f"network contention: link_mtbf_s = {self.link_mtbf_s!r}: expected a number above 0")
        if self.mode == "averaged" and (self.link_mtbf_s < math.inf or self.degraded):
            given = "degraded" if self.degraded else "link_mtbf_s"
            raise InputError(
                f"network contention: {given} is given with mode=averaged, whose steady states know no time at which "
                "links change; expected mode=exact"
            )
        _ = self._degraded
        if not 0 <= self.route_seed < 1 << 63:
            raise InputError(f"network contention: route_seed = {self.route_seed!r}: expected 0 to 2**63 - 1")
        if not 1 <= self.channels <= MOST_CHANNELS:
            raise InputError(f"network contention: channels = {self.channels!r}: expected 1 to {MOST_CHANNELS}")
        for key, option, expected in ONLY_WITH:
            value, given = getattr(self, key), getattr(self, option)
            if given != expected and value != getattr(LinkNetwork, key):
                message = f"{key} = {value!r}: it means nothing with {option}={given}; expected {option}={expected}"
                raise InputError(f"network contention: {message}")
        if self.link_mtbf_s == math.inf and self.link_mttr_s != LinkNetwork.link_mttr_s:
            given = f"link_mttr_s = {self.link_mttr_s!r}"
            raise InputError(f"network contention: {given}: it means nothing without link_mtbf_s")

    @cached_property
    def _own_models(self) -> OwnPatterns:
        return read_patterns(self.models)

    @cached_property
    def _degraded(self) -> Degraded | None:
        return Degraded.read(self.degraded) if self.degraded else None

    def describe(self) -> str:
        """Its text with every parameter, for `load_network`."""
        said = {one.name for one in dataclasses.fields(self)} - set(SAID_IF_SET)
        said |= {"route_seed"} if self.routes == "hash" else set()
        values = {
            one.name: getattr(self, one.name)
            for one in dataclasses.fields(self)
            if one.init and (one.name in said or getattr(self, one.name) != one.default)
        }
        values["pacing"] = "on" if self.pacing else "off"
        words = (f"{k}={v:.10g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items())
        return f"{self.name}:{','.join(words)}"

    @property
    def growth(self) -> Growth | None:
        """How the weights of jobs grow while they send; None: they do not.

        Source: MLTCP (Rajasekaran et al., arXiv 2402.09589; HotNets'24), known by a summary only: flows scale their
        rate by the bytes that they have sent of this iteration. That a flow's part of a full link is in proportion to
        base + slope x that part, at once, is our reading. Nothing breaks a tie of equal jobs that begin together.
        Paper: mltcp, the weight of a flow.
        """
        return Growth(self.base, self.slope) if self.rates == "mltcp" else None

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None) -> tuple[np.ndarray, np.ndarray]:
        """Slowdowns per (model, gang size, batch), with no other job on the links; see `base.Network`.

        They serve estimates before a placement; the rate of a placed job comes from `alone`. They are rounded where a
        record cannot hold all.

        Raises:
            InputError: a job of several GPUs whose model has no phases, or whose batch is not known.
        """
        silent = None
        if self.default is not None:
            silent = np.array([self._is_silent(workload, job) for job in range(len(workload.gpus))], bool)
        profile, factors = factors_by_batch(self, workload, topology, self._factors, silent)
        digits = 12
        while True:
            different, place = np.unique(np.round(factors, digits), axis=0, return_inverse=True)
            if len(different) <= PROFILES or digits == 0:
                return place.reshape(-1)[profile], different
            digits = min(4, digits - 1)

    def _is_silent(self, workload: Any, job: int) -> bool:
        if self.default is None:
            return False
        return int(workload.batch_size[job]) == 0 or not has_pattern(str(workload.model[job]), self._own_models)

    def may_resize(self, workload: Workload, job: int) -> bool:
        """Whether a job may have other GPUs than it asks: a data parallel model (patterns.py); others may not scale."""
        if self.workers == "fixed" or int(workload.batch_size[job]) == 0:
            return False
        return is_data_parallel(str(workload.model[job]), self._own_models)

    def _factors(self, model: str, gpus: int, batch: int, largest_machine: int) -> np.ndarray:
        pattern = pattern_of(model, gpus, batch, self.gbps, self.collective, self._own_models)
        between = max(1.0, pattern.phases.iteration_s / pattern.local_s)
        if gpus > largest_machine:  # nowhere without the network: the best placement is as slow as all others
            return np.full(TIERS, between)
        return np.array([between if tier >= RACK else 1.0 for tier in range(TIERS)])

    def alone(self, topology: Topology, workload: Workload, job: int, gpus: Any, outage: Outage | None = None) -> Own:
        """The phases of a job alone on these GPUs, and how often it crosses which link.

        A link that the job crosses several times may be slower than its flows together: Up phases take longer then.
        Rates are whole bytes per second. On one machine there are neither Up phases nor links.

        Args:
            outage: the links that are down (`outage`). Where no way is left there are no links, and the phases are
                those of the whole network. Links have their built capacity.

        Raises:
            InputError: see `tier_factors`.
        """
        return self.together(topology, workload, {job: gpus}, outage)[job]

    def together(
        self, topology: Topology, workload: Workload, gangs: Mapping[int, Any], outage: Outage | None = None
    ) -> dict[int, Own]:
        """As `alone`, of jobs that run at once, without others; with `routes=least` they choose paths together."""
        self.memo.expect(topology)
        known = {job: self._gang(topology, workload, job, gpus) for job, gpus in gangs.items()}
        found = {job: self._by_itself(topology, workload, job, gang, outage) for job, gang in known.items()}
        if self.routes != "least":
            return found
        apart = [[job] for job in known] if self.mode == "dedicated" else [sorted(known)]
        for jobs in apart:
            gangs_apart = {job: known[job] for job in jobs}
            key = tuple(gangs_apart.items()), outage.key if outage else None
            spread = partial(self._spread, topology, gangs_apart, found, outage)
            chosen: dict[int, Own] = remembered(self.memo.choices, key, MOST_CHOICES, spread)
            found.update(chosen)
        return found

    def running(self, simulator: Simulated) -> dict[int, Own]:
        """As `together`, of the jobs that run now, on their GPUs."""
        return self.together(simulator.topology, simulator.workload, _running_gangs(simulator), self.outage(simulator))

    def own(self, simulator: Simulated, job: int, gpus: Any = None) -> Own:
        """As `alone`, of a job beside those that run now: on the GPUs that it holds, or on others."""
        gangs = _running_gangs(simulator) if self.routes == "least" else {}
        gangs[job] = simulator.view.gpus_of(job) if gpus is None else gpus
        return self.together(simulator.topology, simulator.workload, gangs, self.outage(simulator))[job]

    def _gang(self, topology: Topology, workload: Workload, job: int, gpus: Any) -> _Gang:
        workers = tuple(nics_of(topology, gpus))
        asked, model, batch = int(workload.gpus[job]), None, 0
        if max(len(workers), asked) > 1 and not self._is_silent(workload, job):
            model, batch = str(workload.model[job]), batch_of(self, workload, job)
        drawn = job if self.routes == "hash" and _are_apart(topology, workers) else None
        return _Gang(model, asked, batch, float(workload.iteration_s[job]), workers, drawn)

    def _by_itself(self, topology: Topology, workload: Workload, job: int, gang: _Gang, outage: Outage | None) -> Own:
        workers = gang.workers if _are_apart(topology, gang.workers) else ()
        key = (*gang._replace(workers=workers), len(gang.workers))
        alone = self.memo.alone
        if key not in alone:
            self.memo.make_room()
            try:
                alone[key] = self._own(topology, gang)
            except InputError as error:
                raise InputError(f"{name_of_job(workload, job)}: {error}") from None
        whole = alone[key]
        if outage is None or outage.up[whole[1].links].all():
            return whole
        now = (*key, outage.key)
        if now not in alone:
            around = self._own(topology, gang, outage)
            alone[now] = around if len(around[1].links) else (whole[0], NO_LINKS)
        return alone[now]

    def _spread(
        self, topology: Topology, gangs: Mapping[int, _Gang], table: Mapping[int, Own], outage: Outage | None
    ) -> dict[int, Own]:
        """Phases and links, on the least congested paths, of those jobs that send; `table`: by the table."""
        senders: dict[int, Sender] = {}
        flows: dict[int, dict[Flow, float]] = {}
        links = topology.links
        for job, gang in gangs.items():
            phases, use = table[job]
            if len(use.links) and phases.rate:
                assert links is not None
                senders[job] = Sender.on(len(gang.workers), phases, use, links.capacity)
                pattern = self._pattern(gang, len(gang.workers))
                rings = rings_of(dict(pattern.traffic), gang.workers, links.nics)
                flows[job] = flows_of(pattern.traffic, gang.workers, links.nics, rings)
        found: dict[int, Own] = {}
        if links is not None:
            equal = outage.paths if outage else self._equal_paths
            for job, paths in least_congested(links, equal, senders, flows).items():
                own = self._own(topology, gangs[job], outage, paths)
                found[job] = own if len(own[1].links) else (table[job][0], NO_LINKS)
        return found

    def _pattern(self, gang: _Gang, workers: int) -> Pattern:
        assert gang.model is not None
        return pattern_of(gang.model, workers, gang.batch, self.gbps, self.collective, self._own_models)

    @property
    def _equal_paths(self) -> EqualPaths:
        assert self.memo.paths is not None
        return self.memo.paths

    @property
    def fails(self) -> bool:
        """Whether links may be down, or carry less, at some time; where no jobs meet they are never looked at."""
        return self.mode == "exact" and (self.link_mtbf_s < math.inf or self._degraded is not None)

    def changes(self, topology: Topology) -> LinkChanges | None:
        """The scales of the links of a topology over time; None: no file. InputError: an unknown link in the file."""
        if not self.fails or self._degraded is None:
            return None
        self.memo.expect(topology)
        if self.memo.changes is None:
            assert topology.links is not None
            self.memo.changes = self._degraded.on(topology.links, f"topology {topology.name!r}")
        return self.memo.changes

    def scales(self, simulator: Simulated) -> np.ndarray:
        """What part of its capacity each link has now, float64 (L,), 0 of one that is down."""
        links, s = simulator.topology.links, simulator.state
        assert links is not None
        scales = 1.0 - s.cable_down[links.cable]
        if (changes := self.changes(simulator.topology)) is not None:
            scales *= changes.scales(float(s.now_s))
        return scales

    def capacity(self, simulator: Simulated) -> np.ndarray:
        """What each link carries now, bytes per second, float64 (L,): as built, less where degraded, 0 of one down."""
        links = simulator.topology.links
        assert links is not None
        return links.capacity * self.scales(simulator) if self.fails else links.capacity

    def outage(self, simulator: Simulated) -> Outage | None:
        """Which links are down now; None: none."""
        if not self.fails:
            return None
        up = self.scales(simulator) > 0.0
        if up.all():
            return None
        self.memo.expect(simulator.topology)
        assert simulator.topology.links is not None
        outage = Outage(simulator.topology.links, up)
        return remembered(self.memo.outages, outage.key, MOST_OUTAGES, lambda: outage)

    def _own(
        self,
        topology: Topology,
        gang: _Gang,
        outage: Outage | None = None,
        chosen: Mapping[Flow, Sequence[int]] | None = None,
    ) -> Own:
        """Phases and links of a job; `chosen`: the path of each of its flows, none: by the table or the hash."""
        workers, drawn = gang.workers, gang.drawn
        if gang.model is None:
            return Phases(gang.base_s), NO_LINKS
        pattern, whole = self._pattern(gang, len(workers)), self._pattern(gang, gang.asked)
        is_local = self.duration != ISOLATED or gang.asked <= int(topology.machine_gpus.max())
        factor = gang.base_s / (whole.local_s if is_local else whole.phases.iteration_s)
        factor = 1.0 if abs(factor - 1.0) <= SAME else factor
        if not _are_apart(topology, workers):
            return Phases(pattern.local_s * factor), NO_LINKS
        links = topology.links
        assert links is not None
        on, traffic = (pattern.traffic, workers, drawn, outage.key if outage else None), dict(pattern.traffic)
        rings = rings_of(traffic, workers, links.nics)
        if chosen is not None:
            use = link_use(links, workers, traffic, rings, partial(_chosen, chosen))
        else:
            routes = self.memo.routes
            if on not in routes:
                paths: Paths | None = None if drawn is None else partial(self._drawn, drawn, outage)
                table = outage.table if outage and drawn is None else None
                routes[on] = link_use(links, workers, traffic, rings, paths, table)
            use = routes[on]
        if not len(use.links):
            return pattern.phases, NO_LINKS
        most = float((links.whole_capacity[use.links] // use.flows).min())
        return throttled(scaled(pattern.phases, factor, rings), max(most, 1.0)), use

    def _drawn(self, job: int, outage: Outage | None, start: int, end: int) -> list[list[int]]:
        """The paths of a flow, one a channel, drawn anew only if a link is down; none if no way is left."""
        found = []
        for channel in range(self.channels):
            path = drawn_path(self._equal_paths, self.route_seed, job, start, end, channel)
            if outage is not None and not outage.up[path].all():
                if not outage.paths.count(start, end):
                    return []
                path = drawn_path(outage.paths, self.route_seed, job, start, end, channel)
            found.append(path)
        return found

    def joined(self, simulator: Simulated) -> Joined:
        """Which jobs share links now; jobs that have started at this very instant are among them."""
        s, workload = simulator.state, simulator.workload
        most, room = simulator.view.jobs_per_gpu, len(s.gpu_slot)  # records have room for more jobs, and GPUs
        here = s.gpu_job.reshape(-1, room)[:most, : s.n_gpus]
        holders = hashlib.blake2b(here.tobytes(), digest_size=16).digest()
        outage = self.outage(simulator)
        key = (id(workload), id(simulator.topology), holders, outage.key if outage else None)
        found: Joined = remembered(self.memo.joined, key, MOST_JOINED, lambda: self._join(simulator))
        return found

    def _join(self, simulator: Simulated) -> Joined:
        phases, uses = {}, {}
        for job, (own, use) in self.running(simulator).items():
            if own.rate:
                phases[job], uses[job] = own, use
        component = {job: [job] for job in uses}
        for jobs in () if self.mode == "dedicated" else sharing(uses).values():
            for job in jobs[1:]:
                first, second = component[jobs[0]], component[job]
                if first is not second:
                    first += second
                    component.update(dict.fromkeys(second, first))
        period_s: dict[int, float] = {}
        joined = Joined((simulator.workload, simulator.topology), phases, uses, component, period_s)
        for jobs in joined.groups():
            jobs.sort()
            circle = unify([phases[job].iteration_s for job in jobs], self.padding)
            period_s.update(zip(jobs, circle.periods_s, strict=True))
        return joined

    def component(self, simulator: Simulated, job: int) -> list[int]:
        """The running jobs joined to a job by shared links, full or not, and itself, ascending; none: it sends none."""
        return list(self.joined(simulator).component.get(job, ()))

    def contending(self, simulator: Simulated) -> dict[int, list[int]]:
        """The running jobs on every link that carries several, by link, ascending; empty where jobs never meet."""
        return {} if self.mode == "dedicated" else sharing(self.joined(simulator).uses)

    def period_s(self, simulator: Simulated, job: int) -> float:
        """Seconds from slot to slot of a job shifted now, by `unify` on its component; InputError: it sends none."""
        period_s = self.joined(simulator).period_s
        if job not in period_s:
            raise InputError(f"{name_of_job(simulator.workload, job)} sends nothing over the network now")
        return period_s[job]


def _running_gangs(simulator: Simulated) -> dict[int, Any]:
    return {job: simulator.view.gpus_of(job) for job in simulator.view.running.tolist()}


def _chosen(paths: Mapping[Flow, Sequence[int]], start: int, end: int) -> list[Sequence[int]]:
    return [paths[start, end]] if paths[start, end] else []


def _are_apart(topology: Topology, workers: tuple[int, ...]) -> bool:
    nics = 1 if topology.links is None else topology.links.nics
    return workers[0] // nics != workers[-1] // nics
