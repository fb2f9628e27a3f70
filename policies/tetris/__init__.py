"""Tetris, the slow path of paper mast: where tables have their homes and their replicas, planned anew every day."""

from .day import DayPlan, Tetris
from .exact import optimum
from .versions import VERSIONS, Version

__all__ = ["VERSIONS", "DayPlan", "Tetris", "Version", "optimum"]
