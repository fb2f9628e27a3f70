"""Learning agents: networks, training, saving and loading. Needs the extra `agents`."""
