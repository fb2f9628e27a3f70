"""Gandiva: placement, migration, packing and time slices."""
