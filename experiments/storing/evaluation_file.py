"""The head of an evaluation's folder: `evaluation.json`, and whether it still holds.

Its fields: `schema`; `setting` (the fields of `Setting`; no horizon is null); `content` (hashes of the files and of the
user's own that its words name, by option); `sources` (hash of those that numbers depend on); `versions`; `policies`:
word -> identity of its runs, a hash of all the others and of the word (of a trained agent also of its files and of the
code that plays it); `labels`: word -> label, of those that have one; and `sha256`, of the others. Schema 1 had no
checksums; the content of schema 2 was of topology, workload and network as they were opened, words included.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...simulator.base.errors import InputError
from ...simulator.files.regular_files import expect_plain_file
from ..console.terminal import BadArgument, written_whole
from ..console.versions import LIBRARIES
from ..settings.evaluation_setting import Setting, words_without_files
from . import identity
from .run_files import StoredRunWarning

SCHEMA = 3
WITH_WORDS = 2
WITHOUT_CHECKSUMS = 1
NAME = "evaluation.json"
CHECKSUM, LABELS = "sha256", "labels"


def common(setting: Setting) -> dict[str, Any]:
    """All fields but `policies`, as they are now."""
    found = {"schema": SCHEMA, "setting": _words(setting), "content": identity.content(setting)}
    return found | {"sources": identity.sources(*identity.PLAYING), "versions": identity.versions(*LIBRARIES)}


def _words(setting: Setting) -> dict[str, Any]:
    return {key: None if value == math.inf else value for key, value in setting.words().items()}


def declare(folder: Path, now: Mapping[str, Any], identities: Mapping[str, str], labels: Mapping[str, str]) -> None:
    """Write `evaluation.json`; earlier policies stay if everything else is unchanged.

    The words of `identities` have the `labels` that they are given now, or none; of other words a label that is given
    anew is taken away.
    """
    before = read(folder)
    kept = before["policies"] if before is not None and all(before[key] == value for key, value in now.items()) else {}
    document = {**now, "policies": {**kept, **identities}}
    earlier = {} if before is None else before.get(LABELS, {})
    others = {word: label for word, label in earlier.items() if word in kept and word not in identities}
    named = {word: label for word, label in others.items() if label not in labels.values()} | dict(labels)
    document |= {LABELS: named} if named else {}
    if document != before:
        with written_whole(folder / NAME) as draft:
            text = json.dumps(document | {CHECKSUM: _checksum(document)}, indent=2)
            draft.write_text(text + "\n", encoding="utf-8")


def read(folder: Path) -> dict[str, Any] | None:
    """The content of `evaluation.json`; None if there is none, or, with a warning, if it cannot be read."""
    path = folder / NAME
    expect_plain_file(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        schema = int(found["schema"])
        checksum = found.pop(CHECKSUM, None)
        if schema < WITHOUT_CHECKSUMS:
            raise ValueError(f"schema {schema}: there is no such")
        if schema <= SCHEMA:
            if schema > WITHOUT_CHECKSUMS and checksum != _checksum(found):
                raise ValueError("its checksum is wrong")
            setting_of(found)
            if not all(isinstance(found[key], dict) for key in ("content", "versions", "policies")):
                raise ValueError("expected objects under content, versions and policies")
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        warnings.warn(f"{path}: it cannot be read ({error!r})", StoredRunWarning, stacklevel=2)
        return None
    if schema > SCHEMA:
        raise InputError(f"{path}: a newer clustergym wrote it; upgrade, or give another folder")
    return dict(found)


def _checksum(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def is_blank(path: Path) -> bool:
    """Whether there is no file, or an empty one."""
    try:
        return not path.read_bytes().strip()
    except FileNotFoundError:
        return True


def setting_of(about: Mapping[str, Any]) -> Setting:
    """The setting that `evaluation.json` names."""
    return Setting.from_words(about["setting"])


def played_on(about: Mapping[str, Any]) -> Hashable:
    """The setting of a folder by content: equal for folders whose runs can be compared, whatever the names of files.

    Where a folder of an older version has no hash of a word's content, the word itself counts.
    """
    setting = setting_of(about)
    words, without_files, content = setting.words(), words_without_files(setting), about["content"]
    if about["schema"] <= WITH_WORDS:
        content = {name: content.get(name, words[name]) for name in without_files if without_files[name] != words[name]}
    return tuple((name, str(value)) for name, value in without_files.items()), tuple(sorted(content.items()))


def expect_same_setting(folder: Path, about: Mapping[str, Any], setting: Setting) -> None:
    """Raise BadArgument if `evaluation.json` names another setting."""
    there, here = _words(setting_of(about)), _words(setting)
    for name, value in here.items():
        if there[name] != value:
            raise BadArgument(
                f"--logdir {folder}: what it holds was played with {name} {there[name]!r}, not {value!r}; "
                "give another folder, or --fresh to forget it"
            )


def changes(before: Mapping[str, Any], now: Mapping[str, Any], identities: Mapping[str, str]) -> Iterator[str]:
    """Changes since the folder was last written, in words; none if its runs can be used."""
    if before["schema"] == WITHOUT_CHECKSUMS:
        yield "an older clustergym wrote it, without checksums"
    if before["sources"] != now["sources"]:
        yield "the sources of clustergym have changed"
    for name in sorted(before["versions"].keys() | now["versions"].keys()):
        old, new = before["versions"].get(name, "none"), now["versions"].get(name, "none")
        if old != new:
            yield f"{name} was {old} and is {new}"
    *names, last = [name for name, digest in now["content"].items() if before["content"].get(name) != digest] or [""]
    if last:
        several = names or last.endswith("s")
        yield f"the {', '.join(names)}{' and ' * bool(names)}{last} {'have' if several else 'has'} changed"
    if all(before[key] == value for key, value in now.items()):
        for word, digest in identities.items():
            if before["policies"].get(word, digest) != digest:
                yield f"{word} has changed"
