"""Workloads over regions in files: what is saved comes back, and what is malformed is one sentence."""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clustergym.experiments.cli import run
from clustergym.experiments.settings.evaluation_setting import Setting, stamps
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.jobs.workload import COLUMNS, WorkloadWarning
from clustergym.simulator.workloads import open_workload
from clustergym.tests.support import geo_small

ROWS = """job_id,arrival_s,gpus,duration_s,tenant,parts,tables,level,recurring,container_s
a,0,24,100,ranking,A100:16 CPU:8,clicks users,0,1,150
b,10,8,7200,vision,V100:8,,,,
"""
TABLES = "table,size_tb,home,replicas\nclicks,0.1,east,west\nusers,2,west,\n"
REGIONS = {"regions": ["east", "west", "south"], "slo_s": [60, None, None, None, None, None, None], "checkpoint_s": 5}
TENANTS = "tenant,gpus,cpu_machines\nvision,16,\n"
HISTORY = (
    "kind,team,gpu_type,gpus,gpu_hours,cpu_hours,level,app,recurring,tables\n"
    "training,0,A100,16,64,1.5,0,,1,clicks\nanalytics,1,,,,8,,0,1,clicks users\n"
)


def written(folder: Path, **changed: str | None) -> Path:
    """The files of a workload; `changed` by ending with "_" for ".", None: not there."""
    whole: dict[str, str | None] = {
        "csv": ROWS,
        "tables_csv": TABLES,
        "regions_json": json.dumps({**REGIONS, "app_cpu_hours": [[8, 0, 0.5]]}),
        "tenants_csv": TENANTS,
        "history_csv": HISTORY,
        **changed,
    }
    for ending, text in whole.items():
        if text is not None:
            (folder / f"mine.{ending.replace('_', '.')}").write_text(text, encoding="utf-8")
    return folder / "mine.csv"


def test_all_files_are_read(tmp_path: Path) -> None:
    workload = open_workload(written(tmp_path))
    geo = workload.geo
    assert geo is not None
    assert geo.regions == ("east", "west", "south") and geo.gpu_types == ("A100", "V100", "CPU")
    assert geo.part_type.tolist() == [[0, 2, -1, -1], [1, -1, -1, -1]]
    assert geo.part_units.tolist() == [[16, 8, 0, 0], [8, 0, 0, 0]]
    assert geo.first.tolist() == [0, 2, 2] and geo.table.tolist() == [0, 1]
    assert geo.level.tolist() == [0, 6] and geo.recurring.tolist() == [True, False]
    assert geo.container_s.tolist() == [150.0, 0.0]
    assert geo.tables.size_bytes.tolist() == [10**11, 2 * 10**12] and geo.tables.home.tolist() == [0, 1]
    assert geo.tables.copies.tolist() == [[True, True, False], [False, True, False]]
    assert geo.tenant_names == ("vision", "ranking") and geo.tenant.tolist() == [1, 0]
    assert geo.quota.tolist() == [[16, 10**9], [10**9, 10**9]]
    assert geo.slo_s.tolist() == [60.0] + [np.inf] * 6 and geo.checkpoint_s == 5.0
    assert geo.history.training.tolist() == [True, False] and geo.history.app.tolist() == [-1, 0]
    assert geo.history.gpu_hours.tolist() == [64.0, 0.0] and geo.history.cpu_hours.tolist() == [1.5, 8.0]
    assert geo.app_cpu_hours.tolist() == [[8.0, 0.0, 0.5]]


def test_rows_and_tables_alone_are_enough(tmp_path: Path) -> None:
    path = written(tmp_path, regions_json=None, tenants_csv=None, history_csv=None)
    geo = open_workload(path).geo
    assert geo is not None
    assert geo.regions == ("east", "west") and geo.quota.min() == 10**9 and np.isinf(geo.slo_s).all()
    assert geo.history.gpu_hours.tolist() == [16 * 100 / 3600] and geo.history.cpu_hours.tolist() == [8 * 100 / 3600]
    assert geo.history.table.tolist() == [0, 1] and geo.app_cpu_hours.shape == (0, 2)


