"""What every part of the simulator speaks: errors, names, arguments, codes, decisions."""
