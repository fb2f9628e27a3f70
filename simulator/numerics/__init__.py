"""Compiled building blocks that know nothing of clusters: bit sets, heaps, random numbers, rounding."""
