"""Workloads that accept several types of GPUs, and types that differ in speed: files, regions, what a start comes to.

By hand: `geo_small` has 48 A100 in the east, 32 V100 and 16 A100 in the west, 16 A100 in the south; a workload's
duration is that at speed 1.
"""

from __future__ import annotations

import csv
import itertools
import statistics
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from clustergym.policies import make
from clustergym.simulator.base.decisions import Migrate, Preempt, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.configuration.cluster_config import ClusterConfig
from clustergym.simulator.configuration.offered_load import offered_load
from clustergym.simulator.configuration.unit_speeds import GAVEL_SPEEDS, UnitSpeeds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.regions.region_metrics import type_seconds
from clustergym.simulator.warehouse.demands import MOST_PARTS, Demands
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_player import Anything, FirstCome, check_regions, random_run
from clustergym.tests.support.geo_small import A100, CPU, V100
from clustergym.tests.support.paths import DATA, ROOT

EAST, WEST, SOUTH = range(3)
EITHER = (A100, V100)
EAST_A100, EAST_SMALL, WEST_V100, WEST_A100 = range(32), range(32, 48), range(64, 96), range(104, 120)
SPEEDS = str(ROOT / "tests" / "data" / "unit_speeds.csv")


def speeds_in(folder, text):
    path = folder / "speeds.csv"
    path.write_text(f"model,type,speed\n{text}")
    return str(path)


def laid(rows, folder=None, speeds="*,V100,2\n", duration_s=1000.0, models=None, arrival_s=None, **options):
    """A simulator at its first decision point; V100 are twice as fast unless told; without a folder all are as fast."""
    geo = geo_small.demands(rows)
    arrival = np.zeros(len(rows)) if arrival_s is None else np.array(arrival_s)
    model = None if models is None else np.array(models, object)
    workload = Workload.from_arrays("rows", arrival, geo.units, np.full(len(rows), duration_s), model=model)
    told = {} if folder is None else {"speeds": speeds_in(folder, speeds)}
    simulator = Simulator(geo_small.small_topology(), **told, **options)
    simulator.reset(workload.with_geo(geo))
    return simulator


def to_end(simulator):
    while not simulator.ended:
        simulator.advance()
    return simulator.state.finish_s[: len(simulator.workload)].tolist()


def units_of(simulator, name, count):
    """The first free units of the first cluster called so, REGION.CLUSTER."""
    topology = simulator.topology
    names = [
        f"{topology.region_names[region]}.{own}"
        for region, own in zip(topology.cluster_region, topology.cluster_names, strict=True)
    ]
    free = simulator.view.free_gpus
    return free[topology.gpu_cluster[free] == names.index(name)][:count].tolist()


ONE = [([(EITHER, 8)], [], 6, 0, 0.0)]


@pytest.mark.parametrize(("place", "end_s"), [("east.a", 1000.0), ("west.a", 500.0), ("west.b", 1000.0)])
def test_a_workload_takes_as_long_as_the_type_that_it_gets_lets_it(tmp_path, place, end_s):
    simulator = laid(ONE, tmp_path)
    assert simulator.view.isolated_s(0) == 500.0  # on the fastest that it accepts
    simulator.apply(Start(0, units_of(simulator, place, 8)))
    assert to_end(simulator) == [end_s]
    found = simulator.metrics()
    assert found["slowdown_mean"] == end_s / 500.0 and found["comm_time_mean"] == 0.0
    held = type_seconds(simulator.state)["held"]
    assert held.tolist()[:2] == ([8 * end_s, 0.0] if end_s == 1000.0 else [0.0, 8 * end_s])


def test_a_workload_of_one_type_is_as_fast_as_that_is(tmp_path):
    simulator = laid([([(A100, 8)], [], 6, 0, 0.0), ([(V100, 8)], [], 6, 0, 0.0)], tmp_path)
    assert [simulator.view.isolated_s(job) for job in range(2)] == [1000.0, 500.0]


