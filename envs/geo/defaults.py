"""The small congested setting that Geo-v0 has unless told otherwise.

Four regions with unevenly spread hardware (paper mast, Figure 2), and a day of workloads with its percentiles, more
than the regions can serve at once: with room for everybody it would hardly matter who runs where.
"""

TOPOLOGY = "mast:regions=4,gpus=256"
WORKLOAD = "mast-like:load=0.6,scale=0.5,longest_h=12,tables=60"
NETWORK = "none"
TABLES = "tetris-v2"
TABLES_EVERY_S = 86_400.0  # Sec. 5.3: Tetris runs daily
ROUND_S = 34.0  # Sec. 5.4: the mean time of a GMS-scan pass
