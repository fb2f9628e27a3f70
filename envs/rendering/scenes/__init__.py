"""The content of pictures, read from a run."""
