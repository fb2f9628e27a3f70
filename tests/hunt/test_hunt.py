"""Short forms of what `make hunt` does for longer: tests/hunt says what each looks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import open_workload, read_trace
from clustergym.tests.hunt import code_mutants, events, flips, kills, readers, soak, store_faults

HUNT = Path(__file__).parent


@pytest.mark.parametrize("what", ["stored_runs", "workloads", "commands"])
def test_no_flipped_bit_is_read_as_other_numbers(what):
    assert getattr(flips, what)(60, seed=2).total() >= 60


def test_a_changed_file_is_refused_in_a_sentence_or_read():
    """Workloads of every format with the files beside them, specifications, tables, configurations and agents."""
    found = readers.readers(80, seed=3)
    assert found["refused"] + found["accepted"] == found.total() == 80


def test_random_words_are_refused_in_a_sentence_or_played():
    """In a process of its own: nothing is compiled in it."""
    command = [sys.executable, str(HUNT / "words.py"), "25", "4"]
    outcome = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize(("what", "count"), [("full_disks", 1), ("killed_writers", 1), ("two_writers", 1)])
def test_what_is_stored_is_whole_whatever_happens_to_its_writer(what, count):
    assert getattr(store_faults, what)(count, seed=5).total() == count


@pytest.mark.filterwarnings("ignore")
def test_no_random_event_breaks_an_invariant():
    found, broken, _ = events.play_events(3_000, seed=1_000_000)
    assert broken == 0 and sum(run["events"] for run in found.values()) >= 3_000


@pytest.mark.filterwarnings("ignore")
def test_making_playing_and_copying_environments_keeps_nothing(capsys):
    """One round in each of them; then rounds in one hold no more objects than rounds before."""
    told = soak.soak(0.0)
    assert told[-1].rounds == len(soak.SMALL) and "MB" in capsys.readouterr().out
    held = []
    for turn in range(3):
        for number in range(2):
            soak.one_round("clustergym/Delay-v0", number)
        held.append(soak.held(0.0, turn).objects)
    assert held[2] - held[1] <= soak.OBJECTS * held[1]


def test_memory_that_grows_is_not_called_flat():
    held, verdict = soak.Held, soak.verdict
    assert verdict([held(i, i, 200.0 + i % 2, 100_000, 9) for i in range(20)])[0]
    assert not verdict([held(i, i, 200.0 + i, 100_000, 9) for i in range(20)])[0]
    assert not verdict([held(i, i, 200.0, 100_000 + 400 * i, 9) for i in range(20)])[0]
    assert not verdict([held(i, i, 200.0, 100_000, 9 + i) for i in range(20)])[0]


@pytest.mark.parametrize("what", kills.SIGNALS)
def test_an_evaluation_that_is_killed_ends_as_if_it_had_not_been(what):
    """Of `train` test_training.py does the same."""
    found = kills.kill(kills.evaluate(seeds=12), what, 1, seed=6)
    assert found["outcomes equal"] >= 1


def test_a_page_that_is_damaged_is_refused_in_a_parquet_file_of_others(tmp_path):
    """Without the seal of `Workload.save`, but with parquet's checksums of pages."""
    import pyarrow.parquet as pq

    path = tmp_path / "trace.parquet"
    open_workload("poisson:jobs=60").save(path)
    table = pq.read_table(path)
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    assert len(read_trace(path)) == 60
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a readable parquet file"):
        read_trace(path)


MODULE = """
@kernel
def taken(free, wanted):
    if free < wanted:
        return -1
    return free - wanted


def name(of):
    return "a" + of
"""


def test_changes_of_code_are_of_four_kinds_and_no_text_is_subtracted(tmp_path):
    """Both sides have `taken`; `name` has a text, and of what reads otherwise on a side nothing is changed."""
    sides = [tmp_path / side / "clustergym" for side in "ab"]
    for side in sides:
        (side / "simulator").mkdir(parents=True)
        (side / "simulator" / "own.py").write_text(MODULE)
    lines = MODULE.encode().split(b"\n")
    (kernel, node), (text, other) = code_mutants.functions(MODULE).items()
    found = {(m.kind, m.old, m.new) for m in code_mutants.mutants_of("own.py", lines, kernel, node)}
    assert found == {
        ("comparison", "free < wanted", "free <= wanted"),
        ("branch", "free < wanted", "False"),
        ("sign", "-1", "1"),
        ("constant", "1", "2"),
        ("sign", "free - wanted", "free + wanted"),
    }
    assert list(code_mutants.mutants_of("own.py", lines, text, other)) == []
    (mutant,) = code_mutants.drawn(sides, 3, 0)[:1]
    assert mutant.compiled and mutant.text(MODULE).count(mutant.new) >= 1 and mutant.text(MODULE) != MODULE


def test_of_a_changed_module_those_tests_are_run_that_import_it_or_its_importers(tmp_path):
    for path, text in {
        "simulator/low.py": "",
        "simulator/high.py": "from .low import x",
        "tests/test_high.py": "from clustergym.simulator import high",
        "tests/test_both.py": "from clustergym.simulator.high import x\nimport clustergym.simulator.low",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    graph = code_mutants.imports(tmp_path)
    assert code_mutants.tests_of("simulator/high.py", graph) == ["tests/test_high.py", "tests/test_both.py"]
    assert code_mutants.tests_of("simulator/low.py", graph) == ["tests/test_both.py"]
