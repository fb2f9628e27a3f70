"""The engine of reproductions: it plays what a paper's file says, and makes rows, notes and pictures of the runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from ...envs.registration import ENVIRONMENTS, resolve
from ...simulator.cluster.topology import Topology
from ...simulator.files.yaml_files import validated
from ..comparing.intervals import Estimate, estimate, paired_difference, paired_ratio
from ..settings.evaluation_setting import Setting as Played
from ..storing.run_files import short_hash
from .case import Case
from .case_runs import Runs, Take, improvement, offered_load_note
from .paper_pictures import drawn
from .rows import Findings, Options, Row, bounded, clear_order, order, printed, ratio, table
from .schema import Entry, Line, Paper, Player, Setting, Value
from .sweep import sweep_by


@dataclass(frozen=True)
class RowContext:
    """Where a row stands: its policy, the other one, its column and what that takes, its setting and that of the other.

    And what is published there. What is not bound yet is None.
    """

    policy: Any = None
    over: Any = None
    column: Any = None
    value: Any = None
    at: Any = None
    over_at: Any = None
    paper: Any = None


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with the other's values in place of its own, mappings in it alike."""
    both = {key: merged(one[key], value) if isinstance(value, dict) and isinstance(one.get(key), dict) else value
            for key, value in other.items()}  # fmt: skip
    return {**one, **both}


def settings_of(paper: Paper, quick: bool) -> dict[str, dict[str, Any]]:
    """All settings as merged mappings, those of a group under its name and their labels."""
    found: dict[str, dict[str, Any]] = {}
    for name, own in paper.settings.items():
        one, axes = dict(own), own.get("each", [])
        while (base := one.pop("like", None)) is not None:
            one = merged({key: value for key, value in paper.settings[base].items() if key != "each"}, one)
        one.pop("each", None)
        for chosen in product(*(axis.items() for axis in axes)):
            whole = one
            for _, change in chosen:
                whole = merged(whole, change)
            fast = whole.get("quick", {})
            whole = merged({key: value for key, value in whole.items() if key != "quick"}, fast if quick else {})
            label = ", ".join(str(text) for text, _ in chosen)
            whole = {**whole, "label": own.get("label") or label} if chosen else whole
            found[f"{name}, {label}" if chosen else name] = whole
    return found


def word_of(word: str | Mapping[str, Value] | None, more: Mapping[str, Value]) -> str | None:
    """NAME:key=value,... of a word, with more parameters last; None stays None."""
    if word is None:
        return None
    name, own = (word, {}) if isinstance(word, str) else (str(word["name"]), word)
    parameters = {key: value for key, value in {**own, **more}.items() if key != "name" and value is not None}
    joined = ",".join(f"{key}={value}" for key, value in parameters.items())
    return name + ("," if ":" in name else ":") * bool(joined) + joined


