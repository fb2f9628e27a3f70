"""The form of a paper's file, YAML beside the paper's modules: settings, policies, published figures, notes.

It is data alone. What is a computation of its own is a function of the paper's modules, which the file names.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Value = str | int | float | None
Word = str | dict[str, Value]  # NAME:key=value,... as it is, or as a mapping with `name` and its parameters
Axis = Literal["policy", "over", "column", "at"]
Part = Literal["policy", "over", "column", "at", "what", "pair", "gain"]


def _player(given: Any) -> Any:
    return {"word": given} if isinstance(given, str) else given


class Strict(BaseModel):
    """A mapping whose keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Setting(Strict):
    """What policies are played on.

    Attributes:
        label: in rows; None: its name.
        environment: whose policies play, by its short name.
        topology, workload, network: words; None: those of the environment.
        options: of the cluster.
        file: of the folder of traces, which the topology reads; where it is not at hand the setting is left out.
        without: policies that are not played on it.
        jobs: a function of the paper that prepares job sets, which are played in place of `workload`.
        seeded: parameters that are the run's seed: of `topology`, `workload`, `network`.
        draws: workloads a seed: their seeds are `draws * seed` and on.
        how: `module:function` of this folder that plays a run. given: what it takes besides.
        policies: other words than the paper's for policies.
    """

    label: str | None = None
    environment: str
    topology: Word | None = None
    workload: Word | None = None
    network: Word | None = None
    options: dict[str, Any] = {}
    file: str | None = None
    without: list[str] = []
    jobs: str | None = None
    seeded: dict[Literal["topology", "workload", "network"], str] = {}
    draws: int = 1
    how: str = "case:played"
    given: dict[str, Any] = {}
    policies: dict[str, str] = {}


class Player(Strict):
    """A policy: its word, on how many of the seeds it is played (None: all), and what its settings have otherwise."""

    word: str
    first: int | None = None
    setting: dict[str, Any] = {}


class Line(Strict):
    """Rows of a table: one for each policy, other policy, column and setting that it names.

    Attributes:
        what: the quantity, in words.
        number: a metric of the run, or a function of the paper; `columns`: what it takes, by the name of the column.
        factor, per: a metric is shown times `factor`, divided by `per`.
        form: of the number: its `mean`; `ratio` of the means, or mean of the `ratios`, to the other policy's; `below`:
            by how many percent of the other's it is lower; `minus`: the difference.
        policies, over, pairs, at: policies, those they are compared with, or pairs of both, and settings or groups of
            them; `at` empty: all settings of the reproduction.
        over_at: the setting of the other number; None: the same one.
        interval: whether there is one; usually where runs differ. there: without a number there is no row.
        paper: what is published: a number, a range, words; by column in a list, by name in a mapping.
        tolerance: relative: the row is of a table. judge: as rows.py has it. within: bounds of ours; null: without end.
        unit: of the number.
        lead, parts: how the row is called: what stands before a colon, and after it; `gain`: "A's number over B's".
        after: the end of its name.
        each: the axis of the outermost loop; the others are nested in the order of `Axis`.
        rows: lines that are repeated with each of these policies and settings.
        compute: a function of the paper that makes rows. given: what it takes besides.
    """

    what: str = ""
    number: str = ""
    columns: dict[str, Value] = {}
    factor: float = 1.0
    per: float = 1.0
    form: Literal["mean", "ratio", "ratios", "below", "minus"] = "mean"
    policies: list[str] = []
    over: list[str] = []
    pairs: list[list[str]] = []
    at: list[str] = []
    over_at: str | None = None
    interval: Literal["usual", "none", "always"] = "usual"
    there: bool = False
    paper: Any = None
    tolerance: float | None = None
    judge: Literal["ratio", "below", "above", "clear"] | None = None
    within: tuple[float | None, float | None] | None = None
    unit: str = ""
    lead: list[Part] = []
    parts: list[Part] = ["what", "pair", "column", "at"]
    after: str = ""
    each: Axis | None = None
    rows: list[Line] = []
    compute: str | None = None
    given: dict[str, Any] = {}


class Picture(Strict):
    """A chart, or several beside each other in one file.

    Attributes:
        file: its name; "": the chart stands in the file of the one before.
        kind: `bars` of means and `curve`: means, over settings; `distribution` of completion times, all runs together.
        number, factor, columns: as of a line. hours: the number is of hours, not of seconds.
        log: a logarithmic axis.
    """

    file: str = ""
    kind: Literal["bars", "curve", "distribution"]
    title: str
    number: str = ""
    factor: float = 1.0
    hours: bool = False
    policies: list[str]
    at: list[str]
    columns: dict[str, Value] = {}
    x_label: str = ""
    y_label: str = ""
    log: bool = False


class Quick(Strict):
    """What `--quick` leaves of settings and policies; empty: all."""

    at: list[str] = []
    policies: list[str] = []


class About(Strict):
    """What a reproduction is like.

    Attributes:
        kind: of its rows; "ours": an experiment of ours.
        cpu: CPU time of the whole, in words. trace: what it needs of others; "": nothing.
        seeds: how many; None: as many as usual for the paper. first_seed: from which on, whatever is asked.
        over: what the seeds are of, for the note; None: as usual for the paper.
    """

    kind: Literal["table", "ratio", "order", "ours"]
    cpu: str = "seconds"
    trace: str = ""
    seeds: int | None = None
    first_seed: int | None = None
    over: str | None = None


class Entry(Strict):
    """A reproduction: a published table or figure, or an experiment of ours.

    Attributes:
        about: its kind, what it takes, its seeds.
        summary: what it compares, after the table, figure or section of the paper.
        at: the settings of lines that name none. loads: those whose offered load is shown, if not these.
        compute: a function of the paper that makes it all. draw: one that draws more than `pictures`.
    """

    about: About
    summary: str
    at: list[str] = []
    loads: list[str] | None = None
    quick: Quick = Quick()
    rows: list[Line] = []
    compute: str | None = None
    notes: list[str] = []
    pictures: list[Picture] = []
    draw: str | None = None


class Paper(Strict):
    """A paper, and what of it can be reproduced.

    Attributes:
        seeds, over: of reproductions that say nothing else. loads: whether the load that workloads offer is shown.
        python: modules of its folder with the functions that the file names.
        settings: by name; `like` another one, with changes, `each`: lists of named changes whose product are settings,
            and `quick`: changes under `--quick`. They are checked when they are merged.
        notes: by name, those that several reproductions have.
    """

    paper: str
    title: str
    authors: str
    venue: str
    year: int
    seeds: int
    over: str
    loads: bool = False
    python: list[str] = Field(min_length=1)
    settings: dict[str, dict[str, Any]] = {}
    policies: dict[str, Annotated[Player, BeforeValidator(_player)]] = {}
    notes: dict[str, str] = {}
    reproductions: dict[str, Entry]
