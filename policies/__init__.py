"""Every scheduler by the name its paper gives it: reads a view of the cluster and returns decisions."""
