"""The simulator: one cluster, one workload, a clock, and decisions at decision points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..base import codes
from ..base.decisions import TABLE_DECISIONS, Advance, Decision, Hold, Migrate, Preempt, Resize, Shift, Start
from ..base.errors import InputError, InvalidDecision, Stalled
from ..base.names import called
from ..base.tiers import MACHINE, NETWORK, RACK
from ..checks.check_gangs import (
    STATUS_WORDS,
    VERBS,
    apply_shift,
    check_passes,
    check_time_shift,
    keeps_place,
    write_gang,
)
from ..checks.table_decisions import apply_table
from ..cluster.topology import Topology
from ..compiler.compile_messages import about
from ..configuration.cluster_config import ClusterConfig
from ..configuration.network_choice import Contention, Network, load_network, on_topology
from ..contention.entering import write_network
from ..events import clock_calls
from ..events.initialise import (
    Cluster,
    cluster_of,
    copy_state,
    gpus_of,
    write_classes,
    write_event_ids,
    write_job_columns,
    write_logged,
    write_machines,
    write_semantics,
    write_sizes,
    write_terms,
)
from ..events.journal import logged
from ..jobs.workload import Workload
from ..lifecycle import job_calls
from ..network.simulated import RateProvider
from ..profiles.skew import jobs_taken_for_skewed
from ..record.raw_record import RawRecord
from ..record.state import Capacity
from ..regions.initialise_regions import write_regions, write_speeds
from ..rules.rule import SKEW_PLACERS, Rule
from ..sharing.sharing_model import write_sharing
from ..table_placement.placement_metrics import table_metrics
from .base_simulator import BaseSimulator
from .last_asked import NEVER, Happened, LastAsked
from .metrics import job_table, totals
from .rule_loop import hand_over, parts_of_a_run, rule_loop
from .together import capacity_for, expect_kinds, expect_no_spans, expect_rule, ground_of, spanning, write_apart
from .view import ClusterView

FIRST_COME = Rule(order="fifo")


class Simulator(BaseSimulator):
    """A GPU cluster, simulated by events.

    Args:
        config: the cluster: a `ClusterConfig`; or its topology, with `network` and its other options beside it.
        network: beside a topology: the network fidelity, by default none.
        rule: the compiled scheduler of `run`, whose preemption cost, rounds and leases always hold; by default FIFO.
        options: beside a topology: those of `ClusterConfig`, and its fields (`horizon_s=3600.0`,
            `failures=Failures(86400.0)`).

    A workload with `geo` is simulated in the regions of the topology; only a policy can place its jobs. Any other has
    only the topology's GPUs, without CPU machines, and no gang may span regions that links join.

    Attributes:
        config: what is simulated, its topology and network opened.
        topology: the part on which the jobs of the present workload can run; before the first, all of it.
        records, state, raw: array of one record, that record, and its fast access (state.py). Do not write to it.
        view: the read-only `ClusterView` of the present.
        room: None, or what is asked before each reset to `move_to` records of at least a capacity (batches).
        done: every job is finished.
        at_horizon: the horizon was reached before that.
        runs: how often `reset` or `restore` has replaced the state.
    """

    def __init__(
        self,
        config: ClusterConfig | Topology | str | dict[str, Any],
        network: Network | str | None = None,
        *,
        rule: Rule | None = None,
        **options: Any,
    ) -> None:
        config = config if isinstance(config, ClusterConfig) else ClusterConfig.of(config, network, **options)
        self.topology = Topology.load(config.topology)
        self.rule = rule or FIRST_COME
        self.semantics = config.semantics
        self.estimates, self.sharing = config.estimates, config.sharing
        self.network = on_topology(load_network(config.network, self.semantics.duration), self.topology)
        self.rate_provider: RateProvider | None = (
            getattr(self.network, "rate_provider", None) if config.rate_provider is None else config.rate_provider
        )
        self.config = replace(config, topology=self.topology, network=self.network)
        expect_kinds(self)
        expect_rule(self, self.rule)
        self.outages, self._speeds = config.outages(self.topology), config.unit_speeds(self.topology)
        self.view = ClusterView(self)
        self.capacity = Capacity(0, 0)
        self._lists_partners = False
        self._cluster: Cluster | None = None
        self._terms: tuple[Rule, Capacity, np.ndarray] | None = None  # the head of a record to write jobs into
        self._plan: list[Decision] = []
        self._handed_out: Decision | None = None
        self._asked = NEVER

    config: ClusterConfig
    PLAIN = RawRecord
    _copy_record = staticmethod(copy_state)
    _logged = staticmethod(logged)
    raw: RawRecord

    @cached_property
    def berths(self) -> int:
        """Jobs that a GPU must have room for; more than one where the rates of running jobs change at all."""
        if self.sharing is not None:
            return max(2, self.sharing.jobs_per_gpu)
        return 1 if self.rate_provider is None else 2

    @cached_property
    def is_layered(self) -> bool:
        """Whether a record must have room for layers of models, or for auctions."""
        return self.semantics.auctions or hasattr(self.network, "write_into")

    @cached_property
    def link_room(self) -> int:
        """Links that a record must have room for; none where jobs do not share them."""
        if not isinstance(self.network, Contention):
            return 0
        assert self.topology.links is not None
        return max(2, self.topology.links.num_links)

    def reset(self, workload: Workload, seed: int = 0, *, begin: bool = True) -> None:
        """Write `workload` into the record and run to the first decision point.

        Args:
            workload: the jobs; none may ask more GPUs than the cluster has.
            seed: draws failures, random orders and estimates of run times.
            begin: False leaves the clock before the first arrival, for kernels that find the first decision themselves.
        """
        self._expect_both(workload, seed)
        self._take(workload)
        workload = self.workload
        if not begin:
            expect_no_spans(self)
        self.runs += 1
        self._asked = NEVER
        capacity = capacity_for(self)
        if self.outages is not None:
            capacity = capacity.with_outages(self.outages.size(self.topology, capacity.regions > 0))
        self._make_room(capacity)
        self.raw.clear(len(workload), self.topology.num_gpus)
        s = self.raw.record
        self._write_terms()
        write_job_columns(self.raw, workload, self.topology, self.network)
        s["seed"] = seed
        if self._speeds is not None and workload.geo is not None:
            write_speeds(s, workload.geo, *self._speeds.rows(workload))
        self.estimates.write_into(s, workload)
        s["horizon_s"] = s["start_s"] + self.config.horizon_s
        if capacity.berths > 1:
            with about(f"the simulator for up to {capacity.words}"):
                self._write_sharing(s)
                if capacity.links:
                    write_network(self)
        if capacity.regions > 0:
            write_regions(s, self.topology, workload, *self.config.of_tables, self.config.tariff)
        write_classes(s, self.rule, self._skewed())
        self._write_logged()
        self._code = codes.DECIDE
        if self.outages is not None:
            self.outages.write_into(s, self.topology, capacity.regions > 0)
        if self.config.failures is not None:
            self.raw.call(clock_calls.draw_failures)
        if begin:
            with about(f"the simulator for up to {capacity.words}"):
                self._go(rule_loop().advance)

    def _take(self, workload: Workload) -> None:
        self._stand_on(ground_of(Topology.load(self.config.topology), workload))
        if workload.geo is not None and not workload.geo.regions:
            workload = workload.with_geo(workload.geo.over(self.topology.region_names))
        self.workload = workload.oversize(self.config.gang_room(self.topology))

    def _stand_on(self, topology: Topology) -> None:
        if topology is not self.topology:
            self.topology, self._cluster, self._terms = topology, None, None

    def _write_terms(self) -> None:
        """Write what is the same in every run into a cleared record; its numbers are kept, since they are many."""
        if self._cluster is None:
            self._cluster = cluster_of(self.topology)
        s = self.raw.record
        if self._terms is None or self._terms[0] is not self.rule or self._terms[1] != self.capacity:
            write_sizes(s, self._cluster)
            write_event_ids(s)
            write_semantics(s, self.semantics)
            write_terms(s, self.rule, self.semantics)
            if self.config.failures is not None:
                self.config.failures.write_into(s)
            self._terms = self.rule, self.capacity, self.raw.head.copy()
        else:
            self.raw.head[:] = self._terms[2]
        write_apart(s, self)
        if self.semantics.chunk > 0.0:
            s["chunk"] = self.semantics.chunk_on(self.workload)
        write_machines(self.raw, self._cluster)

    def _write_sharing(self, s: np.void) -> None:
        write_sharing(self.records, s, self.workload, self.network, self.sharing)
        s["asks"], s["elastic"] = self.rate_provider is not None, getattr(self.rate_provider, "elastic", False)
        s["restores_first"] = getattr(self.rate_provider, "restores_first", False)
        s["lists_always"] = self._lists_partners and s["jobs_per_gpu"] > 1

    def _forget(self) -> None:
        self._asked = NEVER

    def python_state(self) -> tuple[Any, ...]:
        """See `BaseSimulator`."""
        return *super().python_state(), tuple(self._plan), self._handed_out, self._asked

    def take_python_state(self, python_state: tuple[Any, ...]) -> None:
        """See `BaseSimulator`."""
        super().take_python_state(python_state)
        plan, self._handed_out, self._asked = python_state[3:]
        self._plan = list(plan)

    def restore(self, snapshot: np.recarray) -> None:
        """See `BaseSimulator`."""
        super().restore(snapshot)
        self._forget()

    def use(self, rule: Rule) -> None:
        """Hand the cluster over to another rule, now and for the resets to come; nothing happens if it has it."""
        if rule is self.rule or rule == self.rule:
            return
        if not isinstance(rule, Rule):
            raise InputError(f"{called(rule)} cannot play jobs on GPUs; expected a Rule, or a policy that says its own")
        expect_rule(self, rule)
        self.rule = rule
        self._asked = NEVER
        if self.capacity.jobs > 0:
            self._write_logged()
            hand_over(self.records, self.raw.record, rule, self._skewed(), self.semantics)

    def list_partners(self) -> None:
        """From now on, list the running jobs that could have partners (exclusive_gpus.py), whatever the rule."""
        if self._lists_partners:
            return
        self._lists_partners = True
        if self.capacity.jobs > 0 and self.view.jobs_per_gpu > 1:
            self.raw.record["lists_always"] = 1
            hand_over(self.records, self.raw.record, self.rule, self._skewed(), self.semantics)
            self._asked = NEVER

    def _skewed(self) -> np.ndarray | None:
        if self.rule.placer not in SKEW_PLACERS:
            return None
        return jobs_taken_for_skewed(self.workload, self.network.name)

    def _write_logged(self) -> None:
        if self.rule.order == "logged":
            write_logged(self.raw.record, self.workload)

    def _close_instant(self) -> None:
        self._go(rule_loop().advance)

    def _go(self, kernel: Callable[..., int], *arguments: int) -> None:
        code = kernel(self.records, 0, *arguments)
        while code == codes.ASK:
            self.answer()
            code = kernel(self.records, 0, *arguments)
        self._stop(code)

    def answer(self) -> None:
        """Tell the jobs that ask (`codes.ASK`) their rates; then the kernel that asked goes on."""
        raw, rate_provider = self.raw, self.rate_provider
        s = raw.record
        assert rate_provider is not None
        raw.call(job_calls.bring_to_date)
        for job in s["asked"][: s["n_asked"]].tolist():
            solo_s, phase_left = rate_provider.rate(self, job)
            if not 0.0 < solo_s < math.inf or not 0.0 <= phase_left < s["iterations_left"][job]:
                raise InputError(
                    f"job {self.workload.job_id[job]}: its pace is {solo_s!r} seconds per iteration until "
                    f"{phase_left!r} are left; expected seconds > 0, and from 0 to less than the "
                    f"{s['iterations_left'][job]:g} left now"
                )
            raw.call(job_calls.set_rate, job, float(solo_s), float(phase_left))
        s["n_asked"] = 0
        if hasattr(rate_provider, "changed_rates"):
            for job, solo_s in rate_provider.changed_rates(self):
                raw.call(job_calls.change_rate, job, float(solo_s))

    def _rule_player(self) -> Callable[[], None]:
        self._expect_no_regions()
        parts = parts_of_a_run()

        def play() -> None:
            rule_loop().schedule(self.records, 0)
            self._go(rule_loop().run, next(parts))

        return play

    def next_decision(self) -> Decision:
        """The next decision of the compiled rule's pass at this instant.

        The pass is made once, on a copy of the state, and kept while the decisions carried out are its own.
        """
        s, last = self.state, self._handed_out
        before, self._asked = self._asked, LastAsked(int(s.instants), int(s.decisions))
        happened = before.since(self._asked)
        has_nothing_more = last is None and happened is Happened.NOTHING
        is_carried_out = last is not None and happened is Happened.ONE_DECISION and self._was_last(last)
        if not has_nothing_more and not is_carried_out:
            self._plan = self._pass_on_copy()
        self._handed_out = self._plan.pop(0) if self._plan else None
        return self._handed_out or Advance()

    @property
    def coming(self) -> tuple[Decision, ...]:
        """What the compiled rule will decide at this instant after what `next_decision` gave last."""
        return tuple(self._plan)

    def preview_pass(self) -> list[Decision]:
        """All decisions of the pass that the compiled rule would make at this instant; nothing is carried out."""
        return self._pass_on_copy()

    def _was_last(self, decision: Decision) -> bool:
        s = self.state
        kind, job = KINDS[type(decision)], getattr(decision, "job", None)
        if (kind, job) != (s.last_kind, s.last_job):
            return False
        if not isinstance(decision, Start | Migrate | Resize):
            return True
        sub_batch = getattr(decision, "sub_batch", None)
        as_asked = sub_batch is None or sub_batch == s.sub_batch[decision.job]
        return as_asked and tuple(gpus_of(s, decision.job)) == decision.gpus

    def _expect_no_regions(self) -> None:
        if self.capacity.regions > 0:
            raise InputError("a compiled rule places no jobs in regions; expected a policy that does, as mast")

    def _pass_on_copy(self) -> list[Decision]:
        self._expect_no_regions()
        return self.rehearse(rule_loop().schedule)

    def schedule(self) -> int:
        """One pass of the compiled rule at this instant; returns how many jobs it started."""
        self._expect_no_regions()
        return int(rule_loop().schedule(self.records, 0))

    def apply(self, decision: Decision) -> None:
        """Carry out one decision at this instant.

        Raises:
            InvalidDecision: it cannot be carried out; the state is as before.
        """
        if isinstance(decision, Advance):
            self.advance()
            return
        if isinstance(decision, TABLE_DECISIONS):
            apply_table(self, decision)
            return
        job = self._job(decision)
        s = self.state
        if isinstance(decision, Start):
            self._expect(job, (codes.WAITING, codes.HELD), "start")
            check_time_shift(self, decision)
            write_gang(self, decision)
            self.raw.call(rule_loop().start, job)
            if decision.time_shift is not None:
                apply_shift(self, Shift(job, decision.time_shift))
        elif isinstance(decision, Migrate | Resize):
            verb = VERBS[type(decision)]
            self._expect(job, (codes.RUNNING,), verb)
            if not keeps_place(self, decision):
                self._expect_no_lease(job, verb)
            if isinstance(decision, Migrate):
                write_gang(self, decision)
                self.raw.call(job_calls.migrate, job)
            else:
                self._resize(decision)
        elif isinstance(decision, Shift):
            self._expect(job, (codes.RUNNING,), "shift")
            apply_shift(self, decision)
        elif isinstance(decision, Preempt):
            self._expect(job, (codes.RUNNING,), "preempt")
            self._expect_no_lease(job, "preempt")
            self.raw.call(job_calls.preempt, job)
        elif isinstance(decision, Hold):
            self._expect(job, (codes.WAITING,), "hold")
            until_s = math.inf if decision.until_s is None else float(decision.until_s)
            if not until_s > s.now_s:
                raise InvalidDecision(f"hold job {job} until {until_s:g} s: it is {s.now_s:g} s already")
            tier = self._hold_tier(decision)
            if tier is None:
                job_calls.hold(self.records, 0, job, until_s)
            else:
                rule_loop().hold_for_tier(self.records, 0, job, until_s, tier)

    def _hold_tier(self, decision: Hold) -> int | None:
        tier = decision.tier
        if tier is None:
            return None
        if isinstance(tier, bool) or not isinstance(tier, int | np.integer) or tier not in HOLD_TIERS:
            raise InvalidDecision(
                f"hold job {decision.job}: tier {tier!r}: expected {MACHINE} (machine), {RACK} (rack), {NETWORK} "
                "(network) or None"
            )
        if self.capacity.regions > 0:
            raise InvalidDecision(
                f"hold job {decision.job} for tier {tier}: in regions no job starts by itself; expected tier None"
            )
        return int(tier)

    def serve_holds(self) -> None:
        """Let jobs that are held for a tier with room start now; else that comes with the end of the instant."""
        rule_loop().serve_holds(self.records, 0)

    def _resize(self, decision: Resize) -> None:
        passes = check_passes(self, decision)
        batch = write_gang(self, decision)
        if passes is None:
            job_calls.resize(self.records, 0, decision.job, batch)
        else:
            job_calls.set_passes(self.records, 0, decision.job, passes)

    def _job(self, decision: Decision) -> int:
        job = getattr(decision, "job", None)
        if not isinstance(decision, tuple(KINDS)) or isinstance(job, bool) or not isinstance(job, int | np.integer):
            expected = "Start, Hold, Preempt, Migrate, Resize, Shift or Advance"
            raise InvalidDecision(f"{decision!r}: expected {expected} with a job index")
        if self.ended:
            raise InvalidDecision(f"{decision!r}: the run has ended; call reset() first")
        if not 0 <= job < self.raw.record["n_jobs"]:
            raise InvalidDecision(f"{decision!r}: there are jobs 0 to {self.state.n_jobs - 1}")
        return int(job)

    def _expect(self, job: int, allowed: tuple[int, ...], verb: str) -> None:
        status = int(self.raw.record["status"][job])
        if status not in allowed:
            raise InvalidDecision(f"{verb} job {job} ({self.workload.job_id[job]}): it {STATUS_WORDS[status]}")

    def _expect_no_lease(self, job: int, verb: str) -> None:
        s, what = self.raw.record, f"{verb} job {job} ({self.workload.job_id[job]})"
        if verb == "migrate" and self.semantics.auctions:
            if s["next_first_gpu"][job] >= 0:
                raise InvalidDecision(f"{what}: it is about to move already")
            return
        since_s = min(s["started_s"][job], s["begun_s"][job])  # a job that was resized at this instant keeps its lease
        if s["lease_s"] > 0.0 and since_s < s["now_s"] < s["lease_end_s"][job]:
            raise InvalidDecision(f"{what}: its lease runs until {s['lease_end_s'][job]:g} s")

    def _stop(self, code: int) -> None:
        self._code = int(code)
        self.expect_end()
        s = self.state
        if s.spanning:
            raise spanning(self, int(s.spanning) - 1)
        if self._code == codes.STALLED:
            raise Stalled(
                f"{s.waiting + s.held} jobs wait at {s.now_s:g} s, nothing runs and no event is left to come; "
                "start one of them"
            )

    def metrics(self, among: np.ndarray | None = None) -> dict[str, float]:
        """Totals of the run so far, by the names of `metrics.py`; of jobs those of `among`, bool (jobs,), or of all."""
        found = totals(self.raw, among)
        return found | table_metrics(self.view) if self.capacity.regions > 0 else found

    def jobs(self) -> dict[str, np.ndarray]:
        """One row a job: arrival, first start, finish, JCT, queueing delay and so on; see `metrics.job_table`."""
        return job_table(self.raw, self.workload)


HOLD_TIERS = (MACHINE, RACK, NETWORK)
KINDS: dict[type, int] = {
    Start: codes.START,
    Hold: codes.HOLD,
    Preempt: codes.PREEMPT,
    Migrate: codes.MIGRATE,
    Resize: codes.RESIZE,
    Shift: codes.SHIFT,
}
