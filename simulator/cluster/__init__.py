"""Where the GPUs are: topologies, the links between machines, and what users write about them."""

# They register what topologies are made from (topology.py); this is also the order of presets in lists.
from . import presets as presets  # isort: skip
from . import fabrics as fabrics  # isort: skip
from . import host_tables as host_tables  # isort: skip
from . import node_lists as node_lists  # isort: skip
from . import topology_files as topology_files  # isort: skip
