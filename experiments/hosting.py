"""Environments that another simulator than engine/simulator.py plays: its configuration as words, and one of it.

What it is like is a class of the environment's entry (envs/registration.py): its fields are keys of `--set` there, and
`Setting.config` has those that are not its defaults, `comm=split,busy=0.9`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..envs.registration import ENVIRONMENTS, Entry, loaded
from ..simulator.base.errors import InputError
from ..simulator.base.names import bind, choose, parse_name

if TYPE_CHECKING:
    from ..simulator.jobs.estimates import Estimates
    from .evaluate import Setting


def config_keys(entry: Entry) -> list[str]:
    """The fields of an environment's configuration; none where it has none."""
    return [] if entry.config is None else [field.name for field in fields(loaded(entry.config))]


def parted(environment: str, words: Mapping[str, str], others: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The words of `--set` that are of the environment's configuration, and the rest, which `others` takes.

    Raises:
        InputError: one that only the configurations of other environments have; an unknown one.
    """
    own = config_keys(ENVIRONMENTS[environment])
    common = list(inspect.signature(others).parameters)
    for key in (key for key in words if key not in own and key not in common):
        for other, entry in ENVIRONMENTS.items():
            if key in config_keys(entry):
                raise InputError(f"--set {key}: {environment} has nothing of the kind; {other} has")
        if own:
            choose(key, [*own, *common], "key of --set")
    mine = {key: value for key, value in words.items() if key in own}
    return mine, {key: value for key, value in words.items() if key not in own}


def keys(environment: str, others: Any) -> list[str]:
    """All keys of `--set` in an environment: its own, and those that `others` takes."""
    return [*config_keys(ENVIRONMENTS[environment]), *inspect.signature(others).parameters]


def config_fields(environment: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The field of `Setting` that an environment with another simulator has: its own configuration, and what is given.

    Raises:
        InputError: a value that does not fit.
    """
    entry = ENVIRONMENTS[environment]
    if entry.config is None:
        return {}
    kind = loaded(entry.config)
    own = {key: given[key] for key in config_keys(entry) if key in given}
    found, default = bind(kind, {**entry.config_words, **own}, "--set"), kind()
    told = {key: getattr(found, key) for key in config_keys(entry) if getattr(found, key) != getattr(default, key)}
    return {"config": ",".join(f"{key}={_word(value)}" for key, value in told.items())}


def expect_playable(setting: Setting) -> None:
    """InputError where an environment with another simulator is given what that does not have."""
    if setting.config is None:
        return
    own = ENVIRONMENTS[setting.environment].defaults["network"]
    if setting.network != own:
        raise InputError(f"network {setting.network!r}: {setting.environment} has one of its own; leave it out")
    if setting.semantics != "events":
        raise InputError(f"semantics = {setting.semantics!r}: {setting.environment} has no leases; leave it out")


def hosted(setting: Setting, rule: Any, estimates: Estimates) -> Any:
    """The simulator of a setting with a configuration; `rule`: what holds there while one plays; None: the usual."""
    expect_playable(setting)
    entry = ENVIRONMENTS[setting.environment]
    assert entry.simulator is not None and entry.config is not None
    config = bind(loaded(entry.config), parse_name(f"config:{setting.config}")[1], "config")
    return loaded(entry.simulator)(
        setting.topology,
        config,
        rule=rule,
        failures=setting.failures,
        horizon_s=setting.horizon_s,
        estimates=estimates,
    )


def unit_of(setting: Setting) -> str:
    """What jobs run on."""
    return "GPUs" if setting.config is None else "machines"


def word_of_value(key: str, value: Any) -> str:
    """A value of an environment's keyword argument as `--set KEY=` takes it."""
    if key == "memory_gb" and value is None:
        return "inf"
    return _word(tuple(value) if isinstance(value, list) else value)


def _word(value: Any) -> str:
    """A value as `bind` takes it."""
    if isinstance(value, tuple):
        return "/".join(map(_word, value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
