"""Trained agents as policies: their view of a run, and their actions."""