def test_parts_of_different_types_go_at_the_pace_of_the_slowest_gpus(tmp_path):
    """A100 1, V100 2, machines .1: these do not count beside GPUs, and do where there are no GPUs."""
    rows = [([(A100, 8), (V100, 8), (CPU, 2)], [], 6, 0, 0.0), ([(CPU, 2)], [], 6, 0, 0.0)]
    rows += [([(EITHER, 8), (EITHER, 4)], [], 6, 0, 0.0)] * 2
    simulator = laid(rows, tmp_path, "*,V100,2\n*,CPU,0.1\n")
    assert [simulator.view.isolated_s(job) for job in range(4)] == [1000.0, 10_000.0, 500.0, 500.0]
    a100, v100 = units_of(simulator, "west.b", 12), units_of(simulator, "west.a", 28)
    machines = units_of(simulator, "west.a-cpu", 4)
    simulator.apply(Start(0, [*a100[:8], *v100[:8], *machines[:2]]))
    simulator.apply(Start(1, machines[2:]))
    simulator.apply(Start(2, [*v100[8:16], *a100[8:12]]))  # each part of one type, not both of the same
    simulator.apply(Start(3, v100[16:28]))
    assert to_end(simulator) == [1000.0, 10_000.0, 1000.0, 500.0]


@pytest.mark.parametrize("moves", [False, True], ids=["preempted", "migrated"])
def test_a_job_that_goes_on_on_another_type_does_the_rest_at_its_speed(tmp_path, moves):
    """400 of 1,000 s on A100; 300 s for the other 600 on V100: from 400 to 700; back after 100 of them: 400 to do."""
    rows = [*ONE, ([(CPU, 1)], [], 6, 0, 0.0)]
    simulator = laid(rows, tmp_path, arrival_s=[0.0, 400.0])
    simulator.apply(Start(0, units_of(simulator, "east.a", 8)))
    simulator.advance()
    assert simulator.state.now_s == 400.0 and simulator.view.remaining_s(0) == pytest.approx(300.0)
    fast = units_of(simulator, "west.a", 8)
    if moves:
        simulator.apply(Migrate(0, fast))
    else:
        simulator.apply(Preempt(0))
        assert simulator.view.remaining_s(0) == pytest.approx(300.0)
        simulator.apply(Start(0, fast))
    simulator.apply(Start(1, units_of(simulator, "east.b-cpu", 1)))
    assert to_end(simulator)[0] == pytest.approx(700.0)
    seconds = type_seconds(simulator.state)["held"]
    assert seconds[A100] == pytest.approx(8 * 400.0) and seconds[V100] == pytest.approx(8 * 300.0)
    used = simulator.metrics()
    assert used["comm_time_mean"] == pytest.approx(0.0, abs=1e-9)


def test_a_job_back_on_its_units_at_the_same_instant_has_not_been_elsewhere(tmp_path):
    simulator = laid([*ONE, ([(CPU, 1)], [], 6, 0, 0.0)], tmp_path, arrival_s=[0.0, 400.0])
    own = units_of(simulator, "east.a", 8)
    simulator.apply(Start(0, own))
    simulator.advance()
    simulator.apply(Preempt(0))
    simulator.apply(Start(0, units_of(simulator, "west.a", 8)))
    simulator.apply(Preempt(0))
    simulator.apply(Start(0, own))
    simulator.apply(Start(1, units_of(simulator, "east.b-cpu", 1)))
    assert to_end(simulator)[0] == 1000.0 and simulator.metrics()["preemptions"] == 0


def test_a_failure_takes_the_work_since_the_checkpoint_at_the_speed_of_the_type(tmp_path):
    """On V100 with checkpoints every 100 s: a failure at 250 s loses 50 s of V100, 100 s of work; 600 s are left."""
    path = tmp_path / "outages.csv"
    path.write_text("start_s,duration_s,what,name\n250,10,region,west\n")
    failures = Failures(checkpoint_s=100.0, outages=str(path))
    simulator = laid(ONE, tmp_path, failures=failures)
    simulator.apply(Start(0, units_of(simulator, "west.a", 8)))
    simulator.advance()
    assert simulator.state.now_s == 250.0 and simulator.view.remaining_s(0) == pytest.approx(300.0)
    simulator.apply(Start(0, units_of(simulator, "east.a", 8)))
    assert to_end(simulator) == [pytest.approx(250.0 + 600.0)]
    check_regions(simulator)


