"""A run's row of TensorBoard's HParams page, as its event file has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clustergym.experiments.storing.event_file import events, files


def row_of(folder: Path) -> Any:
    """The SessionStartInfo of the run in a folder."""
    from tensorboard.plugins.hparams import metadata, plugin_data_pb2

    for event in events(files(folder)[0]):
        for value in event.summary.value:
            if value.tag == metadata.SESSION_START_INFO_TAG:
                data = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
                return data.session_start_info
    raise AssertionError("no row")


def parameters_of(folder: Path) -> dict[str, str]:
    """The parameters of a row that are text."""
    return {name: value.string_value for name, value in row_of(folder).hparams.items()}
