"""What every part of the simulator speaks: errors, names, codes, decisions, and how files of users are read."""
