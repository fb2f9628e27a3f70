"""Labels of policies, `EASY=fifo:head=reserve`: tables and charts have them, and files keep the word beside them.

JOBS on 8 GPUs: a holds all for 100 s from 0, b comes at 50 with 60 s: mean JCT (100 + 110) / 2 = 105 s.
"""

from __future__ import annotations

import csv
import json

import pandas as pd
import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.playing.runs import label_and_word
from clustergym.experiments.report.load import load
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing.store import read
from clustergym.simulator.base.errors import InputError

JOBS = "job_id,arrival_s,gpus,duration_s,user\na,0,8,100,ann\nb,50,8,60,bob\n"
EASY, OURS = "EASY=fifo:head=reserve", "Ours-1.b=py:mine.py:Short"
MINE = """
from clustergym.policies.ordered import ordered


def Short():
    return ordered("fifo")
"""


@pytest.fixture
def play(tmp_path, monkeypatch, capsys):
    """Runs a command in a folder with JOBS and a policy; returns exit status, stdout and stderr on one line."""
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def played(*words: str) -> tuple[int, str, str]:
        where = ["--workload", "jobs.csv", "--topology", "flat:machines=1", "--network", "none", "--seeds", "0", "-q"]
        status = run([*words, *(where if words[0] == "evaluate" and "--workload" not in words else [])])
        found = capsys.readouterr()
        return status, found.out, " ".join(found.err.split())

    return played


@pytest.mark.parametrize(
    ("text", "label", "word"),
    [
        ("EASY=fifo:head=reserve", "EASY", "fifo:head=reserve"),
        ("fifo:head=reserve", "", "fifo:head=reserve"),
        ("py:a=b.py:Short", "", "py:a=b.py:Short"),
        ("v1.2_x-y=py:mine.py:Short,k=2", "v1.2_x-y", "py:mine.py:Short,k=2"),
    ],
)
def test_a_label_is_what_stands_before_the_first_equals_sign_if_no_colon_does(text, label, word):
    assert label_and_word(text) == (label, word)


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        ("A=fifo A=srtf", "two are called 'A'"),
        ("A=fifo B=fifo", "'fifo' is given twice"),
        ("A=fifo fifo", "'fifo' is given twice"),
        ("sjf=fifo", "the label 'sjf' is the name of a policy"),
        ("A/b=fifo", "expected LABEL=WORD, where a label holds letters"),
        ("My Label=fifo", "if 'My Label=fifo' is meant, a label holds letters, digits, '-', '_' and '.', no space"),
        ("'My Label=fifo'", "expected LABEL=WORD, where a label holds letters, digits, '-', '_' and '.', no space"),
        ("=fifo", "expected LABEL=WORD"),
        ("A=", "expected LABEL=WORD"),
        ("A=B=fifo", "unknown policy of clustergym/Delay-v0 'B=fifo'"),
        ("A=fifoo", "did you mean 'fifo'?"),
    ],
)
def test_labels_that_cannot_be_are_refused(play, policies, said):
    status, _, error = play("evaluate", "Delay", "--policies", policies)
    assert status == 2 and said in error


def test_other_commands_refuse_labels(play):
    status, _, error = play("render", "Delay", "--policy", EASY, "--out", "a.svg")
    assert status == 2 and "labels are for --policies of evaluate and whatif" in error


def test_tables_have_labels_and_the_setting_has_their_words(play):
    """Also against a baseline, by its label or its word, and by user."""
    for baseline in ("EASY", "fifo:head=reserve"):
        status, text, _ = play("evaluate", "Delay", "--policies", f"{EASY} srtf", "--baseline", baseline)
        assert status == 0 and "against EASY, on the same workloads" in text
        lines = [" ".join(line.split()) for line in text.splitlines()]
        assert any(line.startswith("EASY fifo:head=reserve order=fifo head=reserve") for line in lines)
        assert any(line.startswith("EASY yes 105.0") for line in lines) and "srtf: same runs as EASY" in lines
    _, text, _ = play("evaluate", "Delay", "--policies", EASY, "--set", "by=user")
    assert [line.split()[:2] for line in text.splitlines() if " ann " in line] == [["EASY", "ann"]]


