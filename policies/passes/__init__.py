"""Scheduling passes in a generic order, compiled, and parts of the passes of all rules."""
