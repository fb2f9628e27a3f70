"""Sharing-v0: GPUs that a waiting job shares with others (paper sjf-bsbf)."""
