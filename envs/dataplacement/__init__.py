"""DataPlacement-v0: where tables have their homes and their replicas, decided daily."""
