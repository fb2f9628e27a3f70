"""The state of a cluster: one structured record, composed of one dtype a concept."""
