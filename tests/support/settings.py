"""The settings in which checkouts are compared: policies x environments x networks, small ones.

A setting is played by `evaluate` with its policy; in its environment by that policy (`plays`), unless what it decides
cannot be an action; and there with legal actions drawn at random. Names are for people: a setting that changes gets
another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Setting:
    """What is played.

    Attributes:
        name: of the list of what differs.
        env: short name of the environment.
        policy: its word.
        words: topology, workload and network, where they are not those of `SMALL`.
        both: options of the environment that are keys of `--set` too.
        own: options of the environment alone.
        asked: keys of `--set` alone.
        seed: of everything.
        rows: so many environments are stepped at once where actions are drawn; 0: one, by itself.
        plays: whether the policy plays an episode in the environment too.
    """

    name: str
    env: str
    policy: str
    words: Mapping[str, str] = field(default_factory=dict)
    both: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    rows: int = 0
    plays: bool = True


# Of every environment: topology, workload and network; then the size of its window.
SMALL: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "Delay": (
        {"topology": "dally:racks=2,machines=2", "workload": "poisson:jobs=30,backlog=10,load=1.3", "network": "none"},
        {"slots": 8, "running_slots": 4},
    ),
    "Sharing": (
        {
            "topology": "bsbf-physical",
            "workload": "philly-sample:jobs=40,hours=1",
            "network": "allreduce:calibration=measured,gpu=2080ti",
        },
        {"slots": 8, "running_slots": 4},
    ),
    "TimeShift": (
        {"topology": "cassini-testbed", "workload": "cassini-poisson:jobs=20,load=1.5", "network": "contention"},
        {"slots": 4, "running_slots": 6},
    ),
    "Geo": (
        {"topology": "mast:regions=4,gpus=256", "workload": "mast-like:jobs=30,days=0.2,tables=20", "network": "none"},
        {"slots": 4, "running_slots": 4},
    ),
    "DataPlacement": (
        {"topology": "mast:regions=4,gpus=256", "workload": "mast-like:jobs=30,days=0.2,tables=20", "network": "none"},
        {"slots": 4, "running_slots": 4},
    ),
    "Grouping": (
        {
            "topology": "harmony:machines=32",
            "workload": "harmony-like:jobs=12,length_sigma=0.6,ratio_sigma=0.4,gap_min=15",
            "network": "none",
        },
        {"slots": 4, "running_slots": 6, "group_slots": 3},
    ),
}

# Policies that take minutes where others take a second have less to do.
LESS: dict[tuple[str, str], str] = {
    ("Sharing", "pollux"): "philly-sample:jobs=10,hours=1",
    ("TimeShift", "best-rotations"): "cassini-poisson:jobs=6,load=1.5",
    ("TimeShift", "lookahead"): "cassini-poisson:jobs=6,load=1.5",
}

HERE = Path(__file__).resolve().parent
TRACE = str(HERE / "jobs.csv")
PRICES = str(HERE.parent / "data" / "prices.csv")
SPEEDS = str(HERE.parent / "data" / "unit_speeds.csv")
CHRONUS = {"network": "penalty:table=chronus"}
DALLY_JOBS = {"workload": "dally-like:jobs=24"}
FAILING = {"mtbf_s": 20000.0, "mttr_s": 1200.0, "checkpoint_s": 600.0}
LOOKS = {"tables_every_s": 7200.0}
GUESSED = {"estimates": "lognormal:sigma=1"}

DELAY = (
    Setting("fifo-none", "Delay", "fifo:head=strict"),
    Setting("sjf-chronus", "Delay", "sjf", CHRONUS, own={"order": "shortest", "reference": "fifo"}, seed=1),
    Setting("dally-chronus", "Delay", "dally", CHRONUS, seed=2),
    Setting("dally-batched", "Delay", "dally", CHRONUS, seed=3, rows=4),
    Setting("dally-table1", "Delay", "dally-nowait", {**DALLY_JOBS, "network": "penalty:table=dally-table1"}, seed=4),
    Setting(
        "dally-manual-artist",
        "Delay",
        "dally-manual:timers=600/1200",
        {"network": "allreduce:calibration=artist,default=VGG"},
        own={"observation": "flat", "action": "discrete"},
        seed=5,
    ),
    Setting(
        "consolidated-measured",
        "Delay",
        "dally-consolidated",
        {"workload": "poisson:jobs=20,models=bert/cifar10", "network": "allreduce:uneven=largest"},
        seed=6,
    ),
    Setting(
        "greedy-compute",
        "Delay",
        "greedy:margin=0.8",
        {"network": "penalty:table=chronus,duration=compute"},
        own={"reward": "slowdown", "order": "classes"},
        seed=7,
    ),
    Setting("greedy-preempts", "Delay", "greedy:preempt=on", CHRONUS, GUESSED, {"migration": True}, seed=8),
    Setting(
        "tiresias-rounds",
        "Delay",
        "tiresias:round=60",
        {**DALLY_JOBS, "network": "penalty:default=1/1.2/1.5"},
        own={"round": 60.0, "placer": "skew"},
        seed=9,
    ),
    Setting("las-leases", "Delay", "las:lease=900,preemption_cost=20", CHRONUS, own={"lease": 900.0}, seed=10),
    Setting(
        "srtf-costs",
        "Delay",
        "srtf:preemption_cost=40/60",
        CHRONUS,
        own={"preemption_cost": (40.0, 60.0), "reward": "makespan"},
        seed=11,
    ),
    Setting("srsf-fails", "Delay", "srsf", CHRONUS, {**FAILING, **GUESSED}, seed=12),
    Setting("random-fails-batched", "Delay", "random", CHRONUS, {**FAILING, "estimates": "none"}, seed=13, rows=3),
    Setting(
        "gandiva-moves",
        "Delay",
        "gandiva",
        {
            **CHRONUS,
            "topology": "dally:racks=3,machines=2",
            "workload": "poisson:jobs=60,backlog=20,load=1.2,gpus=1/2/4/6/12",
        },
        own={"migration": True, "running_order": "movable"},
        seed=16,
    ),
    Setting("gandiva-slices", "Delay", "gandiva:slicing=300", {"workload": "batch:jobs=30"}, seed=15, plays=False),
    Setting(
        "fifo-conservative",
        "Delay",
        "fifo:head=conservative",
        CHRONUS,
        GUESSED,
        {"mask": "observation"},
        {"window": "2000/9000"},
        seed=16,
    ),
    Setting(
        "sjf-reserve-trace",
        "Delay",
        "sjf:head=reserve",
        {"topology": "flat:machines=2", "workload": TRACE},
        {"estimates": "user"},
        seed=17,
    ),
    Setting(
        "edf-deadlines",
        "Delay",
        "edf:head=skip",
        {"workload": "poisson:jobs=30,backlog=10,deadlines=0.5/3"},
        {"horizon_s": 20000.0},
        {"reward": "slo"},
        seed=18,
    ),
    Setting(
        "dally-auctions",
        "Delay",
        "dally:history=24,floors=6/12,deviation=population",
        {**DALLY_JOBS, "network": "allreduce:calibration=artist,default=VGG"},
        {"semantics": "artist-sim"},
        seed=19,
    ),
)

SHARING = (
    Setting("bsbf-measured", "Sharing", "sjf-bsbf"),
    Setting("bsbf-batched", "Sharing", "sjf-bsbf", {"workload": "bsbf-physical:jobs=24"}, seed=1, rows=4),
    Setting("ffs-gavel", "Sharing", "sjf-ffs", both={"interference": "gavel:gpu=p100,quantile=p90"}, seed=2),
    Setting(
        "bsbf-lucid",
        "Sharing",
        "sjf-bsbf:free=first",
        both={"interference": "lucid:default=1.2", "memory": "measured"},
        own={"partners": 3, "order": "smallest"},
        seed=3,
    ),
    Setting("bsbf-constant", "Sharing", "sjf-bsbf:restore=on", both={"interference": "constant:xi=1.5"}, seed=4),
    Setting("bsbf-slices", "Sharing", "sjf-bsbf", both={"interference": "mig:slices=2"}, seed=5),
    Setting("ffs-three-a-gpu", "Sharing", "sjf-ffs", both={"jobs_per_gpu": 3, **GUESSED}, seed=6),
    Setting(
        "bsbf-64-gpus",
        "Sharing",
        "sjf-bsbf",
        {"topology": "bsbf-simulation", "workload": "bsbf-tables:jobs=40"},
        own={"reward": "jct", "reference": "fifo"},
        seed=7,
    ),
    Setting("fifo-no-network", "Sharing", "fifo", {"network": "none"}, FAILING, seed=8),
    Setting("tiresias-sharing", "Sharing", "tiresias:preemption_cost=30", seed=9),
    Setting("tiresias-pollux", "Sharing", "tiresias-rounds", seed=10),
    Setting(
        "pollux-elastic",
        "Sharing",
        "pollux:individuals=6,generations=4",
        {"workload": "philly-sample:jobs=10,hours=1"},
        own={"elastic": True, "round": 60.0},
        seed=11,
    ),
    Setting(
        "pollux-as-asked",
        "Sharing",
        "pollux:adapt=off,individuals=6,generations=4",
        {"workload": "philly-sample:jobs=10,hours=1"},
        seed=12,
    ),
    Setting("gandiva-packs", "Sharing", "gandiva:packing=on", both={"memory_gb": 16.0}, seed=13),
)

TIME_SHIFT = (
    Setting("themis", "TimeShift", "themis"),
    Setting("themis-cassini", "TimeShift", "themis+cassini", seed=1),
    Setting("least-shared-averages", "TimeShift", "least-shared", {"network": "contention:mode=averaged"}, seed=2),
    Setting(
        "pollux-cassini-tree",
        "TimeShift",
        "pollux+cassini",
        {"network": "contention:collective=tree,adjust=0.05"},
        own={"scheduler": "pollux"},
        seed=3,
    ),
    Setting(
        "dally-cassini-jitter",
        "TimeShift",
        "dally+cassini",
        {"network": "contention:offsets=random,jitter=0.1"},
        seed=4,
    ),
    Setting(
        "bsbf-cassini-shared",
        "TimeShift",
        "sjf-bsbf+cassini",
        own={"jobs_per_gpu": 2, "interference": "constant:xi=1.2"},
        seed=5,
    ),
    Setting(
        "ideal",
        "TimeShift",
        "ideal",
        {"topology": "leaf-spine:leaves=4,machines=6"},
        own={"network": "contention:mode=dedicated"},
        seed=6,
    ),
    Setting(
        "random-fat-tree",
        "TimeShift",
        "random",
        {"topology": "fat-tree:k=4", "network": "contention:pacing=off"},
        FAILING,
        seed=7,
    ),
    Setting(
        "cassini-two-gpus",
        "TimeShift",
        "themis+cassini:ranking=mean,degrees=10",
        {"topology": "cassini-two-gpu", "workload": "cassini-poisson:jobs=12,load=1.5"},
        own={"candidates": 5},
        seed=8,
    ),
    Setting("themis-batched", "TimeShift", "themis:lease=300", seed=9, rows=3),
    Setting("crux", "TimeShift", "themis+crux", {"network": "contention:rates=crux"}, seed=10),
    Setting("mltcp", "TimeShift", "themis+mltcp", {"network": "contention:rates=mltcp,offsets=random"}, seed=11),
    Setting(
        "links-fail",
        "TimeShift",
        "themis+cassini",
        {"topology": "fat-tree:k=4", "network": "contention:routes=hash,link_mtbf_s=20000,link_mttr_s=600"},
        seed=12,
    ),
)

GEO = (
    Setting("mast", "Geo", "mast", both=LOOKS),
    Setting("federated", "Geo", "federated", both={**LOOKS, **GUESSED}, seed=1),
    Setting("global", "Geo", "global:joint=3", both=LOOKS, seed=2),
    Setting("scope", "Geo", "scope:queue=region,allocation=region", both=LOOKS, own={"tables": None}, seed=3),
    Setting(
        "mast-outages",
        "Geo",
        "mast",
        both={**LOOKS, "mtbf_s": 400000.0, "region_mtbf_s": 30000.0, "region_mttr_s": 3000.0},
        own={"order": "smallest", "clusters": 3},
        seed=4,
    ),
    Setting("geo-batched", "Geo", "random", both=LOOKS, seed=5, rows=3),
    Setting("geo-speeds", "Geo", "greedy:preempts=lower", both={**LOOKS, "speeds": SPEEDS}, seed=6),
    Setting("geo-priced", "Geo", "mast", both={**LOOKS, "prices": PRICES}, seed=7),
    *(
        Setting(
            f"scope-{queue}-{allocation}", "Geo", f"scope:queue={queue},allocation={allocation}", both=LOOKS, seed=8
        )
        for queue, allocation in (("cluster", "cluster"), ("region", "cluster"), ("global", "cluster"))
    ),
)

DATA_PLACEMENT = (
    Setting("static", "DataPlacement", "static", both=LOOKS, own={"reward": "placement"}),
    Setting("tetris-v1-batched", "DataPlacement", "tetris-v1", both=LOOKS, seed=1, rows=2),
    Setting(
        "tetris-v2-outages",
        "DataPlacement",
        "tetris-v2:quota=0.4",
        both={**LOOKS, "region_mtbf_s": 30000.0, "region_mttr_s": 3000.0},
        own={"scheduler": "federated", "quota": 0.4},
        seed=2,
    ),
    Setting("milp", "DataPlacement", "milp", {"workload": "mast-like:jobs=20,days=0.2,tables=8"}, LOOKS, seed=3),
)

GROUPING = (
    Setting("harmony", "Grouping", "harmony", both={"profile_iterations": 2, "jitter": 0.1}),
    Setting("isolated-batched", "Grouping", "isolated", seed=1, rows=4),
    Setting("naive", "Grouping", "naive-colocation", both={"loss": 0.1, "comm": "split"}, seed=2),
    Setting("oracle", "Grouping", "oracle:steps=2000", both={"busy": 0.9, "ram_gb": 16.0}, seed=3),
    Setting("muri-fails", "Grouping", "muri", both={"mtbf_s": 90000.0, "mttr_s": 1200.0}, seed=4),
    Setting("greedy-groups", "Grouping", "greedy:steps=500", own={"observation": "flat", "spill_choices": 1}, seed=5),
)

SETTINGS = {one.name: one for one in (*DELAY, *SHARING, *TIME_SHIFT, *GEO, *DATA_PLACEMENT, *GROUPING)}
