"""The report of `clustergym compare`: one HTML page that needs nothing else."""
