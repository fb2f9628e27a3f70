"""`random`: on GPUs, in regions and among groups."""
