"""The cluster: topology, workloads, network and the engine. Knows nothing of Gymnasium or of policies."""

from . import cluster as cluster  # isort: skip
from . import warehouse as warehouse  # it registers topologies that cluster/ asks for by name
