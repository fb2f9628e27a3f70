"""The records of a training beside its agent: log, configuration, several seeds."""
