"""Tables of stretches and of copies, and costs that an independent script computes from them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from clustergym.experiments.cli import run
from clustergym.tests.support import cost_reference

REGIONS = ("region0", "region1", "region2")
WATTS, EGRESS, STORAGE = "V100:40/300,A100:55/400,H100:75/700,CPU:100/350", 0.05, 20.0
SHORT = ("mast-like:regions=3,gpus=96,days=3,jobs=60,longest_h=12,tables=30", "3000", "2")
YEAR = ("mast-like:regions=3,gpus=96,days=365,jobs=2500,longest_h=48,tables=100", "8760", "1")


@pytest.fixture
def places(tmp_path):
    """A topology of three regions with all types, and where its prices, and the tables, will be."""
    clusters = "".join(
        f"      - {{name: {kind.lower()}, gpu_type: {kind}, gpu_machines: {machines}, gpus_per_machine: 8, "
        f"cpu_machines: {cpus}, machines_per_rack: 4}}\n"
        for kind, machines, cpus in (("V100", 4, 40), ("A100", 4, 8), ("H100", 3, 0))
    )
    regions = "".join(f"  - name: {name}\n    storage_tb: 400\n    clusters:\n{clusters}" for name in REGIONS)
    (tmp_path / "regions.yaml").write_text(f"name: three\nwan_gbps: 2\nregions:\n{regions}")
    return tmp_path


def write_prices(path, hours):
    rng = np.random.default_rng(4)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["region", "hour", "price_per_mwh", "carbon_g_per_kwh"])
        for region in REGIONS:
            for hour in range(hours):
                writer.writerow([region, hour, rng.uniform(-20.0, 90.0), rng.uniform(50.0, 650.0)])


def off_by(folder, capsys, workload, hours, seeds, policies, *more):
    """How far metrics are from what the tables say, relative, by run and name."""
    write_prices(folder / "prices.csv", int(hours))
    tables = ("--stretches-table", str(folder / "jobs.csv"), "--copies-table", str(folder / "copies.csv"))
    given = (f"prices={folder / 'prices.csv'}", f"watts={WATTS}", f"egress_per_gb={EGRESS}")
    given += (f"storage_per_tb_month={STORAGE}", "region_mtbf_s=300000", "region_mttr_s=9000", *more)
    words = ("--topology", str(folder / "regions.yaml"), "--workload", workload, "--policies", policies)
    told = ("--seeds", f"0-{int(seeds) - 1}", "--json", "--quiet")
    assert run(["evaluate", "Geo", *words, "--set", " ".join(given), *tables, *told]) == 0
    (folder / "runs.json").write_text(capsys.readouterr().out)
    names = ("runs.json", "jobs.csv", "copies.csv", "regions.yaml", "prices.csv")
    found = cost_reference.compared(*(folder / name for name in names), WATTS, EGRESS, STORAGE)
    return {(policy, seed, name): abs(metric / ours - 1.0) for policy, seed, name, metric, ours in found}


def test_costs_are_those_that_a_script_computes_from_the_tables(places, capsys):
    """Copies on demand, moves, replicas, preemptions, outages: all of them are in the tables."""
    found = off_by(places, capsys, *SHORT, "mast random")
    assert len(found) == 2 * 2 * 6 and max(found.values()) < 1e-9
    copies = cost_reference.rows_of(places / "copies.csv")
    assert any(row["from"] for row in copies) and any(row["dropped_s"] for row in copies)
    assert {row["to"] for row in copies} == set(REGIONS)
    runs = json.loads((places / "runs.json").read_text())
    moved = sum(float(row["bytes"]) for row in copies if row["from"])
    assert moved >= sum(one["metrics"]["bytes_moved"] for one in runs) > 0.0


def test_costs_are_of_the_type_on_which_a_workload_ran(places, capsys):
    """Most workloads accept all types, which differ in speed; some run on one, and later on another."""
    (places / "speeds.csv").write_text("model,type,speed\n*,V100,0.5\n*,H100,2.5\n")
    workload = f"{SHORT[0]},any_type=0.7".replace("jobs=60", "jobs=250")
    found = off_by(places, capsys, workload, *SHORT[1:], "mast random", f"speeds={places / 'speeds.csv'}")
    assert len(found) == 2 * 2 * 6 and max(found.values()) < 1e-9
    rows = cost_reference.rows_of(places / "jobs.csv")
    types = {}
    for row in rows:
        if row["gpu_type"] != "CPU":
            types.setdefault((row["policy"], row["seed"], row["job_id"]), set()).add(row["gpu_type"])
    assert {kind for kinds in types.values() for kind in kinds} == {"V100", "A100", "H100"}
    assert any(len(kinds) > 1 for kinds in types.values())


@pytest.mark.slow
def test_costs_of_a_year_are_those_that_a_script_computes_from_the_tables(places, capsys):
    found = off_by(places, capsys, *YEAR, "mast")
    assert len(found) == 6 and max(found.values()) < 1e-9
    assert json.loads((places / "runs.json").read_text())[0]["metrics"]["makespan"] > 360 * 86_400.0


def test_tables_are_kept_with_the_runs_of_a_folder(places, capsys):
    write_prices(places / "prices.csv", 24)
    words = ("evaluate", "Geo", "--policies", "mast", "--seeds", "0", "--quiet", "--topology")
    words += (str(places / "regions.yaml"), "--workload", SHORT[0], "--logdir", str(places / "out"))
    for name in ("first.csv", "again.csv"):
        assert (
            run([*words, "--copies-table", str(places / name), "--stretches-table", str(places / f"jobs-{name}")]) == 0
        )
    assert (places / "first.csv").read_text() == (places / "again.csv").read_text()
    jobs = cost_reference.rows_of(places / "jobs-first.csv")
    assert (places / "jobs-again.csv").read_text() == (places / "jobs-first.csv").read_text()
    assert {row["gpu_type"] for row in jobs} >= {"CPU"} and all(
        float(row["end_s"]) > float(row["start_s"]) for row in jobs
    )
    assert "copies:" in capsys.readouterr().out


def test_a_cluster_of_one_place_has_a_table_of_jobs_and_none_of_copies(tmp_path, capsys):
    words = ["evaluate", "Delay", "--policies", "fifo", "--seeds", "0", "--topology", "flat:machines=1", "--quiet"]
    words += ["--workload", "batch:jobs=4", "--network", "none"]
    assert run([*words, "--stretches-table", str(tmp_path / "jobs.csv")]) == 0
    assert len({row["job_id"] for row in cost_reference.rows_of(tmp_path / "jobs.csv")}) == 4
    assert run([*words, "--copies-table", str(tmp_path / "copies.csv")]) == 2
    assert "clustergym/Delay-v0 has no regions" in capsys.readouterr().err
