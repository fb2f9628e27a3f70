"""Files of agents: numbers and names, whole or absent, and nothing that could run."""
