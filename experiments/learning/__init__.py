"""What a training leaves beside its agent: its log, its configuration, several seeds of it."""
