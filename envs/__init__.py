"""Gymnasium environments over the simulator. `registration` registers them."""
