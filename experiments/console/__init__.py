"""The terminal: words and warnings, progress, interrupts, and versions."""
