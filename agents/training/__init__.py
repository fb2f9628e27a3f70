"""Training an agent: what a run is, the learners, their checkpoints, and what an agent reaches on the way."""
