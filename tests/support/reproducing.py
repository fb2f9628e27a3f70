"""A reproduction before it is run, and its rows."""

from clustergym.experiments.reproduce.engine import Play
from clustergym.experiments.reproduce.reproductions import reproductions
from clustergym.experiments.reproduce.rows import Findings, Options, Row


def play_of(name: str, options: Options) -> Play:
    """The reproduction of that name."""
    one = reproductions()[name]
    return Play(one.of, name, one.entry, options)


def rows_of(name: str, options: Options) -> dict[str, Row]:
    """Its rows by their names, which are all different."""
    found = reproductions()[name].run(options).rows
    assert len({row.quantity for row in found}) == len(found)
    return {row.quantity: row for row in found}


def missed(findings: Findings) -> list[str]:
    """What was claimed and is not met."""
    return [row.quantity for row in findings.rows if row.ok is False]
