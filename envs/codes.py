"""Columns of what a step of any environment comes to: float64 (rows, OUTCOMES)."""

REWARD, ELAPSED_S, IS_INVALID, IS_ADJUSTED, TERMINATED, TRUNCATED = range(6)  # rewards, seconds, then 0 or 1
OUTCOMES = 6