def test_a_sweep_has_labels(play):
    where = ("--workload", "jobs.csv", "--topology", "flat:machines=1", "--network", "none", "--seeds", "0")
    words = ("evaluate", "Delay", "--policies", f"{EASY} srtf", "--sweep", "checkpoint_s=60/600", "--baseline", "EASY")
    status, text, error = play(*words, *where, "--set", "mtbf_s=100000", "--logdir", "out")
    assert status == 0, error
    assert "ratio to EASY's mean JCT" in text and text.count("fifo:head=reserve") == 1
    status, text, _ = play("compare", "out/checkpoint_s=60", "out/checkpoint_s=600", "--baseline", "EASY", "--json")
    found = json.loads(text)["settings"]
    assert status == 0 and [one["baseline"] for one in found] == ["EASY", "EASY"]


def test_json_and_tables_keep_the_word_beside_the_label(play):
    files = ("--jobs-table", "jobs.out.csv", "--stretches-table", "s.csv", "--decisions", "d.csv")
    _, text, _ = play("evaluate", "Delay", "--policies", f"{EASY} srtf", "--json", *files)
    rows = json.loads(text)
    assert [(row["policy"], row.get("label")) for row in rows] == [("fifo:head=reserve", "EASY"), ("srtf", None)]
    for name in files[1::2]:
        with open(name, newline="") as file:
            found = {(row["policy"], row["label"]) for row in csv.DictReader(file)}
        assert found == {("fifo:head=reserve", "EASY"), ("srtf", "srtf")}
    play("evaluate", "Delay", "--policies", "srtf", "--jobs-table", "jobs.out.csv")
    with open("jobs.out.csv") as file:
        assert file.readline().startswith("policy,seed,job_id")


def test_a_folder_keeps_labels_and_the_page_shows_them(play, tmp_path):
    status, text, error = play("evaluate", "Delay", "--policies", f"{EASY} {OURS}", "--logdir", "out")
    assert status == 0, error
    assert "gantt-EASY.svg" in text and "gantt-Ours-1.b.svg" in text
    table = pd.read_parquet("out/results.parquet")
    pairs = [["fifo:head=reserve", "EASY"], ["py:mine.py:Short", "Ours-1.b"]]
    assert table[["policy", "label"]].values.tolist() == pairs
    status, text, _ = play("compare", "out", "--baseline", "EASY", "--episodes", "EASY", "Ours-1.b", "--json")
    found = json.loads(text)["settings"][0]
    assert found["baseline"] == "EASY" and {(one["label"], one["policy"]) for one in found["policies"]} == {
        ("EASY", "fifo:head=reserve"),
        ("Ours-1.b", "py:mine.py:Short"),
    }
    assert found["episodes"]["policies"] == ["EASY", "Ours-1.b"]
    assert "EASY" in (tmp_path / "out" / "report.html").read_text()


def test_labels_can_be_given_later_and_nothing_is_played_again(play, tmp_path):
    """The last command that names a word says its label; of others a label that is given anew is taken away."""

    def labels():
        return {run.policy: run.label for run in read(tmp_path / "out").runs}

    play("evaluate", "Delay", "--policies", "fifo:head=reserve srtf", "--logdir", "out")
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").iterdir()}
    play("evaluate", "Delay", "--policies", EASY, "--logdir", "out")
    assert labels() == {"fifo:head=reserve": "EASY", "srtf": ""}
    play("evaluate", "Delay", "--policies", "EASY=srtf", "--logdir", "out")
    assert labels() == {"fifo:head=reserve": "", "srtf": "EASY"}
    play("evaluate", "Delay", "--policies", "srtf", "--logdir", "out")
    assert labels() == {"fifo:head=reserve": "", "srtf": ""}
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").iterdir()} == written


def test_a_label_of_two_policies_in_two_folders_names_both_words(play, tmp_path):
    play("evaluate", "Delay", "--policies", "A=fifo:head=reserve", "--logdir", "one")
    play("evaluate", "Delay", "--policies", "A=srtf", "--logdir", "two")
    found = load([tmp_path / "one", tmp_path / "two"]).sections[0]
    assert {entry.label for entry in found.entries} == {"A (fifo:head=reserve)", "A (srtf)"}


def test_python_takes_labels_and_refuses_two_of_one_name(play, tmp_path):
    setting = Setting.of("Delay", "flat:machines=1", str(tmp_path / "jobs.csv"), "none")
    assert [(one.policy, one.label) for one in evaluate(setting, [EASY, "srtf"], [0])] == [
        ("fifo:head=reserve", "EASY"),
        ("srtf", ""),
    ]
    with pytest.raises(InputError, match="two are called 'A'"):
        evaluate(setting, ["A=fifo", "A=srtf"], [0])
