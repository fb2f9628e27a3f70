"""Regions and their tables in a simulation: units, copies, transfers, and what a policy may see of them."""
