"""Greedy, our own: shortest job first, where every job weighs taking what is free against waiting or making room."""
