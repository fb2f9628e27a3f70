"""What commands share with the terminal: words and warnings, progress, leaving early, and which versions run."""