def test_a_start_on_a_type_that_is_not_accepted_is_refused(tmp_path):
    rows = [([(EITHER, 8)], [], 6, 0, 0.0), ([(V100, 8)], [], 6, 0, 0.0), ([(EITHER, 16)], [], 6, 0, 0.0)]
    simulator = laid(rows, tmp_path)
    cpus = units_of(simulator, "east.b-cpu", 8)
    with pytest.raises(InvalidDecision, match=r"a part asks 8 A100 or V100, cluster east\.b-cpu has CPU"):
        simulator.apply(Start(0, cpus))
    with pytest.raises(InvalidDecision, match=r"a part asks 8 V100, cluster east\.a has A100"):
        simulator.apply(Start(1, units_of(simulator, "east.a", 8)))
    mixed = [*units_of(simulator, "west.a", 8), *units_of(simulator, "west.b", 8)]
    with pytest.raises(InvalidDecision, match=r"a part of 16 units lies in clusters west\.a and west\.b; expected one"):
        simulator.apply(Start(2, mixed))


def test_speeds_go_by_model(tmp_path):
    """Names without case and separators, `*` for all others; what is not said is 1."""
    rows = [([(V100, 1)], [], 6, 0, 0.0)] * 4
    speeds = "ResNet-50,V100,4\n*,V100,2\nlm,A100,8\n"
    simulator = laid(rows, tmp_path, speeds, models=["resnet50", "LM", "", "ResNet-50 (batch size 32)"])
    assert [simulator.view.isolated_s(job) for job in range(4)] == [250.0, 500.0, 500.0, 250.0]
    assert simulator.view.unit_speeds.tolist() == [[1, 4, 1], [8, 2, 1], [1, 2, 1], [1, 4, 1]]


def test_the_table_of_gavel_is_relative_to_its_v100():
    topology = geo_small.small_topology()
    table = UnitSpeeds.load("gavel", topology)
    geo = geo_small.demands([([(V100, 1)], [], 6, 0, 0.0)] * 2)
    models = np.array(["ResNet-18", "LM"], object)
    row, speed = table.rows(Workload.from_arrays("two", np.zeros(2), [1, 1], [1.0, 1.0], model=models).with_geo(geo))
    assert speed[row].tolist() == [[1.0] * 3] * 2  # nothing is said of A100 and of machines
    assert all(row["V100"] == 1.0 for row in GAVEL_SPEEDS.values())


def test_the_table_of_gavel_is_of_its_files_and_orders_cards_as_they_do():
    """A speed is the median over batch sizes of a card's steps per second over the V100's: K80 < P100 < V100.

    By hand, Recommendation on a K80, physical file: 3.964 / 22.247, 8.340 / 45.850, 18.926 / 88.207, 34.794 / 150.539,
    58.751 / 253.630 = .178, .182, .215, .231, .232. The simulation's file orders its cards the other way round, as its
    rows are those of the unconsolidated table (2.699 / 2.842, ..., 32.859 / 23.318); every other model it orders alike.
    """
    steps = [row for row in (DATA / "gavel_steps.csv").read_text().splitlines() if not row.startswith("#")]
    rows = list(csv.DictReader(steps))
    slow = "Recommendation"
    for model, shipped in GAVEL_SPEEDS.items():
        found = {file: _median_speeds(rows, model, file) for file in ("simulation", "physical")}
        assert shipped == pytest.approx(found["physical" if model == slow else "simulation"], abs=5.1e-4)
        for file, speeds in {"shipped": shipped, **found}.items():
            in_order = speeds["K80"] < speeds["P100"] < speeds["V100"]
            assert in_order != (file == "simulation" and model == slow), (model, file)
    assert all(row["simulation"] == row["physical_unconsolidated"] for row in rows if row["model"] == slow)


