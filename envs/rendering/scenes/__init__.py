"""What a picture shows, read from a run; nothing of how it looks."""
