"""What is said about a setting once: one sentence a process, however many environments, copies and resets there are."""

from __future__ import annotations

import warnings

_said: set[str] = set()


class SettingWarning(UserWarning):
    """Something that the user gave has no effect here, or a result rests on an assumption."""


def say_once(sentence: str) -> None:
    """Warn of `sentence` as a SettingWarning, unless this process has done so before."""
    if sentence not in _said:
        warnings.warn(sentence, SettingWarning, stacklevel=2)
        _said.add(sentence)
