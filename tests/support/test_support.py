"""The tools of tests/support count what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustergym import policies
from clustergym.tests.support import cpu_times, house, walks


@pytest.fixture
def small(tmp_path: Path) -> house.House:
    """Two rooms: in `low` a and b import each other, b for types alone; a function of `high` imports both."""
    files = {
        "low/__init__.py": "",
        "low/a.py": "from .b import B\nfrom ..high.inner import thing\n",
        "low/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import A\n",
        "high/__init__.py": "",
        "high/inner/__init__.py": "",
        "high/inner/thing.py": "import numpy\n\ndef f():\n    from pack.low import a, b\n",
        "high/inner/b.py": "from .. import nothing\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return house.House(tmp_path, ("low", "high"), "pack")


def test_an_import_leads_to_the_module_that_it_names(small):
    assert {(one.importer, one.imported, one.kind) for one in small.arrows} == {
        ("low.a", "low.b", "top"),
        ("low.a", "high.inner.thing", "top"),
        ("low.b", "low.a", "typing"),
        ("high.inner.thing", "low.a", "function"),
        ("high.inner.thing", "low.b", "function"),
        ("high.inner.b", "high", "top"),
    }


def test_cycles_grow_with_the_kinds_of_imports_that_count(small):
    assert small.cycles(["top"]) == []
    assert small.cycles(["top", "function"]) == [["high.inner.thing", "low.a"]]
    assert small.cycles() == [["high.inner.thing", "low.a", "low.b"]]


def test_an_import_of_what_stands_later_in_the_order_is_against_it(small):
    assert [(one.importer, one.imported) for one in small.against(["low", "high"])] == [("low.a", "high.inner.thing")]
    assert len(small.against(["high", "low"])) == 2
    with pytest.raises(ValueError, match="leaves out high"):
        small.against(["low"])


def test_modules_are_counted_where_they_lie(small):
    assert small.folders() == {"low": 2, "high": 0, "high.inner": 2}
    assert small.recurring() == {"b": ["low.b", "high.inner.b"]}
    assert small.lonely() == ["high.inner.thing (4) <- low.a"]


def test_a_trace_sees_functions_of_the_project_alone():
    with walks.Trace() as trace:
        house.dotted(house.ROOT / "a.py", house.ROOT)  # tests are no part of the rooms
    assert trace.functions == [] and trace.calls == 0
    with walks.Trace() as trace:
        policies.make("fifo")
        policies.make("fifo")
    walk = walks.Walk.of(trace)
    assert walk.files[0].startswith("policies/") and walk.calls > walk.functions >= len(walk.files) > 1


def test_turns_are_counted_between_neighbours():
    assert walks.turns(["a", "a", "b", "a"]) == 2
    assert walks.turns([]) == 0


def test_cpu_seconds_are_added_up_by_folder_and_by_what_was_compiled():
    lines = [
        {"test": "tests/envs/test_a.py::test_x[1]", "own": 1.0, "children": 0.5},
        {"test": "tests/envs/test_a.py::test_x[2]", "own": 2.0, "children": 0.0},
        {"test": "tests/envs/test_a.py::test_x[1]", "kernel": "m.run", "entry": True, "own": 0.75, "children": 0.0},
    ]
    told = [line.split() for line in cpu_times.tables(lines)]
    assert ["2", "3.0", "0.5", "tests/envs"] in told and ["1", "0.8", "0.0", "m.run"] in told
