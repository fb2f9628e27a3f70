"""`clustergym reproduce`: rows and verdicts, sweeps that go on after a kill, the command. Figures: tests/papers."""

from __future__ import annotations

import gzip
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.comparing.intervals import Estimate, paired_ratio
from clustergym.experiments.console.terminal import out
from clustergym.experiments.reproduce import case, named, rows, sweep
from clustergym.experiments.reproduce.case import Case
from clustergym.experiments.reproduce.case_runs import improvement
from clustergym.experiments.reproduce.dally.dally_jobs import dally_batch, dally_weeks
from clustergym.experiments.reproduce.dally.dally_peer import reference
from clustergym.experiments.reproduce.dally.dally_runs import POINTS, tuned_rack_timer_s
from clustergym.experiments.reproduce.reproductions import FOLDERS, reproductions
from clustergym.experiments.reproduce.rows import Findings, Options
from clustergym.experiments.reproduce.show import print_findings
from clustergym.experiments.reproduce.sweep import source_version
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing.run_files import StoredRunWarning
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import open_workload
from clustergym.tests.support.paths import ROOT
from clustergym.tests.support.reproducing import play_of

FLAT = "flat:machines=2,gpus_per_machine=4"
SMALL = Case(
    "fifo", Setting.of("clustergym/Delay-v0", FLAT, "poisson:jobs=20,cluster_gpus=8,gpus=1/2/4,seed=1", "none")
)


