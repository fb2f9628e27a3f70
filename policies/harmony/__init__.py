"""Harmony (Lee, Lee, Song et al., ICDCS'21): groups of parameter-server jobs, their members and machines.

The problem and its solvers are functions of arrays; they know no simulator.
"""
