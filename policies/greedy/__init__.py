"""Greedy, our own: shortest job first; each job weighs free GPUs against waiting or making room."""
