"""The clock: what happens next, how a cluster is written into its record, and the log of decisions."""
