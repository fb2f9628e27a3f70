"""Steps per CPU second of Delay-v0 by observation, window and preemption; a step by kind; memory per environment.

Through `gymnasium.make`, on the default cluster and workload; legal actions, drawn at random, are recorded and
replayed.
"""

from __future__ import annotations

import json
from statistics import fmean, median
from typing import Any

import gymnasium
from _measure import arguments_of, in_process, print_document, print_table, resident_bytes
from _replay import SLOTS as DEFAULT_SLOTS
from _replay import check, record, seconds_by_kind, speeds

from clustergym.experiments.console.terminal import progress

ENV_ID = "clustergym/Delay-v0"
SLOTS = (8, 32, 128)


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the tables or the JSON document."""
    options = arguments_of(__doc__.splitlines()[0], argv, _own_arguments)
    if options.memory_of:
        print(json.dumps(memory_of(options.memory_of, options.seed)))
        return 0
    slots = SLOTS[:1] if options.quick else SLOTS
    cases = [(kind, n, stops) for kind in ("dict", "flat") for n in slots for stops in (True, False)]
    found: list[dict[str, Any]] = []
    with progress("bench environment", len(cases) + 2, options.quiet) as show:
        for case in cases:
            found.append(measure(*case, options.seed, options.quick))
            show(len(found))
        kinds = measure_kinds(options.seed, options.quick)
        show(len(found) + 1)
        count = 4 if options.quick else 64
        memory = in_process([__file__, f"--memory-of={count}", f"--seed={options.seed}"])[0]
    document = {"steps": found, "kinds": kinds, "memory": memory}
    (print_document if options.json else _print_tables)(document)
    return 0


def _own_arguments(parser: Any) -> None:
    parser.add_argument("--memory-of", type=int, metavar="N", help="memory of N environments in this process, as JSON")


def measure(observation: str, slots: int, preemption: bool, seed: int, quick: bool) -> dict[str, Any]:
    """One row of the first table."""
    env = gymnasium.make(ENV_ID, observation=observation, slots=slots, preemption=preemption)
    episodes = [record(env, seed + i) for i in range(1 if quick else 3)]
    for episode in episodes:
        check(env, episode)
    space = env.observation_space
    boxes = space.spaces.values() if isinstance(space, gymnasium.spaces.Dict) else [space]
    row = {
        "observation": observation,
        "slots": slots,
        "preemption": preemption,
        "features": sum(box.shape[0] for box in boxes),
        "candidates": env.unwrapped.interface.candidates,
        **speeds(env, episodes, 2 if quick else 10),
    }
    env.close()
    return row


def measure_kinds(seed: int, quick: bool) -> list[dict[str, Any]]:
    """One row for each kind of decision, on the default environment."""
    env = gymnasium.make(ENV_ID)
    episodes = [record(env, seed + i) for i in range(1 if quick else 4)]
    taken = seconds_by_kind(env, episodes, DEFAULT_SLOTS, 2 if quick else 7)
    env.close()
    return [
        {
            "kind": kind,
            "steps": len(steps_s),
            "mean_s": fmean(steps_s) if steps_s else None,
            "median_s": median(steps_s) if steps_s else None,
        }
        for kind, steps_s in taken.items()
    ]


def memory_of(count: int, seed: int) -> dict[str, Any]:
    """Resident bytes that each of `count` more environments takes once it has been reset and stepped."""
    first = gymnasium.make(ENV_ID)
    first.reset(seed=seed)
    first.step([0, 0, 0])
    before = resident_bytes()
    kept = []
    for i in range(count):
        env = gymnasium.make(ENV_ID)
        env.reset(seed=seed + i)
        env.step([0, 0, 0])
        kept.append(env)
    return {
        "environments": count,
        "resident_bytes_each": (resident_bytes() - before) / count,
        "record_bytes": int(first.unwrapped.simulator.records.nbytes),  # type: ignore[attr-defined]
        "process_bytes_with_one": before,
    }


def _print_tables(document: dict[str, Any]) -> None:
    print_table(
        "Delay-v0 through gymnasium.make, random legal actions: thousand steps per CPU second, one core",
        ("observation", "slots", "preemption", "candidates", "features", "best", "median", "with resets", "reset, us"),
        [
            (
                row["observation"],
                row["slots"],
                "on" if row["preemption"] else "off",
                row["candidates"],
                f"{row['features']:,}",
                *(f"{row[key] / 1e3:.0f}" for key in ("steps_per_s", "steps_per_s_median", "steps_per_s_with_resets")),
                f"{1e6 * row['reset_s']:.0f}",
            )
            for row in document["steps"]
        ],
    )
    print_table(
        f"a step by the kind of its candidate: us, {DEFAULT_SLOTS} slots, preemption on",
        ("kind", "steps", "mean", "median"),
        [
            (row["kind"], row["steps"], *(row[key] and f"{1e6 * row[key]:.2f}" for key in ("mean_s", "median_s")))
            for row in document["kinds"]
        ],
    )
    memory = document["memory"]
    print_table(
        "memory: KiB",
        ("environments", "resident, each one more", "the record", "process with one"),
        [
            (
                memory["environments"],
                *(
                    f"{memory[key] / 1024:,.0f}"
                    for key in ("resident_bytes_each", "record_bytes", "process_bytes_with_one")
                ),
            )
        ],
    )


if __name__ == "__main__":
    raise SystemExit(main())
