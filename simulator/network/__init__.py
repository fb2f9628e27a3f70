"""How placement slows a job down, whoever else is there: network models, and what they offer to the simulator."""
