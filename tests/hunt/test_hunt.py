"""Short forms of what `make hunt` does for longer: tests/hunt says what each looks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import open_workload, read_trace
from clustergym.tests.hunt import events, flips, kills, readers, soak, store_faults

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