def reproduce(capsys, *arguments: str) -> tuple[int, str, str]:
    status = run(["reproduce", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.fixture
def options(tmp_path):
    return Options(cache=tmp_path / "cache", quick=True, quiet=True)


# ---- rows


def test_a_table_row_is_met_within_its_tolerance():
    assert rows.table("q", 100.0, 104.9).ok is True
    assert rows.table("q", 100.0, 105.1).ok is False
    assert rows.table("q", 100.0, 100.9, tolerance=0.01).ok is True
    assert rows.table("q", 100.0, float("nan")).ok is False


def test_a_ratio_row_widens_a_range_by_a_quarter_of_its_width_and_a_value_by_a_quarter():
    """19 to 36: 4.25 on either side; 69: 17.25; -39: from -48.75 to -29.25."""
    assert rows.ratio("q", (19.0, 36.0), 15.0).within == (14.75, 40.25)
    assert rows.ratio("q", 69.0, 60.0).within == (51.75, 86.25)
    assert rows.ratio("q", -39.0, -30.0).ok is True
    assert rows.ratio("q", (19.0, 36.0), 14.7).ok is False


def test_an_order_row_wants_one_side_of_one():
    assert rows.order("q", "below 1", 0.999).ok is True
    assert rows.order("q", "below 1", 1.0).ok is False  # a tie is no order
    assert rows.order("q", "above 1", 1.0, below=False).ok is False
    assert rows.order("q", "above 1", 1.001, below=False).ok is True


def test_a_row_keeps_its_interval_and_says_nothing_where_nothing_is_claimed():
    document = rows.printed("q", Estimate(3.0, 2.0, 4.0), "s").document()
    assert document == {
        "quantity": "q", "paper": None, "ours": 3.0, "within": None, "ok": None, "unit": "s", "low": 2.0, "high": 4.0
    }  # fmt: skip
    assert "low" not in rows.printed("q", Estimate(3.0, 3.0, 3.0)).document()  # one run has no interval
    assert rows.table("q", 200.0, 150.0).difference == pytest.approx(-0.25)


# ---- intervals


def test_the_ratio_of_means_is_paired():
    """Ours is always half of theirs: however the orders are drawn again, the ratio is a half, without spread."""
    theirs = [10.0, 1000.0, 3.0, 70.0]
    found = paired_ratio([value / 2 for value in theirs], theirs)
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    gained = improvement([1.0, 3.0, 2.0], [2.0, 4.0, 4.0])  # 6 of 10: 40 % lower
    assert gained.mean == pytest.approx(40.0)
    assert gained.low < 40.0 < gained.high
    assert improvement([1.0], [4.0]) == Estimate(75.0, 75.0, 75.0)


# ---- sweeps


def test_a_sweep_plays_each_case_once_and_goes_on_after_a_kill(options, monkeypatch):
    cases = [replace(SMALL, policy=policy) for policy in ("fifo", "sjf", "fifo:head=strict")]
    played: list[str] = []
    play = case.play

    def interrupted(setting, policy, *rest, **more):
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(policy)
        return play(setting, policy, *rest, **more)

    monkeypatch.setattr(case, "play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep.sweep("test", cases, options)
    assert played == ["fifo", "sjf"]
    resumed: list[str] = []
    monkeypatch.setattr(case, "play", lambda s, p, *r, **m: resumed.append(p) or play(s, p, *r, **m))
    found = sweep.sweep("test", [*cases, cases[0]], options)
    assert resumed == ["fifo:head=strict"]
    assert list(found) == cases
    for one in cases:
        assert found[one].metrics == pytest.approx(play(one.setting, one.policy, 0).metrics, nan_ok=True)
        assert len(found[one]["jct_s"]) == 20
    sweep.sweep("test", cases, options)
    assert len(resumed) == 1


def test_a_changed_configuration_is_another_run(options):
    """Other seed, machine order, policy parameter or job set: another key. Where the same set lies does not matter."""
    others = [
        replace(SMALL, seed=1),
        SMALL.on("fifo", topology=f"{FLAT},machine_order=3"),
        replace(SMALL, policy="fifo:head=strict"),
        SMALL.on("fifo", network="penalty"),
        SMALL.on("fifo", semantics="artist-sim"),
        replace(SMALL, how="dally.dally_runs:used"),
        replace(SMALL, given=(("gpus", 4),)),
    ]
    assert len({one.key for one in [SMALL, *others]}) == 8
    here, there = (SMALL.on("fifo", digest="1", workload=f"/{place}/batch-1.parquet") for place in ("a", "b"))
    assert here.key == there.key != replace(here, digest="2").key


def test_a_file_that_holds_another_run_is_refused(options):
    sweep.sweep("test", [SMALL], options)
    path = next((options.cache / source_version()).glob("*.parquet"))
    other = replace(SMALL, seed=9)
    os.rename(path, path.with_name(f"{other.key}.parquet"))
    with pytest.raises(InputError, match="holds another run"):
        sweep.sweep("test", [other], options)


def test_a_broken_file_is_played_again(options):
    before = sweep.sweep("test", [SMALL], options)[SMALL]
    path = next((options.cache / source_version()).glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(StoredRunWarning, match="no run can be read"):
        assert sweep.sweep("test", [SMALL], options)[SMALL].metrics == pytest.approx(before.metrics, nan_ok=True)


def test_a_version_of_the_sources_has_a_folder_of_its_own(options, monkeypatch):
    sweep.sweep("test", [SMALL], options)
    monkeypatch.setattr(sweep, "source_version", lambda: "another")
    sweep.sweep("test", [SMALL], options)
    assert {path.parent.name for path in options.cache.rglob("*.parquet")} == {source_version(), "another"}


def test_whatever_plays_runs_is_among_the_sources_that_name_the_folder():
    """And every place that a paper's file or module names as `how` is that of a function there."""
    folder = Path(case.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.suffix in (".py", ".yaml")]
    places = {place for text in texts for place in re.findall(r'"(\w+\.\w+:\w+)"', text)}
    assert len(places) >= 6
    for place in places:
        assert callable(named(place))
        assert f"experiments/reproduce/{place.partition(':')[0].replace('.', '/')}.py" in sweep.SOURCES


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", list(reproductions()))
def test_every_function_policy_and_setting_that_a_papers_file_names_is_there(name, quick, options):
    play = play_of(name, replace(options, quick=quick))
    entry, lines = play.entry, list(play.entry.rows)
    for line in lines:
        lines += line.rows
        assert play.places(line) or not (line.at or entry.at) or quick or line.at == ["Lingjun"]
    named = [entry.compute, entry.draw, *(line.compute for line in lines)]
    assert all(callable(play.find(one)) for one in named if one is not None)
    if entry.compute is None and not entry.about.trace:
        pairs = list(dict.fromkeys(play.needed()))
        assert all(play.cases(*pair) for pair in pairs[:: 1 + len(pairs) // 20])


def test_what_the_page_says_is_missed_has_its_cause_below_the_table():
    """Rows of docs/results/reproductions.md whose outcome names a miss, or says of how many so many are met."""
    page = (ROOT / "docs" / "results" / "reproductions.md").read_text(encoding="utf-8")
    missed = set()
    for names, outcome in re.findall(r"^\| (`[a-z]+-[a-z0-9-]+`.*?) \|.*\| (.*?) \|$", page, re.MULTILINE):
        first, *rest = re.findall(r"`([a-z0-9-]+)`", names)
        if re.search(r"miss|[0-9] met|[0-9] of [0-9]+ .*met|but for|order met|met in part", outcome):
            missed |= {first, *(first.partition("-")[0] + name for name in rest)}
    assert len(missed) > 20 and missed <= reproductions().keys()
    for name in missed:
        one = reproductions()[name]
        assert re.search(r"cause|miss", " ".join(one.of.notes.get(note, note) for note in one.entry.notes)), name


def test_processes_give_the_same(options, tmp_path):
    cases = [replace(SMALL, seed=seed, policy="random") for seed in range(3)]
    one = sweep.sweep("test", cases, options)
    two = sweep.sweep("test", cases, replace(options, cache=tmp_path / "other", processes=2))
    for each in cases:
        assert one[each]["jct_s"].tolist() == two[each]["jct_s"].tolist()


def test_the_series_of_a_run_adds_up(options):
    """GPUs held over time: their integral is the allocation rate; jobs left end at none."""
    over_time = replace(SMALL, how="dally.dally_runs:used")
    found = sweep.sweep("test", [over_time], options)[over_time]
    assert len(found["time_s"]) == len(found["held_gpus"]) == len(found["jobs_left"]) == POINTS
    assert found["time_s"][-1] == pytest.approx(found.metrics["makespan"])
    assert found["held_gpus"].mean() / 8 == pytest.approx(found.metrics["allocation_rate"], rel=1e-9)
    assert found["jobs_left"][-1] == 0
    assert np.all(np.diff(found["jobs_left"]) <= 0)


def test_the_timer_is_that_of_the_gang_asked_for(options):
    """Fixed timers are not tuned: none is known, so it stays 0; a gang that no job asks for is an error."""
    timed = replace(SMALL, policy="dally-manual", how="dally.dally_runs:timed", given=(("gpus", 4),))
    found = sweep.sweep("test", [timed], options)[timed]
    assert found["timer_s"].tolist() == [0.0] * POINTS
    with pytest.raises(InputError, match="no job of the set asks 3 GPUs"):
        sweep.sweep("test", [replace(timed, given=(("gpus", 3),))], options)


def test_a_tuned_timer_is_read_from_the_list_of_the_rack():
    """Classes of 1, 4 and 16 GPUs: list 2 x 2 + 1 is the rack's of 16; in leases of an hour. Unknown: as before."""
    from types import SimpleNamespace

    s = SimpleNamespace(
        class_gpus=np.array([1, 4, 16, 0]),
        n_classes=3,
        waits_timer=np.arange(8.0),
        waits_known=np.array([1, 1, 1, 0, 1, 1, 0, 0]),
        tuner_unit_s=3600.0,
    )
    assert tuned_rack_timer_s(s, 16, 1.0) == 5 * 3600.0
    assert tuned_rack_timer_s(s, 4, 1.0) == 1.0


# ---- job sets


def test_generated_job_sets_are_told_and_prepared_once(options):
    (batch,) = dally_batch(options)
    assert "GENERATED" in batch.says
    before = os.stat(batch.path).st_mtime_ns
    assert dally_batch(options) == [batch]
    assert os.stat(batch.path).st_mtime_ns == before
    workload = open_workload(batch.path)
    assert len(workload) == 500
    assert workload.arrival_s.max() == 0
    assert dally_batch(replace(options, seed=1))[0].digest != batch.digest
    weeks = dally_weeks(replace(options, quick=False))
    assert [week.name for week in weeks] == ["week 1", "week 2", "week 3"]
    assert len({week.digest for week in weeks}) == 3


def test_real_job_sets_are_read_as_the_authors_read_them(options, shared_traces):
    """Job 396689: 633,257 s on 4 GPUs counts 158,314.25 s; week 2 has the jobs of week 1 at other times."""
    real = replace(options, traces=shared_traces, quick=False)
    workload = open_workload(dally_batch(real)[0].path)
    assert workload.duration_s[list(workload.job_id).index("396689")] == 633257 / 4
    one, two = (open_workload(week.path) for week in dally_weeks(real)[:2])
    for week in (one, two):  # two jobs are cut in the batch, nowhere else
        assert week.iterations[list(week.job_id).index("399455")] == 3_793_464_244
    assert workload.iterations[list(workload.job_id).index("399455")] == 81_741_978
    assert sorted(one.job_id) == sorted(two.job_id)
    assert np.mean(np.diff(two.arrival_s)) == pytest.approx(np.mean(np.diff(one.arrival_s)), rel=0.2)
    assert not np.array_equal(one.arrival_s, two.arrival_s)


# ---- the command


def test_the_list_names_them_all(capsys):
    status, said, _ = reproduce(capsys, "--list", "--json")
    listed = {row["name"]: row for row in json.loads(said)}
    assert status == 0
    assert set(listed) == set(reproductions())
    assert len(listed) == 80 and {name.partition("-")[0] for name in listed} == set(FOLDERS)
    assert listed["dally-table2"]["kind"] == "table"
    status, said, _ = reproduce(capsys)
    assert status == 0
    assert "dally-autotuner" in said


@pytest.mark.parametrize("name", ["sjf-bsbf", "bsbf"])
def test_the_name_of_a_paper_lists_what_is_of_it(capsys, name):
    status, said, _ = reproduce(capsys, name, "--json")
    listed = [row["name"] for row in json.loads(said)]
    assert status == 0
    assert listed == [one for one in reproductions() if one.startswith("bsbf-")] and "bsbf-table2" in listed


def test_generated_jobs_are_said_above_the_table(capsys, options):
    play = play_of("dally-table2", options)
    play.cases("dally", "batch, 8 racks")
    findings = Findings([rows.printed("average JCT", 1.0)], ["a note"], jobs=play.jobs)
    print_findings(out(), reproductions()["dally-table2"], findings, everything=True)
    said = capsys.readouterr().out
    assert said.index("GENERATED") < said.index("average JCT") < said.index("a note")


def test_a_miss_is_a_result(capsys, tmp_path):
    """Table I has cells that no setting gives: they are printed as misses, and the status is 0. It has no seeds."""
    status, said, _ = reproduce(capsys, "dally-table1", "--quiet", "--logdir", str(tmp_path))
    assert status == 0
    assert "MISS" in said and "intervals" not in said
    status, said, err = reproduce(capsys, "dally-table1", "--json", "--quiet")
    document = json.loads(said)
    assert (status, err) == (0, "")
    assert len(document) == 18
    assert {row["ok"] for row in document} == {True, False}
    for row in document:
        assert set(row) >= {"quantity", "paper", "ours", "within", "ok"}
        assert row["ok"] == (row["within"][0] <= row["ours"] <= row["within"][1])


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["dally-tabel1"], 2, "did you mean 'dally-table1'"),
        (["dally-table1", "--orders", "0"], 2, "not a whole number from 1"),
        (["dally-table1", "--traces", "nowhere"], 2, "there is no such folder"),
        (["dally-table1", "--traces", ".", "--generated"], 2, "expected one of the two"),
        (["dally-table1", "--traces", "/"], 2, "it holds no folder dally"),
        (["dally-peer", "--generated"], 1, "git clone https://github.com/"),
    ],
)
def test_mistakes_are_one_sentence(capsys, arguments, status, says):
    found, out, err = reproduce(capsys, *arguments)
    assert (found, out) == (status, "")
    assert says in err
    assert len(err.strip().splitlines()) == 1


def test_a_broken_reference_table_is_one_sentence(capsys, tmp_path):
    (tmp_path / "dally").mkdir()
    (tmp_path / "dally" / "astra_golden.csv").write_text("model,units_gpus_in_slot\nVGG,4\n")
    status, _, err = reproduce(capsys, "dally-network", "--traces", str(tmp_path))
    assert status == 1
    assert "row 1: expected numbers under model" in err


def test_every_file_of_a_sweep_repeats_its_configuration(options):
    sweep.sweep("test", [SMALL], options)
    path = next((options.cache / source_version()).glob("*.parquet"))
    held = pq.read_table(path)
    assert isinstance(held, pa.Table)
    assert held.column("identity").to_pylist() == [SMALL.text]
    assert held.column_names == ["identity", "metrics", "jct_s"]


def test_damaged_grants_of_a_peer_are_refused(tmp_path):
    """gzip has a checksum; cut files, flipped bits and what is no gzip at all are one sentence."""
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,end\na,5\n")
    packed = tmp_path / "jobs.csv.grants.gz"
    rows = "time_s,job_id,gpus_rack.machine.slot.gpu\n" + "1.5,a,0.0.0.1 0.0.0.0\n" * 50
    whole = gzip.compress(rows.encode())
    packed.write_bytes(whole)
    assert len(reference(path)[0]) == 50
    for damaged in (whole[:-9], whole[:30] + bytes([whole[30] ^ 1]) + whole[31:], b"no gzip", whole[:-5] + b"\0" * 5):
        packed.write_bytes(damaged)
        with pytest.raises(InputError, match=r"jobs.csv.grants.gz: the file is damaged \("):
            reference(path)
