"""The small congested setting that DataPlacement-v0 has unless told otherwise.

Four regions with unevenly spread hardware (paper mast, Figure 2); a day of some 300 workloads with the published sizes,
no run longer than a day, that ask more GPUs than there are; 60 tables; tables are looked at every 12 hours.
"""

TOPOLOGY = "mast:regions=4,gpus=256"
WORKLOAD = "mast-like:load=1.1,scale=1,longest_h=24,tables=60"
NETWORK = "none"
SCHEDULER = "mast"
TABLES_EVERY_S = 43200.0
QUOTA = 0.25  # of the bytes of all tables, as the policies
