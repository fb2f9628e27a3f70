"""Digests of sixty settings: what shows whether moves and renames have changed a run.

    python tests/support/digests.py                     compares with digests.json, and prints what differs
    python tests/support/digests.py dally-chronus mast  compares these
    python tests/support/digests.py --write             writes digests.json (with names: these alone)
    python tests/support/digests.py --text DIR mast     writes what is digested as text, to be laid beside another's

Digested are, each part by itself: `metrics` of evaluations and of episodes, by name; `decisions`, the rows that
`evaluate --decisions` writes but for the reasons, and the actions of episodes; `observations`, with the shapes of the
spaces; `masks`; `rewards`, with the ends of episodes and the counts of `info`. Numbers are digested to the last bit,
by name and in order; of paths, modules, classes and the time nothing is. Another processor, or another version of
numpy, may round a logarithm otherwise: digests.json says on what it was written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from clustergym.tests.support import face
from clustergym.tests.support.settings import SETTINGS, SMALL, Setting

PATH = Path(__file__).with_name("digests.json")
PARTS = ("metrics", "decisions", "observations", "masks", "rewards")
STEPS = 150  # of an episode
ADVANCE, WRONG = 0.2, 0.02  # how often the player advances where it may act, and how often it does what it may not
DIGITS = 16  # of sha256, hexadecimal

Digests = dict[str, str]  # part -> digest


def spelt(value: Any) -> str:
    """A value as text, the same for the same bits, types and shapes; whatever the order of a dict."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {spelt(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, np.ndarray) and value.dtype != object:
        if value.dtype.kind == "f":
            value = np.where(np.isnan(value), np.array(np.nan, value.dtype), value)
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:DIGITS]
        return f"{value.dtype.str}{list(value.shape)} {digest}"
    if isinstance(value, list | tuple | np.ndarray):
        return "[" + ", ".join(spelt(one) for one in value) + "]"
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating):
        return float(value).hex()
    return str(value)


@dataclass
class Account:
    """What is to be digested of a setting, in lines of text, part by part."""

    lines: dict[str, list[str]] = field(default_factory=lambda: {part: [] for part in PARTS})

    def add(self, part: str, what: str, value: Any) -> None:
        """Modify self: one line more."""
        self.lines[part].append(f"{what} {spelt(value)}")

    def digests(self) -> Digests:
        """A digest a part."""
        return {
            part: hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGITS] for part, lines in self.lines.items()
        }


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


def shapes(space: Any) -> Any:
    """The shapes of a space of observations, by key."""
    within = getattr(space, "spaces", None)
    return list(space.shape) if within is None else {key: shapes(one) for key, one in within.items()}


def evaluation(setting: Setting, account: Account) -> None:
    """Modify `account`: what `evaluate` says of the policy."""
    named = {**SMALL[setting.env][0], **setting.words}
    words = [setting.env, "--policies", setting.policy, "--seed", str(setting.seed)]
    words += [word for key, value in named.items() for word in (f"--{key}", value)]
    words += [word for key, value in {**setting.both, **setting.asked}.items() for word in ("--set", f"{key}={value}")]
    metrics, rows = face.evaluated(words)
    for name in sorted(metrics):
        account.add("metrics", f"evaluate {name}", metrics[name])
    for row in rows:
        account.add("decisions", "evaluate", " | ".join(row))


def episode(setting: Setting, player: Any, name: str, rows: int, account: Account) -> None:
    """Modify `account`: an episode that `player` plays, called `name`, in so many environments at once (0: in one)."""
    named, window = SMALL[setting.env]
    options = {**named, **window, **setting.words, **setting.both, **setting.own, "max_decisions": STEPS}
    env = face.environment(setting.env, options, rows)
    space = getattr(env, "single_observation_space", env.observation_space)
    account.add("observations", name, {"observation": shapes(space), "action": face.parts_of(env)})
    observation, info = env.reset(seed=setting.seed)
    for step in range(STEPS):
        account.add("observations", f"{name} {step}", observation)
        account.add("masks", f"{name} {step}", face.masks_of(env))
        account.add("rewards", f"{name} {step} info", {key: info[key] for key in face.OF_INFO if key in info})
        action = player.act(env)
        account.add("decisions", f"{name} {step}", np.asarray(action, np.int64))
        observation, reward, terminated, truncated, info = env.step(action)
        account.add("rewards", f"{name} {step}", [reward, terminated, truncated])
        if "metrics" in info:
            account.add("metrics", f"{name} {step}", info["metrics"])
        if not rows and (terminated or truncated):
            break
    account.add("observations", f"{name} end", observation)
    env.close()


