"""Decisions, checked before anything happens."""
