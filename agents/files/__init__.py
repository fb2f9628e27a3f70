"""What agents leave on disk: numbers and names, whole or not there, and nothing that could run."""
