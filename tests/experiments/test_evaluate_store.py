"""Evaluations on disk: killed ones go on, changed ones are not mixed, damaged ones are played anew; comparisons."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clustergym import policies
from clustergym.experiments.cli import run
from clustergym.experiments.comparing.intervals import Estimate, against, paired_difference, paired_ratio
from clustergym.experiments.console.terminal import BadArgument
from clustergym.experiments.playing import evaluation
from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.playing.runs import Run
from clustergym.experiments.report import pictures
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing import command_log, identity, store
from clustergym.experiments.storing.identity import fingerprint
from clustergym.experiments.storing.run_files import ORPHAN_S, StoredRunWarning
from clustergym.policies import registry
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.metric_registry import NAMES
from clustergym.simulator.workloads import open_workload

SETTING = Setting.of(
    "clustergym/Delay-v0", "dally:racks=2,machines=4", "poisson:jobs=40,backlog=20", "penalty:table=chronus"
)
DATA = ("artist.yaml", "artist_layers.csv")
WORDS = ["fifo", "las:head=strict", "random"]
TRACE = "job_id,arrival_s,gpus,duration_s\na,0,8,100\nb,0,8,50\nc,10,1,30\n"


@pytest.fixture
def played(monkeypatch) -> list[tuple[str, int]]:
    """Which runs were played, not read, in order."""
    seen: list[tuple[str, int]] = []
    original = evaluation.play

    def spy(setting, word, seed, *rest):
        seen.append((word, seed))
        return original(setting, word, seed, *rest)

    monkeypatch.setattr(evaluation, "play", spy)
    return seen


def evaluated(folder: Path, words=WORDS, seeds=(0, 1), setting=SETTING, **more) -> list[Run]:
    return evaluation.evaluate(setting, words, seeds, store=store.open_store(folder, setting, words), **more)


def numbers(runs) -> list[tuple]:
    return [(run.policy, run.seed, run.jobs, run.metrics, run.jct_s.tolist()) for run in runs]


def as_written_before_checksums(folder: Path) -> None:
    """Make `evaluation.json` that of schema 1."""
    path = folder / store.SUMMARY
    about = {key: value for key, value in json.loads(path.read_text()).items() if key != "sha256"}
    path.write_text(json.dumps(about | {"schema": 1}))


def command(capsys, *arguments) -> tuple[int, str, str]:
    status = run(["evaluate", "Delay", *map(str, arguments)])
    said = capsys.readouterr()
    return status, said.out, said.err


# ---- kept and read


def test_what_is_kept_is_what_is_read(tmp_path, played):
    """Metrics, job completion times, timelines and decisions to the last bit; the second evaluation plays nothing."""
    plain = evaluation.evaluate(SETTING, WORDS, [0, 1], record="first")
    played.clear()
    kept = evaluated(tmp_path, record="first")
    assert len(played) == 6
    again = evaluated(tmp_path, record="first")
    assert len(played) == 6
    found = store.read(tmp_path)
    assert numbers(plain) == numbers(kept) == numbers(again) == numbers(found.runs)
    assert (found.setting, found.policies, found.seeds) == (SETTING, WORDS, [0, 1])
    for one, other in zip(plain, found.runs, strict=True):
        assert one.decisions == other.decisions
        if one.seed == 1:
            assert one.timeline is None and other.timeline is None
            continue
        assert one.timeline.gpus == other.timeline.gpus
        for name in store.TIMELINE:
            np.testing.assert_array_equal(getattr(one.timeline, name), getattr(other.timeline, name))
    assert {run.policy for run in found.runs if run.timeline is not None} == set(WORDS)
    assert all(run.timeline is None for run in store.read(tmp_path, timelines=False).runs)


def test_a_run_of_an_older_version_is_read(tmp_path):
    """It does not say what its units are, nor how busy CPU and network were: it was of GPUs. It has no checksum."""
    import pyarrow.parquet as pq

    evaluated(tmp_path, ["fifo"], [0], record="first")
    (path,) = (tmp_path / store.RUNS).glob("*.parquet")
    later = ("timeline_unit", "timeline_use_s", "timeline_cpu_use", "timeline_network_use", "decision_shift_s")
    pq.write_table(pq.read_table(path).drop_columns(list(later)), path)
    with pytest.warns(StoredRunWarning, match="it has no checksum"):
        assert store.read(tmp_path).runs == ()
    as_written_before_checksums(tmp_path)
    with pytest.warns(StoredRunWarning, match="an older clustergym wrote it, without checksums"):
        run = store.read(tmp_path).runs[0]
    assert (run.timeline.unit, len(run.timeline.use_s)) == ("GPU", 0)
    assert [use.title for use in run.timeline.in_use()] == ["GPUs in use"]


def test_policies_and_seeds_add_up(tmp_path, played):
    evaluated(tmp_path, ["fifo"], [0, 1])
    evaluated(tmp_path, ["sjf"], [1, 2])
    evaluated(tmp_path, ["fifo", "sjf"], [0, 1, 2])
    assert sorted(played) == [(word, seed) for word in ("fifo", "sjf") for seed in (0, 1, 2)]
    found = store.read(tmp_path)
    assert [(run.policy, run.seed) for run in found.runs] == sorted(played)


def test_a_run_without_a_timeline_is_played_again_where_one_is_wanted(tmp_path, played):
    evaluated(tmp_path, ["fifo"], [0])
    first = evaluated(tmp_path, ["fifo"], [0], record="all")
    assert len(played) == 2
    assert first[0].decisions and evaluated(tmp_path, ["fifo"], [0], record="all")[0].decisions == first[0].decisions
    assert len(played) == 2


def test_one_run_stands_for_all_seeds_where_none_matters(tmp_path, played):
    fixed = SETTING.copy_with(workload=SETTING.workload + ",seed=7")
    for _ in range(2):
        runs = evaluated(tmp_path, ["fifo"], [3, 4, 5], fixed)
        assert played == [("fifo", 3)]
        assert [run.seed for run in runs] == [run.seed for run in store.read(tmp_path).runs] == [3, 4, 5]


def test_progress_counts_what_is_on_disk(tmp_path):
    evaluated(tmp_path, WORDS, [0, 1])
    seen: list[float] = []
    evaluated(tmp_path, WORDS, [0, 1, 2], progress=seen.append)
    assert seen[0] == 6
    assert seen == sorted(seen)
    assert seen[-1] == 9


def test_processes_keep_the_same_runs(tmp_path):
    one, two = evaluated(tmp_path / "one", record="first"), evaluated(tmp_path / "two", record="first", processes=2)
    assert numbers(one) == numbers(two) == numbers(store.read(tmp_path / "two").runs)
    names = [sorted(path.name for path in (tmp_path / part / "runs").iterdir()) for part in ("one", "two")]
    assert names[0] == names[1]


def test_the_table_is_written_now_and_then(tmp_path, monkeypatch):
    opened = store.open_store(tmp_path, SETTING, ["fifo"])
    opened.keep(play(SETTING, "fifo", 0))
    write_if_due = store.tables_now_and_then(opened)
    write_if_due()
    assert not (tmp_path / store.TABLE).exists()
    soon_s = time.monotonic() + store.BETWEEN_TABLES_S + 1.0
    monkeypatch.setattr(store.time, "monotonic", lambda: soon_s)
    write_if_due()
    assert (tmp_path / store.TABLE).exists()


# ---- kill -9


def start(folder: Path, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-P", "-m", "clustergym.experiments.cli", "evaluate", "Delay", *GIVEN, *more]
    return subprocess.Popen(
        [*command, "--logdir", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


GIVEN = ("--policies", "fifo dally random", "--seeds", "0-99", "--workload", "poisson:jobs=100,backlog=40", "--json")


def stored(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (folder / "runs").glob("*.parquet")}


def killed(process: subprocess.Popen, folder: Path, least: int) -> None:
    """Kill it and its processes at some moment after it has `least` runs."""
    give_up_s = time.monotonic() + 120.0
    while len(stored(folder)) < least and process.poll() is None and time.monotonic() < give_up_s:
        time.sleep(0.002)
    time.sleep(random.uniform(0.0, 0.05))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")
@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_killed_evaluation_goes_on_where_it_stopped(tmp_path, jobs):
    """Killed twice: no row is lost, none doubled, none played twice, and all is as if it had never been killed."""
    import pandas as pd

    folder = tmp_path / "logs"
    counts, kept = [], {}
    for least in (1 + random.randrange(60), 120 + random.randrange(60)):
        killed(process := start(folder, "--jobs", jobs), folder, least)
        assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
        before, kept = kept, stored(folder)
        assert {path: kept[path] for path in before} == before
        counts.append(len(kept))
        halfway = store.read(folder, timelines=False)
        assert len(halfway.runs) == len(kept) == len({(run.policy, run.seed) for run in halfway.runs})
        assert halfway.commands[-1]["wall_s"] is None
    assert 0 < counts[0] < counts[1] < 300
    out, err = start(folder, "--jobs", jobs).communicate(timeout=120)
    after = stored(folder)
    assert {path: after[path] for path in kept} == kept
    assert len(after) == 300
    found = store.read(folder)
    whole = evaluation.evaluate(found.setting, GIVEN[1].split(), range(100), record="first")
    assert numbers(found.runs) == numbers(whole), err.decode()
    assert [(row["policy"], row["seed"]) for row in json.loads(out)] == [(run.policy, run.seed) for run in whole]
    table = pd.read_parquet(folder / "results.parquet")
    assert table.jct_mean.tolist() == [run.metrics["jct_mean"] for run in whole]
    assert [entry["wall_s"] is None for entry in command_log.read(folder)] == [True, True, False]


def test_drafts_of_the_killed_are_swept_away_those_of_the_living_are_not(tmp_path):
    evaluated(tmp_path, ["fifo"], [0])
    old, new = (tmp_path / "runs" / f".{name}.parquet.1.part" for name in ("old", "new"))
    for draft in (old, new):
        draft.write_text("half")
    past_s = time.time() - ORPHAN_S - 1.0
    os.utime(old, (past_s, past_s))
    evaluated(tmp_path, ["fifo"], [0])
    assert new.exists() and not old.exists()


# ---- never mixed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"topology": "dally:racks=2,machines=5"},
            "topology 'dally:racks=2,machines=4', not 'dally:racks=2,machines=5'",
        ),
        ({"workload": "poisson:jobs=41"}, "workload"),
        ({"network": "none"}, "network"),
        ({"horizon_s": 1000.0}, "horizon_s None, not 1000.0"),
        ({"mtbf_s": 1e6}, "mtbf_s"),
        ({"semantics": "artist-sim"}, "semantics"),
        ({"oversize": "drop"}, "oversize"),
        ({"format": "own"}, "format"),
    ],
)
def test_another_setting_is_refused(tmp_path, change, says):
    evaluated(tmp_path, ["fifo"], [0])
    before = stored(tmp_path)
    with pytest.raises(BadArgument, match=says):
        store.open_store(tmp_path, SETTING.copy_with(**change), ["fifo"])
    assert stored(tmp_path) == before


def test_an_edited_trace_is_another_trace(tmp_path, played):
    trace = tmp_path / "jobs.csv"
    trace.write_text(TRACE)
    setting = Setting.of("clustergym/Delay-v0", "flat:machines=1", str(trace), "none")
    before = evaluated(tmp_path / "logs", ["fifo", "sjf"], [0], setting)
    trace.write_text(TRACE.replace("50", "70"))
    with pytest.warns(StoredRunWarning, match="the workload has changed"):
        after = evaluated(tmp_path / "logs", ["fifo"], [0], setting)
    assert played == [("fifo", 0), ("sjf", 0), ("fifo", 0)]
    assert after[0].metrics["makespan"] == before[0].metrics["makespan"] + 20
    assert numbers(store.read(tmp_path / "logs").runs) == numbers(after)  # sjf was played on other jobs
    assert [path.name for path in stored(tmp_path / "logs")] == [store.file_name("fifo", 0)]


def test_of_a_policy_that_changed_the_old_runs_leave_and_no_others(tmp_path, monkeypatch):
    """Another seed of it too; what is damaged, or no run, stays."""
    monkeypatch.chdir(tmp_path)
    own, logs = "py:mine.py:make", tmp_path / "logs"
    text = "from clustergym import policies\n\n\ndef make():\n    return policies.make('{}')\n"
    (tmp_path / "mine.py").write_text(text.format("sjf"))
    evaluated(logs, [own, "fifo"], [0, 1])
    odd = [logs / "runs" / name for name in (f"{'0' * 20}.parquet", "notes.parquet")]
    for path in odd:
        path.write_text("no run")
    (tmp_path / "mine.py").write_text(text.format("las"))
    with pytest.warns(StoredRunWarning, match="has changed|no run can be read"):
        store.open_store(logs, SETTING, [own])
    assert set(stored(logs)) == {*odd, *(logs / "runs" / store.file_name("fifo", seed) for seed in (0, 1))}


def test_the_file_beside_a_named_one_counts_too(tmp_path):
    """The hash is of what was read: here of the layer table that a calibration names."""
    for name in DATA:
        shutil.copy(identity.PACKAGE / "simulator" / "network" / "data" / name, tmp_path)
    setting = SETTING.copy_with(network=f"allreduce:calibration={tmp_path / DATA[0]}")
    before = identity.content(setting)
    assert identity.content(setting) == before
    table = tmp_path / DATA[1]
    comments, last = table.read_text().rstrip().rsplit("\n", 1)
    table.write_text(f"{comments}\n{last}7\n")  # its last number was 0
    after = identity.content(setting)
    assert {name for name in before if before[name] != after[name]} == {"network"}


def test_the_hash_of_a_value_is_that_of_its_content():
    assert fingerprint(open_workload("poisson:jobs=5,seed=1")) == fingerprint(open_workload("poisson:jobs=5,seed=1"))
    assert fingerprint(open_workload("poisson:jobs=5,seed=1")) != fingerprint(open_workload("poisson:jobs=5,seed=2"))
    assert len({fingerprint(value) for value in ({"a": 1.0}, {"a": 1.5}, {"b": 1.5}, {"a": None})}) == 4
    assert fingerprint(("a", "bc")) != fingerprint(("ab", "c"))
    assert len({fingerprint(np.zeros(shape, kind)) for shape in (3, (3, 1)) for kind in ("f4", "f8")}) == 4
    with pytest.raises(TypeError, match="cannot pickle"):
        fingerprint(threading.Lock())


class Settled:
    def __init__(self, words):
        self.words = words

    def told(self):
        return self.words


def test_the_hash_of_an_object_is_that_of_what_it_holds():
    assert fingerprint(Settled({"a", "b"})) == fingerprint(Settled({"b", "a"})) != fingerprint(Settled({"a"}))
    assert fingerprint(np.random.default_rng(1)) == fingerprint(np.random.default_rng(1))
    assert fingerprint(np.random.default_rng(1)) != fingerprint(np.random.default_rng(2))


def test_the_hash_of_a_function_is_that_of_its_code_and_what_it_encloses():
    def times(factor, more=0):
        return lambda value, more=more: factor * value + more

    first, second = (lambda value: value + 1), (lambda value: value + 2)
    assert fingerprint(times(2)) == fingerprint(times(2))
    different = [times(2), times(3), times(2, 1), first, second, Settled(1).told, Settled(2).told]
    assert len({fingerprint(one) for one in different}) == len(different)

    def again(count):
        return again(count - 1) if count else 0

    holds_itself = Settled(again)
    holds_itself.key = holds_itself.told
    assert fingerprint(holds_itself) == fingerprint(holds_itself) != fingerprint(Settled(again))


def test_other_sources_and_versions_are_not_mixed(tmp_path, played, monkeypatch):
    evaluated(tmp_path, ["fifo"], [0])
    monkeypatch.setattr(identity, "sources", lambda *places: "edited")
    with pytest.warns(StoredRunWarning, match="the sources of clustergym have changed"):
        evaluated(tmp_path, ["fifo"], [0])
    monkeypatch.setattr(identity, "versions", lambda *libraries: {"clustergym": "9", "numba": "0.99"})
    with pytest.warns(StoredRunWarning) as said:
        evaluated(tmp_path, ["sjf"], [0])
    assert any(re.search(r"numba was .* and is 0\.99", str(one.message)) for one in said)
    assert played == [("fifo", 0), ("fifo", 0), ("sjf", 0)]
    assert store.read(tmp_path).policies == ["sjf"]


def test_a_process_with_other_sources_keeps_nothing(tmp_path):
    opened = replace(store.open_store(tmp_path, SETTING, ["fifo"]), sources="older")
    with pytest.raises(InputError, match="the sources changed while it ran; start it again"):
        evaluation.evaluate(SETTING, ["fifo"], [0, 1], processes=2, store=opened)
    assert not stored(tmp_path)


def test_what_is_edited_while_it_is_evaluated_is_not_kept(tmp_path):
    """A trace is written between two runs, an agent's weights between two others: the second is kept as neither."""
    trace = tmp_path / "jobs.csv"
    trace.write_text(TRACE)
    setting = Setting.of("clustergym/Delay-v0", "flat:machines=1", str(trace), "none")
    opened = store.open_store(tmp_path / "logs", setting, ["fifo", "sjf"])
    evaluation.evaluate(setting, ["fifo"], [0], store=opened)
    trace.write_text(TRACE.replace("50", "700"))
    with pytest.raises(InputError, match="workload changed while it was evaluated; start it again"):
        evaluation.evaluate(setting, ["sjf"], [0], store=opened)
    assert store.read(tmp_path / "logs").policies == ["fifo"]
    opened = replace(store.open_store(tmp_path / "more", setting, ["fifo"]), files={"fifo": "other weights"})
    with pytest.raises(InputError, match="fifo changed while it was evaluated"):
        evaluation.evaluate(setting, ["fifo"], [0], store=opened)
    assert not stored(tmp_path / "more")


