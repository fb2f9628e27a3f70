"""Evaluations on disk: runs that outlive a kill, and what their numbers depend on."""