def test_rows_that_read_no_table_need_no_file_of_tables(tmp_path: Path) -> None:
    """They name no regions then, and run in those of any topology; written and read again they are the same."""
    path = written(tmp_path, csv=cell(0, "tables", ""), tables_csv=None, regions_json=None, history_csv=None)
    workload = open_workload(path)
    geo = workload.geo
    assert geo is not None and geo.regions == () and len(geo.tables) == 0 and geo.gpu_types == ("A100", "V100", "CPU")
    workload.save(tmp_path / "again.csv")
    assert open_workload(tmp_path / "again.csv").geo == geo
    named = geo.over(("east", "west"))
    assert named.regions == ("east", "west") and named.tables.copies.shape == named.app_cpu_hours.shape == (0, 2)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"tenants_csv": "tenant,gpus,cpu_machines,gpu\nvision,16,,4\n"},
            "column 'gpu' is not read",
        ),
        ({"tenants_csv": TENANTS + "visoin,4,\n"}, "no job is of tenant 'visoin', whose quota limits nothing"),
        ({"tables_csv": TABLES.replace("replicas", "replica")}, "column 'replica' is not read"),
        ({"history_csv": HISTORY.replace("gpu_hours", "gpu_hour")}, "column 'gpu_hour' is not read"),
    ],
)
def test_what_a_file_beside_it_says_to_no_effect_is_told(tmp_path: Path, changed: dict[str, str], said: str) -> None:
    with pytest.warns(WorkloadWarning, match=said):
        open_workload(written(tmp_path, **changed))


def test_rows_out_of_order_keep_what_they_ask(tmp_path: Path) -> None:
    head, one, other = ROWS.splitlines()
    with pytest.warns(UserWarning, match="sorted by arrival"):
        turned = open_workload(written(tmp_path, csv="\n".join([head, other, one]) + "\n"))
    assert turned.geo is not None and turned.job_id.tolist() == ["a", "b"]
    assert turned.geo.units.tolist() == turned.gpus.tolist() == [24, 8]
    assert turned.geo.level.tolist() == [0, 6]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("word", ["small", "random", "mast-like:jobs=80", "mast-like:days=0.2,gpus=128", "part"])
def test_a_saved_workload_comes_back_bit_for_bit(word: str, ending: str, tmp_path: Path) -> None:
    made: dict[str, Callable[[], object]] = {
        "small": geo_small.small_workload,
        "random": lambda: geo_small.random_workload(3),
        "part": lambda: open_workload("mast-like:jobs=50").take(np.arange(0, 50, 7)),
    }
    before = made.get(word, lambda: open_workload(word))()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before.save(tmp_path / f"w.{ending}")  # type: ignore[attr-defined]
        after = open_workload(tmp_path / f"w.{ending}")
    assert after.geo == before.geo  # type: ignore[attr-defined]
    for column in COLUMNS:
        assert np.array_equal(getattr(before, column), getattr(after, column)), column


def test_names_that_files_cannot_hold_are_refused(tmp_path: Path) -> None:
    geo = geo_small.demands([([(0, 8)], [0], 6, 0, 0.0)], table_names=("two words", "b", "c", "d", "e"))
    workload = geo_small.small_workload().take([0]).with_geo(geo)
    with pytest.raises(InputError, match="table 'two words' cannot be saved; expected a name without spaces"):
        workload.save(tmp_path / "w.csv")


def cell(row: int, column: str, value: str, text: str = ROWS) -> str:
    """A csv with another value in one cell."""
    rows = list(csv.reader(text.splitlines()))
    rows[row + 1][rows[0].index(column)] = value
    return "\n".join(",".join(cells) for cells in rows) + "\n"


