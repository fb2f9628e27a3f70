"""Paper harmony."""
