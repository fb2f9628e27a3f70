"""Columns of what a step of any environment comes to: float64 (rows, OUTCOMES)."""

REWARD, ELAPSED_S, IS_INVALID, IS_ADJUSTED, TERMINATED, TRUNCATED = range(6)  # rewards, seconds, then 0 or 1
OUTCOMES = 6

BEGINS, GOES_ON = 1, 2  # the next step begins an episode; it goes on with a step that had to ask for rates
