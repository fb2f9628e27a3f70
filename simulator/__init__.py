"""The cluster: topology, workloads, network and the engine. Knows nothing of Gymnasium or of policies."""

# What a topology is made from registers by being imported (topology.py); this is also the order of presets in lists.
from . import presets as presets  # isort: skip
from . import fabrics as fabrics  # isort: skip
from . import specs as specs  # isort: skip
from .geo import files as files  # isort: skip
from .geo import mast_world as mast_world  # isort: skip
