"""The command line, evaluation and reports."""
