"""Data that lies in regions and the jobs that read it (paper mast): tables, demands, published statistics."""

# They register what topologies with regions are made from (cluster/topology.py).
from . import mast_preset as mast_preset
from . import warehouse_files as warehouse_files