def account_of(setting: Setting) -> Account:
    """All that is digested of a setting."""
    account = Account()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluation(setting, account)
        episode(setting, Drawn(setting.seed), "drawn", setting.rows, account)
        if setting.plays:
            episode(setting, face.player(setting.policy), "played", 0, account)
    return account


def differing(found: Digests, expected: Digests) -> list[str]:
    """The parts whose digests differ."""
    return [part for part in PARTS if found.get(part) != expected.get(part)]


def kept() -> dict[str, Any]:
    """What digests.json holds: `written_on` and, by setting, `digests`."""
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found


def here() -> dict[str, str]:
    """What the last bits of numbers may depend on."""
    return {"numpy": np.__version__, "machine": platform.machine(), "system": platform.system()}


def compare(names: Iterable[str]) -> dict[str, list[str]]:
    """Setting -> parts that differ from digests.json; settings that are equal are not in it."""
    expected = kept()["digests"]
    found = {name: differing(account_of(SETTINGS[name]).digests(), expected.get(name, {})) for name in names}
    return {name: parts for name, parts in found.items() if parts}


def write(found: Mapping[str, Digests]) -> None:
    """Write digests.json; settings that were not digested now keep what they have, those that are no more go."""
    before = kept()["digests"] if PATH.exists() else {}
    digests = {name: found.get(name, before.get(name)) for name in SETTINGS}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in digests.items() if one is not None)
    PATH.write_text(f'{{\n "written_on": {json.dumps(here())},\n "digests": {{\n{lines}\n }}\n}}\n')


def write_text(folder: Path, name: str, account: Account) -> None:
    """Write what is digested of a setting: a file a part."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, lines in account.lines.items():
        (folder / f"{name}.{part}.txt").write_text("\n".join(lines) + "\n")


def look(name: str, expected: Mapping[str, Digests], text: Path | None) -> tuple[Digests | None, str]:
    """The digests of a setting, None where it failed, and the line that is printed of it."""
    began_s = time.process_time()
    try:
        account = account_of(SETTINGS[name])
    except Exception as error:  # the others are still worth a look
        return None, f"FAILED   {name}: {type(error).__name__}: {error}"
    if text is not None:
        write_text(text, name, account)
    found = account.digests()
    parts = differing(found, expected.get(name, {}))
    new = "" if name in expected else "new: "
    told = f"DIFFERS  {name}: {new}{', '.join(parts)}" if parts else f"equal    {name}"
    return found, f"{told} ({time.process_time() - began_s:.1f} CPU s)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare or write; 1 if something differs or fails."""
    parser = argparse.ArgumentParser(description="Digests of sixty settings, compared with digests.json.")
    parser.add_argument("names", nargs="*", choices=[[], *SETTINGS], metavar="SETTING", help="these alone")
    parser.add_argument("--write", action="store_true", help="write digests.json")
    parser.add_argument("--text", type=Path, metavar="DIR", help="write what is digested as text")
    given = parser.parse_args(arguments)
    whole: dict[str, Any] = kept() if PATH.exists() else {"written_on": here(), "digests": {}}
    if whole["written_on"] != here():
        print(f"digests.json was written on {whole['written_on']}, this is {here()}: last bits may differ")
    found: dict[str, Digests] = {}
    bad, names = 0, given.names or list(SETTINGS)
    for name in names:
        digests, line = look(name, whole["digests"], given.text)
        print(line, flush=True)
        bad += not line.startswith("equal")
        if digests is not None:
            found[name] = digests
    if given.write:
        write(found)
        bad = len(names) - len(found)
    print(f"{len(names)} settings, {len(names) - bad} {'written' if given.write else 'equal'}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
