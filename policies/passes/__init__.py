"""Scheduling passes in a generic order, compiled, and what passes of all rules are made of."""
