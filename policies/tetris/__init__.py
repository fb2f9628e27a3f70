"""Tetris, the slow path of paper mast: where tables have their homes and their replicas, planned anew every day."""

from .milp import optimum
from .tetris import VERSIONS, DayPlan, Tetris, Version

__all__ = ["VERSIONS", "DayPlan", "Tetris", "Version", "optimum"]
