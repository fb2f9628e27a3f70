"""Geo-v0: the region and cluster of each workload, and the workloads that it displaces (paper mast, the fast path)."""
