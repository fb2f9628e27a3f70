"""What is known of jobs before they run: the workload, the columns of its files, kinds, run times."""
