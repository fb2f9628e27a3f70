"""Searching for good parameters, of policies and of training: what `clustergym tune` does."""
