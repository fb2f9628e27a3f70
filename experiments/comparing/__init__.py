"""Means over seeds with their intervals, and the tables that show them."""
