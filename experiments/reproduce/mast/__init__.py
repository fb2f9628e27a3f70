"""Paper mast."""
