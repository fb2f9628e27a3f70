"""What a run over regions cost, computed from its tables alone: an independent check of the simulator's metrics.

    python tests/support/cost_reference.py RUNS.json JOBS.csv COPIES.csv TOPOLOGY.yaml PRICES.csv \
        --watts A100:55/400,CPU:100/350 --egress 0.02 --storage 23

RUNS.json is what `clustergym evaluate Geo ... --json --stretches-table JOBS.csv --copies-table COPIES.csv` printed; of
it only the makespan is used, and the metrics are what is compared. Nothing here is imported from clustergym: hours are
walked through one by one, and every row of a table is paid for by itself.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections import defaultdict
from pathlib import Path

import yaml

HOUR_S, MONTH_H = 3600.0, 730.0
NAMES = ("energy_kwh", "energy_cost", "carbon_kg", "egress_cost", "storage_cost", "cost_total")


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def units_of(topology):
    """(region, type) -> units of the cluster, by hand from the file."""
    found = defaultdict(int)
    for region in yaml.safe_load(Path(topology).read_text())["regions"]:
        for cluster in region["clusters"]:
            gpus = cluster.get("gpu_machines", 0) * cluster.get("gpus_per_machine", 8)
            if gpus:
                found[region["name"], cluster["gpu_type"]] += gpus
            if cluster.get("cpu_machines", 0):
                found[region["name"], "CPU"] += cluster["cpu_machines"]
    return found


def watts_of(text):
    found = {}
    for part in text.split(","):
        kind, _, both = part.partition(":")
        free, _, held = both.partition("/")
        found[kind] = float(free), float(held)
    return found


class Hours:
    """Price and carbon of every hour, by region."""

    def __init__(self, path):
        self.values = defaultdict(dict)
        for row in rows_of(path):
            told = float(row["price_per_mwh"]), float(row["carbon_g_per_kwh"])
            self.values[row["region"]][int(row["hour"])] = told

    def drawn(self, region, watts, start_s, end_s):
        """kWh, $ and kg of so many watts from one instant to another, hour by hour."""
        kwh, dollars, grams = [], [], []
        hour = math.floor(start_s / HOUR_S)
        while hour * HOUR_S < end_s:
            lasts_s = min(end_s, (hour + 1) * HOUR_S) - max(start_s, hour * HOUR_S)
            price, carbon = self.values[region][hour % len(self.values[region])]
            energy = watts * lasts_s / HOUR_S / 1000.0
            kwh.append(energy)
            dollars.append(energy * price / 1000.0)
            grams.append(energy * carbon)
            hour += 1
        return math.fsum(kwh), math.fsum(dollars), math.fsum(grams) / 1000.0


def costs(run, jobs, copies, units, hours, watts, egress, storage):
    """The metrics of one run, by name; `jobs` and `copies` are its rows."""
    begin_s = min(float(row["start_s"]) for row in copies)  # where tables lie first is told at the first arrival
    end_s = begin_s + run["metrics"]["makespan"]
    parts = [hours.drawn(region, count * watts[kind][0], begin_s, end_s) for (region, kind), count in units.items()]
    for row in jobs:
        free, held = watts[row["gpu_type"]]
        more = int(row["gpus"]) * (held - free)
        parts.append(hours.drawn(row["region"], more, float(row["start_s"]), float(row["end_s"])))
    kwh, dollars, kg = (math.fsum(column) for column in zip(*parts, strict=True))
    sent = math.fsum(float(row["bytes"]) for row in copies if row["from"])
    lay = math.fsum(
        float(row["stored_bytes"]) / 1e12 * ((float(row["dropped_s"] or end_s) - float(row["start_s"])) / HOUR_S)
        for row in copies
    )
    found = (kwh, dollars, kg, sent / 1e9 * egress, lay / MONTH_H * storage)
    return dict(zip(NAMES, (*found, found[1] + found[3] + found[4]), strict=True))


def compared(runs, jobs, copies, topology, prices, watts, egress, storage):
    """(policy, seed, name, metric, from the tables) of every metric of every run."""
    every_job, every_copy, units, hours = rows_of(jobs), rows_of(copies), units_of(topology), Hours(prices)
    for run in json.loads(Path(runs).read_text()):
        key = run["policy"], str(run["seed"])
        own_jobs, own_copies = (
            [row for row in rows if (row["policy"], row["seed"]) == key] for rows in (every_job, every_copy)
        )
        ours = costs(run, own_jobs, own_copies, units, hours, watts_of(watts), egress, storage)
        for name in NAMES:
            yield (*key, name, run["metrics"][name], ours[name])


def main():
    parser = argparse.ArgumentParser(description="Compares the costs of runs with what their tables say.")
    for name in ("runs", "jobs", "copies", "topology", "prices"):
        parser.add_argument(name)
    parser.add_argument("--watts", required=True)
    parser.add_argument("--egress", type=float, required=True)
    parser.add_argument("--storage", type=float, required=True)
    worst = 0.0
    for policy, seed, name, metric, ours in compared(**vars(parser.parse_args())):
        off = abs(metric - ours) / max(abs(ours), 1e-12)
        worst = max(worst, off)
        print(f"{policy} {seed} {name}: {metric!r} from the simulator, {ours!r} from the tables, off by {off:.1e}")
    print(f"worst: {worst:.1e}")
    return int(worst > 1e-9)


if __name__ == "__main__":
    sys.exit(main())
