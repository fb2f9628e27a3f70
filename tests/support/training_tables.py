"""Small measured tables for tests, in the format of the Pollux artifact."""

from __future__ import annotations

from pathlib import Path

PLACEMENTS = """placement,local_bsz,step_time,sync_time
1,8,0.3,0.0
1,16,0.5,0.0
1,32,0.9,0.0
2,8,0.4,0.1
2,16,0.6,0.1
2,32,1.0,0.1
4,8,0.5,0.2
4,16,0.7,0.2
4,32,1.1,0.2
24,8,0.7,0.4
24,32,1.3,0.4
44,8,0.8,0.5
44,32,1.4,0.5
"""
SCALABILITY = """num_nodes,num_replicas,local_bsz,step_time,sync_time
4,4,8,0.9,0.6
4,4,32,1.5,0.6
4,16,8,1.1,0.8
4,16,32,1.7,0.8
"""


def write_tables(folder: Path, name: str = "toy", epochs: int = 3) -> Path:
    """Write tables of an application: batches 16, 64, 256; every epoch is 101 steps of the smallest batch."""
    place = folder / name
    place.mkdir(parents=True)
    (place / "placements.csv").write_text(PLACEMENTS)
    (place / "scalability.csv").write_text(SCALABILITY)
    for batch in (16, 64, 256):
        rows = [f"{101 * epoch},{epoch},0.5,{2.0 * epoch},{30.0 * epoch}" for epoch in range(1, epochs + 1)]
        head = "progress,iteration,metric,grad_sqr,grad_var"
        (place / f"validation-{batch}.csv").write_text("\n".join([head, *rows]) + "\n")
    return folder