def _median_speeds(rows: list[dict[str, str]], model: str, file: str) -> dict[str, float]:
    steps = {(row["card"], row["batch"]): float(row[file]) for row in rows if row["model"] == model}
    found: dict[str, list[float]] = defaultdict(list)
    for (card, batch), a_second in steps.items():
        found[card].append(a_second / steps["V100", batch])
    return {card: statistics.median(speeds) for card, speeds in found.items()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("*,V100,0\n", "line 2, column 'speed': '0'; expected a number"),
        ("*,V100,-1\n", "line 2, column 'speed': '-1'"),
        ("*,V100,nan\n", "line 2, column 'speed': 'nan'"),
        (
            "*,V100,2\nx,H100,3\n",
            "line 3, column 'type': 'H100'; expected a type that the clusters have: A100, CPU, V100",
        ),
        (
            "LM,V100,2\nlm,V100,3\n",
            "line 3, column 'model': 'lm'; expected each model on a type once (line 2 has it too)",
        ),
        ("LM,V100,2\n", "no job of workload 'rows' is of one of its models; expected one, or a row of model '*'"),
    ],
)
def test_bad_speeds_are_one_sentence(tmp_path, text, said):
    with pytest.raises(InputError) as error:
        laid(ONE, tmp_path, text)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_the_offered_load_is_by_the_speed_of_types(tmp_path):
    """112 GPUs; 1,000 s from the first arrival, which starts the clock, to the last; 1,000 s a job at speed 1.

    8 V100 at .5; 16 of either type, at 4 on A100 or .5 on V100; 8 A100 and 8 of either type in two parts, at the pace
    of the slower.
    """
    rows = [
        ([(A100, 1)], [], 6, 0, 0.0),
        ([(V100, 8)], [], 6, 0, 0.0),
        ([(EITHER, 16)], [], 6, 0, 0.0),
        ([(A100, 8), (EITHER, 8), (CPU, 4)], [], 6, 0, 0.0),
        ([(CPU, 4)], [], 6, 0, 0.0),  # no GPUs
    ]
    geo = geo_small.demands(rows)
    workload = Workload.from_arrays("rows", [0, 250, 500, 750, 1000], geo.units, np.full(5, 1000.0)).with_geo(geo)
    topology = geo_small.small_topology()
    table = UnitSpeeds.load(speeds_in(tmp_path, "*,V100,0.5\n*,A100,4\n*,CPU,3\n"), topology)
    assert offered_load(workload, topology) == pytest.approx((8 + 16 + 16) / 112)
    assert offered_load(workload, topology, speeds=table) == pytest.approx((8 / 0.5 + 16 / 4 + 16 / 4) / 112)
    assert offered_load(workload, topology, speeds=table, slowest=True) == pytest.approx(40 / 0.5 / 112)
    with pytest.raises(InputError, match="'flat' asks nothing of regions: all its GPUs are as fast"):
        offered_load(Workload.from_arrays("flat", [0, 1], [1, 1], [1.0, 1.0]), topology, speeds=table)


def test_the_load_of_jobs_that_choose_lies_between_the_loads_that_they_realise(tmp_path):
    """One after the other on an idle cluster all get the fastest type; GPU-seconds held are those of that load."""
    rows = [([(EITHER, 8)], [], 6, 0, 0.0)] * 4
    geo, arrival_s = geo_small.demands(rows), np.array([0.0, 2000.0, 4000.0, 6000.0])
    workload = Workload.from_arrays("rows", arrival_s, geo.units, np.full(4, 1000.0)).with_geo(geo)
    path, topology = speeds_in(tmp_path, "*,V100,4\n"), geo_small.small_topology()
    table = UnitSpeeds.load(path, topology)
    low, high = (offered_load(workload, topology, speeds=table, slowest=one) for one in (False, True))
    simulator = Simulator(topology, speeds=path)
    simulator.reset(workload)
    simulator.run(make("mast:slow=none,scan_s=0").decider(simulator))
    held = float(type_seconds(simulator.state)["held"].sum())
    assert held == pytest.approx(4 * 8 * 250.0) and low * 112 * 6000.0 == pytest.approx(3 * 8 * 250.0)
    assert high == pytest.approx(4.0 * low)


def test_speeds_need_a_file_and_regions(tmp_path):
    with pytest.raises(InputError, match="gavel, or a csv of speeds"):
        ClusterConfig.of(geo_small.small_topology(), speeds=str(tmp_path / "none.csv")).check()
    with pytest.raises(InputError, match="speeds = 2: expected none, gavel, or the path of a csv"):
        ClusterConfig.of("flat", speeds=2)
    flat = Workload.from_arrays("plain", np.zeros(1), [1], [1.0])
    with pytest.raises(InputError, match="workload 'plain' asks nothing of regions"):
        Simulator(geo_small.small_topology(), speeds="gavel").reset(flat)