def test_an_agent_that_was_trained_on_is_another(tmp_path, played, monkeypatch):
    """Its word is the same, its weights are not: seeds of the old one are not kept beside those of the new."""
    weights = tmp_path / "weights.safetensors"
    weights.write_bytes(b"one")

    def agent():
        policy = policies.make("fifo")
        policy.files = (weights,)
        return policy

    monkeypatch.setitem(registry.POLICIES, "agent", registry.Entry(agent, "a trained one"))
    evaluated(tmp_path / "logs", ["agent", "fifo"], [0, 1])
    weights.write_bytes(b"two")
    played.clear()
    with pytest.warns(StoredRunWarning, match="agent has changed"):
        evaluated(tmp_path / "logs", ["agent", "fifo"], [0])
    assert played == [("agent", 0)]
    found = [(run.policy, run.seed) for run in store.read(tmp_path / "logs").runs]
    assert found == [("agent", 0), ("fifo", 0), ("fifo", 1)]


def test_fresh_forgets_runs_and_nothing_else(tmp_path, played):
    evaluated(tmp_path, ["fifo"], [0])
    mine = tmp_path / "runs" / "mine.parquet"
    mine.write_text("not ours")
    store.open_store(tmp_path, SETTING.copy_with(network="none"), ["fifo"], fresh=True)
    assert list(stored(tmp_path)) == [mine]


