"""Every mistake on the command line: one sentence on stderr, nothing on stdout, status 1 or 2, never a traceback."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustergym.experiments.cli import run
from clustergym.tests.support.drawn import some

OWN = "job_id,arrival_s,gpus,duration_s"
EVALUATE = ("evaluate", "Delay", "--seeds", "0", "--workload", "batch:jobs=4")
ONE = (*EVALUATE, "--policies", "fifo")
AUCTIONS = (*EVALUATE, "--network", "none", "--set", "semantics=artist-sim")
GEO = ("evaluate", "Geo", "--seeds", "0", "--policies", "mast")
TABLES = ("evaluate", "DataPlacement", "--seeds", "0", "--policies", "static")

# files that the arguments below name, written to the working folder of the test
FILES: dict[str, str | bytes] = {
    "empty.csv": "",
    "header.csv": OWN + "\n",
    "nan.csv": f"{OWN}\na,0,1,nan\n",
    "negative.csv": f"{OWN}\na,-1,1,5\n",
    "twice.csv": f"{OWN}\na,0,1,5\na,1,1,5\n",
    "word.csv": f"{OWN}\na,0,one,5\n",
    "cut.csv": f"{OWN}\na,0,1,5\nb,0\n",
    "huge.csv": f"{OWN}\na,0,1,{'9' * 10_000_000}\n",
    "noise.csv": "hello\n",
    "binary.csv": bytes(range(256)) * 8,
    "big.csv": f"{OWN}\nbig,0,65,5\n",
    "all-big.csv": f"{OWN}\nbig,0,65,5\nbigger,0,66,5\n",
    "good.csv": f"{OWN}\na,0,1,5\n",
    "model.csv": f"{OWN},model\na,0,2,5,unheard-of\n",
    "cut.json": '[{"max_parallelism": ',
    "spec.yaml": "racks: [",
    "list.yaml": "- 1\n- 2\n",
    "negative.yaml": "name: x\nracks: -1\n",
    "empty.yaml": "",
    "table.csv": "model,gpus\nx\n",
    "fake.parquet": b"PAR1 no parquet PAR1",
}

# (arguments, status, what the sentence says)
BAD: list[tuple[tuple[str, ...], int, str]] = [
    # commands and options
    (("evaluat",), 2, "evaluat"),
    (("envs", "--colour"), 2, "--colour"),
    (("envs", "extra"), 2, "unknown environment"),
    (("topologies", "extra"), 2, "leave it out"),
    (("--seeds", "0-4", "evaluate", "Delay"), 2, "options follow the command, as in clustergym evaluate Delay"),
    (("envs", "--seed", "-1"), 2, "-1"),
    (("workload", "look"), 2, "look"),
    (("evaluate",), 2, "ENV"),
    (("evaluate", "Delay", "--policies"), 2, "--policies"),
    (("evaluate", "Delay", "--policies", "fifo", "sjf"), 2, "one quoted value"),
    (("policies", "--env", "Dely"), 2, "did you mean 'Delay'"),
    (("evaluate", "Sharing", "--set", "gpu=t4"), 2, "expected gpu=t4 in the word of the network, or a network without"),
    (("evaluate", "Sharing", "--set", "memory_gb=inf memory=middle"), 2, "memory: it means nothing without memory_gb"),
    ((*ONE, "--set", "mttr_s=60"), 2, "mttr_s: it means nothing without mtbf_s"),
    # environments and policies
    (("evaluate", "Dely"), 2, "did you mean 'Delay'"),
    (("evaluate", ""), 2, "unknown environment ''"),
    ((*EVALUATE, "--policies", "fifi"), 2, "did you mean 'fifo'"),
    ((*EVALUATE, "--policies", " "), 2, "no name"),
    ((*EVALUATE, "--policies", "greedy,fifo"), 2, "separated by spaces: 'greedy fifo'"),
    ((*EVALUATE, "--policies", "fifo fifo"), 2, "given twice"),
    ((*EVALUATE, "--policies", "fifo:hed=skip"), 2, "did you mean 'head'"),
    ((*EVALUATE, "--policies", "fifo:head=maybe"), 2, "maybe"),
    ((*EVALUATE, "--policies", "fifo:head"), 2, "not key=value"),
    ((*EVALUATE, "--policies", "fifo:head=skip,head=skip"), 2, "given twice"),
    ((*EVALUATE, "--policies", "las:thresholds=5/3"), 2, "ascending"),
    ((*EVALUATE, "--policies", "las:thresholds=nan"), 2, "nan"),
    ((*EVALUATE, "--policies", "srtf:preemption_cost=-1"), 2, "-1"),
    ((*EVALUATE, "--policies", "srtf:round=inf"), 2, "inf"),
    ((*EVALUATE, "--policies", ":head=skip"), 2, "empty"),
    # delay timers, semantics, networks of layers
    ((*EVALUATE, "--policies", "daly"), 2, "did you mean 'dally'"),
    ((*EVALUATE, "--policies", "dally:histroy=3"), 2, "did you mean 'history'"),
    ((*EVALUATE, "--policies", "dally:history=0"), 2, "history = 0"),
    ((*EVALUATE, "--policies", "dally:history=inf"), 2, "finite"),
    ((*EVALUATE, "--policies", "dally:initial=1/2/3"), 2, "MACHINE/RACK"),
    ((*EVALUATE, "--policies", "dally:initial=-1"), 2, "initial = -1"),
    ((*EVALUATE, "--policies", "dally:floors=nan"), 2, "nan"),
    ((*EVALUATE, "--policies", "dally:deviation=mean"), 2, "population"),
    ((*EVALUATE, "--policies", "dally:placer=count"), 2, "tier"),
    ((*EVALUATE, "--policies", "dally:lease=1e-9"), 2, "0.001"),
    ((*EVALUATE, "--policies", "dally-manual:timers=-1"), 2, "timers = -1"),
    ((*EVALUATE, "--policies", "dally-manual:timers=12h/24h"), 2, "12h"),
    ((*EVALUATE, "--policies", "dally-nowait:timers=1"), 2, "timers"),
    ((*EVALUATE, "--policies", "gandiva:fallback=first"), 2, "most-free"),
    ((*AUCTIONS, "--policies", "dally:lease=0"), 2, "there it is 3600"),
    ((*AUCTIONS, "--policies", "fifo tiresias:round=60"), 2, "sets round aside"),
    ((*AUCTIONS, "--policies", "las:thresholds=100/200"), 2, "there it is empty"),
    ((*AUCTIONS, "--policies", "gandiva:slicing=60"), 2, "slicing"),
    ((*AUCTIONS, "--policies", "dally:placer=tier"), 2, "there it is first"),
    ((*ONE, "--set", "semantics=artist"), 2, "artist-sim"),
    ((*ONE, "--set", "semantics="), 2, "semantics"),
    ((*ONE, "--set", "semantics=artist-sim:lease_s=-1"), 2, "lease_s = -1"),
    ((*ONE, "--set", "semantics=artist-sim:chunk=x"), 2, "chunk"),
    ((*ONE, "--set", "semantics=artist-sim:release=1"), 2, "did you mean 'release_s'"),
    ((*ONE, "--set", "semantics=events:chunk=1"), 2, "chunk"),
    ((*ONE, "--network", "allreduce:calibration=astra"), 2, "astra"),
    ((*ONE, "--network", "allreduce:tiers=missing.yaml"), 2, "missing.yaml"),
    ((*ONE, "--network", "allreduce:default=VGG99"), 2, "VGG99"),
    ((*ONE, "--workload", "model.csv", "--network", "allreduce"), 1, "unheard-of"),
    ((*ONE, "--topology", "dally:machine_order=random"), 2, "machine_order"),
    ((*ONE, "--topology", "dally:machine_order=-1"), 2, "machine_order"),
    (("communication",), 2, "MODEL"),
    (("communication", "VGG99", "--units", "4,2,0,0"), 2, "VGG99"),
    (("communication", "VGG"), 2, "--units"),
    (("communication", "VGG", "--units", "4,2"), 2, "four whole numbers"),
    (("communication", "VGG", "--units", "4,2,-1,0"), 2, "four whole numbers"),
    (("communication", "VGG", "--units", "4,2,0,0", "--topology", "dally"), 2, "--topology"),
    (("communication", "VGG", "--gpus", "0-7"), 2, "--topology"),
    (("communication", "VGG", "--topology", "dally:racks=1", "--gpus", "0-99999"), 2, "GPU"),
    (("communication", "VGG", "--topology", "dally:racks=1", "--gpus", "7-0"), 2, "7-0"),
    (("communication", "VGG", "--topology", "dally:racks=1", "--gpus", "0,0"), 2, "0"),
    (("communication", "VGG", "--units", "4,2,0,0", "--layers", "missing.csv"), 2, "missing.csv"),
    (("communication", "VGG", "--units", "4,2,0,0", "--out", "x.pdf"), 2, ".png"),
    (("reproduce", "dally-tabel2"), 2, "did you mean 'dally-table2'"),
    (("reproduce", "dally-peer", "--orders", "0"), 2, "0"),
    (("reproduce", "dally-peer", "--orders", "many"), 2, "many"),
    (("reproduce", "dally-peer", "--generated", "--traces", "."), 2, "--traces"),
    (("reproduce", "dally-peer", "--traces", "missing-folder"), 2, "missing-folder"),
    (("bench", "engin"), 2, "did you mean 'engine'|clone"),
    # regions and tables
    ((*GEO, "--topology", "mast:seed=-1"), 2, "seed = -1: expected a whole number of at least 0"),
    ((*GEO, "--topology", "mast:regins=3"), 2, "did you mean 'regions'"),
    ((*GEO, "--topology", "mast:regions=3"), 1, "expected the same, in the same order"),
    ((*GEO, "--topology", "mast:regions=6,storage_tb=0.000001"), 1, "region 'region0' of topology 'mast': it stores"),
    ((*TABLES, "--topology", "flat"), 1, "no regions with storage"),
    ((*GEO, "--workload", "mast-like:jobs=4,world=-1"), 2, "world=-1; expected a whole number of at least 0"),
    ((*GEO, "--workload", "mast-like:jobs=4,seed=-1"), 2, "seed = -1"),
    ((*GEO[:-1], "mast:scan_s=-1"), 2, "scan_s = -1"),
    ((*GEO[:-1], "mast:slow=tetris-v3"), 2, "did you mean 'tetris-v2'"),
    ((*GEO[:-1], "scope:queue=cluster,allocation=global"), 2, "Table 1 of paper mast has no such cell"),
    ((*GEO[:-1], "zoo:Delay"), 2, "does not play in clustergym/Geo-v0|install"),
    ((*GEO[:-1], "tetris-v2"), 2, "does not play in clustergym/Geo-v0"),
    ((*GEO, "--set", "horizon_s=-5"), 2, "horizon_s = -5"),
    ((*GEO, "--set", "region_mtbf_s=-5"), 2, "region_mtbf_s = -5"),
    ((*GEO, "--set", "region_mttr_s=5"), 2, "region_mtbf_s"),
    ((*TABLES, "--set", "tables_every_s=0"), 2, "tables_every_s = 0"),
    ((*TABLES[:-1], "tetris-v2:quota=-1"), 2, "quota = -1"),
    ((*TABLES[:-1], "tetris-v2:scheduler=fifo"), 2, "expected one for regions"),
    # seeds
    ((*ONE[:2], "--seeds", "a"), 2, "'a' is no seed"),
    ((*ONE[:2], "--seeds", ""), 2, "no seed"),
    ((*ONE[:2], "--seeds", "5-1"), 2, "backwards"),
    ((*ONE[:2], "--seeds", "1,,2"), 2, "no seed"),
    ((*ONE[:2], "--seeds", "0-99999999999"), 2, "more than 100,000"),
    ((*ONE[:2], "--seeds", "1.5"), 2, "1.5"),
    ((*ONE[:2], "--seeds", "-3"), 2, "-3"),
    ((*ONE[:2], "--seeds", "٣"), 2, "no seed"),
    ((*ONE[:2], "--seed", "x"), 2, "x"),
    ((*ONE, "--seed", "1"), 2, "both given"),
    ((*ONE, "--baseline", "sjf"), 2, "none of the policies: fifo; add it"),
    # settings
    ((*ONE, "--set", "horizon_s"), 2, "key=value"),
    ((*ONE, "--set", "network=none"), 2, "network: it has an option of its own, --network"),
    ((*ONE, "--set", "horizn_s=3"), 2, "did you mean 'horizon_s'"),
    ((*ONE, "--set", "horizon_s=0"), 2, "> 0"),
    ((*ONE, "--set", "horizon_s=soon"), 2, "soon"),
    ((*ONE, "--set", "mtbf_s=nan"), 2, "nan"),
    ((*ONE, "--set", "mtbf_s=-1"), 2, "-1"),
    ((*ONE, "--set", "mttr_s=5"), 2, "mtbf_s"),
    ((*ONE, "--set", "region_mttr_s=5"), 2, "has no regions"),
    ((*ONE, "--set", "region_mtbf_s=-1"), 2, "has no regions"),
    ((*ONE, "--set", "region_mtbf_s=1000"), 2, "has no regions"),
    ((*ONE, "--set", "mtbf_s=1", "--set", "mtbf_s=1"), 2, "given twice"),
    ((*ONE, "--set", "mtbf_s=1", "mtbf_s=1"), 2, "given twice"),
    ((*ONE, "--set", "mtbf_s=1 mttr_s=-1"), 2, "mttr_s = -1"),
    ((*ONE, "--set", "mtbf_s=1 2"), 2, "mtbf_s = '1 2'"),
    ((*ONE, "--set", "mtbf_s=1", "mttr_s"), 2, "mttr_s"),
    ((*ONE, "--set", "elastic=true"), 2, "pollux:adapt=off"),
    ((*ONE, "--jobs", "0"), 2, "0"),
    ((*ONE, "--oversize", "shrink"), 2, "shrink"),
    # networks
    ((*ONE, "--network", "nonne"), 2, "did you mean 'none'"),
    ((*ONE, "--network", "penalty:tabel=x"), 2, "did you mean 'table'"),
    ((*ONE, "--network", "penalty:table=missing.csv"), 2, "missing.csv"),
    ((*ONE, "--network", "penalty:table=table.csv"), 2, "table.csv"),
    ((*ONE, "--network", "penalty:default=0.5/1/1"), 2, "0.5"),
    ((*ONE, "--workload", "model.csv"), 1, "unheard-of"),
    # topologies
    ((*ONE, "--topology", "daly"), 2, "did you mean 'dally'"),
    ((*ONE, "--topology", "dally:racks=0"), 2, "racks"),
    ((*ONE, "--topology", "dally:racks=two"), 2, "two"),
    ((*ONE, "--topology", "dally:machines=999999999"), 2, "999"),
    ((*ONE, "--topology", "missing.yaml"), 2, "missing.yaml.*expected a YAML or JSON file"),
    ((*ONE, "--topology", "spec.yaml"), 1, "spec.yaml"),
    ((*ONE, "--topology", "list.yaml"), 1, "list.yaml"),
    ((*ONE, "--topology", "negative.yaml"), 1, "negative.yaml"),
    ((*ONE, "--topology", "empty.yaml"), 1, "empty.yaml"),
    ((*ONE, "--topology", "."), 1, "."),
    # workloads
    ((*ONE, "--workload", "poison"), 2, "did you mean 'poisson'"),
    ((*ONE, "--workload", "poisson:jobs=0"), 2, "jobs"),
    ((*ONE, "--workload", "poisson:load=nan"), 2, "nan"),
    ((*ONE, "--workload", "poisson:jobs=1e3"), 2, "whole number"),
    ((*ONE, "--workload", "missing.csv"), 2, "missing.csv"),
    (("whatif", "missing", "--topology", "flat"), 2, "unknown workload or missing file 'missing'"),
    ((*ONE, "--workload", "empty.csv"), 1, "empty"),
    ((*ONE, "--workload", "header.csv"), 1, "no rows"),
    ((*ONE, "--workload", "nan.csv"), 1, "line 2, column 'duration_s': 'nan'"),
    ((*ONE, "--workload", "negative.csv"), 1, "line 2, column 'arrival_s': '-1'"),
    ((*ONE, "--workload", "twice.csv"), 1, "line 3, column 'job_id': 'a'"),
    ((*ONE, "--workload", "word.csv"), 1, "line 2, column 'gpus': 'one'"),
    ((*ONE, "--workload", "cut.csv"), 1, "line 3: 2 fields"),
    ((*ONE, "--workload", "huge.csv"), 1, "line 2"),
    ((*ONE, "--workload", "noise.csv"), 1, "not recognised"),
    ((*ONE, "--workload", "binary.csv"), 1, "binary"),
    ((*ONE, "--workload", "cut.json"), 1, "not valid JSON"),
    ((*ONE, "--workload", "fake.parquet"), 1, "fake.parquet"),
    ((*ONE, "--workload", "."), 1, "."),
    ((*ONE, "--workload", "good.csv", "--format", "phily"), 1, "did you mean 'philly'"),
    ((*ONE, "--workload", "good.csv", "--format", "gavel"), 1, "good.csv"),
    ((*ONE, "--workload", "big.csv", "--network", "none"), 1, "job big asks 65 GPUs"),
    ((*ONE, "--workload", "all-big.csv", "--network", "none", "--oversize", "drop", "--quiet"), 1, "no job is left"),
    # files to write
    ((*ONE, "--decisions", "nowhere/d.csv"), 1, "there is no folder nowhere"),
    ((*ONE, "--decisions", "."), 1, "folder"),
    ((*ONE, "--logdir", "good.csv"), 1, "good.csv"),
    ((*ONE, "--logdir", "/proc/x"), 1, "/proc/x: .*; name a place that can be written to"),
    (("train", "Delay", "--logdir", ".", "--resume"), 1, "no training to go on with .*; without --resume one begins"),
    (("workload", "inspect", "missing.csv"), 2, "missing.csv"),
    (("workload", "inspect", "good.csv", "--picture", "nowhere/x.png"), 1, "nowhere"),
    (("workload", "inspect", "good.csv", "--picture", "x.picture"), 1, "x.picture"),
    # What a generator names, and an environment's network does not know, is answered with what plays there.
    (("evaluate", "Sharing", "--workload", "cassini-poisson"), 1, "any model plays on network none"),
    (("evaluate", "TimeShift", "--workload", "philly-sample"), 1, "or play on network contention:default=silent"),
    (("evaluate", "Delay", "--workload", "philly-sample"), 1, "or take the network 'none'"),
    (("evaluate", "Geo", "--workload", "poisson"), 2, "Geo-v0 expects one that does, as mast-like"),
    (("evaluate", "Geo", "--workload", "mast-like"), 1, "in the same order, as mast-like:regions=6 has them"),
    (("workload", "convert", "good.csv"), 2, "--to"),
    (("workload", "convert", "missing.csv", "--to", "x.csv"), 1, "missing.csv"),
    (("workload", "convert", "good.csv", "--to", "x.xls"), 2, ".csv or .parquet"),
    (("workload", "convert", "good.csv", "--to", "./good.csv"), 1, "the file that is read; name another one"),
    (("prices", "convert", "west=good.csv", "--to", "good.csv"), 1, "the file that is read; name another one"),
    (("workload", "convert", "good.csv", "--to", "nowhere/x.csv"), 1, "nowhere"),
    (("workload", "convert", "good.csv", "--to", "x.csv", "--oversize", "drop"), 2, "--topology"),
    (("workload", "convert", "big.csv", "--to", "x.csv", "--topology", "flat"), 1, "job big asks 65"),
    (("workload", "convert", "good.csv", "--to", "x.csv", "--oversize", "x", "--topology", "flat"), 2, "'x'"),
    (("evaluate", "Delay", "--seeds", "0", "--workload", "harmony-like:jobs=4"), 1, "holds parameter-server jobs"),
    (("evaluate", "Sharing", "--seeds", "0", "--workload", "harmony-like:jobs=4"), 1, "holds parameter-server jobs"),
    (("evaluate", "TimeShift", "--seeds", "0", "--workload", "harmony-like:jobs=4"), 1, "holds parameter-server jobs"),
    (("evaluate", "Grouping", "--seeds", "0", "--workload", "batch:jobs=4"), 1, "are no parameter-server jobs"),
    (("workload", "generate"), 2, "KIND"),
    (("workload", "generate", "poisso"), 2, "did you mean 'poisson'"),
    (("workload", "generate", "poisson", "--jobs", "-4"), 2, "-4"),
    (("workload", "generate", "poisson", "--jobs", "99999999999"), 2, "jobs"),
    (("workload", "generate", "poisson:jobs=3", "--jobs", "4"), 2, "both given"),
    (("workload", "generate", "poisson:sigma=x"), 2, "sigma"),
    (("workload", "generate", "good.csv"), 2, "good.csv"),
    (("bench", "no-such-benchmark"), 2, "no-such-benchmark|clone"),
]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """The first run after a change of the kernels says on stderr that it compiles them; not in these tests."""
    run([*ONE, "--quiet"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_there_are_at_least_forty_of_them():
    assert len(BAD) >= 40


@pytest.mark.parametrize(("arguments", "status", "says"), BAD, ids=[" ".join(case[0])[:70] for case in BAD])
def test_a_mistake_is_one_sentence(capsys, monkeypatch, folder, arguments, status, says):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    outcome = run(arguments)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    told = [line for line in lines if not line.startswith("clustergym: compiling ")]  # which may come first
    assert len(told) == 1 and told[0] == lines[-1], said.err
    assert re.search(says, told[0]), said.err
    assert told[0].startswith("clustergym: ")
    assert len(told[0]) < 1000
    assert outcome == status or (arguments[0] == "bench" and outcome == 1)  # without benchmarks/ it fails
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("arguments", [case[0] for case in BAD if case[1] == 2][::9])
def test_json_does_not_change_how_a_mistake_is_told(capsys, arguments):
    assert run([*arguments, "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1


WORDS = st.sampled_from(
    [
        *("evaluate", "Delay", "policies", "workload", "inspect", "convert", "generate", "poisson", "batch:jobs=3"),
        *("--seeds", "0", "0-2", "--policies", "fifo", "las", "las:thresholds=1/2", "poisson:jobs=2,load=1", "--set"),
        *("horizon_s=1", "--topology", "flat", "--network", "none", "--workload", "--format", "--oversize", "cap"),
        *("empty.csv", "nan.csv", "good.csv", "spec.yaml", "--json", "--quiet", "--jobs", "-1", "nan", "inf", "--help"),
        *("--", "-", ":", "=", ",", "/"),
    ]
)
TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=12)
NAMES = st.builds("{}:{}={}".format, st.sampled_from(["fifo", "las", "poisson", "flat", "penalty"]), TEXT, TEXT)
# what would run for long, write, or need the shell is not drawn
ARGUMENTS = st.lists(st.one_of(WORDS, WORDS, WORDS, TEXT, NAMES), max_size=7)


@settings(
    max_examples=some(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(ARGUMENTS)
def test_no_arguments_give_a_traceback(capsys, monkeypatch, folder, arguments):
    monkeypatch.chdir(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status = run(arguments)
    said = capsys.readouterr()
    assert status in (0, 1, 2)
    assert "Traceback" not in said.err
    if status == 0 and "--json" in arguments and "--help" not in arguments and said.out.startswith(("[", "{")):
        json.loads(said.out)
    if status:
        mistakes = [line for line in said.err.splitlines() if not line.startswith("clustergym: warning")]
        assert len(mistakes) == 1


@settings(max_examples=some(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(option=st.sampled_from(["--policies", "--seeds", "--set", "--topology", "--network", "--oversize"]), value=TEXT)
def test_no_value_of_an_option_gives_a_traceback(capsys, monkeypatch, folder, option, value):
    monkeypatch.chdir(folder)
    status = run(["evaluate", "Delay", "--workload", "good.csv", f"{option}={value}", "--json"])
    said = capsys.readouterr()
    assert status in (0, 1, 2)
    assert (said.out != "") == (status == 0)
    assert said.err.count("\n") == (1 if status else 0)
