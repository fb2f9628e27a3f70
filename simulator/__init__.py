"""The cluster: topology, workloads, network and the engine. Knows nothing of Gymnasium or of policies."""
