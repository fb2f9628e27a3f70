"""How well jobs fit on the links that they share: unified circles, and the compatibility score (paper cassini)."""
