"""Paper dally."""
