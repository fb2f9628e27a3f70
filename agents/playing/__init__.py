"""Trained agents as policies: what they see of a run, and what their actions come to."""
