"""Network contention as a network model (paper cassini): phases, routes, shared links."""
