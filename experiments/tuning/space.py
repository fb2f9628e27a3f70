"""The space of a search: a YAML file with one range, list or value a parameter.

    margin: {low: 0.5, high: 1.2}                                   # a number; of a whole one both ends are possible
    learning_rate: {low: 1.0e-4, high: 1.0e-2, log: true}           # as likely in each decade
    steps: {low: 1000, high: 20000, step: 1000}
    preempt: [off, on]                                              # choices, as words of the command line
    theta: {low: 0.5, high: 8, log: true, when: {preempt: on}}      # asked only where preempt, above it, is on
    thresholds: {choices: [3250/7200, 1000/4000], when: {head: skip}}
    placer: first                                                   # always this
    optuna: {sampler: RandomSampler}                                # how to search, see trial_search.py

Every value is text until the reader of its parameter has read it, so `on` is a word and `1e-4` a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ...simulator.base.errors import InputError
from ...simulator.base.names import bind, choose
from ...simulator.files.yaml_files import parse_yaml, read_text

if TYPE_CHECKING:
    from .subjects import Reader, Subject

SHIPPED = Path(__file__).with_name("spaces")


@dataclass(frozen=True)
class Parameter:
    """One parameter that is chosen."""

    key: str
    distribution: Any  # optuna's: of numbers, both ends possible, or of words
    when: Mapping[str, tuple[str, ...]]  # the words that others, above it, must have for it to be asked
    said: str  # as in the file

    def applies(self, values: Mapping[str, str]) -> bool:
        """Whether it is asked where others have these values."""
        return all(values.get(key) in words for key, words in self.when.items())

    def ask(self, trial: Any) -> str:
        """Its value in a trial of optuna, as text."""
        one = self.distribution
        if hasattr(one, "choices"):
            return str(trial.suggest_categorical(self.key, one.choices))
        suggest = trial.suggest_int if isinstance(one.low, int) else trial.suggest_float
        return self.text(suggest(self.key, one.low, one.high, step=one.step, log=one.log))

    def text(self, value: float) -> str:
        """A number of the range, in six digits where it is not whole."""
        one = self.distribution
        if isinstance(one.low, int):
            return str(value)
        text = f"{min(max(float(f'{value:.6g}'), one.low), one.high):.10g}"
        return text if "e" not in text or "." in text else text.replace("e", ".0e")  # YAML takes 1e-05 for a word


def read_space(word: str) -> tuple[dict[str, Any], str]:
    """The content of the space `word`, a file or a shipped name, unchecked, and its name in messages."""
    path = Path(word)
    if not path.suffix and not path.exists():
        path = shipped()[choose(word, shipped(), "space")]
    source = f"space {word}"
    found = parse_yaml(read_text(path, "space"), source, yaml.BaseLoader)
    if not isinstance(found, dict) or not found:
        raise InputError(f"{source}: expected parameters and their ranges, as margin: {{low: 0.5, high: 1.2}}")
    return found, source


def shipped() -> dict[str, Path]:
    """The spaces that come with the package: name -> file."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def parse(said: Mapping[str, Any], source: str, subject: Subject) -> tuple[Parameter, ...]:
    """The parameters that a space (`read_space`, without `optuna`) leaves to choose; their ends have been tried."""
    found: list[Parameter] = []
    for key, value in said.items():
        above = {*(one.key for one in found), *subject.fixed}
        parameter = _parameter(key, value, f"{source}: {key}", subject.reader_of(key), above)
        if key not in subject.fixed:
            found.append(parameter)
    if all(one.distribution.single() for one in found):
        raise InputError(f"{source}: there is nothing to choose: every parameter has one value")
    _try_ends(found, source, subject)
    return tuple(found)


def _try_ends(space: Sequence[Parameter], source: str, subject: Subject) -> None:
    """The ends of every range and all choices, each with what it needs, before anything is played."""
    needed: dict[str, dict[str, str]] = {}  # by parameter of the space
    for one in space:
        values: dict[str, str] = {}
        for key, words in one.when.items():
            values |= {**needed[key], key: words[0]} if key in needed else {}
        needed[one.key] = values
        kind = one.distribution
        ends = kind.choices if hasattr(kind, "choices") else (one.text(kind.low), one.text(kind.high))
        for end in ends if one.applies({**subject.fixed, **values}) else ():
            try:
                subject.check({**values, one.key: end})
            except InputError as error:
                raise InputError(f"{source}: {one.key}: {end}: {error}") from None


def _parameter(key: str, value: Any, what: str, read: Reader, above: set[str]) -> Parameter:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    said = dict(value) if isinstance(value, dict) else {"choices": [value] if isinstance(value, str) else value}
    when = said.pop("when", {})
    if not isinstance(when, dict):
        raise InputError(f"{what}: when: {when!r}: expected parameters and their values, as {{preempt: on}}")
    for name in when:
        if name not in above:
            known = ", ".join(sorted(above)) or "-"
            raise InputError(f"{what}: when: {name!r} does not stand above it; those that do: {known}")
    needed = {name: _words([one] if isinstance(one, str) else one, f"{what}: when") for name, one in when.items()}
    kinds = _kinds(read)
    make: Any = CategoricalDistribution if "choices" in said else FloatDistribution
    if "choices" in said:
        said["choices"] = _words(said["choices"], what)
    elif not kinds:
        raise InputError(f"{what}: it takes words; expected a list of them instead of a range")
    elif kinds == {int} or (int in kinds and all(str(one).lstrip("+-").isdigit() for one in said.values())):
        make = IntDistribution
    try:
        found = bind(make, said, what)
        if not math.isfinite(getattr(found, "high", 0.0) - getattr(found, "low", 0.0)):
            raise InputError(f"{what}: {_text_of(value)}: expected finite numbers")
    except (ValueError, TypeError) as error:
        raise InputError(str(error) if isinstance(error, InputError) else f"{what}: {error}") from None
    return Parameter(key, found, needed, f"{key} {_text_of(value)}")


def _kinds(read: Reader) -> set[type]:
    """The numbers that a parameter takes: int for whole ones, float for others, none for words."""
    found: set[type] = set()
    for text in ("1", "0.5"):
        with suppress(InputError):
            value = read(text)
            found.add(type(value[0] if isinstance(value, tuple) else value))
    return found & {int, float}


def _words(said: Any, what: str) -> tuple[str, ...]:
    if not isinstance(said, list) or not said or not all(isinstance(word, str) and word for word in said):
        raise InputError(f"{what}: {said!r}: expected a list of words, as [off, on]")
    if len(set(said)) < len(said):
        raise InputError(f"{what}: {' '.join(said)}: a choice is there twice")
    return tuple(said)


def _text_of(said: Any) -> str:
    """The file's text of a parameter, without brackets."""
    pairs = [f"{key} {_text_of(value)}" for key, value in said.items()] if isinstance(said, dict) else said
    return said if isinstance(said, str) else ", ".join(pairs)
