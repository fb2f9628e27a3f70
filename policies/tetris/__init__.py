"""Tetris, the slow path of paper mast: homes and replicas of tables, planned every day."""

from .milp import optimum
from .tetris import VERSIONS, DayPlan, Tetris, Version

__all__ = ["VERSIONS", "DayPlan", "Tetris", "Version", "optimum"]
