"""What the clock does besides arrivals and ends: how leases end, in which steps work progresses, when passes are made.

`events`, the default: progress is continuous; a pass is made at every event (or round); a job whose lease has ended can
be replaced by an earlier one in the order, and goes on otherwise; under delay timers it bids anew as soon as a job
waits (policies/loop/offer_pass.py).

`artist-sim`: as in ArtISt-sim, the simulator behind paper dally (Sec. IV-C), in its corrected form: only waiting jobs
are offered GPUs. A grant is one lease; work counts in chunks of iterations; a job ends with its last chunk, whose
excess is lost; a job whose lease ends loses its GPUs and waits; they are free at once, and `release_s` per GPU later
(at once, where the lease has time left but not for another chunk) an auction offers all free GPUs to every waiting job
in the order of the rule. Only arrivals and ends call auctions too.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Set
from dataclasses import asdict, dataclass
from typing import Any

from ..base.errors import InputError
from ..base.names import bind, choose, parse_name
from ..jobs.workload import Workload, WorkloadWarning
from ..network.isolated import COMPUTE, ISOLATED, Duration
from .rule import Rule

LEASE_S = 3600.0
PARAMETERS = ("lease_s", "chunk", "release_s")  # that a text can give


@dataclass(frozen=True)
class Semantics:
    """One set of such rules; see the module.

    Args:
        name: how results call it.
        auctions: passes are made at auctions, and leases end in the loss of the GPUs.
        lease_s: seconds, >= 0; 0: a job keeps its GPUs until it ends. Only with auctions: else the rule has its own.
        chunk: iterations per GPU that count as one step, >= 0; 0: progress is continuous.
        release_s: seconds per GPU between the end of a grant and its auction, >= 0.
        network: the network that belongs to it, unless another is named; None: no special one.
        duration: what networks given as text take `duration_s` for unless they say so: see network/isolated.py.
    """

    name: str = "events"
    auctions: bool = False
    lease_s: float = 0.0
    chunk: float = 0.0
    release_s: float = 0.0
    network: str | None = None
    duration: Duration = ISOLATED

    def __post_init__(self) -> None:
        for name in ("lease_s", "chunk", "release_s"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InputError(f"semantics {self.name}: {name} = {getattr(self, name):g}: expected a number >= 0")
        if 0.0 < self.lease_s < 0.001:
            raise InputError(f"semantics {self.name}: lease_s = {self.lease_s:g}: expected 0, or at least 0.001")

    def chunk_on(self, workload: Workload) -> float:
        """Iterations per GPU in one step: `chunk`, or 0, with a warning, where some jobs have none.

        Chunks of iterations that are but a second each would run for hours past the end of a job.
        """
        if self.chunk == 0.0 or workload.iterations_known:
            return self.chunk
        warnings.warn(
            f"workload {workload.name!r} does not give the iterations of all its jobs, so a chunk of {self.chunk:g} "
            f"has no length: semantics {self.name} runs with chunk=0, where progress is continuous",
            WorkloadWarning,
            stacklevel=1,  # one place for all callers, so that it is said once
        )
        return 0.0

    @property
    def in_place(self) -> dict[str, float]:
        """Fields of a rule that they override, and what is played in their place.

        At auctions leases are those of the semantics, GPUs are not shared, and there are no rounds, slices or quantum.
        """
        if not self.auctions:
            return {}
        absent = ("round", "slicing", "quantum", "packing")
        return {"lease": self.lease_s, **{name: getattr(Rule, name) for name in absent}}

    def expect_played(self, rule: Rule, who: str, given: Set[str] | None = None, instead: Rule | None = None) -> None:
        """InputError for a field of a rule that is not played.

        Args:
            who: the asker, in the error. given: the fields asked for; None: all that are not as usual.
            instead: what is played in its place but for what they override; None: itself.
        """
        if given is None:
            given = {name for name in self.in_place if getattr(rule, name) != getattr(Rule, name)}
        played = {**asdict(instead or rule), **self.in_place}
        for name in sorted(given & played.keys()):
            if getattr(rule, name) != played[name]:
                raise InputError(
                    f"{who}: semantics={self.name} sets {name} aside (there it is {_word(played[name])}); "
                    f"leave {name}= out, or play semantics=events"
                )

    def describe(self) -> str:
        """Their text: the name, and what is not as usual under it."""
        usual = SEMANTICS[self.name]() if self.name in SEMANTICS else Semantics()
        unusual = [f"{one}={getattr(self, one):g}" for one in PARAMETERS if getattr(self, one) != getattr(usual, one)]
        return self.name + (f":{','.join(unusual)}" if unusual else "")


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return "/".join(map(_word, value)) or "empty"
    return f"{value:g}" if isinstance(value, float) else str(value)


def events() -> Semantics:
    """A pass at every event; a lease that has ended matters only while another job waits."""
    return Semantics()


def artist_sim(lease_s: float = LEASE_S, chunk: float = 1000.0, release_s: float = 1.0) -> Semantics:
    """Leases, chunks and auctions as in the simulator behind paper dally."""
    return Semantics("artist-sim", True, lease_s, chunk, release_s, "allreduce:calibration=artist", COMPUTE)


SEMANTICS = {"events": events, "artist-sim": artist_sim}


def load_semantics(source: Semantics | str) -> Semantics:
    """Semantics from their text, e.g. "artist-sim:lease_s=1800", or themselves; InputError: a bad name or parameter."""
    if isinstance(source, Semantics):
        return source
    name, params = parse_name(source, "semantics")
    return bind(SEMANTICS[choose(name, SEMANTICS, "semantics")], params, f"semantics {name}")
