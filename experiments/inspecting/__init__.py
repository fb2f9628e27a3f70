"""What workloads and placements are like, before anybody plays."""
