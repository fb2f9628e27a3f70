"""The ten commands of docs/tutorials/comparing.md, from a trace to a paper; their numbers are those of a short loop."""

from __future__ import annotations

import csv
import heapq
import io
import shutil
import subprocess

import pytest

from clustergym.experiments.cli import run
from clustergym.tests.support.docs_blocks import ROOT, commands

GPUS = 8
# job, arrival, GPUs, duration, user
JOBS = (
    *(("a", 0, 8, 100, "ann"), ("b", 5, 8, 60, "bob"), ("c", 10, 2, 50, "ann"), ("d", 12, 4, 30, "eve")),
    *(("e", 90, 6, 40, "bob"), ("f", 95, 1, 200, "eve"), ("g", 95, 8, 25, "ann"), ("h", 130, 2, 70, "bob")),
)
SCRIPT = [words for words in commands(ROOT / "docs" / "tutorials" / "comparing.md") if "Strict" in " ".join(words)]
INSPECT = ["workload", "inspect", "my-trace.csv"]
MYSCHED = """
from clustergym import Advance, Start


class SmallestGangFirst:
    def decide(self, view):
        for job in sorted(view.queue, key=lambda job: (view.gpus(job), job)):
            gpus = view.find_gpus(job, "tier")
            if gpus is not None:
                return Start(job, gpus)
        return Advance()
"""


def jcts(smallest: bool = False, strict: bool = False) -> dict[str, float]:
    """Name -> JCT: waiting jobs start in order while they find GPUs; `strict`: none passes one that does not."""
    coming, ends, waiting, free, found = list(JOBS), [], [], GPUS, {}
    while coming or ends:
        now = min([job[1] for job in coming] + [end[0] for end in ends])
        while ends and ends[0][0] == now:
            free += heapq.heappop(ends)[1]
        waiting += [job for job in coming if job[1] == now]
        coming = [job for job in coming if job[1] > now]
        for job in sorted(waiting, key=lambda job: (job[2], JOBS.index(job)) if smallest else JOBS.index(job)):
            if job[2] <= free:
                free -= job[2]
                heapq.heappush(ends, (now + job[3], job[2]))
                waiting.remove(job)
                found[job[0]] = now + job[3] - job[1]
            elif strict:
                break
    return found


@pytest.fixture
def printed(tmp_path, monkeypatch, capsys):
    """What each of the commands printed, run in a folder with the trace and the policy."""
    (tmp_path / "my-trace.csv").write_text(
        "\n".join(["job_id,arrival_s,gpus,duration_s,user", *(",".join(map(str, job)) for job in JOBS)]) + "\n"
    )
    (tmp_path / "mysched.py").write_text(MYSCHED)
    monkeypatch.chdir(tmp_path)
    found = []
    for words in (INSPECT, *SCRIPT):
        assert run(words) == 0, (words, capsys.readouterr().err)
        found.append(capsys.readouterr().out)
    return found


def mean(values: dict[str, float], names: str = "abcdefgh") -> float:
    return sum(values[name] for name in names) / len(names)


def test_ten_commands_lead_from_a_trace_to_a_paper(printed, tmp_path):
    """Mean JCTs of three policies, a ratio and a mean of one user (ann: a, c, g) are those of the loop."""
    ours, fifo, strict = jcts(smallest=True), jcts(), jcts(strict=True)
    assert len(printed) == 10 and len({mean(ours), mean(fifo), mean(strict)}) == 3
    rows = {row["label"]: row for row in csv.DictReader(io.StringIO(printed[7]))}
    for label, values in (("Ours", ours), ("FIFO", fifo), ("Strict", strict)):
        assert float(rows[label]["jct_mean_s"]) == pytest.approx(mean(values), rel=1e-12)
    assert float(rows["Ours"]["ratio"]) == pytest.approx(mean(ours) / mean(strict), rel=1e-12)
    assert f"Ours & {mean(ours) / mean(strict):.3f} &" in printed[6]
    assert rf"Ours & ann & {mean(ours, 'acg'):.1f} \\" in printed[8]
    with open("jobs.csv", newline="") as file:
        found = {(row["label"], row["job_id"]): float(row["jct_s"]) for row in csv.DictReader(file)}
    wanted = {"Ours": ours, "FIFO": fifo, "Strict": strict}
    assert found == {(label, name): pytest.approx(jct) for label, of in wanted.items() for name, jct in of.items()}
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"jct-ratio.pdf", "jct-cdf.pdf", "gantt-Ours.pdf", "gantt-FIFO.pdf"} <= figures


def test_both_tables_are_typeset_with_a_chart(printed, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    body = "\n\n".join([printed[6], printed[8], r"\includegraphics{figures/gantt-Ours.pdf}"])
    head = r"\documentclass{article}\usepackage{booktabs,textcomp,graphicx}\begin{document}"
    (tmp_path / "page.tex").write_text(f"{head}\n{body}\n\\end{{document}}\n")
    subprocess.run(["pdflatex", "-halt-on-error", "page.tex"], cwd=tmp_path, check=True, capture_output=True)
