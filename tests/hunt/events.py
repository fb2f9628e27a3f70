"""Plays random events over random options of every simulator, and looks after random decisions whether all still holds.

`python tests/hunt/events.py 10000000` plays so many events (`make hunt-events`); a second number is the first seed, so
that `python tests/hunt/events.py 10000000 500` goes on where one ended before seed 500. A broken invariant is printed
with its kind and seed, which `play(kind, seed)` plays again. An event is one of the kernels' own count: an arrival, an
end, a failure, a repair, a round, the end of a transfer or of a group's subtasks; where jobs share links, also each of
the phases in which they send.
"""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections import Counter

import numpy as np

from clustergym.tests.support.invariants import look, look_back
from clustergym.tests.support.worlds import make_world

# Of the events, each kind's part; elastic jobs fit parameters as they run, which takes long.
PARTS = {"gangs": 0.18, "shared": 0.15, "contended": 0.22, "groups": 0.22, "regions": 0.228, "elastic": 0.002}
SAID_EVERY_S = 60.0


def play(kind: str, seed: int) -> Counter[str]:
    """One run to its end; what it came to: events, decisions, looks.

    Every turn or one of 25 or 100 is followed by a look, as drawn for the run; the share of decisions that chance
    makes, and not the compiled rule, is drawn too.
    """
    rng = np.random.default_rng([seed, 1_000])
    world = make_world(kind, seed, large=bool(rng.random() < 0.7))
    every, share, most = int(rng.choice([1, 25, 100])), float(rng.choice([0.1, 0.5, 1.0])), int(rng.integers(20, 400))
    verbs, found = list(world.verbs), Counter[str]()
    look(world.simulator)
    for turn in range(most):
        if world.ended:
            break
        world.careful = turn % every == 0
        if rng.random() < share:
            for _ in range(int(rng.integers(1, 4))):
                found["decisions"] += world.do(verbs[rng.integers(len(verbs))], rng)
        if rng.random() >= share:
            world.let_rule()
        if world.careful:
            look(world.simulator)
            found["looks"] += 1
        if not world.ended and rng.random() < 0.8:
            world.advance()
            if world.careful:
                look(world.simulator)
                found["looks"] += 1
    world.finish()
    if world.simulator.done:
        look_back(world.simulator)
    else:
        look(world.simulator)
    found["looks"] += 2
    found["events"], found["runs"] = world.events, 1
    return found


def play_events(count: int, seed: int = 0) -> tuple[dict[str, Counter[str]], int, int]:
    """Runs from `seed` on until `count` events have happened: what each kind came to, what broke, the next seed.

    Next is a run of the kind that has fewest events for its part of them.
    """
    found, broken, events, began_s = {kind: Counter[str]() for kind in PARTS}, 0, 0, time.monotonic()
    said_s = began_s
    while events < count:
        kind = min(PARTS, key=lambda kind: found[kind]["events"] / PARTS[kind])
        try:
            run = play(kind, seed)
        except Exception:
            broken += 1
            run = Counter(events=1)
            print(f"BROKEN: play({kind!r}, {seed})\n{traceback.format_exc()}", flush=True)
        found[kind] += run
        events += run["events"]
        seed += 1
        if time.monotonic() - said_s > SAID_EVERY_S:
            said_s = time.monotonic()
            print(f"{events:,} events in {said_s - began_s:.0f} s, next seed {seed}, {broken} broken", flush=True)
    return found, broken, seed


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked, first = int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])
    found, broken, following = play_events(asked, first)
    total = sum(found.values(), Counter[str]())
    for kind, counts in found.items():
        said = ", ".join(f"{counts[name]:,} {name}" for name in ("events", "runs", "decisions", "looks"))
        print(f"{kind}: {counts['events'] / total['events']:.1%} of the events; {said}")
    print(f"{total['events']:,} events, seeds {first} to {following - 1}: {broken} broken invariants or tracebacks")
    sys.exit(broken > 0)
