"""Tetris, the slow path of paper mast: homes and replicas of tables, planned every day."""

from .milp import optimum
from .tetris import VERSIONS, ReviewPlan, Tetris, Version

__all__ = ["VERSIONS", "ReviewPlan", "Tetris", "Version", "optimum"]
