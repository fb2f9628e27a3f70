"""PsJobs: what parameter-server jobs ask of machines, job by job, and its columns in files.

An iteration of a job on m machines computes for `comp_machine_s / m` seconds (COMP), then communicates for `comm_s`
(COMM: its PULL and PUSH), whatever m. Further columns of NAME.csv or NAME.parquet, all five or none: `comp_machine_s`
(machine-seconds of COMP an iteration, > 0), `comm_s` (> 0), `input_gb` and `model_gb` (10^9 bytes over all machines,
raw, >= 0), `epoch_iterations` (whole, >= 1; a checkpoint is saved at an epoch's end). `gpus` are the machines of
`duration_s`, `iterations` a whole number, and `duration_s` is `iterations` times `comp_machine_s / gpus + comm_s`, to a
millionth. Sizes are whole bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..base.errors import InputError

COLUMNS = ("comp_machine_s", "comm_s", "input_gb", "model_gb", "epoch_iterations")
GIGABYTE = 1e9
LONGEST_S = 1e15  # of COMP or COMM, as any time of a workload
LARGEST_BYTES = 1e15  # of an input or a model; GB as float64 give whole bytes back up to here
MOST_ITERATIONS = 10**15
AGREEMENT = 1e-6  # relative, between duration_s and what iterations take


@dataclass(frozen=True, eq=False)
class PsJobs:
    """What each job of a workload asks as a parameter-server job, in the workload's order; read-only arrays (n,).

    Attributes:
        comp_machine_s: float64 > 0, machine-seconds of COMP an iteration (the w of T_cpu(m) = w / m).
        comm_s: float64 > 0, seconds of COMM an iteration, the same on any number of machines.
        input_bytes: float64 >= 0, whole: input data over all machines of the job, raw.
        model_bytes: float64 >= 0, whole: model over all machines of the job, raw.
        epoch_iterations: int64 >= 1; a checkpoint is saved at each epoch's end.

    Build one with `of`, which checks; the constructor does not.
    """

    comp_machine_s: np.ndarray
    comm_s: np.ndarray
    input_bytes: np.ndarray
    model_bytes: np.ndarray
    epoch_iterations: np.ndarray

    def __post_init__(self) -> None:
        for field in fields(self):
            getattr(self, field.name).setflags(write=False)

    def __len__(self) -> int:
        return len(self.comp_machine_s)

    @classmethod
    def of(
        cls, comp_machine_s: Any, comm_s: Any, input_bytes: Any = 0.0, model_bytes: Any = 0.0, epoch_iterations: Any = 1
    ) -> PsJobs:
        """Check the columns, array-likes of one length n >= 1 or one number for all; sizes are rounded to whole bytes.

        InputError names the column, the job, the value and what was expected.
        """
        given = (comp_machine_s, comm_s, input_bytes, model_bytes, epoch_iterations)
        columns = {f.name: _numbers(f.name, values) for f, values in zip(fields(cls), given, strict=True)}
        try:
            shaped = np.broadcast_arrays(*columns.values())
        except ValueError:
            lengths = ", ".join(f"{name} {values.size}" for name, values in columns.items())
            raise InputError(f"PS jobs: columns of different lengths ({lengths}); expected one length") from None
        columns = {name: np.atleast_1d(values).copy() for name, values in zip(columns, shaped, strict=True)}
        for name, values in columns.items():
            _check(name, values)
        for name in ("input_bytes", "model_bytes"):
            columns[name] = np.rint(columns[name])
        columns["epoch_iterations"] = columns["epoch_iterations"].astype(np.int64)
        return cls(**columns)

    def take(self, indices: Any) -> PsJobs:
        """The jobs at `indices`, in that order."""
        return PsJobs(**{field.name: getattr(self, field.name)[indices] for field in fields(self)})

    def iteration_s(self, machines: Any) -> np.ndarray:
        """Seconds of an iteration of each job alone on `machines` (a number, or one for each job), float64 (n,)."""
        return self.comp_machine_s / machines + self.comm_s

    def ratio(self, machines: Any) -> np.ndarray:
        """COMP over COMM time of each job on `machines` (a number, or one for each job), float64 (n,)."""
        return self.comp_machine_s / machines / self.comm_s

    def summed_ratio(self, machines: Any) -> float:
        """All jobs' COMP time of an iteration on `machines` (a number, or one per job) over all their COMM time.

        At 1 such a group keeps the CPUs and the network equally busy.
        """
        return float((self.comp_machine_s / machines).sum() / self.comm_s.sum())

    def check_agrees(self, name: str, job_id: Any, gpus: Any, duration_s: Any, iterations: Any) -> None:
        """Check the run times of workload `name` against the columns; InputError names the first job that differs."""
        if len(self) != len(gpus):
            raise InputError(f"workload {name!r}: PS columns of {len(self)} jobs; expected {len(gpus)}, as it holds")
        broken = iterations != np.floor(iterations)
        if broken.any():
            i = int(np.argmax(broken))
            raise InputError(
                f"workload {name!r}, job {job_id[i]!r} (number {i + 1}), iterations: {iterations[i]}; "
                "expected a whole number, as for every PS job"
            )
        expected_s = iterations * self.iteration_s(gpus)
        apart = ~(np.abs(duration_s - expected_s) <= AGREEMENT * expected_s)
        if apart.any():
            i = int(np.argmax(apart))
            raise InputError(
                f"workload {name!r}, job {job_id[i]!r} (number {i + 1}), duration_s: {duration_s[i]} does not agree "
                f"with iterations x (comp_machine_s / gpus + comm_s) = {expected_s[i]}; "
                f"expected at most {AGREEMENT:g} of it apart"
            )


def columns_of(ps: PsJobs) -> dict[str, np.ndarray]:
    """The further columns of a workload, as a file holds them; whole bytes come back from them bit for bit."""
    return {
        "comp_machine_s": ps.comp_machine_s,
        "comm_s": ps.comm_s,
        "input_gb": ps.input_bytes / GIGABYTE,
        "model_gb": ps.model_bytes / GIGABYTE,
        "epoch_iterations": ps.epoch_iterations,
    }


# name: (low, strictly above, high, what was expected)
RANGES: dict[str, tuple[float, bool, float, str]] = {
    "comp_machine_s": (0.0, True, LONGEST_S, "machine-seconds above 0, up to 1e15"),
    "comm_s": (0.0, True, LONGEST_S, "seconds above 0, up to 1e15"),
    "input_bytes": (0.0, False, LARGEST_BYTES, "bytes from 0 to 1e15"),
    "model_bytes": (0.0, False, LARGEST_BYTES, "bytes from 0 to 1e15"),
    "epoch_iterations": (1.0, False, MOST_ITERATIONS, "a whole number of iterations from 1 to 1e15"),
}


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
        if array.ndim > 1 or array.dtype.kind not in "iuf" or not array.size:
            raise ValueError
        return array.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"PS jobs, {name}: expected a flat list of numbers, or one number") from None


def _check(name: str, values: np.ndarray) -> None:
    low, above, high, expected = RANGES[name]
    bad = ~((values > low if above else values >= low) & (values <= high))
    if name == "epoch_iterations":
        bad |= values != np.floor(values)
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(f"PS jobs, {name} of job number {i + 1}: {values[i]:g}; expected {expected}")
