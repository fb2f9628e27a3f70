"""Training: configuration, learners, checkpoints, and evaluations."""