# ---- damage


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"garbage" * 100, None])
def test_a_damaged_run_is_played_again(tmp_path, played, damage):
    before = numbers(evaluated(tmp_path, ["fifo"], [0, 1]))
    path = sorted(stored(tmp_path))[0]
    path.write_bytes(path.read_bytes()[:-30] if damage is None else damage)
    with pytest.warns(StoredRunWarning, match="no run can be read from it"):
        assert numbers(evaluated(tmp_path, ["fifo"], [0, 1])) == before
    assert len(played) == 3
    assert numbers(store.read(tmp_path).runs) == before


@pytest.mark.parametrize("name", ["copy of {}", "0123456789abcdef0123.parquet"])
def test_a_copy_of_a_run_is_not_counted_again(tmp_path, name):
    """As a backup, or a folder that two machines keep in step, may leave it there: two runs stay two."""
    runs = numbers(evaluated(tmp_path, ["fifo"]))
    for path in list((tmp_path / "runs").iterdir())[:1]:
        shutil.copy(path, path.with_name(name.format(path.name)))
    with pytest.warns(StoredRunWarning, match="holds another run than its name says"):
        assert numbers(store.read(tmp_path).runs) == runs


def test_a_run_under_another_name_is_no_run(tmp_path, played):
    evaluated(tmp_path, ["fifo"], [0, 1])
    first, second = sorted(stored(tmp_path))
    os.replace(first, second)
    with pytest.warns(StoredRunWarning, match="another run"):
        evaluated(tmp_path, ["fifo"], [0, 1])
    found = [(run.policy, run.seed) for run in store.read(tmp_path).runs]
    assert found == [("fifo", 0), ("fifo", 1)]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"schema": 1, "setting": {"colour": "red"}}'])
