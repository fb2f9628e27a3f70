"""Pictures as pixels: of a cluster, of its network, of regions, of tables, of groups."""
