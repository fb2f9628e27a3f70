"""Gandiva: its placement, migration and packing, and its time slices."""
