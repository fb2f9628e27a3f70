"""Our own schema of workloads, read from csv and parquet."""
