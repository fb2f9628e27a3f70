"""What paper sjf-bsbf publishes, as numbers: Tables II, III and IV, and what Sec. VI says of Figures 4, 5 and 6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Column = Literal["all", "large", "small"]
COLUMNS: tuple[Column, ...] = ("all", "large", "small")  # jobs; large: more than 4 GPUs
LARGE_GPUS = 4

# Table II, testbed of 4 x 4 GPUs, 30 jobs: policy -> makespan, average JCT; seconds
TABLE_2 = {
    "fifo": (2317.0, 662.6),
    "sjf": (2319.0, 609.55),
    "tiresias": (2398.0, 664.73),
    "sjf-ffs": (2176.0, 530.36),
    "sjf-bsbf": (2129.0, 483.16),
}

# Of the same jobs the text of Figure 4a says how many take at most 0.75 h, which is more than all makespans above
FIGURE_4A_H = 0.75
FIGURE_4A = {"sjf-bsbf": "nearly 80 %"} | dict.fromkeys(("fifo", "sjf", "tiresias", "sjf-ffs"), "less than 70 %")

# Tables III and IV, simulated 16 x 4 GPUs: jobs -> policy -> average JCT of all, large, small jobs; hours
JCT: Mapping[int, Mapping[str, tuple[float, float, float]]] = {
    240: {
        "fifo": (2.34, 3.92, 2.13),
        "sjf": (1.25, 3.50, 0.94),
        "tiresias": (1.51, 3.48, 1.23),
        "pollux": (1.04, 1.96, 0.91),
        "sjf-ffs": (1.23, 4.29, 0.81),
        "sjf-bsbf": (1.01, 3.38, 0.68),
    },
    480: {
        "fifo": (7.52, 10.06, 7.08),
        "sjf": (2.55, 7.00, 1.90),
        "tiresias": (5.09, 8.25, 4.59),
        "pollux": (4.69, 6.03, 4.51),
        "sjf-ffs": (1.89, 8.12, 0.99),
        "sjf-bsbf": (1.57, 6.13, 0.88),
    },
}

# The same of the queueing time. Table IV repeats SJF-FFS's row as FIFO's, a misprint: left out.
QUEUE: Mapping[int, Mapping[str, tuple[float, float, float]]] = {
    240: {
        "fifo": (1.65, 2.17, 1.58),
        "sjf": (0.56, 1.76, 0.39),
        "tiresias": (0.81, 1.73, 0.68),
        "pollux": (1.00, 1.21, 0.97),
        "sjf-ffs": (0.18, 0.98, 0.07),
        "sjf-bsbf": (0.14, 0.89, 0.03),
    },
    480: {
        "sjf": (1.87, 5.35, 1.35),
        "tiresias": (4.41, 6.60, 4.04),
        "pollux": (4.41, 5.03, 4.31),
        "sjf-ffs": (0.73, 4.06, 0.21),
        "sjf-bsbf": (0.69, 3.62, 0.21),
    },
}

# Sec. VI-B and VI-C: improvements of SJF-BSBF
PHYSICAL_JCT = {"tiresias": 27.0, "sjf-ffs": 9.0}  # % lower average JCT
PHYSICAL_BERT_QUEUE = 44.0  # % lower queueing time of BERT than under tiresias
JCT_240 = {"tiresias": 33.0}  # Abstract: "27-33 % over the state-of-the-art preemptive schedulers"
JCT_480 = {"sjf-ffs": 17.0}
POLLUX_480 = 4.69 / 1.57  # "nearly 3 times"
SHORTEST_40_POLLUX = 37.0  # % lower average JCT of the shortest 40 % of the jobs, 240 jobs
INTERFERENCE = (8.0, 13.0)  # % lower average JCT than sjf-ffs, xi 1.5 to 2.0

ORDER_GAP = 0.10  # a published order counts where the better policy is more than so much below the other


def orders(jobs: int) -> list[tuple[str, str, float]]:
    """Every (better policy, worse policy, published ratio of their average JCTs) with a gap above ORDER_GAP."""
    mean = {policy: columns[0] for policy, columns in JCT[jobs].items()}
    return [
        (better, worse, mean[better] / mean[worse])
        for worse in mean
        for better in mean
        if mean[better] < (1.0 - ORDER_GAP) * mean[worse]
    ]