def test_a_damaged_summary_is_written_anew(tmp_path, played, text):
    before = numbers(evaluated(tmp_path, ["fifo"], [0]))
    (tmp_path / store.SUMMARY).write_text(text)
    with pytest.warns(StoredRunWarning, match="cannot be read"):
        evaluated(tmp_path, ["fifo"], [0])
    assert len(played) == 1  # the run itself says what it is
    assert numbers(store.read(tmp_path).runs) == before


ENTRY = {"command": "clustergym", "date": "", "wall_s": 1.0, "processes": 1, "versions": {}}
DAMAGES = [{"command": 1}, {"date": None}, {"wall_s": "1"}, {"wall_s": 10**400}, {"processes": "two"}]
DAMAGES += [{"versions": None}, {"versions": {"numpy": 2}}, {"versions": ["numpy"]}]


@pytest.mark.parametrize("change", DAMAGES, ids=str)
def test_compare_leaves_out_what_a_damaged_command_log_says(tmp_path, capsys, change):
    evaluated(tmp_path, ["fifo"], [0])
    (tmp_path / command_log.NAME).write_text(json.dumps([ENTRY | change]))
    assert run(["compare", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "it is no log of commands, or damaged" in said.err and said.err.count("\n") == 1 and "fifo" in said.out


def test_compare_leaves_out_a_command_log_that_is_a_folder(tmp_path, capsys):
    evaluated(tmp_path, ["fifo"], [0])
    (tmp_path / command_log.NAME).mkdir()
    assert run(["compare", str(tmp_path)]) == 0
    assert "it is no log of commands, or damaged" in capsys.readouterr().err


def test_compare_shows_a_command_whose_words_were_no_text(tmp_path):
    evaluated(tmp_path, ["fifo"], [0])
    (tmp_path / command_log.NAME).write_text(json.dumps([ENTRY | {"command": "clustergym \udcff"}]))
    assert run(["compare", str(tmp_path), "--quiet"]) == 0
    assert "clustergym \\udcff" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("text", ["{", '{"mine": 1}', '[{"mine": 1}]', "[" * 10**5])
def test_what_is_no_command_log_is_left_as_it_is(tmp_path, text):
    (tmp_path / command_log.NAME).write_text(text)
    with pytest.warns(StoredRunWarning, match="left as it is"), command_log.recorded(tmp_path):
        pass
    assert (tmp_path / command_log.NAME).read_text() == text


def test_every_flipped_bit_of_a_run_is_noticed(tmp_path, played):
    """One flip in each of 40 copies of a run: played anew or, where the bit says nothing, the same; never another."""
    before = numbers(evaluated(tmp_path, ["fifo"], [0], record="first"))
    (path,) = stored(tmp_path)
    whole, draw = path.read_bytes(), random.Random(1)
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        with pytest.warns(StoredRunWarning, match="no run can be read from it"):
            assert store.read(tmp_path).runs == ()
    with pytest.warns(StoredRunWarning, match="no run can be read from it"):
        assert numbers(evaluated(tmp_path, ["fifo"], [0], record="first")) == before
    assert len(played) == 2


def test_a_damaged_summary_names_no_other_setting(tmp_path):
    """A flipped bit can make `dally:racks=2` of `dally:racks=3`: the checksum in the file tells."""
    evaluated(tmp_path, ["fifo"], [0])
    path = tmp_path / store.SUMMARY
    path.write_text(path.read_text().replace("racks=2", "racks=3"))
    with pytest.warns(StoredRunWarning, match="its checksum is wrong"), pytest.raises(InputError, match="holds no"):
        store.read(tmp_path)


def test_runs_without_a_checksum_are_played_anew(tmp_path, played):
    before = numbers(evaluated(tmp_path, ["fifo"], [0]))
    store.write_table(store.open_store(tmp_path, SETTING, ["fifo"]))
    (path,) = stored(tmp_path)
    import pyarrow.parquet as pq

    for name in (path, tmp_path / store.TABLE):
        pq.write_table(pq.read_table(name).replace_schema_metadata({}), name)
    as_written_before_checksums(tmp_path)
    with pytest.warns(StoredRunWarning) as said:
        assert numbers(evaluated(tmp_path, ["fifo"], [0])) == before
    assert any("an older clustergym wrote it, without checksums" in str(one.message) for one in said)
    assert len(played) == 2


# ---- what is another's


@pytest.mark.parametrize("name", [store.TABLE, store.SUMMARY])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_file_of_others_is_not_replaced(tmp_path, name, fresh):
    (tmp_path / name).write_text('{"mine": 1}')
    with pytest.raises(BadArgument, match=rf"its {name} is damaged or not clustergym's, and is not replaced"):
        store.open_store(tmp_path, SETTING, ["fifo"], fresh=fresh)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == '{"mine": 1}'


def test_a_table_put_there_meanwhile_is_not_replaced(tmp_path):
    evaluated(tmp_path, ["fifo"], [0])
    here = store.open_store(tmp_path, SETTING, ["fifo"])
    store.write_table(here)
    store.write_table(here)
    (tmp_path / store.TABLE).write_text("mine")
    with pytest.raises(BadArgument, match="is not replaced"):
        store.write_table(here)
    assert (tmp_path / store.TABLE).read_text() == "mine"


@pytest.mark.parametrize("left", [lambda whole: b"", lambda whole: whole[:-9], lambda whole: bytes(len(whole))])
def test_what_is_left_of_a_table_is_made_anew_beside_its_runs(tmp_path, left):
    """Nothing, the beginning, zeros. Without a run that is whole it may be another's."""
    evaluated(tmp_path, ["fifo"], [0])
    table, (path,) = tmp_path / store.TABLE, (tmp_path / store.RUNS).glob("*.parquet")
    store.write_table(store.open_store(tmp_path, SETTING, ["fifo"]))
    whole = table.read_bytes()
    table.write_bytes(left(whole))
    with pytest.warns(StoredRunWarning, match="it is empty or torn, and is made anew from the runs"):
        store.write_table(store.open_store(tmp_path, SETTING, ["fifo"]))
    assert table.read_bytes() == whole
    table.write_bytes(left(whole))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BadArgument, match="is not replaced"):
        store.open_store(tmp_path, SETTING, ["fifo"])


def test_a_picture_of_others_is_not_replaced(tmp_path):
    evaluated(tmp_path, ["fifo"], [0, 1], record="first")
    found = store.read(tmp_path)
    drawn = pictures.of_evaluation(found)
    assert pictures.of_evaluation(found) == drawn
    drawn[0].write_text("<svg>mine</svg>")
    with pytest.warns(StoredRunWarning, match="left as it is"):
        assert pictures.of_evaluation(found) == drawn[1:]
    assert drawn[0].read_text() == "<svg>mine</svg>"


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(InputError, match="holds no evaluation"):
        store.read(tmp_path)
    (tmp_path / store.SUMMARY).write_text(json.dumps({"schema": 99}))
    with pytest.raises(InputError, match="a newer clustergym wrote it"):
        store.read(tmp_path)


# ---- the command

SMALL = ("--topology", SETTING.topology, "--workload", SETTING.workload, "--network", SETTING.network, "--quiet")


def test_a_folder_that_cannot_be_written_is_one_sentence(capsys, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "logs"):
        status, out, err = command(capsys, *SMALL, "--policies", "fifo", "--seed", "0", "--logdir", folder)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert str(folder) in err
    monkeypatch.setattr(
        "clustergym.experiments.console.terminal.os.access", lambda path, mode: False
    )  # root may write all
    status, out, err = command(capsys, *SMALL, "--policies", "fifo", "--seed", "0", "--logdir", tmp_path / "logs")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "permission denied" in err


def test_the_command_says_what_it_did_not_use_and_forgets_on_request(capsys, tmp_path):
    pytest.importorskip("tensorboard")
    given = ("--policies", "fifo", "--seeds", "0-1", "--logdir", tmp_path / "logs")
    assert command(capsys, *SMALL, *given)[0] == 0
    status, out, err = command(capsys, *SMALL, *given, "--set", "horizon_s=5000")
    assert (status, out) == (2, "")
    assert "--fresh to forget it" in err
    assert command(capsys, *SMALL, *given, "--set", "horizon_s=5000", "--fresh")[0] == 0
    found = store.read(tmp_path / "logs")
    assert found.setting.config.horizon_s == 5000.0
    assert [entry["command"].split()[:3] for entry in found.commands] == [["clustergym", "evaluate", "Delay"]] * 2
    assert found.commands[1]["command"].endswith("--set horizon_s=5000 --fresh")
    assert {"clustergym", "python", "numpy", "numba"} <= set(found.commands[0]["versions"])
    assert all(entry["wall_s"] > 0 for entry in found.commands)


def test_the_table_holds_all_that_the_folder_holds(capsys, tmp_path):
    pytest.importorskip("tensorboard")
    import pandas as pd

    for words in ("fifo", "sjf"):
        assert command(capsys, *SMALL, "--policies", words, "--seeds", "0-1", "--logdir", tmp_path)[0] == 0
    table = pd.read_parquet(tmp_path / "results.parquet")
    assert table[["policy", "seed"]].values.tolist() == [["fifo", 0], ["fifo", 1], ["sjf", 0], ["sjf", 1]]
    assert set(SETTING.words()) < set(table.columns)
    assert set(table.semantics) == {"events"}
    assert table.jobs.tolist() == [40] * 4  # with its backlog


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--policies", "fifo sjf", "--baseline", "las"), "--baseline 'las' is none of the policies: fifo sjf"),
        (("--fresh",), "--fresh: it forgets the runs in --logdir, which is not given"),
    ],
)
def test_options_that_mean_nothing_are_refused(capsys, given, says):
    status, out, err = command(capsys, *SMALL, *given)
    assert (status, out) == (2, "")
    assert says in err


