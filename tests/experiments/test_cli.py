"""The command line: what it prints where, and its exit statuses."""

from __future__ import annotations

import csv
import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.console import terminal
from clustergym.experiments.settings.describing import describe_load
from clustergym.experiments.settings.evaluation_setting import Setting, workload_of

SMALL = ("--workload", "poisson:jobs=20,backlog=10", "--seeds", "0-1")
OWN = "job_id,arrival_s,gpus,duration_s"


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """Which come after 15 s, that a loaded machine takes for anything."""
    monkeypatch.setattr(terminal, "PLAIN_PROGRESS_S", float("inf"))


def call(capsys, *arguments: object) -> tuple[int, str, str]:
    """(status, stdout, stderr) of one command."""
    status = run([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def call_json(capsys, *arguments: object):
    """The one JSON document that a command prints with --json."""
    status, out, err = call(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def in_process(*arguments: str, **more) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "clustergym.experiments.cli", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, **more)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """The first run after a change of the kernels says on stderr that it compiles them; not in these tests."""
    run(["evaluate", "Delay", *SMALL, "--quiet"])


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def trace(tmp_path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(f"{OWN}\na,0,1,100\nb,0,8,50\nc,10,4,25\n")
    return path


def test_help_names_every_command():
    outcome = in_process("--help")
    assert outcome.returncode == 0
    words = ("envs", "policies", "topologies", "networks", "workloads", "evaluate", "workload", "render", "bench")
    assert [word for word in words if word not in outcome.stdout] == []


def test_help_says_of_an_option_without_a_value_that_it_takes_none(capsys):
    """`--json <bool>` would ask for `--json true`."""
    for command in ((), ("evaluate",), ("tune",), ("workload",), ("workload", "inspect")):
        assert "bool" not in call(capsys, *command, "--help")[1]


def test_help_brackets_an_argument_once(capsys):
    for command in (("reproduce",), ("policies",), ("bench",), ("warm",), ("compare",)):
        said = call(capsys, *command, "--help")[1]
        assert [doubled for doubled in ("[[", "{{", "......") if doubled in said] == []


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from clustergym.experiments.cli import run; run(['--help']);"
        "print([name for name in ('numba', 'pandas', 'matplotlib', 'torch') if name in sys.modules])"
    )
    outcome = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True)
    assert outcome.stdout.splitlines()[-1] == "[]"


def test_version(capsys):
    import clustergym

    assert call(capsys, "--version") == (0, f"clustergym {clustergym.__version__}\n", "")


def test_without_a_command_the_help_is_shown(capsys):
    assert "evaluate" in call(capsys)[1]


@pytest.mark.parametrize("command", ["envs", "policies", "topologies", "networks", "workloads"])
def test_lists_as_table_and_as_json(capsys, command):
    rows = call_json(capsys, command)
    status, out, err = call(capsys, command, "--seed", 3, "--quiet")
    assert (status, err) == (0, "")
    names = [row.get("name", row.get("id")) for row in rows]
    assert len(names) == len(set(names)) > 0
    assert [name for name in names if name not in out] == []


def test_policies_of_an_environment(capsys):
    assert {row["name"] for row in call_json(capsys, "policies", "--env", "Delay")} >= {"fifo", "tiresias"}


def test_the_load_of_a_generators_word_is_printed_beside_that_of_the_jobs_drawn():
    """Ten draws of 80 arrivals at load 1.3 have 1.2 to 2.04; without `load=` nothing is asked."""
    asked = describe_load(Setting.of("Delay"), range(10))
    assert asked.startswith("1.3 asked; drawn 1.6 of the GPUs, after 48 jobs that are there at once")
    assert asked.endswith("from 1.2 to 2.04 in the first 10 workloads")
    assert "asked" not in describe_load(Setting.of("Delay", workload="poisson:jobs=5"), [0])
    assert "asked" not in describe_load(Setting.of("Delay", workload="poisson:jobs=5,load=1,seed=3"), [0])


def test_the_default_load_of_delay_is_the_mean_of_many_draws():
    """Work of later arrivals over their time and 64 GPUs, of 200 workloads: within 5 % of 1.3."""
    drawn = [workload_of(Setting.of("Delay"), seed) for seed in range(200)]
    later = sum(float(one.work_s()[one.arrival_s > 0.0].sum()) for one in drawn)
    assert later / sum(float(one.arrival_s[-1]) for one in drawn) / 64 == pytest.approx(1.3, rel=0.05)


def test_evaluate_prints_semantics_and_a_row_a_policy(capsys):
    status, out, err = call(capsys, "evaluate", "Delay", *SMALL, "--policies", "fifo:head=strict las")
    assert (status, err) == (0, "")
    for words in (
        "order=fifo head=strict placer=count",
        "thresholds=3250/7200",
        "poisson:jobs=20,backlog=10",
        "dally:racks=2,machines=4 (64 GPUs",
        "penalty:table=chronus,default=none,duration=isolated",
        "of the GPUs, after 10 jobs that are there at once, as jobs run alone",
        "JCT mean",
        "interval",
    ):
        assert words in out


def test_a_table_says_how_many_columns_show_its_numbers_whole():
    """Only the policy's name breaks there: the column beside it stands as it is."""
    import io

    from rich.console import Console

    from clustergym.experiments.comparing.table import plain_table, width_of

    table = plain_table(padding=(0, 1, 0, 0))
    table.add_column("policy", overflow="fold", min_width=10)
    table.add_column("numbers", no_wrap=True)
    table.add_row("a-very-long-name-of-a-policy", "1,000 to 2,000")
    console = Console(file=io.StringIO(), width=20)
    needed = width_of(console, table, ["a-very-long-name-of-a-policy"])
    console.width = needed
    console.print(table)
    assert "1,000 to 2,000" in console.file.getvalue()
    assert (
        max(map(len, console.file.getvalue().splitlines()))
        <= needed
        < len("a-very-long-name-of-a-policy1,000 to 2,000")
    )


@pytest.mark.parametrize("columns", [80, 100])
def test_the_table_fits_the_terminal_uncut(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    words = "fifo las:head=strict,placer=consolidated,preemption_cost=40/60,thresholds=100/200/300"
    arguments = ("evaluate", "Delay", "--seeds", "0-2", "--policies", words)
    for more in ((), ("--set", "horizon_s=30000")):
        out = call(capsys, *arguments, *more)[1]
        assert "…" not in out
        assert max(map(len, out.splitlines())) <= columns
        assert [header for header in ("JCT mean", "[s]", "GPU use", "[%]", "preempted") if header not in out] == []


def test_evaluate_json_is_a_row_a_run(capsys):
    rows = call_json(capsys, "evaluate", "Delay", *SMALL, "--policies", "fifo", "--policies", "sjf srtf")
    assert [(row["policy"], row["seed"]) for row in rows] == [
        (policy, seed) for policy in ("fifo", "sjf", "srtf") for seed in (0, 1)
    ]
    assert all(row["metrics"]["jobs_finished"] == 20 for row in rows)
    assert rows[0]["semantics"]["head"] == "skip"


def test_evaluate_plays_every_policy_unless_told_otherwise(capsys):
    """Heuristics, that is: agents need more to be installed, `replay` a log."""
    listed = [row["name"] for row in call_json(capsys, "policies", "--env", "Delay") if ":" not in row["name"]]
    listed.remove("replay")
    rows = call_json(capsys, "evaluate", "clustergym/Delay-v0", "--workload", "batch:jobs=8", "--seed", 1)
    assert [(row["policy"], row["seed"]) for row in rows] == [(name, 1) for name in listed]


def test_metrics_that_are_not_numbers_are_null(capsys, trace):
    """Nothing finishes within a second, so there is no JCT."""
    arguments = ("--workload", trace, "--network", "none", "--policies", "fifo", "--set", "horizon_s=1")
    rows = call_json(capsys, "evaluate", "Delay", *arguments, "--seed", 0)
    assert rows[0]["metrics"]["jct_mean"] is None
    status, out, _ = call(capsys, "evaluate", "Delay", *arguments, "--seeds", "0")
    assert status == 0
    assert "finished" in out


def test_processes_change_nothing(capsys):
    arguments = ("evaluate", "Delay", *SMALL, "--policies", "fifo random")
    assert call_json(capsys, *arguments, "--jobs", 2) == call_json(capsys, *arguments)


def test_failures_are_off_unless_asked_for(capsys):
    calm = call_json(capsys, "evaluate", "Delay", *SMALL, "--policies", "fifo")
    rough = call_json(capsys, "evaluate", "Delay", *SMALL, "--policies", "fifo", "--set", "mtbf_s=20000")
    assert all(row["metrics"]["failures"] == 0 for row in calm)
    assert all(row["metrics"]["failures"] > 0 for row in rough)


def test_decisions_are_written_in_order(capsys, trace, tmp_path):
    """8 GPUs, strict FIFO, one machine: b waits for a, c for b."""
    path = tmp_path / "decisions.csv"
    status, _, _ = call(
        capsys,
        *("evaluate", "Delay", "--workload", trace, "--network", "none", "--topology", "flat:machines=1"),
        *("--policies", "fifo:head=strict", "--seeds", "3", "--decisions", path),
    )
    assert status == 0
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    whole = " ".join(f"0.0.{gpu}" for gpu in range(8))
    assert rows == [
        ["policy", "seed", "time_s", "job_id", "decision", "gpus", "why"],
        ["fifo:head=strict", "3", "0.0", "a", "start", "0.0.0", "arrived at 0 s; one machine"],
        ["fifo:head=strict", "3", "100.0", "b", "start", whole, "arrived at 0 s; one machine"],
        ["fifo:head=strict", "3", "150.0", "c", "start", "0.0.0 0.0.1 0.0.2 0.0.3", "arrived at 10 s; one machine"],
    ]


def test_preemptions_are_among_the_decisions(capsys, tmp_path):
    path = tmp_path / "decisions.csv"
    arguments = ("evaluate", "Delay", *SMALL, "--policies", "srtf", "--decisions", path)
    rows = call_json(capsys, *arguments)
    with open(path, newline="") as file:
        decided = list(csv.DictReader(file))
    for row in rows:
        mine = [entry for entry in decided if entry["seed"] == str(row["seed"])]
        assert sum(entry["decision"] == "preempt" for entry in mine) == row["metrics"]["preemptions"]
        assert sum(entry["decision"] == "start" for entry in mine) == 20 + row["metrics"]["preemptions"]


def test_logdir_gets_scalars_results_and_pictures(capsys, tmp_path):
    pytest.importorskip("tensorboard")
    import pandas as pd
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    arguments = ("evaluate", "Delay", *SMALL, "--policies", "fifo las:head=strict", "--logdir", tmp_path / "logs")
    for _ in range(2):  # the second time replaces the first
        rows = call_json(capsys, *arguments)
    logs = tmp_path / "logs"
    names = {"jct-ratio.svg", "jct-by-seed.svg", "jct-cdf.svg", "gpus-in-use.svg", "queue.svg"}
    assert {path.name for path in logs.glob("*.svg")} == names | {"gantt-fifo.svg", "gantt-las-head-strict.svg"}
    table = pd.read_parquet(logs / "results.parquet")
    assert table[["policy", "seed", "jct_mean"]].values.tolist() == [
        [row["policy"], row["seed"], row["metrics"]["jct_mean"]] for row in rows
    ]
    assert len(list((logs / "fifo").iterdir())) == 1
    log = EventAccumulator(str(logs / "las,head=strict"))
    log.Reload()
    mean = sum(row["metrics"]["jct_mean"] for row in rows[2:]) / 2
    assert [event.value for event in log.Scalars("test/jct/mean_s")] == pytest.approx([mean, mean], rel=1e-6)
    assert len({event.step for event in log.Scalars("test/makespan_s")}) == 2
    per_seed = [(row["seed"], row["metrics"]["jct_mean"]) for row in rows[2:]]
    assert [(event.step, pytest.approx(event.value)) for event in log.Scalars("by_seed/jct/mean_s")] == per_seed


def test_a_missing_extra_is_named_with_its_command(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, _, err = call(capsys, "workload", "inspect", "poisson:jobs=5", "--picture", tmp_path / "w.png")
    assert status == 1
    assert 'pip install "clustergym[report]"' in err
    assert err.count("\n") == 1


def test_warnings_are_one_line_and_can_be_silenced(capsys, tmp_path):
    path = tmp_path / "unsorted.csv"
    path.write_text(f"{OWN}\na,10,1,100\nb,0,8,50\n")
    status, _, err = call(capsys, "workload", "inspect", path)
    assert status == 0
    assert err.startswith("clustergym: warning: ")
    assert err.count("\n") == 1
    assert call(capsys, "workload", "inspect", path, "--quiet")[2] == ""


def test_inspect_reports_and_draws(capsys, trace, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "trace.png"
    status, out, _ = call(capsys, "workload", "inspect", trace, "--picture", picture)
    assert status == 0
    assert "3 jobs" in out
    assert picture.stat().st_size > 10_000
    assert call_json(capsys, "workload", "inspect", "poisson:jobs=50", "--seed", 2)["jobs"] == 50


def test_inspect_tells_the_load_that_a_workload_offers_to_a_cluster(capsys, tmp_path):
    """2 of 4 GPUs for 30 s, twice in 60 s after the first job: 120 / (4 x 60); without a cluster there is no load."""
    path = tmp_path / "mine.csv"
    path.write_text("job_id,arrival_s,gpus,duration_s\na,0,4,10\nb,40,2,30\nc,60,2,30\n")
    where = ("--topology", "flat:machines=1,gpus_per_machine=4")
    facts = call_json(capsys, "workload", "inspect", path, *where)
    assert (facts["offered_load"], facts["network"]) == (0.5, "none")
    assert "offered load, as jobs run alone: 0.5 (flat" in call(capsys, "workload", "inspect", path, *where)[1]
    assert "offered_load" not in call_json(capsys, "workload", "inspect", path)
    status, _, err = call(capsys, "workload", "inspect", path, "--network", "none")
    assert status == 2 and "give --topology" in err


def test_inspect_tells_the_load_on_the_fastest_and_on_the_slowest_types_that_jobs_accept(capsys, tmp_path):
    """All accept all types, H100 are twice as fast and V100 half as fast: a quarter of the GPU-seconds there."""
    speeds, word = tmp_path / "speeds.csv", "mast-like:regions=2,gpus=48,jobs=20,any_type=1"
    speeds.write_text("model,type,speed\n*,H100,2\n*,V100,0.5\n")
    where = ("workload", "inspect", word, "--topology", "mast:regions=2,gpus=48")
    alike, facts = call_json(capsys, *where), call_json(capsys, *where, "--speeds", speeds)
    assert facts["offered_load"] == pytest.approx(alike["offered_load"] / 2)
    assert facts["offered_load_slowest"] == pytest.approx(alike["offered_load"] * 2)
    low, high = (f"{facts[key]:.4g}" for key in ("offered_load", "offered_load_slowest"))
    said = f"as jobs run alone: {low} on the fastest types that they accept to {high} on the slowest (mast"
    assert said in call(capsys, *where, "--speeds", speeds)[1]
    assert "slowest" not in call(capsys, *where)[1]
    status, _, err = call(capsys, "workload", "inspect", word, "--speeds", speeds)
    assert status == 2 and "--speeds: the load depends on the cluster too" in err
    status, _, err = call(capsys, *where, "--speeds", tmp_path / "none.csv")
    assert status == 2 and "gavel, or a csv of speeds" in err
    setting = Setting.of("Geo", "mast:regions=2,gpus=48", word, speeds=str(speeds))
    told = describe_load(setting, [0])
    low, high = (f"{facts[key]:.3g}" for key in ("offered_load", "offered_load_slowest"))
    assert told == f"{low} of the GPUs, as jobs run alone on the fastest types that they accept, {high} on the slowest"


def test_generated_csv_comes_back_the_same(capsys, tmp_path):
    status, out, _ = call(capsys, "workload", "generate", "poisson:load=0.9", "--jobs", 7, "--seed", 4)
    assert status == 0
    assert len(out.splitlines()) == 8
    path = tmp_path / "jobs.csv"
    told = call_json(capsys, "workload", "generate", "poisson:load=0.9,seed=4", "--jobs", 7, "--to", path)
    assert told["jobs"] == 7
    assert path.read_text() == out
    rows = call_json(capsys, "workload", "generate", "poisson:load=0.9", "--jobs", 7, "--seed", 4)
    assert [row["job_id"] for row in rows] == [line.split(",")[0] for line in out.splitlines()[1:]]


def test_convert_between_formats(capsys, trace, tmp_path):
    there, back = tmp_path / "a.parquet", tmp_path / "b.csv"
    assert call(capsys, "workload", "convert", trace, "--to", there)[0] == 0
    assert call(capsys, "workload", "convert", there, "--to", back)[0] == 0
    assert [line.split(",")[:4] for line in back.read_text().splitlines()[1:]] == [
        ["a", "0.0", "1", "100.0"],
        ["b", "0.0", "8", "50.0"],
        ["c", "10.0", "4", "25.0"],
    ]
    status, _, err = call(
        capsys,
        *("workload", "convert", trace, "--to", back),
        *("--topology", "flat:machines=1,gpus_per_machine=4", "--oversize", "drop"),
    )
    assert status == 0
    assert "dropped 1 of 3" in err
    assert len(back.read_text().splitlines()) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.csv", "trace.csv"]


@pytest.mark.parametrize("action", ["drop", "cap"])
def test_oversize_jobs_are_dropped_or_capped(capsys, trace, action):
    arguments = ("evaluate", "Delay", "--workload", trace, "--topology", "flat:machines=1,gpus_per_machine=4")
    arguments += ("--network", "none", "--policies", "fifo", "--seed", 0)
    status, _, err = call(capsys, *arguments)
    assert status == 1
    assert "job b asks 8 GPUs" in err
    assert "--oversize drop or cap" in err
    rows = json.loads(call(capsys, *arguments, "--oversize", action, "--json")[1])
    assert rows[0]["metrics"]["jobs_finished"] == {"drop": 2, "cap": 3}[action]


def test_bench_lists_and_runs(capsys, monkeypatch, tmp_path):
    from clustergym.experiments.commands import bench

    (tmp_path / "noop.py").write_text('"""Measures nothing."""\n\n\ndef main(argv):\n    print(argv)\n    return 0\n')
    (tmp_path / "_common.py").write_text("def main(argv):\n    raise SystemExit(5)\n")
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    assert call_json(capsys, "bench") == [{"name": "noop", "summary": "Measures nothing."}]
    assert "Measures nothing." in call(capsys, "bench", "--list")[1]
    status, out, _ = call(capsys, "bench", "noop", "--size", "3", "--seed", 2, "--json")
    assert (status, out) == (0, "['--size', '3', '--json', '--seed=2']\n")
    monkeypatch.setattr(bench, "FOLDER", tmp_path / "nowhere")
    status, _, err = call(capsys, "bench", "noop")
    assert status == 1
    assert "clone" in err


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -P -m clustergym.experiments.cli workload generate poisson:jobs=20000 | head -n 2"
    outcome = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], check=False, capture_output=True, text=True, timeout=60
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert len(outcome.stdout.splitlines()) == 2


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a child there")
def test_an_interrupt_ends_without_a_traceback(tmp_path):
    """Ctrl-C once the first of its runs is stored."""
    words = ("evaluate", "Delay", "--seeds", "0-999", "--logdir", str(tmp_path))
    command = [sys.executable, "-P", "-m", "clustergym.experiments.cli", *words]
    # Where the tests themselves run in the background, interrupts are ignored, and children inherit that.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed)  # noqa: PLW1509
    give_up_s = time.monotonic() + 120.0
    try:
        while not list((tmp_path / "runs").glob("*.parquet")) and time.monotonic() < give_up_s:
            assert child.poll() is None
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode == 130
    assert "Traceback" not in err


def test_stdout_that_knows_only_ascii_is_no_error():
    outcome = in_process("workload", "inspect", "poisson:jobs=20", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (outcome.returncode, outcome.stderr) == (0, "")
