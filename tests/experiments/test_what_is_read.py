"""Identity is content: whatever a run reads decides what it is compared with and whether it is played anew.

The options that may be files are found by their marks, and those without a mark are tried with the path of a file:
a new option needs no edit here.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import io
import json
import shutil
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from clustergym import policies
from clustergym.agents.training.config import make_config
from clustergym.agents.training.what_is_read import read_in
from clustergym.envs.configured import config_class, options_of
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.cli import run
from clustergym.experiments.playing import evaluation
from clustergym.experiments.playing.runs import Run
from clustergym.experiments.report import load
from clustergym.experiments.settings.evaluation_setting import Setting, stamps
from clustergym.experiments.storing import identity, store
from clustergym.experiments.storing.run_files import StoredRunWarning
from clustergym.policies.registry import POLICIES
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.topology import PRESETS, Topology
from clustergym.simulator.configuration.network_choice import NETWORKS, load_network
from clustergym.simulator.files.file_marks import HERE, marks_of, without_files
from clustergym.simulator.profiles.measured_tables import read_tables
from clustergym.simulator.workloads import FORMATS, GENERATORS, open_workload, read_trace
from clustergym.tests.support.training_tables import write_tables

DELAY, FILE = "clustergym/Delay-v0", "mine.csv"
TRACE = "job_id,arrival_s,gpus,duration_s\n1,0,4,{}\n2,5,8,{}\n"
SMALL = ("--workload", "t.csv", "--topology", "flat:machines=1", "--network", "none")
METRICS = {"jct_mean": 1.0, "jobs_finished": 1.0}


def marks_in(kind: type) -> dict:
    """Option -> its mark, of a description and of the groups in it."""
    found = dict(marks_of(kind))
    for one in fields(kind):
        found |= marks_of(one.metadata["group"]) if "group" in one.metadata else {}
    return found


def words_of(mark) -> Iterator[str]:
    """The words with which a value may name a file: `{}` stands for the path."""
    if without_files(FILE, mark) == HERE:
        yield "{}"
    for name in mark.known if isinstance(mark.known, dict) else ():
        yield from (f"{name}:{parameter}={{}}" for parameter in marks_of(mark.known[name]))


def cases() -> list[tuple[str, str, str]]:
    """(environment, option, word) of all that may be a file, each once."""
    found: dict[tuple[str, str], str] = {}
    for environment in ENVIRONMENTS:
        known = {"topology", "network", *options_of(environment)}
        marks = marks_of(Setting) | marks_in(config_class(environment))
        for option, mark in marks.items():
            if option == "workload" or option in known:
                for word in words_of(mark):
                    found.setdefault((option, word), environment)
    return [(environment, *key) for key, environment in found.items()]


CASES = cases()


def setting_with(environment: str, option: str, word: str) -> Setting:
    """A setting with that value, and with what the option needs."""
    known = config_class(environment).options()
    needed = known[option].needs[:1] if option in known else ()
    return Setting.of(environment, **{option: word}, **dict.fromkeys(needed, 2))


@pytest.fixture
def played(monkeypatch) -> list[str]:
    """Policies that were played; nothing is simulated."""
    seen: list[str] = []

    def play(setting, player, seed, *rest):
        seen.append(player)
        return Run(player, seed, METRICS, 1, np.ones(1))

    monkeypatch.setattr(evaluation, "play", play)
    return seen


def evaluated(folder: Path, setting: Setting) -> None:
    words = policies.able(setting.environment, "exact", True)[:1]
    opened = store.open_store(folder, setting, words)
    evaluation.evaluate(setting, words, [0], store=opened)


def test_what_may_be_a_file_is_found():
    """What there was when this was written, at least."""
    found = {(option, word.partition("=")[0]) for _, option, word in CASES}
    assert {("workload", "{}"), ("topology", "{}"), ("topology", "hosts:file"), ("network", "penalty:table")} <= found
    assert ("topology", "nodes:file") in found
    assert {("network", f"contention:{name}") for name in ("models", "degraded")} <= found
    names = ("calibration", "tiers", "layers", "profiles", "tables")
    assert {("network", f"allreduce:{name}") for name in names} <= found
    assert {
        (name, "{}") for name in ("interference", "profiles", "outages", "fault_groups", "prices", "speeds")
    } <= found


@pytest.mark.parametrize(("environment", "option", "word"), CASES)
def test_two_contents_under_one_word_are_two_sections_and_one_under_two_paths_is_one(
    environment, option, word, tmp_path, monkeypatch, played
):
    """a, b: the same word, other files. c: another word, the file of a: it belongs to a."""
    for place, name, content in (("a", FILE, "one"), ("b", FILE, "two"), ("c", "other.csv", "one")):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        Path(name).write_text(content)
        evaluated(tmp_path / place / "out", setting_with(environment, option, word.format(name)))
    sections = load.load([tmp_path / place / "out" for place in "abc"]).sections
    assert [[folder.parent.name for folder in one.folders] for one in sections] == [["a", "c"], ["b"]]
    assert [one.place for one in sections] == ["a/out, c/out", "b/out"]


@pytest.mark.parametrize(("environment", "option", "word"), CASES)
def test_after_an_edit_of_a_file_all_is_played_anew(environment, option, word, tmp_path, monkeypatch, played):
    monkeypatch.chdir(tmp_path)
    path = Path(FILE)
    setting = setting_with(environment, option, word.format(FILE))
    path.write_text("one")
    for _ in range(2):
        evaluated(tmp_path / "out", setting)
    assert len(played) == 1
    path.write_text("two")
    with pytest.warns(StoredRunWarning, match=f"the {option} ha(s|ve) changed"):
        evaluated(tmp_path / "out", setting)
    assert len(played) == 2


@pytest.mark.parametrize(("environment", "option", "word"), CASES)
def test_a_training_knows_each_file_that_it_reads(environment, option, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = config_class(environment).options()
    env = {option: word.format(FILE), **dict.fromkeys(known[option].needs[:1], 2)} if option in known else {}
    scenario = {"name": "own", **ENVIRONMENTS[environment].defaults}
    scenario |= {} if env else {option: word.format(FILE)}
    scenario |= {"workloads": [scenario.pop("workload")]}
    values = {"environment": environment, "env": env, "training": [scenario], "validation": [scenario]}
    config = make_config(values | {"reference": policies.able(environment, "exact", True)[0]}, "")
    found = []
    for content in ("one", "two", "one"):
        Path(FILE).write_text(content)
        found.append(read_in(config))
    name = "workload 1" if option == "workload" else option
    assert found[0].keys() >= {f"{name} of {kind} scenario own" for kind in ("training", "validation")}
    assert found[0] == found[2] and not set(found[0].values()) & set(found[1].values())


def test_the_files_of_a_folder_count_one_by_one(tmp_path):
    folder = tmp_path / "tables" / "bert"
    folder.mkdir(parents=True)
    (folder / "validation-8.csv").write_text("one")
    setting = Setting.of(DELAY, network=f"allreduce:gpu=t4,tables={tmp_path / 'tables'}")
    before = identity.content(setting), stamps(setting)
    (folder / "placements.csv").write_text("one")
    assert identity.content(setting) != before[0] and stamps(setting) != before[1]


@pytest.mark.parametrize("folder", [".", "..", "traces", "traces/"])
def test_a_folder_where_a_file_is_expected_is_refused_whatever_its_name(folder, tmp_path, monkeypatch, capsys):
    """Files beside it have names that begin with its own: `...tables.csv` is not in `..`."""
    (tmp_path / "here" / "traces").mkdir(parents=True)
    for name in ("traces.tables.csv", ".tables.csv"):
        (tmp_path / "here" / name).write_text("table_id\n")
    monkeypatch.chdir(tmp_path / "here")
    assert run(["evaluate", "Delay", "--policies", "fifo", "--workload", folder, "--seeds", "0", "--quiet"]) == 1
    assert "Traceback" not in (said := capsys.readouterr().err) and "folder" in said


def test_a_network_that_is_handed_over_is_known_by_the_content_of_its_file(tmp_path):
    setting = Setting.of("clustergym/TimeShift-v0", None, "cassini-poisson:jobs=4")
    phases = [{"iteration_s": 0.2, "phases": [{"start_s": 0.1, "duration_s": 0.09, "gbps": 40}]}]
    found = []
    for gbps in (40, 40, 20):
        phases[0]["phases"][0]["gbps"] = gbps
        (tmp_path / f"{len(found)}.json").write_text(json.dumps({"models": {"mine": phases}}))
        network = load_network(f"contention:models={tmp_path / f'{len(found)}.json'}")
        found.append(identity.content(setting.copy_with(network=network)))
    assert found[0] == found[1] != found[2]


def test_own_code_is_the_same_wherever_it_lies(tmp_path, monkeypatch):
    """And another with another file that its parameter names."""
    monkeypatch.setenv("CLUSTERGYM_TRUST_PY", "1")
    code = "from clustergym import Topology\ndef racks(path):\n    return Topology.load('flat:machines=1')\n"
    found = []
    for place, data in (("a", "1"), ("b", "1"), ("c", "2")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "own.py").write_text(code)
        (tmp_path / place / "data.txt").write_text(data)
        monkeypatch.chdir(tmp_path / place)
        found.append(identity.content(Setting.of(DELAY, "py:own.py:racks,path=data.txt")))
    assert found[0] == found[1] != found[2]


# ---- what has no mark


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """Paths that were to be opened."""
    seen: list[str] = []
    for module in (builtins, io):
        original = module.open

        def spy(file, *rest, original=original, **more):
            seen.append(str(file))
            return original(file, *rest, **more)

        monkeypatch.setattr(module, "open", spy)
    return seen


def is_opened(asked: list[str], path: str, use) -> bool:
    Path(path).write_text("no report\n")
    asked.clear()
    with suppress(InputError):
        use()
    return path in asked


def texts(function) -> list[str]:
    """Parameters without a mark."""
    marks = marks_of(function)
    return [name for name in inspect.signature(function).parameters if name not in marks and name != "path"]


def test_options_without_the_mark_open_no_file(tmp_path, asked):
    """And those with it do: what is tried would find one."""
    path = str(tmp_path / FILE)
    unmarked, marked = [], []
    for environment in ENVIRONMENTS:
        marks = marks_in(config_class(environment))
        for option in options_of(environment):

            def use(option=option, environment=environment):
                setting_with(environment, option, path).config.check()

            if is_opened(asked, path, use):
                (marked if option in marks else unmarked).append(option)
    assert not unmarked
    assert set(marked) == {option for _, option, word in CASES if option not in ("workload", "topology", "network")}


def test_parameters_without_the_mark_open_no_file(tmp_path, asked):
    path = str(tmp_path / FILE)
    opens = {"network": (NETWORKS, load_network), "topology": (PRESETS, Topology.load)}
    opens["workload"] = (GENERATORS, open_workload)
    for registry, open_word in opens.values():
        for name, function in registry.items():
            for parameter in texts(function):
                word = f"{name}:{parameter}={path}"
                assert not is_opened(asked, path, lambda word=word, open_word=open_word: open_word(word)), word
    (tmp_path / "trace.csv").write_text(TRACE.format(1, 1))
    for form in FORMATS.values():
        for parameter in texts(form.read):
            word = f"{form.name}:{parameter}={path}"
            assert not is_opened(asked, path, lambda word=word: read_trace(tmp_path / "trace.csv", word)), word
    for name, entry in POLICIES.items():
        for parameter in inspect.signature(entry.factory).parameters:
            word = f"{name}:{parameter}={path}"
            made = functools.partial(policies.make_for, word, entry.environments[0])
            assert not is_opened(asked, path, made), word


def test_every_file_that_is_opened_while_one_plays_is_known(tmp_path, asked):
    """A tiers file with the layer table that it names, a topology, and a trace."""
    data = identity.PACKAGE / "simulator" / "network" / "data"
    for name in ("artist.yaml", "artist_layers.csv"):
        shutil.copy(data / name, tmp_path)
    (tmp_path / "two.yaml").write_text("{machines: 2, gpus_per_slot: 8}\n")
    (tmp_path / "jobs.csv").write_text("job_id,arrival_s,gpus,duration_s,model\n1,0,16,100,VGG\n")
    setting = Setting.of(
        DELAY, tmp_path / "two.yaml", str(tmp_path / "jobs.csv"), f"allreduce:calibration={tmp_path / 'artist.yaml'}"
    )
    evaluation.play(setting, "fifo", 0)
    mine = {path for path in asked if path.startswith(str(tmp_path))}
    assert len(mine) == 4 and mine <= {path for part in stamps(setting) for path, _ in part}


# ---- what shows runs goes with them


@pytest.mark.parametrize("more", [[], ["--fresh"]], ids=["edited", "fresh"])
def test_what_shows_runs_leaves_the_folder_with_them(tmp_path, monkeypatch, more):
    """Event files, charts and the page of compare; pictures and pages of others stay."""
    monkeypatch.chdir(tmp_path)
    words = ["evaluate", "Delay", *SMALL, "--seed", "0", "--logdir", "out"]
    Path("t.csv").write_text(TRACE.format(100, 200))
    clustergym(*words, "--policies", "fifo sjf las")
    clustergym("compare", "out")
    out, mine = Path("out"), {"mine.svg", "mine.html"}
    shown = {"sjf", "las", "gantt-sjf.svg", "gantt-las.svg", "jct-ratio.svg", "report.html"}
    assert shown <= {path.name for path in out.iterdir()}
    for name in mine:
        (out / name).write_text("mine")
    (out / "las" / "notes.txt").write_text("mine")
    if not more:
        Path("t.csv").write_text(TRACE.format(1000, 2000))
    clustergym(*words, "--policies", "fifo", *more)
    left = {path.name for path in out.iterdir()}
    assert not left & (shown - {"las"}) and left >= mine | {"fifo", "gantt-fifo.svg", "results.parquet"}
    assert [path.name for path in (out / "las").iterdir()] == ["notes.txt"]


def test_what_shows_runs_of_another_content_is_gone_before_the_first_is_played(tmp_path, monkeypatch):
    """An interrupted command leaves no old picture beside new runs."""
    monkeypatch.chdir(tmp_path)
    setting = Setting.of(DELAY, "flat:machines=1", "t.csv", "none")
    Path("t.csv").write_text(TRACE.format(100, 200))
    clustergym("evaluate", "Delay", *SMALL, "--policies", "fifo", "--seed", "0", "--logdir", "out")
    Path("t.csv").write_text(TRACE.format(1000, 2000))
    with pytest.warns(StoredRunWarning, match="leave tables and pictures"):
        store.open_store(Path("out"), setting, ["fifo"])
    assert {path.name for path in Path("out").iterdir()} == {"command.json", "evaluation.json", "runs"}


# ---- as a user meets it


def clustergym(*words: str) -> None:
    assert run([*words, "-q"]) == 0


def test_compare_of_two_traces_of_one_name_has_two_sections_and_no_ratio(tmp_path, monkeypatch, capsys):
    """Jobs of 100 and 200 s on 8 GPUs: 4 GPUs from 0 to 100, then 8 from 100 to 300: (100 + 295) / 2 = 197.5 s."""
    for place, policy, scale in (("a", "fifo", 1), ("b", "sjf", 10)):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        Path("t.csv").write_text(TRACE.format(100 * scale, 200 * scale))
        clustergym("evaluate", "Delay", *SMALL, "--seed", "0", "--policies", policy, "--logdir", "out")
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    clustergym("compare", "a/out", "b/out", "--baseline", "fifo", "--json")
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert [one["folders"] for one in settings] == [["a/out"], ["b/out"]]
    means = [one["policies"][0]["metrics"]["jct_mean"]["mean"] for one in settings]
    assert means == [197.5, 1997.5] and settings[1]["policies"][0]["ratio"] is None
    clustergym("compare", "a/out", "b/out")
    said = capsys.readouterr().out
    assert "folder       a/out" in said and "folder       b/out" in said and "times as long" not in said
    assert '<h2 id="head-2">Delay-v0, b/out, setting 2</h2>' in Path("a/out/report.html").read_text()


def test_an_edit_of_interference_plays_what_a_fresh_folder_plays(tmp_path, monkeypatch):
    """Two jobs of 1,000 s on one GPU, side by side from 0 s on: 1.1 times as long, then 1.9 times."""
    monkeypatch.chdir(tmp_path)
    models = "1,0,1,1000,bert,32\n2,0,1,1000,ncf,32\n"
    Path("t.csv").write_text(f"job_id,arrival_s,gpus,duration_s,model,batch_size\n{models}")
    setting = Setting.of("clustergym/Sharing-v0", "flat:machines=1,gpus_per_machine=1", "t.csv", "none")
    setting = setting.copy_with(interference=FILE, memory_gb=None)
    found = []
    for xi in (1.1, 1.9):
        rows = (f"{one},{other},{xi}\n" for one in ("bert", "ncf") for other in ("bert", "ncf"))
        Path(FILE).write_text(f"victim,with,xi\n{''.join(rows)}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoredRunWarning)
            opened = store.open_store(Path("out"), setting, ["sjf-ffs"])
        found += evaluation.evaluate(setting, ["sjf-ffs"], [0], store=opened)
    assert [run.metrics["jct_mean"] for run in found] == pytest.approx([1100.0, 1900.0])


def test_measured_tables_are_read_again_where_one_has_changed(tmp_path):
    """In one process, where each has half the progress in its first row after the edit."""
    folder = write_tables(tmp_path)
    before = read_tables(folder, "toy").progress
    assert read_tables(folder, "toy").progress is before
    for path in (Path(folder) / "toy").glob("validation-*.csv"):
        header, first, *rest = path.read_text().splitlines()
        place = header.split(",").index("progress")
        cells = first.split(",")
        cells[place] = str(float(cells[place]) / 2)
        path.write_text("\n".join([header, ",".join(cells), *rest]) + "\n")
    assert read_tables(folder, "toy").progress[0] == before[0] / 2
