"""The simulator: one cluster, one workload, a clock, and decisions at decision points; its view and its metrics."""
