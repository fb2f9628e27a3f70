"""Gymnasium environments over the simulator: observations, action codecs, rewards, masks and rendering."""
