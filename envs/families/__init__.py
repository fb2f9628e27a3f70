"""Decisions that environments are composed of: one file for each."""
