"""Hashes of the files that a training reads beside its configuration, for continuing it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...envs.configured import config_of, options_of
from ...policies import make_for
from ...simulator.base.errors import InputError
from ...simulator.files.file_marks import A_FILE, marked, read_by
from ...simulator.files.user_code import is_user_code
from ...simulator.workloads import A_WORKLOAD
from .config import Config


def read_in(config: Config) -> dict[str, str]:
    """Hashes of the files that scenarios, own code and policies of a configuration read, by part, not by path."""
    own = {"net": config.net, "reward": config.env.get("reward", "jct")}
    found = {what: read_by(word, A_FILE, "own code") for what, word in own.items() if is_user_code(word)}
    for what, mark, word in _words(config):
        if isinstance(word, str | Path):
            found[what] = read_by(word, mark, what)
    hashes = {what: read.content for what, read in found.items() if read.files}
    for what, word in ("reference", config.reference), ("imitate", config.imitate):
        files = () if word is None else make_for(word, config.environment).files
        if files:
            digests = (hashlib.sha256(path.read_bytes()).digest() for path in files)
            hashes[what] = hashlib.sha256(b"".join(digests)).hexdigest()[:20]
    return hashes


def _words(config: Config) -> Iterator[tuple[str, Any, Any]]:
    options = {key: config.env[key] for key in options_of(config.environment) if key in config.env}
    for kind, scenarios in ("training", config.training), ("validation", config.validation):
        for one in scenarios:
            cluster = config_of(config.environment, one.topology, one.network, **options)
            for name, mark, value in marked(cluster):
                yield f"{name} of {kind} scenario {one.name}", mark, value
            for number, word in enumerate(one.workloads, start=1):
                yield f"workload {number} of {kind} scenario {one.name}", A_WORKLOAD, word


def expect_same(began: Mapping[str, str], now: Mapping[str, str], where: Path) -> None:
    """InputError if `began`, hashes of the checkpoint `where`, differ from those `now`; see `read_in`."""
    changed = [what for what in {**began, **now} if began.get(what) != now.get(what)]
    if changed:
        what = f"what the training reads has changed since it began ({', '.join(changed)})"
        raise InputError(f"{where}: {what}; put it back, or train anew into another folder")
