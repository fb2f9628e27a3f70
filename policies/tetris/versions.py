"""V0, V1 and V2 of Tetris, and what tells them apart (paper mast, Sec. 5.6).

V0, `static`: users chose the regions by hand, and no table moves; copies for disasters and for jobs that could run
nowhere there are, as the paper does not say that there were none; a scheduler that copies on demand may still move a
home to make room. V1 places data as Section 3 says, but for three
things: overload costs no more than underload (no Expression 8); storage is a hard quota only (no Expressions 3 and 9);
and collocation counts every workload alike, whatever its size and priority. V2 has all of it, and counts collocation
in GPU-hours of high-priority workloads. The paper gives the last as a definition of a rate; here it is what Expression
6 sums, and the order in which stranded jobs get replicas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...simulator.table_placement.placement import Objective


@dataclass(frozen=True)
class Version:
    """How a version plans.

    Attributes:
        name: as in results.
        moves: whether tables move at all.
        objective: of the hill climbing.
        hot_share: of a region's storage, for copies of hot tables; 0 to 1. The paper says "storage quota" and no more.
    """

    name: str
    moves: bool = True
    objective: Objective = field(default_factory=Objective)
    hot_share: float = 0.05


VERSIONS: Mapping[str, Version] = {
    version.name: version
    for version in (
        Version("static", moves=False, hot_share=0.0),
        Version("tetris-v1", objective=Objective(storage=0.0, overload=False, at_home="jobs")),
        Version("tetris-v2"),
    )
}
