"""Finished runs as files: each appears whole or not at all, with its identity, which is compared on reading.

So a killed command goes on where it stopped, and no result is taken for that of another configuration. Evaluations
(`store.py`) and reproductions (`reproduce/sweep.py`) use them.

A file is one parquet row: `identity` (text: all that the numbers depend on), then the results: numbers, words, lists of
numbers or words, and mappings from words to numbers (map columns: a tenth of a millisecond each column). It is sealed
(simulator/files/sealed_parquet.py): with any wrong bit no run can be read from it.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...simulator.files import sealed_parquet
from ...simulator.files.regular_files import expect_plain_file
from ...simulator.jobs.workload import WorkloadWarning
from ..console.terminal import written_whole

IDENTITY = "identity"
ORPHAN_S = 60.0  # a draft is written within milliseconds; one this old was left by a process that was killed


class StoredRunWarning(WorkloadWarning):
    """A stored run could not be used and is played anew."""


def short_hash(*parts: str | bytes) -> str:
    """Twenty hexadecimal digits that stand for `parts`."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:20]


def save(path: Path, identity: str, row: Mapping[str, Any]) -> None:
    """Write one run; an earlier file is replaced in one step."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = pa.map_(pa.string(), pa.float64())
    maps = {name: pa.array([list(value.items())], numbers) for name, value in row.items() if isinstance(value, Mapping)}
    columns = {name: maps.get(name, [value]) for name, value in row.items()}
    table, buffer = pa.table({IDENTITY: [identity], **columns}), pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd", write_statistics=False, use_dictionary=False)
    with written_whole(path) as draft:
        draft.write_bytes(sealed_parquet.sealed(buffer.getvalue().to_pybytes()))


def load(path: Path, without: tuple[str, ...] = (), seals: bool = True) -> dict[str, Any] | None:
    """The row of one run, `identity` included; lists of numbers as numpy arrays, of words as lists, maps as dicts.

    Columns whose names begin with `without` are left out. `seals` False reads files without a seal too, which older
    versions wrote; an existing seal must be right. None: there is no such file, or, with a warning, it cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        expect_plain_file(path)
        data = path.read_bytes()
        state = sealed_parquet.state(data)
        if state == "damaged" or (seals and state == "unsealed"):
            raise pa.ArrowInvalid("its checksum is wrong" if state == "damaged" else "it has no checksum")
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            names = [name for name in file.schema_arrow.names if not name.startswith(without)] if without else None
            table = file.read(names)
        if table.num_rows != 1 or IDENTITY not in table.column_names:
            raise pa.ArrowInvalid("it holds no run")
        return {name: _value(table.column(name)) for name in table.column_names}
    except FileNotFoundError:
        return None
    except (PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # of a damaged file without a seal pyarrow raises a dozen kinds, KeyError among them
        warnings.warn(f"{path}: no run can be read from it ({_reason(error)})", StoredRunWarning, stacklevel=2)
        return None


def remove_orphans(folder: Path) -> None:
    """Delete the drafts that killed processes left in `folder`."""
    for draft in folder.glob(".*.part"):
        try:
            if time.time() - draft.stat().st_mtime > ORPHAN_S:
                draft.unlink(missing_ok=True)
        except FileNotFoundError:  # its writer has finished meanwhile
            continue


def _value(column: Any) -> Any:
    import pyarrow.types as kinds

    cell = column.chunk(0)
    if kinds.is_list(cell.type) and kinds.is_primitive(cell.type.value_type):
        return np.asarray(cell.flatten().to_numpy(zero_copy_only=False))
    value = cell[0].as_py()
    return dict(value) if kinds.is_map(cell.type) else value


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")[:100]
