"""TimeShift-v0: where jobs run, and in which phase, on links that they share (paper cassini)."""
