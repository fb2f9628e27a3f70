"""The state of a training on disk, to continue bit for bit. Never a pickle.

A checkpoint is a folder of three files: `tensors.safetensors` (weights, the optimizer's moments), `arrays.zip` (numpy
arrays, one .npy each: clusters, random numbers) and `checkpoint.json` (the rest, and the checksums of the other two).
It is replaced whole: a kill at any moment leaves the old or the new one.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...simulator.base.errors import InputError
from ...simulator.files.regular_files import expect_plain_file
from .folders import complete_folder, replaced_whole
from .tensors import read_tensors, write_tensors

VERSION = 1
MANIFEST, TENSORS, ARRAYS = "checkpoint.json", "tensors.safetensors", "arrays.zip"
COMPRESSION = 1  # the records of clusters are mostly zeros; the fastest level makes them small
LONGEST_HEADER = 2**20  # characters; the dtype of a cluster's record names some hundred fields
CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training."""

    step: int  # training steps done
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)  # of any dtype and shape
    arrays: dict[str, np.ndarray] = field(default_factory=dict)  # of any dtype but object, structured ones too
    data: dict[str, Any] = field(default_factory=dict)  # JSON data; numbers come back exactly, tuples as lists


def write_checkpoint(folder: str | Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in `folder`, if there is one; InputError if the folder cannot be written."""
    with replaced_whole(Path(folder)) as draft:
        write_tensors(draft / TENSORS, checkpoint.tensors)
        _write_arrays(draft / ARRAYS, checkpoint.arrays)
        checksums = {name: _checksum(draft / name) for name in (TENSORS, ARRAYS)}
        manifest = {"schema_version": VERSION, "step": int(checkpoint.step), "sha256": checksums}
        manifest |= {"sha256_of_data": _checksum_of(checkpoint.data), "data": checkpoint.data}
        (draft / MANIFEST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")


def read_checkpoint(folder: str | Path) -> Checkpoint:
    """The checkpoint in `folder`, or the one before it after a kill; InputError: none, torn, edited, or newer."""
    folder = complete_folder(Path(folder))
    path = folder / MANIFEST
    for name in (MANIFEST, TENSORS, ARRAYS):
        expect_plain_file(folder / name)
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["schema_version"]
        if version == VERSION:
            step, data = int(manifest["step"]), dict(manifest["data"])
            checksums = dict(manifest["sha256"]) | {MANIFEST: manifest["sha256_of_data"]}
    except OSError as error:
        raise InputError(f"{folder}: no checkpoint to go on from ({MANIFEST}: {error.strerror})") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(f"{path}: torn or edited; this checkpoint cannot be gone on from") from None
    if version != VERSION:
        raise InputError(f"{path}: schema_version = {version!r}: this clustergym reads version {VERSION}; train anew")
    if checksums[MANIFEST] != _checksum_of(data):
        raise InputError(f"{path}: torn or edited, its checksum does not fit; this checkpoint cannot be gone on from")
    for name in (TENSORS, ARRAYS):
        if checksums.get(name) != _checksum(folder / name):
            raise InputError(f"{folder / name}: torn or edited, its checksum does not fit the one in {MANIFEST}")
    tensors = read_tensors(folder / TENSORS)
    with zipfile.ZipFile(folder / ARRAYS) as archive:
        arrays = {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}
    return Checkpoint(step, tensors, arrays, data)


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while part := file.read(CHUNK_BYTES):
                digest.update(part)
    except OSError as error:
        raise InputError(f"{path}: it cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def _checksum_of(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def _array(content: bytes) -> np.ndarray:
    """An array from the bytes of a .npy file; unlike `numpy.load` it keeps the bytes between the fields of records."""
    file = io.BytesIO(content)
    major, _ = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, in_columns, dtype = read_header(file, max_header_size=LONGEST_HEADER)
    assert not dtype.hasobject
    return np.frombuffer(bytearray(file.read()), dtype).reshape(shape, order="F" if in_columns else "C")


def random_states() -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The states of the process's random numbers (torch, numpy's global one, `random`): arrays and JSON data."""
    version, words, gauss = random.getstate()
    kind, keys, place, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002  stable-baselines3 uses it
    arrays = {"random/torch": torch.get_rng_state().numpy().copy(), "random/numpy": np.array(keys, np.uint32)}
    arrays["random/python"] = np.array(words, np.uint64)
    return arrays, {"python": [version, gauss], "numpy": [str(kind), int(place), int(has_gauss), float(cached)]}


def restore_random_states(arrays: dict[str, np.ndarray], data: dict[str, Any]) -> None:
    """Restore the random numbers of `random_states`; `arrays` may hold others too."""
    version, gauss = data["python"]
    kind, place, has_gauss, cached = data["numpy"]
    torch.set_rng_state(torch.from_numpy(arrays["random/torch"].copy()))
    np.random.set_state((kind, arrays["random/numpy"], place, has_gauss, cached))  # noqa: NPY002
    random.setstate((version, tuple(int(word) for word in arrays["random/python"]), gauss))


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The state of an optimizer: tensors by name, and the rest as JSON data (rates, numbers of its groups)."""
    state = optimizer.state_dict()
    tensors: dict[str, torch.Tensor] = {}
    plain: dict[str, dict[str, Any]] = {}
    for index, values in state["state"].items():
        for key, value in values.items():
            if isinstance(value, torch.Tensor):
                tensors[f"optimizer/{index}/{key}"] = value
            else:
                plain.setdefault(str(index), {})[key] = value
    return tensors, {"state": plain, "param_groups": state["param_groups"]}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor], data: dict[str, Any]) -> None:
    """Restore the state of `optimizer_tensors` in an optimizer; InputError if it is over other parameters."""
    state: dict[int, dict[str, Any]] = {int(index): dict(values) for index, values in data["state"].items()}
    for name, tensor in tensors.items():
        place, _, rest = name.partition("/")
        if place == "optimizer":
            number, _, key = rest.partition("/")
            state.setdefault(int(number), {})[key] = tensor
    groups = [
        {key: tuple(value) if isinstance(value, list) and key != "params" else value for key, value in group.items()}
        for group in data["param_groups"]
    ]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, values in state.items():
        for key, value in values.items():
            fits = index < len(parameters) and (key == "step" or value.shape == parameters[index].shape)
            if isinstance(value, torch.Tensor) and not fits:
                raise InputError(f"checkpoint: the optimizer's {key} of parameter {index} does not fit this policy")
    try:
        optimizer.load_state_dict({"state": state, "param_groups": groups})
    except ValueError as error:
        raise InputError(f"checkpoint: the optimizer's state does not fit this policy ({error})") from None
