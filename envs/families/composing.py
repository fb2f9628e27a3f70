"""The kernels of an environment, composed of those of its families.

The compiler takes no functions in tuples, so a list of families is walked when the kernels are made: each closure does
its own family's part and calls the closure of the rest. What an environment lacks is not in its code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...simulator.compiler.jit import kernel
from ...simulator.numerics.instructions import part
from ...simulator.record.field_axes import dtype_of
from ..step import Kernels, stepping
from ..window import MAX_SLOTS, common_fields, forced_fields, may_advance, scaled_gpus
from .family import Family, never
from .job_rows import Rows


def composed(
    families: Sequence[type[Family]],
    tables: Sequence[Rows],
    candidates: Any,
    *,
    look: Callable[..., Any],
    cluster: Callable[..., Any],
    cluster_columns: int,
    parts: Callable[..., Any],
    may_advance: Callable[..., Any] = may_advance,
    **step: Any,
) -> Kernels:
    """The kernels of an environment with these families; candidates lie table by table, in a row family by family.

    If candidates have a column `free_after`, `w.free_share` is that of the GPUs that are free now.

    Args:
        tables: in the order of the observation.
        candidates: the columns of candidates; `legal` and `advance` among them.
        look: (s, w, m) shows the jobs of the present; it may set `w.can_act`.
        cluster: (s, w, m, features) writes the `cluster_columns` of the cluster, and what rows share, before the rest.
        parts: (w, mask, at) writes the mask of the parts after the candidate, from `at` on.
        may_advance: (s, w) whether candidate 0 is legal.
        step: see `stepping`.
    """
    tables = [table._replace(per=_per(families, table)) for table in tables]
    placed = _placed(families, tables)
    mark = _marking([one for of_table in placed.values() for one in of_table])
    may_act, acts_beyond = _acting([one.may_act for one in families]), _acting([one.acts_beyond for one in families])
    carry, write = _carrying(tables, placed), _writing(tables, placed, candidates)
    legal, advance, columns = candidates.legal, candidates.advance, len(candidates)
    share_free = _share_free if hasattr(candidates, "free_after") else never

    @kernel
    def carry_out(s, w, m, candidate, action):
        return carry(s, w, m, candidate - 1, action)

    @kernel
    def show(s, w, m):
        w.shows += 1
        w.can_act = 0
        look(s, w, m)
        w.legal[: w.candidates] = 0
        w.legal[0] = may_advance(s, w)
        mark(s, w, m)
        if not w.can_act:
            w.can_act = acts_beyond(s, w)

    @kernel
    def observe(s, w, m, features, mask):
        at = features.size - w.candidates * columns
        share_free(s, w)
        cluster(s, w, m, features)
        features[at + legal] = features[at + advance] = w.legal[0]
        write(s, w, m, features, mask, cluster_columns, at + columns, 1)
        for candidate in range(w.candidates):
            mask[candidate] = w.legal[candidate]
        parts(w, mask, w.candidates)

    return stepping(carry_out, show, observe, may_act=may_act, **step)


@kernel
def _share_free(s, w):
    w.free_share = scaled_gpus(w, s.free_gpus)


def window_of(families: Sequence[type[Family]], fields: Sequence[tuple[Any, ...]], kinds: int = 0) -> np.dtype:
    """The window of an environment with these families, with room for the largest number of slots.

    Args:
        fields: its own ones.
        kinds: the most candidates of a row of each table together; 0: one of each kind.
    """
    candidates = 1 + (kinds or sum(map(_count, families))) * MAX_SLOTS
    of_families = [field for family in families for field in family.fields]
    legal = ("legal", "i1", (candidates,))
    return dtype_of([*common_fields(), legal, *forced_fields(), *fields, *of_families])


class _Placed(NamedTuple):
    """A family among those of its table: its first kind and their number, kernels (w)."""

    family: type[Family]
    first: Callable[..., Any]
    count: Callable[..., Any]


def _placed(families: Sequence[type[Family]], tables: Sequence[Rows]) -> dict[str, list[_Placed]]:
    """The families of each table. Numbers that no option changes are constants."""
    found: dict[str, list[_Placed]] = {table.name: [] for table in tables}
    for place, family in enumerate(families):
        before = [one.family for one in found[family.table]]
        first = _read_first(place) if any(one.is_counted for one in before) else _constant(sum(map(_count, before)))
        count = _read_count(place) if family.is_counted else _constant(_count(family))
        found[family.table].append(_Placed(family, first, count))
    return found


def _per(families: Sequence[type[Family]], table: Rows) -> Callable[..., Any]:
    """Candidates of a row of a table, kernel (w): a constant, with which slices are cheap, if no option changes it."""
    here = [family for family in families if family.table == table.name]
    return table.per if any(family.is_counted for family in here) else _constant(sum(map(_count, here)))


def _count(family: type[Family]) -> int:
    return len(family.kinds)


def _constant(number: int) -> Callable[..., Any]:
    @kernel
    def constant(w):
        return number

    return constant


def _read_first(place: int) -> Callable[..., Any]:
    @kernel
    def first(w):
        return w.first_kind[place]

    return first


def _read_count(place: int) -> Callable[..., Any]:
    @kernel
    def count(w):
        return w.n_kinds_of[place]

    return count


def _marking(placed: Sequence[_Placed]) -> Callable[..., Any]:
    if not placed:
        return _nothing_more
    (family, first, _), *others = placed
    own, rest = family.mark, _marking(others)

    @kernel
    def mark(s, w, m):
        own(s, w, m, first(w))
        rest(s, w, m)

    return mark


@kernel
def _nothing_more(s, w, m):
    """No family is left."""


def _acting(tests: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Whether one of the tests holds."""
    own, *others = tests
    if not others:
        return own
    rest = _acting(others)

    @kernel
    def acts(s, w):
        return own(s, w) or rest(s, w)

    return acts