@dataclass
class Play:
    """One reproduction while it is run; functions of the paper are handed it.

    Attributes:
        paper, name, entry: whose, and which. options: how.
        made: the rows so far. notes, written: what functions add to what is said, and files that they wrote.
        jobs: what is said of prepared job sets.
    """

    paper: Paper
    name: str
    entry: Entry
    options: Options

    def __post_init__(self) -> None:
        self.made: list[Row] = []
        self.notes: list[str] = []
        self.jobs: list[str] = []
        self.written: list[Path] = []
        self._cases: dict[tuple[str, str], list[Case]] = {}
        self.together: dict[str, int] = {}
        self._settings = settings_of(self.paper, self.options.quick)

    def find(self, name: str) -> Callable[..., Any]:
        """A function of the paper's modules."""
        return find(self.paper, name)

    def group(self, names: Sequence[str]) -> list[str]:
        """The settings of these names, and those of groups; under `--quick` those that it leaves."""
        few = self._named(self.entry.quick.at) if self.options.quick else []
        return [one for one in self._named(names) if not few or one in few]

    def places(self, line: Line) -> list[str]:
        """The settings of a line; of one that names none those of the reproduction, or `--quick`'s own."""
        found = self.group(line.at or self.entry.at)
        return found if found or line.at or not self.options.quick else self._named(self.entry.quick.at)

    def _named(self, names: Sequence[str]) -> list[str]:
        """Settings by their names, and those of groups; without those whose file is not at hand."""
        known = self._settings
        found = [
            one
            for name in names
            for one in ([name] if name in known else known)
            if one == name or one.startswith(f"{name}, ")
        ]
        return [one for one in found if known[one].get("file") is None or self._file(known[one]["file"]) is not None]

    def _file(self, name: str) -> Path | None:
        path = None if self.options.traces is None else self.options.traces / name
        return path if path is not None and path.is_file() else None

    def label(self, setting: str) -> str:
        """What rows call it."""
        label = self._settings[setting].get("label")
        return setting if label is None else label

    def setting(self, name: str, policy: str = "") -> Setting:
        """A setting, as it is for a policy."""
        whole = merged(self._settings[name], self.player(policy).setting)
        one: Setting = validated(Setting, whole, f"setting {name!r}")
        return one

    def player(self, policy: str) -> Player:
        """What a policy's name stands for: by itself for its word."""
        return self.paper.policies.get(policy, Player(word=policy))

    @property
    def count(self) -> int:
        """Of seeds, if no other is asked for."""
        return self.entry.about.seeds or self.paper.seeds

    def seeds(self, policy: str = "") -> tuple[int, ...]:
        """Those that a policy is played on."""
        count, first = self.count, self.entry.about.first_seed
        fixed = None if first is None else tuple(range(first, first + (2 if self.options.quick else count)))
        return (fixed or self.options.seeds(count))[: self.player(policy).first]

    def cases(self, policy: str, name: str) -> list[Case]:
        """The runs of a policy on a setting, seed by seed."""
        if (policy, name) not in self._cases:
            self._cases[policy, name] = self._made(policy, name)
        return self._cases[policy, name]

    def _made(self, policy: str, name: str) -> list[Case]:
        one = self.setting(name, policy)
        word = one.policies.get(policy, self.player(policy).word)
        sets: list[Any] = self.find(one.jobs)(self.options) if one.jobs else [None] * one.draws
        self.together[name] = len(sets) if one.jobs else 1
        self.jobs += [sets[0].says] if one.jobs and sets[0].says not in self.jobs else []
        return [
            self._case(one, word, seed, number, jobs) for seed in self.seeds(policy) for number, jobs in enumerate(sets)
        ]

    def _case(self, one: Setting, word: str, seed: int, number: int, jobs: Any) -> Case:
        drawn_seed = {"topology": seed, "workload": one.draws * seed + number, "network": seed}
        usual = ENVIRONMENTS[resolve(one.environment)].defaults
        topology, workload, network = (
            word_of(getattr(one, what) or usual[what], {one.seeded[what]: drawn_seed[what]})
            if what in one.seeded
            else word_of(getattr(one, what), {})
            for what in drawn_seed
        )
        if jobs is not None:
            workload = jobs.path
        given = dict(one.given)
        if one.file is not None and (path := self._file(one.file)) is not None:
            topology = word_of(topology, {"file": str(path)})
            given["table"] = short_hash(path.read_text(encoding="utf-8"))
        setting = Played.of(one.environment, topology, workload, network, **one.options)
        return Case(word, setting, seed, one.how, tuple(given.items()), "" if jobs is None else jobs.digest)

    def sweep(self, what: str, pairs: Sequence[tuple[str, str]]) -> Runs:
        """Play policies on settings."""
        cases = {pair: self.cases(*pair) for pair in dict.fromkeys(pairs)}
        return Runs(sweep_by(what, cases, self.options), self.together)

    @cached_property
    def runs(self) -> Runs:
        """All that the lines and pictures of the reproduction need."""
        drawn_too = self.entry.pictures if self.options.out is not None else []
        return self.sweep(self.name, [*self.needed(), *(
            pair for one in drawn_too for pair in product(one.policies, self.group(one.at)))])  # fmt: skip

    def needed(self) -> list[tuple[str, str]]:
        """The policies, each with a setting, that the lines are of."""
        leaves = (leaf for line in self.entry.rows for leaf in self._leaves(line, RowContext()))
        cells = [cell for line, bound in leaves for cell in self._cells(line, bound)]
        both = (pair for cell in cells for pair in ((cell.policy, cell.at), (cell.over, cell.over_at)))
        return [pair for pair in both if None not in pair]

    def rows(self) -> list[Row]:
        """Every row, in the order of the lines."""
        for line in self.entry.rows:
            self.made += self.rows_of(line)
        return self.made

    def rows_of(self, line: Line, bound: RowContext = RowContext()) -> Iterator[Row]:
        """The rows of a line, where some of its policies, columns and settings may be bound."""
        for leaf, here in self._leaves(line, bound):
            if leaf.compute is not None:
                yield from self.find(leaf.compute)(self, leaf, here)
                continue
            rows = (self.row(leaf, cell) for cell in self._cells(leaf, here))
            yield from (row for row in rows if not (leaf.there and math.isnan(row.ours)))

    def _leaves(self, line: Line, bound: RowContext) -> Iterator[tuple[Line, RowContext]]:
        """The lines in a line that have no others, with what is bound in them."""
        if not line.rows:
            yield line, bound
        for here in self._cells(line, bound) if line.rows else ():
            for one in line.rows:
                yield from self._leaves(one, here)

    def _cells(self, line: Line, bound: RowContext) -> Iterator[RowContext]:
        few = self.entry.quick.policies if self.options.quick else []
        both: Any = product(line.policies or [bound.policy], line.over or [bound.over])
        loops: dict[str, list[Any]] = {
            "pair": [pair for pair in line.pairs or both if not few or {pair[0], pair[1] or pair[0]} <= {*few, None}],
            "column": list(line.columns.items()) or [(bound.column, bound.value)],
            "at": [bound.at] if bound.at and not line.at else self.places(line),
        }
        loops["at"] = loops["at"] if line.at or self.entry.at else loops["at"] or [None]
        names = sorted(loops, key=lambda name: name != line.each)
        for values in product(*(loops[name] for name in names)):
            here = dict(zip(names, values, strict=True))
            (policy, over, *paper), (column, value), at = here["pair"], here["column"], here["at"]
            over = policy if line.over_at and over is None else over
            if at and policy in self._settings[at].get("without", ()):
                continue
            if policy is None or policy != over or line.over_at:
                published = paper[0] if paper else line.paper
                yield RowContext(policy, over, column, value, at, line.over_at or at, published)

    def take(self, line: Line, column: str | None = None, value: Value = None) -> Take:
        """The number of a line, for a column of it or for what a column takes."""
        return self.number(line.number, line.factor, line.per, line.columns.get(column, value) if column else value)

    def number(self, name: str, factor: float = 1.0, per: float = 1.0, value: Value = None) -> Take:
        """A function of the paper, or a metric of the run by its name, which for `metric` is that of the column."""
        name = str(value) if name == "metric" else name
        if (function := found_in(self.paper, name)) is not None:
            return function if value is None else lambda outcome: function(outcome, value)
        return lambda outcome: factor * outcome.metrics[name] / per

    def row(self, line: Line, here: RowContext) -> Row:
        """The row of a line for a policy, another one, a column and a setting."""
        name, paper = self._name(line, here), self._published(line, here)
        found = self._ours(line, here)
        ours = found.mean if line.interval == "none" else found
        row = printed(name, ours, line.unit, paper)
        if paper is not None and line.tolerance is not None:
            row = table(name, paper, ours, line.unit, line.tolerance)
        elif line.judge == "ratio" and paper is not None:
            row = ratio(name, paper, ours, line.unit)
        elif line.judge == "clear":
            row = clear_order(name, paper, found)
        elif line.judge in ("below", "above"):
            row = order(name, paper, ours, below=line.judge == "below")
        elif line.within is not None:
            low, high = (
                end if bound is None else bound for bound, end in zip(line.within, (-math.inf, math.inf), strict=True)
            )
            row = bounded(name, paper, ours, (low, high), line.unit)
        if line.interval == "always":
            row = replace(row, low=found.low, high=found.high)
        return replace(row, cell=self._cell(line, here))

    def _ours(self, line: Line, here: RowContext) -> Estimate:
        take = self.take(line, here.column, here.value)
        if line.form == "mean":
            return self.runs.mean(take, here.policy, here.at)
        ours, theirs = self.runs.pair(take, here.policy, here.at, here.over, here.over_at or here.at)
        if line.form == "ratios":
            return estimate([one / other if other else math.nan for one, other in zip(ours, theirs, strict=True)])
        compare: Callable[[Sequence[float], Sequence[float]], Estimate]
        compare = {"ratio": paired_ratio, "below": improvement, "minus": paired_difference}[line.form]  # type: ignore[assignment]
        return compare(ours, theirs)

    def _texts(self, line: Line, here: RowContext) -> dict[str, str]:
        policy, over = here.policy, here.over
        sign = " - " if line.form == "minus" else " / "
        below = f" below {over}" if line.form == "below" and "pair" in line.parts else ""
        return {
            "policy": policy or "",
            "over": over or "",
            "column": here.column or "",
            "at": self.label(here.at) if here.at else "",
            "what": line.what + below,
            "gain": f"{policy}'s {here.column} over {over}'s",
            "pair": f"{policy}{sign}{over}" if over and line.form != "below" else "",
        }

    def _name(self, line: Line, here: RowContext) -> str:
        texts = self._texts(line, here)
        lead = "".join(f"{texts[part]}: " for part in line.lead if texts[part])
        only = not line.at and self._named(self.entry.at) == [here.at]  # which says itself
        parts = [texts[part] for part in line.parts if part not in line.lead and (part != "at" or not only)]
        return lead + ", ".join(filter(None, parts)) + line.after

    def _published(self, line: Line, here: RowContext) -> Any:
        """What the paper has in that place."""
        found, texts = here.paper, [here.policy, here.over, here.column, here.at, self._texts(line, here)["at"]]
        while isinstance(found, dict):
            found = next((found[name] for name in texts if name in found), None)
        if isinstance(found, list) and len(line.columns) > 1:
            found = found[list(line.columns).index(here.column)]
        return tuple(map(float, found)) if isinstance(found, list) else found

    def _cell(self, line: Line, here: RowContext) -> tuple[str, str, str]:
        """Where the row stands in the paper's shape: policies or pairs are rows, columns or settings columns."""
        texts = self._texts(line, here)
        row = texts["pair"] or texts["policy"] or texts["what"]
        if here.column:
            return (texts["what"], row, texts["column"])
        several = len(self.group(line.at or self.entry.at)) > 1
        return (texts["what"], row, texts["at"]) if several else ("", row, texts["what"])

    def said(self) -> str:
        """How many seeds there are, for a note."""
        number = len(self.seeds())
        few = [name for name in dict.fromkeys(dict(self.needed())) if (self.player(name).first or number) < number]
        bounded_ = "".join(f"; {name}, the slowest by far, over the first {len(self.seeds(name))}" for name in few)
        quick = "; --quick: fewer and shorter ones than it says" if self.options.quick else ""
        return f"means and 95 % intervals over {number} {self.entry.about.over or self.paper.over}{bounded_}{quick}"

    def offered(self) -> list[str]:
        """The load that the workloads of some settings offer, one note a cluster."""
        usual = self.entry.at if self.paper.loads else []
        clusters: dict[Any, dict[str, list[Any]]] = {}
        for at in self.group(usual if self.entry.loads is None else self.entry.loads):
            cases = self.cases("", at)
            jobs = [case.setting.workload if case.digest else case.workload for case in cases]
            clusters.setdefault(cases[0].setting.config, {})[self.label(at) or at] = jobs
        return [
            offered_load_note(jobs, config.gang_room(Topology.load(config.topology))).replace("GPUs", config.unit)
            for config, jobs in clusters.items()
        ]


def found_in(paper: Paper, name: str) -> Callable[..., Any] | None:
    """A function of a paper's modules, None if there is no such."""
    modules = (import_module(f"{__package__}.{one}") for one in paper.python)
    return next((getattr(module, name) for module in modules if hasattr(module, name)), None)


def find(paper: Paper, name: str) -> Callable[..., Any]:
    """The same, which has to be there."""
    found = found_in(paper, name)
    assert found is not None, f"paper {paper.paper} names {name}, which is in none of {paper.python}"
    return found


def findings_of(paper: Paper, name: str, options: Options) -> Findings:
    """Play what a reproduction needs, and compare."""
    entry = paper.reproductions[name]
    play = Play(paper, name, entry, options)
    if entry.compute is not None:
        rows: list[Row] = list(play.find(entry.compute)(play))
        facts = []
    else:
        rows = play.rows()
        is_over_seeds = any(row.low is not None for row in rows) or play.needed()
        facts = [*([play.said()] if is_over_seeds else []), *play.offered()]
    notes = [paper.notes.get(note, note) for note in entry.notes]
    pictures = [*play.written, *(drawn(play) if options.out is not None else [])]
    return Findings(rows, [*facts, *play.notes, *notes], pictures, play.jobs)