@pytest.mark.parametrize("width", ["80", "120"])
def test_the_comparison_is_printed_beside_the_table(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    given = ("--policies", "fifo sjf dally-consolidated", "--seeds", "0-3")
    status, out, _ = command(capsys, *SMALL, *given, "--baseline", "fifo")
    assert status == 0
    part = re.split(r"─+ *\n", out.partition("against fifo, on the same workloads:")[2])[1]
    every = against(evaluation.evaluate(SETTING, given[1].split(), range(4)), "fifo")
    ranked = sorted(every, key=lambda word: every[word].ratio.mean)
    assert [line.split()[0] for line in part.splitlines()[:3]] == ranked
    found = every["sjf"]
    line = next(line for line in part.splitlines() if line.startswith(" sjf"))
    assert f"{found.ratio.mean:.3f}" in line and f"{found.ratio.low:.3f}-{found.ratio.high:.3f}" in line
    assert f"{found.lower} of 4" in line
    assert max(map(len, out.splitlines())) <= int(width)
    assert "against" not in command(capsys, *SMALL, *given)[1]
    rows = json.loads(command(capsys, *SMALL, *given, "--baseline", "fifo", "--json")[1])
    assert len(rows) == 12 and set(rows[0]) >= {"policy", "seed", "metrics"}


# ---- comparisons


def test_pairs_have_less_spread_than_the_workloads():
    """Workloads differ by a factor of ten, the policy is about 5 % shorter on each: that is what the interval sees."""
    draw = np.random.default_rng(2)
    theirs = draw.uniform(1000.0, 10_000.0, 50)
    ours = theirs * draw.normal(0.95, 0.02, 50)
    ratio, difference = paired_ratio(ours, theirs), paired_difference(ours, theirs)
    assert 0.94 < ratio.low < ratio.mean < ratio.high < 0.96
    assert difference.mean == pytest.approx(float(np.mean(ours - theirs)))
    assert difference.low < difference.mean < difference.high < 0.0


def test_the_ratio_is_that_of_the_means():
    """3 of 4 and 1 of 2: 4 of 6, not (3/4 + 1/2) / 2."""
    assert paired_ratio([3.0, 1.0], [4.0, 2.0]).mean == pytest.approx(4 / 6)
    assert paired_difference([3.0, 1.0], [4.0, 2.0]) == Estimate(-1.0, -1.0, -1.0)
    assert paired_ratio([3.0], [4.0]) == Estimate(0.75, 0.75, 0.75)
    assert paired_ratio([3.0, float("nan")], [4.0, 1.0]) == Estimate(0.75, 0.75, 0.75)
    assert np.isnan(paired_ratio([], []).mean) and np.isnan(paired_difference([float("nan")], [1.0]).mean)
    with pytest.raises(ValueError, match="expected pairs"):
        paired_ratio([1.0], [1.0, 2.0])


def test_only_seeds_that_both_were_played_on_are_compared():
    def made(policy: str, **jct: float) -> list[Run]:
        return [Run(policy, int(seed[1:]), {"jct_mean": value}, 1, np.zeros(0)) for seed, value in jct.items()]

    runs = [*made("base", s0=10.0, s1=20.0, s2=90.0), *made("other", s1=10.0, s2=100.0, s3=1.0)]
    found = against(runs, "base")
    assert list(found) == ["base", "other"]
    assert found["other"].ratio.mean == pytest.approx(110 / 110)
    assert (found["other"].lower, found["other"].seeds) == (1, 2)
    assert found["base"].ratio == Estimate(1.0, 1.0, 1.0)
    assert found["base"].lower == 0


def test_every_column_is_in_the_docs(tmp_path):
    import pyarrow.parquet as pq

    opened = store.open_store(tmp_path, SETTING, ["fifo"])
    opened.keep(play(SETTING, "fifo", 0, record=True))
    store.write_table(opened)
    text = (identity.PACKAGE / "docs" / "tutorials" / "evaluating.md").read_text()
    table = set(pq.read_schema(tmp_path / store.TABLE).names) - set(NAMES)
    columns = table | set(pq.read_schema(next((tmp_path / "runs").iterdir())).names)
    assert [name for name in sorted(columns) if f"`{name}`" not in text] == []
