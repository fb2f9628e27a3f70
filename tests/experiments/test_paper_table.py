"""`compare --table`: LaTeX, Markdown and csv of the table, by hand; and what is refused.

JOBS on 8 GPUs: a holds all for 100 s, b (8 GPUs, 60 s) comes at 50. In order: JCTs of 100 and 110 s, mean 105. `srtf`
has b, shorter, go first where it comes at 20 (BUSY): 160 and 60 s, mean 110; in order 100 and 140 s, mean 120.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess

import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.report.paper_table import escaped

BUSY = "job_id,arrival_s,gpus,duration_s,user\na,0,8,100,a_1\nb,20,8,60,b|2\n"
LABELS = "EASY=fifo:head=reserve Short_1=srtf"


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs a command in a folder with BUSY; returns exit status, stdout and stderr on one line."""
    (tmp_path / "busy.csv").write_text(BUSY)
    monkeypatch.chdir(tmp_path)

    def ran(*words: str) -> tuple[int, str, str]:
        status = run([*words, "-q"])
        found = capsys.readouterr()
        return status, found.out, " ".join(found.err.split())

    return ran


@pytest.fixture
def evaluated(command):
    """`evaluate` into a folder."""

    def into(folder: str, *more: str, policies: str = LABELS) -> None:
        where = ("--workload", "busy.csv", "--topology", "flat:machines=1", "--network", "none", "--seeds", "0")
        assert command("evaluate", "Delay", *where, "--policies", policies, "--logdir", folder, *more)[0] == 0

    return into


def test_latex_by_hand(command, evaluated):
    """The ratio is 110 / 120; units stand in the head, labels are escaped, the best is bold."""
    evaluated("out")
    status, text, error = command(
        "compare", "out", "--table", "latex", "--columns", "jct_mean ratio", "--baseline", "EASY"
    )
    lines = text.splitlines()
    assert (status, error) == (0, "")
    assert [line for line in lines if not line.startswith("%")] == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"policy & JCT mean & JCT ratio \\",
        r" & [s] &  \\",
        r"\midrule",
        r"Short\_1 & \textbf{110} & 0.917 \\",
        r"EASY & 120 & 1 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip{\footnotesize JCT ratio: to the mean of EASY, paired by seed; best of a column in bold; "
        r"Short\_1: jobs pass one that finds no room (head=skip).\par}",
    ]
    assert "% workload: busy.csv" in lines


def test_markdown_by_hand_and_by_user(command, evaluated):
    """By user: b of `b|2` ends after 60 s under srtf, and after 140 in order."""
    evaluated("out", "--set", "by=user")
    _, text, _ = command("compare", "out", "--table", "markdown", "--columns", "ratio jct_mean", "--baseline", "EASY")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[:4] == [
        "| policy | JCT ratio | JCT mean [s] |",
        "| --- | ---: | ---: |",
        "| Short_1 | 0.917 | **110** |",
        "| EASY | 1 | 120 |",
    ]
    assert rows[4].startswith("| policy | user | JCT mean [s] |") and rows[5].startswith("| --- | --- | ---: |")
    assert rows[6].startswith("| Short_1 | a_1 | 160.0 |") and rows[7].startswith(r"| Short_1 | b\|2 | 60.0 |")


def test_csv_holds_the_numbers_of_json(command):
    """Generated jobs, five seeds: means, ratios and their intervals, unrounded."""
    where = ("--topology", "flat:machines=2", "--workload", "poisson:jobs=40", "--network", "none", "--seeds", "0-4")
    assert command("evaluate", "Delay", *where, "--policies", LABELS, "--logdir", "out")[0] == 0
    _, text, _ = command("compare", "out", "--baseline", "EASY", "--json")
    wanted = {one["label"]: one for one in json.loads(text)["settings"][0]["policies"]}
    status, text, _ = command("compare", "out", "--baseline", "EASY", "--table", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert status == 0 and [row["label"] for row in rows] == list(wanted)
    for row in rows:
        one = wanted[row["label"]]
        assert (row["policy"], row["seeds"], row["finished"]) == (one["policy"], "5", "1.0")
        estimate = one["metrics"]["jct_mean"]
        shown = [float(row[name]) for name in ("jct_mean_s", "jct_mean_low_s", "jct_mean_high_s")]
        assert shown == [estimate["mean"], estimate["low"], estimate["high"]]
        assert float(row["ratio"]) == one["ratio"]["mean"]
    assert float(rows[0]["ratio_low"]) < float(rows[0]["ratio"]) < float(rows[0]["ratio_high"])
    assert rows[1]["label"] == "EASY" and rows[1]["ratio_low"] == ""
    _, latex, _ = command("compare", "out", "--baseline", "EASY", "--table", "latex")
    low, mean, high = (wanted["EASY"]["metrics"]["jct_mean"][name] for name in ("low", "mean", "high"))
    assert rf"EASY & 1 & {mean:,.0f} &" in latex and rf"{{\scriptsize {low:,.0f}--{high:,.0f}}}" in latex


def test_a_table_without_a_baseline_has_no_ratios(command, evaluated):
    evaluated("out", policies="Only=srtf")
    _, text, _ = command("compare", "out", "--table", "latex")
    assert "ratio" not in text and r"Only & 110 &" in text
    status, _, error = command("compare", "out", "--table", "latex", "--columns", "ratio")
    assert status == 2 and "--columns ratio: there is no baseline; name a policy" in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--columns", "jct_mean"), "--columns: it says what --table prints"),
        (("--table", "latex", "--columns", " "), "--columns: no name is given"),
        (("--table", "html"), "unknown value of --table 'html'"),
        (("--table", "latex", "--columns", "jct"), "unknown column 'jct'"),
        (("--table", "latex", "--columns", "energy_kwh"), "unknown column 'energy_kwh'"),
        (("--table", "latex", "--columns", "ratio ratio"), "'ratio' is given twice"),
        (("--table", "latex", "--json"), "--table goes without --json"),
        (("--table", "latex", "--episodes", "EASY", "Short_1"), "--table goes without --episodes"),
        (("--table", "latex", "--seed", "0"), "--table goes without --seed"),
    ],
)
def test_what_a_table_cannot_do_is_refused(command, evaluated, words, said):
    evaluated("out")
    status, text, error = command("compare", "out", *words)
    assert (status, text) == (2, "") and said in error


