"""Workloads of up to three parts that accept several types, drawn at random: what must hold under every scheduler.

All data are in both regions; durations are those at speed 1. What runs where is read from the timeline of an
evaluation, and compared with docs/concepts/regions.md and docs/policies/mast.md by trying every choice of clusters.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import given

from clustergym.tests.support.drawn import calm
from clustergym.tests.support.played_files import Files, Played

REGIONS = """
wan_gbps: 8
regions:
  - name: east
    storage_tb: 10
    clusters:
      - {name: h, gpu_type: H100, gpu_machines: 2, gpus_per_machine: 4, machines_per_rack: 1}
      - {name: a, gpu_type: A100, gpu_machines: 1, gpus_per_machine: 8, cpu_machines: 2}
      - {name: b, gpu_type: A100, gpu_machines: 1, gpus_per_machine: 4}
  - name: west
    storage_tb: 10
    clusters:
      - {name: a, gpu_type: A100, gpu_machines: 3, gpus_per_machine: 2, cpu_machines: 1}
      - {name: v, gpu_type: V100, gpu_machines: 1, gpus_per_machine: 8}
"""
SPEEDS = {"H100": 2.0, "A100": 0.5, "V100": 0.25}
CHECKPOINT_S = 7.0
FILES = Files(
    REGIONS,
    speeds=[f"*,{kind},{speed}" for kind, speed in SPEEDS.items()],
    tables=["all,0.1,east,west"],
    gpu_types=list(SPEEDS),
    checkpoint_s=CHECKPOINT_S,
)
Part = tuple[frozenset[str], int]  # the types that it accepts, its units
ALONE = [("H100",), ("A100",), ("V100",), ("H100", "A100"), ("A100", "V100"), ("H100", "A100", "V100")]
GPU_PARTS = st.tuples(st.sampled_from(ALONE).map(frozenset), st.sampled_from([1, 2, 4, 6, 8]))
PARTS = st.one_of(GPU_PARTS, GPU_PARTS, GPU_PARTS, st.just((frozenset({"CPU"}), 1)))
ROOMS = [
    {0: ("H100", 8), 1: ("A100", 8), 2: ("CPU", 2), 3: ("A100", 4)},
    {4: ("A100", 6), 5: ("CPU", 1), 6: ("V100", 8)},
]


def ways(parts: list[Part], room: Mapping[int, tuple[str, int]]) -> Iterator[tuple[int, ...]]:
    """Every choice of a cluster for each part, each whole in one, where `room` is the type and units by cluster."""
    for chosen in itertools.product(room, repeat=len(parts)):
        asked = dict.fromkeys(chosen, 0)
        for (_, units), cluster in zip(parts, chosen, strict=True):
            asked[cluster] += units
        accepted = all(room[cluster][0] in kinds for (kinds, _), cluster in zip(parts, chosen, strict=True))
        if accepted and all(units <= room[cluster][1] for cluster, units in asked.items()):
            yield chosen


def speed(kinds: set[str]) -> float:
    """As the slowest GPUs are; machines count only where there are none, at speed 1."""
    return min((SPEEDS[kind] for kind in kinds if kind != "CPU"), default=1.0)


@st.composite
def jobs(draw: st.DrawFn) -> list[tuple[list[Part], str]]:
    """Parts that some region can hold, and the other columns: arrival, duration, level, container time."""
    fits = st.lists(PARTS, min_size=1, max_size=3).filter(lambda parts: any(any(ways(parts, room)) for room in ROOMS))
    drawn = []
    for number in range(draw(st.integers(3, 12))):
        parts, arrival_s, duration_s = draw(fits), draw(st.integers(0, 200)), draw(st.integers(5, 200))
        level, container_s = draw(st.sampled_from([0, 3, 6])), draw(st.sampled_from([0, 0, 5, 20]))
        words = " ".join(f"{'|'.join(sorted(kinds))}:{units}" for kinds, units in parts)
        units = sum(units for _, units in parts)
        row = f"j{number},{arrival_s},{units},{duration_s},{words},all,{level},{container_s},0,"
        drawn.append((arrival_s, parts, row))
    return [(parts, row) for _, parts, row in sorted(drawn, key=lambda one: one[0])]


def check_places_and_work(played: Played, parts: list[list[Part]]) -> None:
    """All parts in one region, each whole in a cluster of a type that it accepts; speed x time adds up to the duration.

    A start takes the container time, and that to save what was stopped for it; until then nothing is done.
    """
    kinds, done_s = played.topology.cluster_gpu_type, [0.0] * len(parts)
    for stretch in played.stretches:
        held = {cluster: (kinds[cluster], units) for cluster, units in stretch.held.items()}
        assert len({played.region(cluster) for cluster in held}) == 1
        assert sum(stretch.held.values()) == sum(units for _, units in parts[stretch.job])
        assert any(ways(parts[stretch.job], held))
        setup_s = float(played.workload.geo.container_s[stretch.job]) + CHECKPOINT_S * played.stopped_for(stretch)
        run_s = max(0.0, stretch.end_s - stretch.start_s - setup_s)
        done_s[stretch.job] += run_s * speed({kind for kind, _ in held.values()})
    assert done_s == pytest.approx(played.workload.duration_s.tolist(), rel=1e-9)


def free_at(played: Played, time_s: float) -> list[dict[int, tuple[str, int]]]:
    """What is free in each region after all that happens at an instant."""
    used = [s.held for s in played.stretches if s.start_s <= time_s < s.end_s]
    taken = {cluster: sum(held.get(cluster, 0) for held in used) for room in ROOMS for cluster in room}
    return [{at: (kind, units - taken[at]) for at, (kind, units) in room.items()} for room in ROOMS]


def check_choices(played: Played, parts: list[list[Part]]) -> None:
    """No job waits for faster units while others are free, or begins on slower ones while a faster choice stays free.

    A job stopped for a start makes room that may have come too late for others.
    """
    kinds, arrival_s = played.topology.cluster_gpu_type, played.workload.arrival_s.tolist()
    bounds = {time_s for s in played.stretches for time_s in (s.start_s, s.end_s)}
    for time_s in sorted(bounds | set(arrival_s)):
        free = free_at(played, time_s)
        running = {s.job: s for s in played.stretches if s.start_s <= time_s < s.end_s}
        for job, asked in enumerate(parts):
            choices = [{room[at][0] for at in chosen} for room in free for chosen in ways(asked, room)]
            if job in running and running[job].start_s == time_s and not played.stopped_for(running[job]):
                mine = speed({kinds[at] for at in running[job].held})
                assert all(speed(other) <= mine for other in choices), (time_s, job)
            elif job not in running and arrival_s[job] <= time_s < played.leave_s[job]:
                assert not choices, (time_s, job)


@pytest.mark.parametrize("policy", ["mast", "greedy", "global"])
@calm(45)
@given(drawn=jobs())
def test_types_are_as_accepted_the_fastest_free_and_work_adds_up(tmp_path_factory, policy, drawn):
    parts = [parts for parts, _ in drawn]
    folder = tmp_path_factory.mktemp("drawn")
    played = Played(FILES, folder, [row for _, row in drawn], f"{policy}:slow=none,scan_s=0")
    check_places_and_work(played, parts)
    check_choices(played, parts)


@calm(45)
@given(drawn=jobs())
def test_work_adds_up_at_random_too(tmp_path_factory, drawn):
    parts = [parts for parts, _ in drawn]
    played = Played(FILES, tmp_path_factory.mktemp("drawn"), [row for _, row in drawn], "random-start")
    check_places_and_work(played, parts)
