"""The plays of tests/support/digests.py, in a process of their own: what is played, and digests of what came of it.

    python -m clustergym.tests.support.digest_plays Delay-drawn OUT.jsonl --of CHECKOUT

plays what OUT.jsonl does not hold yet, and writes a line a play. A part is an environment and how it is played:

* `drawn`: episodes of legal actions drawn at random, in the options of the settings in turn;
* `policies`: every policy and shipped agent, and the policies of the settings, by `evaluate` and in the environment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import clustergym
from clustergym.tests.support import face
from clustergym.tests.support.settings import LESS, SETTINGS, SMALL, Setting

DRAWN, POLICIES = "drawn", "policies"
PARTS = tuple(f"{env}-{how}" for env in SMALL for how in (DRAWN, POLICIES))
STEPPED = ("observation", "mask", "info", "reward", "decision")  # one a step; `metric` by name
EPISODES = 200  # drawn, of an environment
SEEDS = 3  # of every policy
ROUNDS = 200  # steps of several environments at once, which begin anew at an end
ADVANCE, WRONG = 0.2, 0.02  # how often the player advances where it may act, and how often it does what it may not
DIGITS = 8  # hexadecimal, of sha256
PLACE = re.compile(r" at 0x[0-9a-f]+|/\S+/")  # of an object, and folders: others in every process

Record = dict[str, Any]


@dataclass(frozen=True)
class Play:
    """One play.

    Attributes:
        setting: the policy and the environment.
        how: `drawn`; `evaluated`, by the command line; `played`, by the policy in the environment.
        seed: of everything.
        name: what the report calls it, and unlike that of any other play.
    """

    setting: Setting
    how: str
    seed: int
    name: str


def plays_of(part: str, episodes: int = EPISODES) -> Iterator[Play]:
    """What a part consists of, in the checkout whose `clustergym` is imported."""
    env, how = part.split("-")
    settings = [one for one in SETTINGS.values() if one.env == env]
    if how == DRAWN:
        for seed in range(episodes):
            setting = settings[seed % len(settings)]
            yield Play(setting, DRAWN, seed, f"{env} drawn setting={setting.name} {seed}")
        return
    who = [(one, one.seed, f"setting={one.name}") for one in settings]
    for word in face.listed().get(env, []):
        words = {"workload": LESS[env, word]} if (env, word) in LESS else {}
        who += [(Setting(word, env, word, words), seed, word) for seed in range(SEEDS)]
    for setting, seed, name in who:
        yield Play(setting, "evaluated", seed, f"{env} evaluated {name} {seed}")
        if setting.plays:
            yield Play(setting, "played", seed, f"{env} played {name} {seed}")


def spelt(value: Any, whole: bool = False) -> str:
    """A value as text, the same for the same bits, types and shapes; `whole`: with the numbers of arrays to be read."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {spelt(value[key], whole)}" for key in sorted(value)) + "}"
    if isinstance(value, np.ndarray) and value.dtype != object:
        if value.dtype.kind == "f":
            value = np.where(np.isnan(value), np.array(np.nan, value.dtype), value)
        told = str(value.ravel().tolist()) if whole else digest(np.ascontiguousarray(value).tobytes())
        return f"{value.dtype.str}{list(value.shape)} {told}"
    if isinstance(value, list | tuple | np.ndarray):
        return "[" + ", ".join(spelt(one, whole) for one in value) + "]"
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating):
        return repr(float(value))
    return str(value)


def digest(data: bytes) -> str:
    """Of bytes."""
    return hashlib.sha256(data).hexdigest()[:DIGITS]


class Account:
    """What has come of a play: of every step a digest of each kind, or `whole` texts; metrics as they are."""

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole
        self.steps: dict[str, list[str]] = {kind: [] for kind in STEPPED}
        self.metrics: dict[str, str] = {}

    def add(self, kind: str, value: Any) -> None:
        """Modify self: what is next of this kind."""
        text = spelt(value, self.whole)
        self.steps[kind].append(text if self.whole else digest(text.encode()))

    def measure(self, metrics: Mapping[str, Any]) -> None:
        """Modify self: the totals of the play."""
        self.metrics |= {name: spelt(value, self.whole) for name, value in metrics.items()}


