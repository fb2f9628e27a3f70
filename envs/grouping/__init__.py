"""Grouping-v0: which jobs on parameter servers run together, and on how many machines (paper harmony)."""
