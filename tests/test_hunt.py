"""Short forms of what `make hunt` does for longer: tests/hunt says what each looks for."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from clustergym.simulator.errors import InputError
from clustergym.simulator.workloads import open_workload, read_trace

HUNT = Path(__file__).with_name("hunt")
STORE = runpy.run_path(str(HUNT / "store_faults.py"))
READERS = runpy.run_path(str(HUNT / "readers.py"))
FLIPS = runpy.run_path(str(HUNT / "flips.py"))


@pytest.mark.parametrize("what", ["stored_runs", "workloads", "commands"])
def test_no_flipped_bit_is_read_as_other_numbers(what):
    assert FLIPS[what](60, seed=2).total() >= 60


def test_a_changed_file_is_refused_in_a_sentence_or_read():
    """Workloads of every format with the files beside them, specifications, tables, configurations and agents."""
    found = READERS["readers"](80, seed=3)
    assert found["refused"] + found["accepted"] == found.total() == 80


def test_random_words_are_refused_in_a_sentence_or_played():
    """In a process of its own: nothing is compiled in it."""
    command = [sys.executable, str(HUNT / "words.py"), "25", "4"]
    outcome = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize(("what", "count"), [("full_disks", 1), ("killed_writers", 1), ("two_writers", 1)])
def test_what_is_stored_is_whole_whatever_happens_to_its_writer(what, count):
    assert STORE[what](count, seed=5).total() == count


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
