"""Compiled building blocks of the simulator; each works on one state record and allocates nothing."""
