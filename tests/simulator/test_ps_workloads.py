"""Parameter-server jobs: what they hold, in files and on the command line, and the generator `harmony-like`."""

from __future__ import annotations

import csv
import json
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.inspecting.workload_report import summary
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.offered_load import offered_load
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.ps_jobs import PsJobs
from clustergym.simulator.jobs.workload import COLUMNS
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.simulator.workloads.harmony_jobs import harmony_like
from clustergym.simulator.workloads.trace_statistics import HARMONY_GB

# A: 16 / 8 + 4 = 6 s an iteration, 10 of them; B: 8 / 4 + 3 = 5 s, 4 of them.
ROWS = """job_id,arrival_s,gpus,duration_s,iterations,comp_machine_s,comm_s,input_gb,model_gb,epoch_iterations
A,0,8,60,10,16,4,45.6,1.0,5
B,10,4,20,4,8,3,0,0.3,1
"""


def two_jobs() -> Workload:
    ps = PsJobs.of([16.0, 8.0], [4.0, 3.0], [45.6e9, 0.0], [1e9, 0.3e9], [5, 1])
    return Workload.from_arrays("two", [0, 10], [8, 4], [60, 20], job_id=["A", "B"], iterations=[10, 4]).with_ps(ps)


def same(one: Workload, other: Workload) -> bool:
    """Whether all columns are alike bit for bit, those of PS jobs among them."""
    assert one.ps is not None and other.ps is not None
    pairs = [(getattr(one, column), getattr(other, column)) for column in COLUMNS]
    pairs += [(getattr(one.ps, field.name), getattr(other.ps, field.name)) for field in fields(PsJobs)]
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in pairs)


def test_iterations_and_ratios_by_hand():
    """On 8 machines A computes 2 s and communicates 4, B 1 and 3: iterations of 6 and 4 s, (2 + 1) / (4 + 3) in all."""
    ps = two_jobs().ps
    assert ps is not None and len(ps) == 2
    assert ps.iteration_s(8).tolist() == [6.0, 4.0] and ps.iteration_s([8, 4]).tolist() == [6.0, 5.0]
    assert ps.ratio(8).tolist() == [0.5, 1 / 3] and ps.summed_ratio(8) == 3 / 7
    assert ps.take([1]).comm_s.tolist() == [3.0] and not ps.comm_s.flags.writeable
    assert (ps.input_bytes.dtype, ps.epoch_iterations.dtype) == (np.float64, np.int64)


def test_the_offered_load_is_that_of_comp():
    """B comes 10 s after A and asks 4 x 8 = 32 machine-seconds: 3.2 machines, whatever the network is."""
    workload, cluster = two_jobs(), Topology.load("flat:machines=8,gpus_per_machine=1")
    assert workload.work_s().tolist() == [160.0, 32.0]
    assert workload.offered_load(1) == 3.2 and workload.offered_load(8) == 0.4
    assert offered_load(workload, cluster, "penalty:table=chronus") == 0.4
    assert open_workload("harmony-like").offered_load(100) == np.inf


def test_a_capped_job_takes_as_long_as_on_the_machines_that_are_left():
    """On 4 machines A needs 16 / 4 + 4 = 8 s an iteration, 80 s in all; B asks no more than these."""
    with pytest.warns(UserWarning, match="capped 1 of 2 jobs"):
        capped = two_jobs().oversize(4, "cap")
    assert capped.gpus.tolist() == [4, 4] and capped.duration_s.tolist() == [80.0, 20.0]
    with pytest.raises(InputError, match="job A asks 8 GPUs but the cluster has 4"):
        two_jobs().oversize(4)
    with pytest.warns(UserWarning, match="dropped 1 of 2 jobs"):
        assert two_jobs().oversize(4, "drop").ps.comm_s.tolist() == [3.0]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("comp_machine_s", [1.0, 0.0], "comp_machine_s of job number 2: 0; expected machine-seconds above 0, up to"),
        ("comm_s", [-1.0, 1.0], "comm_s of job number 1: -1; expected seconds above 0"),
        ("comm_s", [np.nan, 1.0], "comm_s of job number 1: nan; expected seconds"),
        ("comm_s", "fast", "comm_s: expected a flat list of numbers"),
        ("input_bytes", -5.0, "input_bytes of job number 1: -5; expected bytes from 0"),
        ("model_bytes", [1e16, 1.0], r"model_bytes of job number 1: 1e\+16; expected bytes from 0"),
        ("epoch_iterations", [1, 0], "epoch_iterations of job number 2: 0; expected a whole number"),
        ("epoch_iterations", [1.5, 1], "epoch_iterations of job number 1: 1.5; expected a whole number"),
        ("epoch_iterations", [1, 1, 1], "columns of different lengths .*epoch_iterations 3"),
    ],
)
def test_malformed_jobs_are_one_sentence(column, value, said):
    given = {"comp_machine_s": [16.0, 8.0], "comm_s": [4.0, 3.0], column: value}
    with pytest.raises(InputError, match=said) as caught:
        PsJobs.of(**given)
    assert "\n" not in str(caught.value)


