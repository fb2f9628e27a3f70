"""CASSINI (Rajasekaran, Ghobadi, Akella, NSDI'24): rotations, affinity graph, ranked candidates.

The circles and the compatibility score are in `simulator/compatibility/`.
"""