def test_csv_holds_one_table(command, evaluated):
    """By user there are two, of two settings too."""
    evaluated("out", "--set", "by=user")
    evaluated("other")
    for folders, count in ((("out",), 2), (("out", "other"), 3)):
        status, _, error = command("compare", *folders, "--table", "csv")
        assert status == 2 and f"--table csv holds one table, and these are {count}" in error
    assert command("compare", "out", "other", "--table", "latex")[1].count(r"\begin{tabular}") == 3
    evaluated("both", "--set", "by=gpus/user")
    text = command("compare", "both", "--table", "markdown")[1]
    assert [line[:17] for line in text.splitlines() if "JCT mean" in line and line.startswith("|")] == [
        "| policy | JCT ra",
        "| policy | gpus |",
        "| policy | user |",
    ]


def test_columns_choose_in_every_table_and_the_name_of_a_grouping_leaves_its_table_alone(command, evaluated):
    """b of `b|2` ends after 60 s under srtf, its run time, and after 140 in order, 2.33 times as long."""
    evaluated("out", "--set", "by=user/gpus")

    text = command("compare", "out", "--table", "markdown", "--columns", "slowdown_mean makespan jct_mean")[1]
    assert [line for line in text.splitlines() if line.startswith("| policy")] == [
        "| policy | slowdown mean | makespan [s] | JCT mean [s] |",
        "| policy | user | slowdown | JCT mean [s] |",
        "| policy | gpus | slowdown | JCT mean [s] |",
    ]
    assert command("compare", "out", "--table", "latex", "--columns", "makespan")[1].count(r"\begin{tabular}") == 1
    status, text, error = command("compare", "out", "--table", "csv", "--columns", "slowdown_mean user jct_mean")
    assert (status, error) == (0, "")
    assert list(csv.reader(io.StringIO(text))) == [
        ["policy", "label", "user", "slowdown_mean", "jct_mean_s"],
        ["srtf", "Short_1", "a_1", "1.6", "160.0"],
        ["srtf", "Short_1", "b|2", "1.0", "60.0"],
        ["fifo:head=reserve", "EASY", "a_1", "1.0", "100.0"],
        ["fifo:head=reserve", "EASY", "b|2", str(140 / 60), "140.0"],
    ]
    every = command("compare", "out", "--table", "csv", "--columns", "gpus")[1].splitlines()
    assert every[0].startswith("policy,label,gpus,jct_mean_s,queueing_delay_mean_s") and len(every) == 3
    status, _, error = command("compare", "out", "--table", "csv", "--columns", "user ratio")
    assert status == 2 and "unknown column 'ratio'" in error
    status, _, error = command("compare", "out", "--table", "csv", "--columns", "user gpus")
    assert status == 2 and "these are 2 (settings, or by=): give latex or markdown, or groups alone" in error


def test_text_is_escaped_for_latex():
    assert escaped(r"a_b & 5% {x} ~^\ <|>--") == (
        r"a\_b \& 5\% \{x\} \textasciitilde{}\textasciicircum{}\textbackslash{} \textless{}\textbar{}\textgreater{}-{}-"
    )


def test_the_table_is_typeset(command, evaluated, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    evaluated("out", "--set", "by=user")
    _, text, _ = command("compare", "out", "--table", "latex")
    page = "\\documentclass{article}\\usepackage{booktabs,textcomp}\\begin{document}\n" + text + "\\end{document}\n"
    (tmp_path / "page.tex").write_text(page)
    subprocess.run(["pdflatex", "-halt-on-error", "page.tex"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
