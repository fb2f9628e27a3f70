"""What a search may choose: a YAML file with one range, list or value a parameter.

    margin: {low: 0.5, high: 1.2}                                   # a number; of a whole one both ends are possible
    learning_rate: {low: 1.0e-4, high: 1.0e-2, log: true}           # as likely in each decade
    steps: {low: 1000, high: 20000, step: 1000}
    preempt: [off, on]                                              # choices, as words of the command line
    theta: {low: 0.5, high: 8, log: true, when: {preempt: on}}      # asked only where preempt, above it, is on
    thresholds: {choices: [3250/7200, 1000/4000], when: {head: skip}}
    placer: first                                                   # always this

Every value is text until whoever takes the parameter has read it, so `on` is a word and `1e-4` a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import yaml

from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.files.yaml_files import parse_yaml, read_text

SHIPPED = Path(__file__).with_name("spaces")
FIELDS = ("low", "high", "log", "step", "choices", "when")
TRUTH = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
STEPS_OF_A_RANGE = 1000  # a value has as many digits as tell so many apart
SIGNIFICANT = 4  # digits, where what counts is the ratio

Kind = Literal["whole", "number", "either", "word"]


class Asked(Protocol):
    """Who chooses: a trial of optuna."""

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None, log: bool) -> float:
        """A number."""

    def suggest_int(self, name: str, low: int, high: int, *, step: int, log: bool) -> int:
        """A whole number."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """A word."""


@dataclass(frozen=True)
class Parameter:
    """One parameter that is chosen.

    Attributes:
        key: its name.
        low, high: the range of a number, both ends possible; None of both: one of `choices`.
        whole: whether the number is whole.
        log: whether ratios count instead of differences; low > 0 then.
        step: from low on, only every so much; None: any.
        choices: words.
        when: the words that others, above it, must have for it to be asked at all.
    """

    key: str
    low: float | None = None
    high: float | None = None
    whole: bool = False
    log: bool = False
    step: float | None = None
    choices: tuple[str, ...] = ()
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def applies(self, values: Mapping[str, str]) -> bool:
        """Whether it is asked where others have these values."""
        return all(values.get(key) in words for key, words in self.when.items())

    def ask(self, trial: Asked) -> str:
        """Its value in a trial, as text."""
        if self.low is None or self.high is None:
            return trial.suggest_categorical(self.key, self.choices)
        if self.whole:
            step = 1 if self.step is None else int(self.step)
            return str(trial.suggest_int(self.key, int(self.low), int(self.high), step=step, log=self.log))
        return self.text(trial.suggest_float(self.key, self.low, self.high, step=self.step, log=self.log))

    def text(self, value: float) -> str:
        """A number of the range, in as many digits as make a difference."""
        if self.whole:
            return str(round(value))
        assert self.low is not None and self.high is not None
        if self.log:
            value = float(f"{value:.{SIGNIFICANT}g}")
        elif self.step is None:
            value = round(value, math.ceil(math.log10(STEPS_OF_A_RANGE / (self.high - self.low))))
        text = f"{min(max(value, self.low), self.high):.10g}"
        return text if "e" not in text or "." in text else text.replace("e", ".0e")  # YAML takes 1e-05 for a word

    def held(self, value: Any) -> Any:
        """A default as optuna has it, if it lies in here, else None."""
        if self.choices:
            return next((word for word in self.choices if _means(word, value)), None)
        number = value[0] if isinstance(value, tuple) and len(value) == 1 else value
        if isinstance(number, bool) or not isinstance(number, int | float):
            return None
        assert self.low is not None and self.high is not None
        if not self.low <= number <= self.high or (self.whole and number != int(number)):
            return None
        return int(number) if self.whole else float(number)

    @property
    def ends(self) -> tuple[str, ...]:
        """The values that are tried before anything is played: the ends of a range, all choices."""
        if self.low is None or self.high is None:
            return self.choices
        return self.text(self.low), self.text(self.high)

    def __str__(self) -> str:
        words = ", ".join(self.choices) if self.choices else " to ".join(map(self._exactly, (self.low, self.high)))
        more = " log" if self.log else "" if self.step is None else f" step {self._exactly(self.step)}"
        where = " where " + ", ".join(f"{key}={'|'.join(words)}" for key, words in self.when.items())
        return f"{self.key} {words}{more}" + (where if self.when else "")

    def _exactly(self, number: float | None) -> str:
        """A number of the range as text that tells it from all others, and whole ones from those with a fraction."""
        return "" if number is None else f"{number:.0f}" if self.whole else repr(float(number))


def _means(word: str, value: Any) -> bool:
    """Whether one would type `word` for a value."""
    if value is None:
        return word.lower() in ("none", "null")
    if isinstance(value, bool):
        return TRUTH.get(word.lower()) is value
    if isinstance(value, tuple | list):
        parts = word.split("/")
        return len(parts) == len(value) and all(map(_means, parts, value))
    if isinstance(value, int | float):
        try:
            return float(word) == value
        except ValueError:
            return False
    return word == str(value)


def read_space(word: str) -> tuple[dict[str, Any], str]:
    """What the space `word` says, unchecked, and what to call it: a file, or a shipped space by its name.

    Raises:
        InputError: there is none, it cannot be read, or it says nothing.
    """
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


def parse(
    said: Mapping[str, Any], source: str, kind_of: Callable[[str], Kind], fixed: Mapping[str, str]
) -> tuple[Parameter, ...]:
    """The parameters of a space, checked as far as they can be without whoever takes them.

    Args:
        said: of `read_space`.
        source: what to call it in an error.
        kind_of: what values a parameter has; raises InputError where there is no such parameter.
        fixed: those that have a value already: they are left out.

    Raises:
        InputError: naming the parameter, the value and what was expected.
    """
    found: list[Parameter] = []
    for key, value in said.items():
        above = {one.key for one in found} | fixed.keys()
        parameter = _parameter(key, value, f"{source}: {key}", kind_of(key), above)
        if key not in fixed:
            found.append(parameter)
    if all(len(one.choices) == 1 for one in found):
        raise InputError(f"{source}: there is nothing to choose: every parameter has one value")
    return tuple(found)


def _parameter(key: str, said: Any, what: str, kind: Kind, above: set[str]) -> Parameter:
    if isinstance(said, str):
        return Parameter(key, choices=(said,))
    if isinstance(said, list):
        return Parameter(key, choices=_choices(said, what))
    for name in said:
        choose(name, FIELDS, f"key of {what}:")
    when = _when(said.get("when", {}), what, above)
    if "choices" in said:
        alien = [name for name in said if name not in ("choices", "when")]
        if alien:
            raise InputError(f"{what}: {alien[0]} goes with low and high, not with choices")
        return Parameter(key, choices=_choices(said["choices"], what), when=when)
    if kind == "word":
        raise InputError(f"{what}: it takes words; expected a list of them instead of a range")
    for name in ("low", "high"):
        if name not in said:
            raise InputError(f"{what}: {name} is missing; expected low and high, or choices")
    low, high = (_number(said[name], f"{what}: {name}") for name in ("low", "high"))
    step = _number(said["step"], f"{what}: step") if "step" in said else None
    whole = kind == "whole" or (kind == "either" and all(_is_whole(said.get(n, "1")) for n in ("low", "high", "step")))
    log = _truth(said.get("log", "false"), f"{what}: log")
    _check_range(what, low, high, step, whole, log)
    return Parameter(key, low, high, whole, log, step, when=when)


def _check_range(what: str, low: float, high: float, step: float | None, whole: bool, log: bool) -> None:
    if not low < high:
        raise InputError(f"{what}: low = {low:g}, high = {high:g}: the range is empty; expected low < high")
    if log and not low > 0.0:
        raise InputError(f"{what}: low = {low:g}: expected a number > 0 where log is true")
    if step is not None and log:
        raise InputError(f"{what}: step and log go not together; leave one of them out")
    if step is not None and not 0.0 < step <= high - low:
        raise InputError(f"{what}: step = {step:g}: expected a number > 0 and at most high - low = {high - low:g}")
    for name, value in (("low", low), ("high", high), ("step", step)):
        if whole and value is not None and value != int(value):
            raise InputError(f"{what}: {name} = {value:g}: expected a whole number")


def _choices(said: Any, what: str) -> tuple[str, ...]:
    if not isinstance(said, list) or not said or not all(isinstance(word, str) and word for word in said):
        raise InputError(f"{what}: {said!r}: expected a list of words, as [off, on]")
    if len(set(said)) < len(said):
        raise InputError(f"{what}: {' '.join(said)}: a choice is there twice")
    return tuple(said)


def _when(said: Any, what: str, above: set[str]) -> dict[str, tuple[str, ...]]:
    if not isinstance(said, dict):
        raise InputError(f"{what}: when: {said!r}: expected parameters and their values, as {{preempt: on}}")
    for key in said:
        if key not in above:
            raise InputError(f"{what}: when: {key!r} does not stand above it; those that do: {', '.join(above) or '-'}")
    return {
        key: (words,) if isinstance(words, str) else _choices(words, f"{what}: when: {key}")
        for key, words in said.items()
    }


def _number(text: Any, what: str) -> float:
    try:
        number = float(text)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{what} = {text!r}: expected a number") from None
    return number


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdigit()


def _truth(text: Any, what: str) -> bool:
    if not isinstance(text, str) or text.lower() not in TRUTH:
        raise InputError(f"{what} = {text!r}: expected true or false")
    return TRUTH[text.lower()]


def chosen(space: Sequence[Parameter], trial: Asked, fixed: Mapping[str, str]) -> dict[str, str]:
    """A value for every parameter that applies, in the order of the space."""
    values: dict[str, str] = {}
    for parameter in space:
        if parameter.applies({**fixed, **values}):
            values[parameter.key] = parameter.ask(trial)
    return values


def check_ends(
    space: Sequence[Parameter], check: Callable[[Mapping[str, str]], None], fixed: Mapping[str, str], source: str
) -> None:
    """Try the ends of every range and all choices, each with what it needs, before anything is played.

    Raises:
        InputError: one that `check` refuses.
    """
    by_key = {one.key: one for one in space}

    def needed(parameter: Parameter) -> dict[str, str]:
        values: dict[str, str] = {}
        for key, words in parameter.when.items():
            if key in by_key:
                values |= needed(by_key[key]) | {key: words[0]}
        return values

    for parameter in space:
        values = needed(parameter)
        if not parameter.applies({**fixed, **values}):
            continue
        for end in parameter.ends:
            try:
                check({**values, parameter.key: end})
            except InputError as error:
                raise InputError(f"{source}: {parameter.key}: {end}: {error}") from None
