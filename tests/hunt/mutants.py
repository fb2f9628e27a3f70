"""Changes files as carelessness, editors and disks do, and watches that their readers end soon, and well."""

from __future__ import annotations

import random
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from clustergym.simulator.base.errors import ClustergymError

LONGEST_S = 12.0  # of a processor: other work on the machine makes nothing a hang
WAITING_S = 120.0  # by the clock: what waits for input uses no processor
ODD = (
    *(b"", b"nan", b"-1", b"inf", b"1e999", b"0", b"1e-320", b"9" * 400, b"1_000", b"0x10", b"True", b"null", b"~"),
    *(b'"', b"'", b",", b",,,,", b"\t", b"\n", b"\r", b"\0", b"\xff", b"\xc2\x9b", b"\xe2\x80\xae", b"\xef\xbb\xbf"),
    *(b"[", b"]", b"{", b"}", b"{}", b"[]", b":", b"- ", b"#", b"&a", b"*a", b"!!python/object:os.system", b"\\u0000"),
    *(
        b"2017-02-30 25:61:00",
        b"=cmd|' /C calc'!A0",
        b"../../etc/passwd",
        b"[" * 3000,
        b"x" * 70000,
        b"\xf0\x9f\x99\x82",
    ),
)


class Slow(BaseException):
    """It took longer than LONGEST_S or WAITING_S; no `except Exception` in between takes it for its own."""


@contextmanager
def soon() -> Iterator[None]:
    """Raise Slow in what takes longer than LONGEST_S or WAITING_S. Of the main thread only."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Slow

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, LONGEST_S), signal.SIGALRM: (signal.ITIMER_REAL, WAITING_S)}
    before = {number: signal.signal(number, stop) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)


def outcome(look: Callable[[], object], what: str, found: Counter[str]) -> None:
    """Count what `look` ended in; print what it must not end in."""
    try:
        with soon(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            look()
        found["accepted"] += 1
    except ClustergymError as error:
        found["refused"] += 1
        if "\n" in str(error) or not str(error):
            found["not one sentence"] += 1
            print(f"{what}: {error!r}")
    except Slow as slow:
        if any(frame.name == "play" for frame in traceback.extract_tb(slow.__traceback__)):
            found["still played"] += 1  # which is slow without compiling, and no question of what was read
            return
        found["hangs"] += 1
        print(f"{what}: more than {LONGEST_S:g} s of a processor, or {WAITING_S:g} s")
    except Exception:
        found["tracebacks"] += 1
        print(f"{what}:\n{traceback.format_exc()}")


def mutated(data: bytes, draw: random.Random) -> bytes:
    """`data` with one to three changes."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        data = draw.choice((_flip, _replace, _replace, _cell, _cell, _cell, _cut, _double, _drop_column, _drop_line))(
            data, draw
        )
    return data


def _flip(data: bytes, draw: random.Random) -> bytes:
    if not data:
        return b"\x01"
    changed = bytearray(data)
    changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _replace(data: bytes, draw: random.Random) -> bytes:
    begin = draw.randrange(len(data) + 1)
    return data[:begin] + draw.choice(ODD) + data[begin + draw.choice((0, 1, 2, 8)) :]


def _cell(data: bytes, draw: random.Random) -> bytes:
    """Another value in place of a word or number."""
    places = [place for place in range(len(data)) if data[place : place + 1] in b",:\t[ "]
    if not places:
        return _replace(data, draw)
    begin = draw.choice(places) + 1
    ends = [end for end in (data.find(mark, begin) for mark in (b",", b"\n", b"\t", b"}", b"]")) if end >= 0]
    return data[:begin] + draw.choice(ODD) + data[min(ends, default=len(data)) :]


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _double(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    place = draw.randrange(len(lines))
    return b"".join([*lines[: place + 1], *lines[place:]])


def _drop_line(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    del lines[draw.randrange(len(lines))]
    return b"".join(lines)


def _drop_column(data: bytes, draw: random.Random) -> bytes:
    mark = b"\t" if b"\t" in data else b","
    rows = [line.split(mark) for line in data.split(b"\n")]
    gone = draw.randrange(max(len(row) for row in rows))
    return b"\n".join(mark.join(row[:gone] + row[gone + 1 :]) for row in rows)


def tell(what: str, found: Counter[str]) -> bool:
    """Print the counts; whether nothing was wrong."""
    wrong = {name: found[name] for name in ("tracebacks", "hangs", "not one sentence")}
    print(f"{found.total()} {what}: {dict(found)}; {wrong}", flush=True)
    return not any(wrong.values())
