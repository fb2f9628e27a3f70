"""Columns of the result of a step: float64 (rows, OUTCOMES)."""

from collections.abc import Sequence

# Rewards, seconds, then 0 or 1, then how many there are after the step: jobs, and GPUs that jobs hold.
REWARD, ELAPSED_S, IS_INVALID, IS_ADJUSTED, TERMINATED, TRUNCATED, IS_FORCED = range(7)
WAITING_JOBS, RUNNING_JOBS, FINISHED_JOBS, USED_GPUS = range(7, 11)
OUTCOMES = 11

BEGINS, GOES_ON = 1, 2  # the next step begins an episode; it goes on with a step that had to ask for rates
COUNTS = ("waiting_jobs", "running_jobs", "finished_jobs", "used_gpus")  # from WAITING_JOBS on


def counts_of(outcome: Sequence[float]) -> dict[str, int]:
    """Counts of jobs and GPUs for `info`, from the outcome of a step."""
    counts = dict(zip(COUNTS, map(int, outcome[WAITING_JOBS : USED_GPUS + 1]), strict=True))
    return {"active_jobs": counts["waiting_jobs"] + counts["running_jobs"], **counts}
