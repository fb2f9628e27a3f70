"""One parameter of a setting over several values, `KEY=a..b:n`, and the words of a command with each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.workloads import is_path

PLACES = ("workload", "topology", "network")
EXPECTED = "expected KEY=a..b:n (n values from a to b) or KEY=a/b/c"
MOST = 200  # values
RANGE_OF_ANOTHER_KIND = re.compile(r"[\d.]+(\.\.|[-:,])[\d.]")  # 0.5-1.2, 0.5:1.2:8, 0.5..1.2


@dataclass(frozen=True)
class Sweep:
    """A parameter and its values, as text."""

    place: str  # of whose word it is a parameter: `workload`, `topology` or `network`; "": a key of `--set`
    key: str
    values: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in tables and folders."""
        return f"{self.place}.{self.key}" if self.place else self.key


def load(text: str, words: Mapping[str, str], keys: Sequence[str]) -> Sweep:
    """A sweep from its text.

    Args:
        text: `load=0.5..1.2:8`, `machines=2/4/8`. `workload.KEY`, `topology.KEY` and `network.KEY` say whose parameter
            it is; without, it is the one that stands in one of these words, or else a key of `--set`.
        words: place -> word, without the sweep.
        keys: of `--set`.

    Raises:
        InputError: it cannot be read, or no word or several have such a parameter.
    """
    name, equals, span = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--sweep {text!r}: {EXPECTED}")
    place, dot, key = name.strip().rpartition(".")
    if dot:
        if place not in PLACES:
            raise InputError(f"--sweep {text!r}: unknown {place!r}; known: {', '.join(PLACES)}")
    else:
        place = _place_of(key, text, words, keys)
    if place and is_path(words[place]):
        raise InputError(f"--sweep {text!r}: {words[place]} is a file and has no parameters")
    return Sweep(place, key, _values(span.strip(), text))


def _place_of(key: str, text: str, words: Mapping[str, str], keys: Sequence[str]) -> str:
    having = [place for place, word in words.items() if re.search(rf"[:,]{re.escape(key)}=", word)]
    if len(having) > 1:
        also = " or ".join(f"{place}.{key}" for place in having)
        raise InputError(f"--sweep {text!r}: {' and '.join(having)} have {key!r}; say {also}")
    if not having and key not in keys:
        raise InputError(
            f"--sweep {text!r}: {key!r} stands in none of {', '.join(words.values())}, and is no key of --set; "
            f"say {', '.join(f'{place}.{key}' for place in PLACES)}, whichever has it (of a policy's own parameter "
            f"name the policy once a value: --policies 'NAME:{key}=... NAME:{key}=...')"
        )
    return having[0] if having else ""


def _values(span: str, text: str) -> tuple[str, ...]:
    steps = re.fullmatch(r"(.+)\.\.(.+):(\d{1,6})", span)
    if steps is None:
        values = tuple(value.strip() for value in span.split("/"))
        if not all(values) or len(set(values)) < len(values) or RANGE_OF_ANOTHER_KIND.match(span):
            raise InputError(f"--sweep {text!r}: {EXPECTED}")
        return values
    try:
        low, high, count = float(steps[1]), float(steps[2]), int(steps[3])
    except ValueError:
        raise InputError(f"--sweep {text!r}: {EXPECTED}") from None
    if not 2 <= count <= MOST or not np.isfinite([low, high]).all() or low == high:
        raise InputError(f"--sweep {text!r}: expected from 2 to {MOST} values from one number to another")
    found = np.linspace(low, high, count).tolist()
    texts = tuple(map(_text, found))
    return texts if len(set(texts)) == count else tuple(f"{value:.15g}" for value in found)


def _text(value: float) -> str:
    """A number in six digits; a whole one in all of its own, as parameters that count take it."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def with_parameter(word: str, key: str, value: str) -> str:
    """A word with a parameter: in the place of the one of that name, else at the end."""
    replaced, count = re.subn(rf"(?<=[:,]){re.escape(key)}=[^,]*", lambda _: f"{key}={value}", word)
    if count:
        return replaced
    has_any = re.search(r"[:,][^:,=]+=", word) is not None or word.startswith("py:")
    return f"{word}{',' if has_any else ':'}{key}={value}"