def _carrying(tables: Sequence[Rows], placed: dict[str, list[_Placed]]) -> Callable[..., Any]:
    """(s, w, m, candidate, action): carries out a candidate, counted from the first one of these tables."""
    table = tables[0]
    own = _carrying_here(placed[table.name])
    slots, per, subject = table.slots, table.per, table.subject
    rest = _carrying(tables[1:], placed) if len(tables) > 1 else _carry_nothing

    @kernel
    def carry(s, w, m, candidate, action):
        count = slots(w) * per(w)
        if candidate < count:
            slot = candidate // per(w)
            return own(s, w, m, slot, subject(w, slot), candidate % per(w), action)
        return rest(s, w, m, candidate - count, action)

    return carry


@kernel
def _carry_nothing(s, w, m, candidate, action):
    return False


def _carrying_here(placed: Sequence[_Placed]) -> Callable[..., Any]:
    """(s, w, m, slot, subject, kind, action): carries out a candidate of a row."""
    if not placed:
        return _carry_nothing_here
    (family, first, count), *others = placed
    own, rest = family.carry_out, _carrying_here(others)

    @kernel
    def carry(s, w, m, slot, subject, kind, action):
        if kind < first(w) + count(w):
            return own(s, w, m, slot, subject, kind - first(w), action)
        return rest(s, w, m, slot, subject, kind, action)

    return carry


@kernel
def _carry_nothing_here(s, w, m, slot, subject, kind, action):
    return False


def _writing(tables: Sequence[Rows], placed: dict[str, list[_Placed]], to: Any) -> Callable[..., Any]:
    """(s, w, m, features, mask, row, at, first): writes tables from `row` on, and their candidates from `at` on.

    Only what has changed is written about candidates: `features` and `mask` hold what was written last. `first`: the
    first candidate of these tables.
    """
    if not tables:
        return _write_nothing
    table = tables[0]
    describe, rest = _describing(placed[table.name], table.columns, to), _writing(tables[1:], placed, to)
    _, _, slots, shown, per, subject, write_row, leave = table
    width, columns = len(table.columns), len(to)

    @kernel
    def write(s, w, m, features, mask, row, at, first):
        count = per(w)
        used = shown(w)
        row_end = row + slots(w) * width
        end = at + slots(w) * count * columns
        last = first + slots(w) * count
        for slot in range(used):
            of = subject(w, slot)
            own = part(features, row, width)  # constant indices in a part need no test of their sign
            is_new = write_row(s, w, m, slot, of, own)
            offers = part(features, at, count * columns)
            legal, before = part(w.legal, first, count), part(mask, first, count)
            describe(s, w, m, slot, of, own, offers, legal, before, is_new)
            row += width
            at += count * columns
            first += count
        for slot in range(used, slots(w)):
            if features[row] == 0.0:
                break
            leave(w, slot)
            features[row : row + width] = 0.0
            features[at : at + count * columns] = 0.0
            row += width
            at += count * columns
        rest(s, w, m, features, mask, row_end, end, last)

    return write


@kernel
def _write_nothing(s, w, m, features, mask, row, at, first):
    """No table is left."""


def _describing(placed: Sequence[_Placed], of: Any, to: Any) -> Callable[..., Any]:
    """Writes the candidates of a row."""
    if not placed:
        return _describe_nothing
    (family, first_of, count_of), *others = placed
    own, rest, columns = family.describe, _describing(others, of, to), len(to)

    @kernel
    def describe(s, w, m, slot, subject, shown, offers, legal, before, is_new):
        first = first_of(w)
        kinds = range(first, first + count_of(w))
        is_any = False  # in most rows none: one test passes over them all
        for kind in kinds:
            is_any |= (legal[kind] | before[kind]) != 0
        if is_any:
            for kind in kinds:
                offer = part(offers, kind * columns, columns)
                if legal[kind]:
                    offer[to.legal] = 1.0
                    own(s, w, m, slot, subject, kind - first, shown, of, offer, to, is_new or not before[kind])
                elif before[kind]:
                    offer[:] = 0.0
        rest(s, w, m, slot, subject, shown, offers, legal, before, is_new)

    return describe


@kernel
def _describe_nothing(s, w, m, slot, subject, shown, offers, legal, before, is_new):
    """No family is left."""
