"""Columns of observations: each has a name, a unit and a range, and is written by its name."""

import ast
import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from clustergym.envs.columns import FLAG, Column, described, flag, joined, names_of, table
from clustergym.simulator.compiler.function_keys import made_from
from clustergym.simulator.compiler.jit import entry
from clustergym.tests.support.paths import ROOT
from clustergym.tests.support.small_envs import SMALL, random_actions

FOLDERS = ("delay", "sharing", "timeshift", "geo", "dataplacement", "grouping")
# What kernels and Python write columns into; `[3]`, `[at + 3]` and `[:, 3]` of these are columns.
ROWS = {"shown", "offered", "offer", "features", "row", "rows", "known", "ran", "values", "still"}


def test_a_table_gives_the_places_and_says_what_they_are():
    first = table(present=flag("a job stands here"), gpus=Column("GPUs", "GPUs, of 64"))
    both = joined(first, table(slack=Column("slack", high=2.0)))
    assert (both.present, both.gpus, both.slack) == (0, 1, 2) and len(both) == 3
    assert described(both)["slack"].high == 2.0 and described(both)["present"].unit == FLAG
    with pytest.raises(ValueError, match="two columns have one name"):
        joined(first, both)
    assert names_of({"queue": both}) == {"queue": ["present", "gpus", "slack"]}


def test_code_of_a_kernel_goes_by_the_names_of_columns():
    """Two tables of the same places: kept code of one is not taken for the other's."""

    def kernel_of(columns):
        @entry
        def write(shown):
            shown[columns.gpus] = 1.0

        return write.py_func if hasattr(write, "py_func") else write

    ahead, behind = (table(gpus=flag(""), size=flag("")), table(size=flag(""), gpus=flag("")))
    assert made_from(kernel_of(ahead)) != made_from(kernel_of(behind))


@pytest.mark.parametrize("name", SMALL)
def test_every_column_stays_in_its_range_and_flags_are_0_or_1(name):
    env = gymnasium.make(name, **SMALL[name]).unwrapped
    rng, columns = np.random.default_rng(0), env.interface.columns
    observation, _ = env.reset(seed=1)
    assert list(columns) == list(observation)
    for _ in range(60):
        for part, own in columns.items():
            shown = observation[part].reshape(-1, len(own))
            for column, values in zip(described(own).values(), shown.T, strict=True):
                assert column.low <= values.min() and values.max() <= column.high, (part, column)
                assert column.unit != FLAG or set(values.tolist()) <= {0.0, 1.0}, (part, column)
        observation, _, terminated, truncated, _ = env.step(
            random_actions(rng, env.action_masks()[None], env.action_space)[0]
        )
        if terminated or truncated:
            observation, _ = env.reset()


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_of_columns_are_short_words_and_texts_are_no_repeats(folder):
    module = __import__(f"clustergym.envs.{folder}.columns", fromlist=["*"])
    tables = [one for one in vars(module).values() if hasattr(type(one), "described")]
    assert len(tables) >= 4
    for one in tables:
        assert all(re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", name) for name in described(one))
        texts = [column.text for column in described(one).values()]
        assert len(set(texts)) == len(texts) and not any(text.startswith("1: ") for text in texts)


@pytest.mark.parametrize("path", sorted(path for folder in FOLDERS for path in (ROOT / "envs" / folder).glob("*.py")))
def test_no_column_is_written_by_a_bare_number(path: Path):
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in ROWS:
            found += [f"{path.name}:{node.lineno}" for place in _places(node.slice) if _is_bare(place)]
    assert not found


def _places(index: ast.expr) -> list[ast.expr]:
    """Where a subscript reads: its last axis; of a slice its ends."""
    last = index.elts[-1] if isinstance(index, ast.Tuple) else index
    return [one for one in (last.lower, last.upper) if one] if isinstance(last, ast.Slice) else [last]


def _is_bare(place: ast.expr) -> bool:
    if isinstance(place, ast.BinOp):
        return _is_bare(place.right) or _is_bare(place.left)
    return isinstance(place, ast.Constant) and isinstance(place.value, int) and place.value > 0
