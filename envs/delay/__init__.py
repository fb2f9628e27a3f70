"""Delay-v0: where and when a waiting job runs (paper dally)."""
