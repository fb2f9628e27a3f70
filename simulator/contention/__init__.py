"""Network contention as a network model (paper cassini): phases, routes, who shares links with whom."""