def test_run_times_that_disagree_are_refused():
    plain = Workload.from_arrays("w", [0, 1], [8, 4], [60, 20], iterations=[10, 4])
    with pytest.raises(InputError, match="PS columns of 1 jobs; expected 2"):
        plain.with_ps(PsJobs.of([16.0], [4.0]))
    with pytest.raises(InputError, match=r"job '1' \(number 2\), duration_s: 20.0 does not agree .* = 8.0; expected"):
        plain.with_ps(PsJobs.of([16.0, 4.0], [4.0, 1.0]))
    half = Workload.from_arrays("w", [0], [8], [15], iterations=[2.5])
    with pytest.raises(InputError, match=r"iterations: 2.5; expected a whole number, as for every PS job"):
        half.with_ps(PsJobs.of([16.0], [4.0]))


def test_the_simulator_of_gangs_refuses_them():
    with pytest.raises(InputError, match=r"workload 'harmony-like' holds parameter-server jobs") as caught:
        Simulator("flat:machines=100,gpus_per_machine=1").reset(open_workload("harmony-like"))
    assert "\n" not in str(caught.value)


def written(folder: Path, text: str = ROWS) -> Path:
    path = folder / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return path


def changed(row: int, column: str, value: str) -> str:
    """The rows with another value in one cell."""
    rows = list(csv.reader(ROWS.splitlines()))
    rows[row + 1][rows[0].index(column)] = value
    return "\n".join(",".join(cells) for cells in rows) + "\n"


def without(column: str) -> str:
    rows = list(csv.reader(ROWS.splitlines()))
    gone = rows[0].index(column)
    return "\n".join(",".join(cells[:gone] + cells[gone + 1 :]) for cells in rows) + "\n"


def test_a_file_is_read(tmp_path):
    assert same(open_workload(written(tmp_path)), two_jobs())


