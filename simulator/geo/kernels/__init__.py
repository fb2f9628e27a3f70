"""Compiled code of the slow path: what a move of a table costs, the climb, and further replicas."""
