"""Compiled code of groups of parameter-server jobs."""
