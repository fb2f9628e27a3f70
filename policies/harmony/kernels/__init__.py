"""The compiled loops of the solvers."""
