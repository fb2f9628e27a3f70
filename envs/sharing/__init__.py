"""Sharing-v0: whose GPUs a waiting job shares (paper sjf-bsbf)."""
