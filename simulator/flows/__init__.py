"""Jobs on shared links, compiled: max-min fair rates, phases, sessions."""
