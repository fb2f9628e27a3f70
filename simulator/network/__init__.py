"""How placement slows a job down: network models, and their interface to the simulator."""