def test_rows_out_of_order_keep_what_they_ask(tmp_path):
    head, one, other = ROWS.splitlines()
    with pytest.warns(UserWarning, match="sorted by arrival"):
        turned = open_workload(written(tmp_path, "\n".join([head, other, one]) + "\n"))
    assert same(turned, two_jobs())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "word", ["odd", "harmony-like:epoch_iterations=7", "harmony-like:jobs=24,gap_min=15,deadlines=1.5/3,kappa=1.037"]
)
def test_a_saved_workload_comes_back_bit_for_bit(word, ending, tmp_path):
    """`odd` has any whole bytes up to 10^15."""
    if word == "odd":
        rng = np.random.default_rng(1)
        comp, comm = rng.lognormal(size=(2, 500))
        sizes = np.floor(10 ** rng.uniform(0, 15, (2, 500)))
        ps = PsJobs.of(comp, comm, *sizes, rng.integers(1, 10**15, 500))
        iteration_s, iterations = ps.iteration_s(3), rng.integers(1, 10**6, 500).astype(float)
        before = Workload.from_arrays(
            "odd", np.zeros(500), np.full(500, 3), iterations * iteration_s, iterations=iterations
        ).with_ps(ps)
    else:
        before = open_workload(word, seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before.save(tmp_path / f"w.{ending}")
        after = open_workload(tmp_path / f"w.{ending}")
    assert same(before, after) and after.iterations_known


BROKEN = {
    "missing": (
        without("comm_s"),
        "column 'comm_s' is missing beside 'comp_machine_s'; expected all of comp_machine_s,",
    ),
    "sizes": (without("model_gb"), "column 'model_gb' is missing beside 'comp_machine_s'"),
    "iterations": (without("iterations"), "column 'iterations' is missing"),
    "unknown": (changed(1, "iterations", ""), "line 3, column 'iterations': ''; expected a whole number"),
    "part": (changed(1, "iterations", "4.5"), "line 3, column 'iterations': '4.5'; expected a whole number"),
    "comp": (changed(0, "comp_machine_s", "0"), "line 2, column 'comp_machine_s': '0'; expected a number above 0"),
    "comm": (changed(1, "comm_s", "-3"), "line 3, column 'comm_s': '-3'; expected a number above 0"),
    "input": (changed(0, "input_gb", "-1"), "line 2, column 'input_gb': '-1'; expected a number from 0 to 1e+06"),
    "model": (changed(0, "model_gb", "large"), "line 2, column 'model_gb': 'large'; expected a number from 0"),
    "epoch": (changed(0, "epoch_iterations", "0"), "line 2, column 'epoch_iterations': '0'; expected a whole number"),
    "time": (changed(0, "duration_s", "61"), "line 2, column 'duration_s': '61'; expected 60.0 to a millionth, which"),
    "machines": (changed(1, "gpus", "2"), "line 3, column 'duration_s': '20'; expected 28.0 to a millionth"),
    "regions": (ROWS.replace("model_gb", "parts", 1), "column 'model_gb' is missing beside"),
    "both": (
        "job_id,arrival_s,gpus,duration_s,iterations,comp_machine_s,comm_s,input_gb,model_gb,epoch_iterations,parts\n"
        "A,0,8,60,10,16,4,1,1,1,A100:8\n",
        "columns 'parts' and 'comm_s': expected one, as PS jobs have no regions",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_malformed_file_is_one_sentence(case, tmp_path):
    text, said = BROKEN[case]
    with pytest.raises(InputError) as caught:
        open_workload(written(tmp_path, text))
    assert said in str(caught.value) and "\n" not in str(caught.value) and "mine.csv" in str(caught.value)


def test_harmony_like_has_the_jobs_of_table_1():
    """Ten of each of eight data sets, with their sizes; COMM of all eight is 73.8 s x kappa without spread."""
    workload = open_workload("harmony-like:spread=0,kappa=1", seed=5)
    ps = workload.ps
    assert len(workload) == 80 and workload.gpus.tolist() == [16] * 80 and not workload.arrival_s.any()
    for name, (input_gb, model_gb) in HARMONY_GB.items():
        mine = workload.model == name
        assert mine.sum() == 10 and set(ps.input_bytes[mine]) == {input_gb * 1e9}
        assert set(ps.model_bytes[mine]) == {model_gb * 1e9}
        assert sorted(workload.job_id[mine]) == [f"{name}-{setting}" for setting in range(10)]
    assert ps.comm_s.sum() / 10 == pytest.approx(2 * 81.2 / (16 * 0.1375)) == pytest.approx(73.8, abs=0.02)
    assert np.array_equal(workload.iterations, np.round(workload.iterations)) and set(ps.epoch_iterations) == {1}
    assert np.array_equal(workload.duration_s, workload.iterations * (ps.comp_machine_s / 16 + ps.comm_s))


def test_harmony_like_deals_the_data_sets_evenly():
    for jobs in (1, 3, 8, 24, 60, 101):
        counts = np.unique(harmony_like(jobs, seed=2).model, return_counts=True)[1]
        assert counts.sum() == jobs and counts.max() - counts.min() <= 1 and len(counts) == min(jobs, 8)


def test_harmony_like_has_the_stated_statistics():
    """COMM 1.1 times the bytes' time on average and .7 to 1.3 of that; ratio of mean 1.05 and run time of mean 2 h."""
    workload = harmony_like(200_000, seed=1)
    ps = workload.ps
    kappa = ps.comm_s * 16 * 0.1375e9 / (2 * ps.model_bytes)
    assert kappa.mean() == pytest.approx(1.1, rel=0.002)
    assert 0.77 <= kappa.min() < 0.771 and 1.429 < kappa.max() <= 1.43
    assert ps.summed_ratio(16) == pytest.approx(1.05, rel=0.005)
    assert np.median(ps.ratio(16)) == pytest.approx(1.05 * np.exp(-0.045), rel=0.005)
    assert np.log(ps.ratio(16)).std() == pytest.approx(0.3, rel=0.01)
    assert workload.duration_s.mean() == pytest.approx(7200 * 1.0014, rel=0.003)
    assert np.log(workload.duration_s).std() == pytest.approx(0.3, rel=0.01)
    wide = harmony_like(200_000, ratio_sigma=0.8, length_sigma=1.0, mean_hours=1, ratio=2, seed=1)
    assert wide.ps.summed_ratio(16) == pytest.approx(2, rel=0.02) and wide.duration_s.mean() == pytest.approx(
        3600, rel=0.02
    )


def test_the_summed_ratio_of_80_jobs_is_its_mean_over_seeds():
    """Single workloads vary by 5 % about it, a standard deviation."""
    ratios = [harmony_like(seed=seed).ps.summed_ratio(16) for seed in range(200)]
    assert np.mean(ratios) == pytest.approx(1.05, abs=0.015) and 0.03 < np.std(ratios) < 0.07


def test_arrivals_do_not_change_the_jobs():
    base = harmony_like(seed=4)
    for arrivals in ("poisson", "bursts", "google"):
        other = harmony_like(gap_min=4, arrivals=arrivals, seed=4)
        assert np.array_equal(other.ps.comp_machine_s, base.ps.comp_machine_s) and other.arrival_s[0] == 0
        assert np.array_equal(other.duration_s, base.duration_s) and np.all(np.diff(other.arrival_s) >= 0)


def test_the_compute_heavy_and_the_communication_heavy_60_are_those_of_the_same_80():
    base = harmony_like(seed=4)
    ratio = dict(zip(base.job_id, base.ps.ratio(16), strict=True))
    ranked = sorted(ratio, key=ratio.get)
    for select, expected in (("compute", ranked[20:]), ("communication", ranked[:60])):
        kept = harmony_like(select=select, seed=4)
        assert set(kept.job_id) == set(expected) and len(kept) == 60
        assert kept.job_id.tolist() == [name for name in base.job_id if name in set(expected)]
        assert [ratio[name] for name in kept.job_id] == kept.ps.ratio(16).tolist()
    assert len(harmony_like(1, select="compute")) == 1


@pytest.mark.parametrize(("arrivals", "dispersion"), [("poisson", 1), ("bursts", 15), ("google", 14.7)])
def test_gaps_have_their_mean_and_counts_their_dispersion(arrivals, dispersion):
    """Over 30 workloads of 40,000 jobs each; counts in windows of 200 mean gaps of the workload."""
    spreads, gaps_s = [], []
    for seed in range(30):
        arrival_s = harmony_like(40_000, gap_min=4, arrivals=arrivals, seed=seed).arrival_s
        gaps_s.append(arrival_s[-1] / (len(arrival_s) - 1))
        counts = np.bincount((arrival_s // (200 * gaps_s[-1])).astype(int))[:-1]
        spreads.append(counts.var() / counts.mean())
    assert np.mean(spreads) == pytest.approx(dispersion, rel=0.1)
    busy = np.std(np.log(gaps_s))
    if arrivals == "google":
        assert 0.3 < busy < 0.7 and np.mean(gaps_s) == pytest.approx(240, rel=0.3)
    else:
        assert busy < 0.05 and np.mean(gaps_s) == pytest.approx(240, rel=0.03)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("jobs=0", "jobs=0; expected 1 to"),
        ("spread=1", "spread=1; expected 0 to below 1"),
        ("ratio_sigma=-1", "ratio_sigma=-1; expected 0 to 3"),
        ("length_sigma=4", "length_sigma=4; expected 0 to 3"),
        ("mean_hours=0", "mean_hours=0; expected a number above 0"),
        ("kappa=0", "kappa=0; expected a number above 0"),
        ("ratio=-1", "ratio=-1; expected a number above 0"),
        ("epoch_iterations=0", "epoch_iterations=0; expected 1 to"),
        ("gap_min=-1", "gap_min=-1; expected minutes from 0"),
        ("select=cpu", "unknown value of workload harmony-like: select 'cpu'"),
        ("arrivals=googel,gap_min=1", "did you mean 'google'"),
        ("arrivals=bursts", "gap_min=0 with arrivals=bursts; expected minutes above 0"),
        ("burst_jobs=0.5", "burst_jobs=0.5; expected 1 to"),
        ("kappa=1e11,ratio=1e11", "expected machine-seconds above 0, up to 1e15"),
    ],
)
def test_bad_parameters_are_one_sentence(word, said):
    with pytest.raises(InputError, match=said) as caught:
        open_workload(f"harmony-like:{word}")
    assert "\n" not in str(caught.value)


def test_the_summary_counts_by_hand():
    """A: 160 machine-seconds of COMP and 40 s of COMM; B: 32 and 12; iterations of 6 and 5 s with (2 + 2) / (4 + 3)."""
    facts = summary(two_jobs())
    ps = facts["ps"]
    assert facts["gpu_hours"] == ps["comp_machine_hours"] == pytest.approx(192 / 3600)
    assert ps["comm_hours"] == pytest.approx(52 / 3600) and ps["summed_ratio"] == pytest.approx(4 / 7)
    assert ps["machines"] == [4, 8] and ps["input_gb"] == 45.6 and ps["model_gb"] == 1.3
    assert ps["iteration_s"]["p50"] == 5.5 and ps["iterations"] == 7 and ps["epoch_iterations"] == 3
    assert [(row["model"], row["jobs"]) for row in ps["models"]] == [("unknown", 2)]


def call(capsys, *arguments):
    code = run(list(map(str, arguments)))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_generate_inspect_and_convert(tmp_path, capsys):
    path, other = tmp_path / "w.csv", tmp_path / "v.parquet"
    code, said, _ = call(
        capsys, "workload", "generate", "harmony-like:gap_min=4", "--jobs", 24, "--seed", 4, "--to", path
    )
    assert code == 0 and "24 jobs" in said and "machine-hours of COMP, offered load" in said and "machines" in said
    code, said, _ = call(capsys, "workload", "inspect", path, "--topology", "flat:machines=100,gpus_per_machine=1")
    assert code == 0
    for words in ("PS jobs:", "on 16 machines COMP is", "What a PS job asks", "lda-nytimes", "Machine demand"):
        assert words in said
    assert "offered load, of COMP: " in said
    code, said, _ = call(capsys, "workload", "inspect", path, "--json")
    assert code == 0 and sum(row["jobs"] for row in json.loads(said)["ps"]["models"]) == 24
    assert call(capsys, "workload", "convert", path, "--to", other)[0] == 0
    assert same(open_workload(other), open_workload(path))
    code, said, _ = call(capsys, "workload", "generate", "harmony-like:jobs=2", "--json")
    assert code == 0 and set(json.loads(said)[0]) >= {"comp_machine_s", "comm_s", "input_gb", "epoch_iterations"}
    code, said, _ = call(capsys, "workloads", "--json")
    row = next(row for row in json.loads(said) if row["name"] == "harmony-like")
    assert code == 0 and row["kind"] == "generator" and "ratio_sigma=0.3" in row["parameters"]


def test_bad_input_on_the_command_line_is_one_sentence(tmp_path, capsys):
    path = written(tmp_path, changed(0, "comm_s", "0"))
    for words in (("workload", "inspect", path), ("workload", "inspect", "harmony-like:kappa=0")):
        code, _, said = call(capsys, *words)
        assert code in (1, 2) and said.startswith("clustergym: ") and said.count("\n") == 1
