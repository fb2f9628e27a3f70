"""Scheduling passes, compiled: what the rules decide at one instant."""
