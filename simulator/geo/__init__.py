"""Regions with their machines, the data that lies in them and the jobs that read it (paper mast)."""
