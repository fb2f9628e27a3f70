"""Published tables and figures beside ours: what `clustergym reproduce` runs, one module a paper."""
