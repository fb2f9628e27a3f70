"""CASSINI (Rajasekaran, Ghobadi, Akella, NSDI'24): unified circles, rotations, affinity graph, ranked candidates."""
