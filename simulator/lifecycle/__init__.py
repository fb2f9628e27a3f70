"""What happens to jobs, compiled: they start, stop, move, change size, fail and end."""
