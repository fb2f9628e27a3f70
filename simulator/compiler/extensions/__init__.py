"""What is changed of numba and added to it, piece by piece."""