ROWS = "job_id,arrival_s,gpus,duration_s,parts\na,0,24,100,{}\n"


TYPES = '"gpu_types": ["A100", "V100"]'


def read(folder, parts, units=24, more='"slo_s": [null, null, null, null, null, null, null]'):
    (folder / "mine.csv").write_text(ROWS.format(parts).replace(",24,", f",{units},"))
    (folder / "mine.tables.csv").write_text("table,size_tb,home\nclicks,0.1,east\nusers,0.1,west\nads,0.1,south\n")
    (folder / "mine.regions.json").write_text(f'{{"regions": ["east", "west", "south"], {more}}}')
    return open_workload(folder / "mine.csv")


def test_several_types_are_read_and_written(tmp_path):
    workload = read(tmp_path, "A100|V100:16 CPU:8")
    assert workload.geo.gpu_types == ("A100", "V100", "CPU")
    assert workload.geo.accepts.tolist() == [[3, 4, 0, 0]] and workload.geo.part_type.tolist() == [[0, 2, -1, -1]]
    workload.save(tmp_path / "again.csv")
    assert "A100|V100:16 CPU:8" in (tmp_path / "again.csv").read_text()
    assert open_workload(tmp_path / "again.csv").geo == workload.geo
    workload.save(tmp_path / "again.parquet")
    assert open_workload(tmp_path / "again.parquet").geo == workload.geo


def test_the_order_of_types_makes_no_difference(tmp_path):
    one, other = (read(tmp_path, f"{kinds}:16 CPU:8", more=TYPES) for kinds in ("A100|V100", "V100|A100"))
    assert one.geo == other.geo


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("A100|:16 CPU:8", "one to 4 of TYPE:UNITS, separated by spaces; TYPE may be A100|H100"),
        ("|A100:16 CPU:8", "one to 4 of TYPE:UNITS"),
        ("A100|V100 CPU:8", "one to 4 of TYPE:UNITS"),
        ("A100|A100:16 CPU:8", "each type of a part once"),
        ("A100|CPU:16 CPU:8", "CPU with no other type in its part"),
        ("a|b|c|d|e:6 a|b|c|d|e:6 a|b|c|d|e:12", "at most 64 ways to choose types for all parts"),
    ],
)
def test_bad_types_are_one_sentence(tmp_path, parts, said):
    with pytest.raises(InputError) as error:
        read(tmp_path, parts)
    assert said in str(error.value) and "line 2, column 'parts'" in str(error.value)


def test_a_type_that_no_region_has_is_told(tmp_path):
    workload = read(tmp_path, "A100|B200:16 CPU:8")
    with pytest.raises(InputError, match="has no cluster of type 'B200', which the workload asks; it has A100"):
        Simulator(geo_small.small_topology()).reset(workload)


def test_a_job_that_fits_no_region_is_named_with_its_types(tmp_path):
    with pytest.raises(InputError, match=r"asks 33 A100\|V100; no region"):
        Simulator(geo_small.small_topology()).reset(read(tmp_path, "A100|V100:33", 33))


def hosted(demands: Demands, topology) -> np.ndarray:
    """Which regions hold each row, by trying all clusters for all parts."""
    units = np.bincount(topology.gpu_cluster, minlength=topology.num_clusters)
    found = np.zeros((len(demands), topology.num_regions), bool)
    for job, region in np.ndindex(found.shape):
        clusters = np.flatnonzero(topology.cluster_region == region).tolist()
        parts = list(zip(demands.types_of(job), demands.part_units[job].tolist(), strict=False))
        for places in itertools.product(clusters, repeat=len(parts)):
            asked = np.bincount(places, [size for _, size in parts], topology.num_clusters)
            fits = (asked <= units).all()
            names = [topology.cluster_gpu_type[place] for place in places]
            own = all(
                name in [demands.gpu_types[kind] for kind in kinds]
                for name, (kinds, _) in zip(names, parts, strict=True)
            )
            found[job, region] |= fits and own
    return found


