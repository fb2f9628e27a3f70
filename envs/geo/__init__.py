"""Geo-v0: in which region and cluster a workload runs, and whom it displaces (paper mast, the fast path)."""