class Drawn:
    """A player that draws legal actions; now and then it advances though it could act, or does what it may not."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 24])

    def act(self, env: Any) -> np.ndarray:
        """An action; of a vector environment one a row."""
        parts = face.parts_of(env)
        actions = np.array([self._one(row, parts) for row in face.masks_of(env)], np.int64)
        if self.rng.random() < WRONG:
            actions[self.rng.integers(len(actions))] = [parts[0] - 1, *(size + 2 for size in parts[1:])]
        if not hasattr(env, "num_envs"):
            actions = actions[0]
        return actions if len(parts) > 1 else actions[..., 0]

    def _one(self, mask: np.ndarray, parts: list[int]) -> list[int]:
        legal = [np.flatnonzero(part) for part in np.split(mask, np.cumsum(parts)[:-1])]
        if legal[0][0] == 0 and self.rng.random() < ADVANCE:
            legal[0] = legal[0][:1]
        return [int(self.rng.choice(values)) for values in legal]


def evaluation(play: Play, account: Account) -> None:
    """Modify `account`: what `evaluate` says of the policy."""
    setting = play.setting
    named = {**SMALL[setting.env][0], **setting.words}
    words = [setting.env, "--policies", setting.policy, "--seed", str(play.seed)]
    words += [word for key, value in named.items() for word in (f"--{key}", value)]
    words += [word for key, value in {**setting.both, **setting.asked}.items() for word in ("--set", f"{key}={value}")]
    metrics, rows = face.evaluated(words)
    account.measure(metrics)
    for row in rows:
        account.add("decision", list(row))


def episode(play: Play, account: Account) -> None:
    """Modify `account`: an episode in the environment; with rows so many steps of several at once."""
    setting, rows = play.setting, play.setting.rows if play.how == DRAWN else 0
    named, window = SMALL[setting.env]
    env = face.environment(setting.env, {**named, **window, **setting.words, **setting.both, **setting.own}, rows)
    player = Drawn(play.seed) if play.how == DRAWN else face.player(setting.policy)
    observation, info = env.reset(seed=play.seed)
    steps, ended = 0, False
    while not ended:
        look(env, observation, info, account)
        action = player.act(env)
        account.add("decision", np.asarray(action, np.int64))
        observation, reward, terminated, truncated, info = env.step(action)
        account.add("reward", [reward, terminated, truncated])
        if "metrics" in info:
            account.measure({f"of step {steps}": info["metrics"]} if rows else info["metrics"])
        steps += 1
        ended = steps == ROUNDS if rows else terminated or truncated
    look(env, observation, info, account)
    env.close()


def look(env: Any, observation: Any, info: Mapping[str, Any], account: Account) -> None:
    """Modify `account`: what there is to be seen before an action."""
    account.add("observation", observation)
    account.add("mask", face.masks_of(env))
    account.add("info", {key: info[key] for key in face.OF_INFO if key in info})


def played(play: Play, whole: bool = False) -> Record:
    """What came of a play, to be kept as JSON; where it ended in an error, that and what came before."""
    account, error, began_s = Account(whole), "", time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (evaluation if play.how == "evaluated" else episode)(play, account)
    except Exception as raised:  # what one checkout can play and the other cannot is to be seen
        error = PLACE.sub("", f"{type(raised).__name__}: {raised}")
    seconds = round(time.process_time() - began_s, 3)
    return {"play": play.name, "seconds": seconds, "error": error, "metric": account.metrics, **account.steps}


def kept(path: Path) -> dict[str, Record]:
    """The plays that a file holds, by name; a line that a killed process has begun to write is none."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        with suppress(ValueError):
            record = json.loads(line)
            found[record["play"]] = record
    return found


def write(path: Path, plays: Iterable[Play], whole: bool = False) -> None:
    """Play what the file does not hold yet; each line is on disk before the next play begins.

    It ends with the process that has begun it, however that ends.
    """
    have, parent = kept(path), os.getppid()
    path.write_text("".join(f"{json.dumps(record)}\n" for record in have.values()))
    with path.open("a") as lines:
        for play in plays:
            if os.getppid() != parent:
                return
            if play.name not in have:
                lines.write(f"{json.dumps(played(play, whole))}\n")
                lines.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Play a part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--of", type=Path, required=True, help="the checkout that is to be played")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--only", help="name of the only play, whose values are written whole")
    given = parser.parse_args(arguments)
    imported = Path(clustergym.__file__).resolve().parent
    if imported != given.of.resolve():
        print(f"`import clustergym` finds {imported}, not {given.of}", file=sys.stderr)
        return 2
    plays = plays_of(given.part, given.episodes)
    write(given.out, (one for one in plays if given.only in (None, one.name)), whole=given.only is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