@pytest.mark.parametrize("seed", range(4))
def test_hosts_are_the_regions_where_some_choice_of_clusters_holds_the_parts(seed):
    rng, topology = np.random.default_rng(seed), geo_small.small_topology()
    kinds = [A100, V100, EITHER, CPU]
    rows = [
        (
            [(kinds[rng.integers(4)], int(rng.choice([4, 8, 16, 24, 32]))) for _ in range(rng.integers(1, 4))],
            [],
            6,
            0,
            0.0,
        )
        for _ in range(60)
    ]
    demands = geo_small.demands(rows)
    assert (demands.hosts(topology) == hosted(demands, topology)).all()


def test_a_region_without_an_accepted_type_is_never_offered(tmp_path):
    simulator = laid([([(V100, 8)], [], 6, 0, 0.0), ([(EITHER, 24)], [], 6, 0, 0.0)], tmp_path)
    assert simulator.view.regions_of(0) == [WEST] and simulator.view.regions_of(1) == [EAST, WEST]


def test_one_type_a_part_is_what_it_was_and_speed_1_changes_nothing(tmp_path):
    """The whole run to the bit, with a table that says 1, and with none."""
    told = speeds_in(tmp_path, "*,A100,1\n*,V100,1\n")
    ends = []
    for options in ({}, {"speeds": told}):
        simulator = random_run(4, **options)
        Anything(4).play(simulator, 300)
        ends.append((simulator.state.now_s, simulator.state.finish_s.tobytes(), simulator.metrics()))
    assert ends[0] == ends[1]


def test_speeds_of_2_are_halved_durations(tmp_path):
    """All else being equal: first come, first served, with preemptions and failures that go by the clock."""
    told = speeds_in(tmp_path, "*,A100,2\n*,V100,2\n*,CPU,2\n")
    whole = geo_small.choosing_workload(7)
    halved = Workload.from_arrays(
        "halved", whole.arrival_s, whole.gpus, whole.duration_s / 2, tenant=geo_small.tenants(whole.geo)
    ).with_geo(whole.geo)
    ends = []
    for workload, options in ((whole, {"speeds": told}), (halved, {})):
        simulator = Simulator(geo_small.small_topology(), failures=Failures(20_000.0, 600.0, 300.0), **options)
        simulator.reset(workload, 3)
        Anything(3).play(simulator)
        ends.append((simulator.state.finish_s[: len(whole)].tolist(), simulator.metrics()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("seed", range(4))
def test_units_and_seconds_add_up_whatever_is_decided(seed):
    simulator = Simulator(
        geo_small.small_topology(), failures=Failures(20_000.0, 600.0, 300.0, 3000.0, 300.0), speeds=SPEEDS
    )
    simulator.reset(geo_small.choosing_workload(seed), seed)
    player = Anything(seed, check_regions)
    player.play(simulator)
    assert simulator.ended and player.made["Start"] > 40
    s = simulator.state
    assert (s.part_accepts[:40] >> np.maximum(s.part_type[:40], 0) & 1)[s.part_units[:40] > 0].all()


def test_choices_of_a_take_and_of_everywhere_stay(tmp_path):
    geo = geo_small.choosing_workload(1).geo
    rows = np.flatnonzero(geo.chooses)[:3]
    assert geo.take(rows).chooses.all() and (geo.everywhere().accepts == geo.accepts).all()
    with pytest.raises(InputError, match="CPU with no other type"):
        replace(geo, part_type=np.where(geo.part_type < 0, -1, 0), accepts=np.where(geo.part_type < 0, 0, 5))
    assert geo.accepts.shape == (40, MOST_PARTS)


def test_first_come_first_served_takes_any_accepted_type():
    simulator = laid([([(EITHER, 32)], [], 6, 0, 0.0)] * 2)
    ended = 0
    while not simulator.ended:
        while type(decision := simulator.ask(FirstCome())).__name__ != "Advance":
            simulator.apply(decision)
            ended += 1
        simulator.advance()
    assert ended == 2 and simulator.state.finish_s[:2].tolist() == [1000.0, 1000.0]
