"""Harmony (Lee, Lee, Song et al., ICDCS'21): groups of parameter-server jobs, who runs in them, on how many machines.

The problem and its solvers are functions of arrays; they know no simulator.
"""
