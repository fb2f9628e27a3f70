"""Reports on workloads and placements, without a run."""
