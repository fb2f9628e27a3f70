"""Paper cassini."""