BROKEN = {
    "no tables": ({"tables_csv": None}, "mine.tables.csv: no such file; expected the tables that the jobs of"),
    "no parts": ({"csv": cell(1, "parts", "")}, "line 3, column 'parts': ''; expected one to 4 of TYPE:UNITS"),
    "five parts": ({"csv": cell(0, "parts", "A:1 B:2 C:3 D:4 E:5")}, "line 2, column 'parts': 'A:1 B:2 C:3 D:4 E:5'"),
    "no units": ({"csv": cell(0, "parts", "A100:16 CPU")}, "expected one to 4 of TYPE:UNITS, separated by spaces"),
    "zero units": ({"csv": cell(0, "parts", "A100:24 CPU:0")}, "expected parts of at least 1 unit each"),
    "huge units": ({"csv": cell(0, "parts", "A100:9999999999")}, "expected parts of at least 1 unit each"),
    "sum": ({"csv": cell(0, "gpus", "25")}, "line 2, column 'gpus': '25'; expected 24, the units of its parts"),
    "level": ({"csv": cell(0, "level", "7")}, "line 2, column 'level': '7'; expected a whole number from 0 to 6"),
    "recurring": ({"csv": cell(0, "recurring", "maybe")}, "column 'recurring': 'maybe'; expected a whole number"),
    "container": ({"csv": cell(0, "container_s", "-1")}, "column 'container_s': '-1'; expected a number from 0"),
    "table": ({"csv": cell(0, "tables", "clickz")}, "line 2, column 'tables': 'clickz'; expected names of tables in"),
    "twice": ({"csv": cell(0, "tables", "clicks clicks")}, "'clicks clicks'; expected each table once"),
    "home": ({"tables_csv": cell(0, "home", "north", TABLES)}, "unknown name in"),
    "replica": ({"tables_csv": cell(0, "replicas", "wst", TABLES)}, "did you mean 'west'"),
    "size": ({"tables_csv": cell(1, "size_tb", "0", TABLES)}, "mine.tables.csv, line 3, column 'size_tb': '0'"),
    "large": ({"tables_csv": cell(1, "size_tb", "1e9", TABLES)}, "column 'size_tb': '1e9'; expected a number above 0"),
    "name": ({"tables_csv": cell(1, "table", "clicks", TABLES)}, "expected a name of its own (line 2 has it too)"),
    "spaces": ({"tables_csv": cell(1, "table", "two words", TABLES)}, "'two words'; expected a name without spaces"),
    "no home": ({"tables_csv": "table,size_tb\nclicks,1\n"}, "column 'home' is missing"),
    "cut off": ({"tables_csv": "table,size_tb,home,replicas\nclicks,1\n"}, "line 2: 2 fields; expected 4"),
    "empty": ({"tables_csv": ""}, "mine.tables.csv: the file is empty; expected a trace file"),
    "not json": ({"regions_json": "{"}, "mine.regions.json': line 1, column 2: not JSON"),
    "key": ({"regions_json": '{"region": []}'}, "region: unknown key; did you mean 'regions'"),
    "slo": ({"regions_json": '{"slo_s": [1, 2]}'}, "slo_s = a list: expected a list with at least 7 items"),
    "slos": ({"regions_json": '{"slo_s": [1, 1, 1, 1, 1, 1, 1, 1]}'}, "slo_s = a list: expected a list with at most 7"),
    "negative": ({"regions_json": '{"checkpoint_s": -1}'}, "checkpoint_s = -1: expected at least 0"),
    "two easts": ({"regions_json": '{"regions": ["east", "west", "east"]}'}, "regions has 'east' twice"),
    "types": ({"regions_json": '{"gpu_types": ["H100"]}'}, "unknown name in"),
    "CPU": ({"regions_json": '{"gpu_types": ["A100", "CPU"]}'}, "gpu_types has 'CPU'; expected GPUs"),
    "apps": (
        {"regions_json": '{"regions": ["east", "west"], "app_cpu_hours": [[1]]}'},
        "app_cpu_hours[0] has 1 values; expected one for each of its regions",
    ),
    "quota": ({"tenants_csv": cell(0, "gpus", "-4", TENANTS)}, "mine.tenants.csv, line 2, column 'gpus': '-4'"),
    "tenants": ({"tenants_csv": TENANTS + "vision,1,1\n"}, "expected a name of its own (line 2 has it too)"),
    "kind": (
        {"history_csv": cell(0, "kind", "spark", HISTORY)},
        "'kind': 'spark'; expected training or analytics",
    ),
    "type": ({"history_csv": cell(0, "gpu_type", "H100", HISTORY)}, "'H100'; expected one of A100, V100"),
    "history without tables": (
        {"history_csv": HISTORY.replace(",tables", ",reads", 1)},
        "mine.history.csv: column 'tables' is missing; it has:",
    ),
    "history without kind": (
        {"history_csv": HISTORY.replace("kind", "sort", 1)},
        "mine.history.csv: column 'kind' is missing; it has:",
    ),
    "quota of a misspelt column": (
        {"tenants_csv": TENANTS.replace("gpus", "gpu")},
        "mine.tenants.csv: column 'gpus' is missing; did you mean 'gpu'? it has: 'tenant, gpu, cpu_machines'",
    ),
    "quota without a column": (
        {"tenants_csv": "tenant,gpus\nvision,16\n"},
        "mine.tenants.csv: column 'cpu_machines' is missing",
    ),
    "app": ({"history_csv": cell(1, "app", "3", HISTORY)}, "column 'app': '3'; expected a whole number from -1 to 0"),
    "no reads": (
        {"history_csv": cell(1, "tables", "", HISTORY)},
        "line 3, column 'tables': ''; expected one table",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_malformed_file_is_one_sentence(case: str, tmp_path: Path) -> None:
    changed, said = BROKEN[case]
    path = written(tmp_path, **changed)
    with pytest.raises(InputError) as error:
        open_workload(path)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert "mine." in str(error.value)


def test_columns_without_parts_are_not_taken_for_regions(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("job_id,arrival_s,gpus,duration_s,level\na,0,1,5,3\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="level is read, but nothing outside regions heeds"):
        assert open_workload(tmp_path / "plain.csv").geo is None


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_generate_inspect_and_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = str(tmp_path / "w.csv"), str(tmp_path / "v.parquet")
    code, said, _ = call(
        capsys, "workload", "generate", "mast-like:gpus=128", "--jobs", "60", "--seed", "4", "--to", path
    )
    assert code == 0 and "60 jobs" in said
    names = {"csv", "tables.csv", "regions.json", "tenants.csv", "history.csv"}
    assert {file.name for file in tmp_path.iterdir()} == {f"w.{name}" for name in names}
    code, said, _ = call(capsys, "workload", "inspect", path)
    assert code == 0
    for words in ("over 4 regions", "Units by type", "A100", "Levels (0 is the highest)", "jobs that read a table"):
        assert words in said
    code, said, _ = call(capsys, "workload", "inspect", path, "--json")
    facts = json.loads(said)["regions"]
    geo = open_workload(path).geo
    assert geo is not None and facts["regions"] == 4 and facts["tables"]["tables"] == len(geo.tables)
    assert sum(facts["levels"]) == pytest.approx(1) and sum(facts["parts"]) == pytest.approx(1)
    hours = open_workload(path).duration_s / 3600
    assert sum(row["unit_hours"] for row in facts["types"]) == pytest.approx((geo.units * hours).sum())
    assert call(capsys, "workload", "convert", path, "--to", other)[0] == 0
    assert open_workload(other).geo == geo


def test_generating_to_the_terminal_says_what_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, warned = call(capsys, "workload", "generate", "mast-like:jobs=3,gpus=128")
    assert code == 0 and len(said.splitlines()) == 4 and ",parts,tables,recurring," in said.splitlines()[0]
    assert "tables, quotas and history are not printed; --to OUT.csv" in warned
    code, said, _ = call(capsys, "workload", "generate", "mast-like:jobs=3,gpus=128", "--json")
    assert code == 0 and set(json.loads(said)[0]) >= {"parts", "tables", "level", "recurring", "container_s"}


def test_what_there_is_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = call(capsys, "topologies", "--json")
    row = next(row for row in json.loads(said) if row["name"] == "mast")
    assert code == 0 and row["gpus"] == 256 and "regions" in row["parameters"]
    code, said, _ = call(capsys, "workloads", "--json")
    row = next(row for row in json.loads(said) if row["name"] == "mast-like")
    assert code == 0 and row["kind"] == "generator" and "days=1.0" in row["parameters"]


def test_bad_input_on_the_command_line_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, csv=cell(0, "tables", "clickz"))
    for words in (("workload", "inspect", str(path)), ("workload", "inspect", "mast-like:regions=99")):
        code, _, said = call(capsys, *words)
        assert code in (1, 2) and "Traceback" not in said and said.startswith("clustergym: ") and said.count("\n") == 1


def test_a_file_beside_a_workload_that_changes_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path)
    setting = Setting.of("clustergym/Delay-v0", "small", str(path), "none")
    before = stamps(setting)
    (tmp_path / "mine.tables.csv").write_text(TABLES + "more,1,west,\n", encoding="utf-8")
    assert stamps(setting) != before
