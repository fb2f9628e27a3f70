"""Published and measured statistics of real traces, as numbers: what the generators are fitted to.

Quantile tables are pairs (probability, seconds); between two points a duration is interpolated in log seconds.

PHILLY    MEASURED on the 5-column csv of github petuum/adaptdl (branch osdi21-artifact,
          simulator/traces/philly.csv, 82,247 jobs, 2017-09-04 to 12-22), derived from
          msr-fiddle/philly-traces, CC-BY-4.0.
VENUS     MEASURED. Arrivals: counts per 10 minutes of Helios cluster Venus, 2020-04-01 to 09-28, 125,214 GPU
          jobs, as published with Lucid (simulation/data/Venus/cluster_throughput.csv). Durations and the
          shape of GPU demand: the slice of VCs vcvGl and vcvlY, 2020-09-01 to 26, 1,867 GPU jobs (HeliosData,
          CC-BY-4.0, DOI 10.1145/3458817.3476223).
DALLY     MEASURED on the 500-job batch set of paper dally's authors (github aakash-sharma/cluster-sim);
          statistics only.
HARMONY   PUBLISHED: Table I of paper harmony. Its text gives MLR and Lasso both synthetic data sets,
          in rows that the two share; which of the LDA rows is whose is read from their order.
"""

from __future__ import annotations

_P = (0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1)

PHILLY_GPUS = {1: 76627, 2: 1818, 4: 1870, 8: 1643, 12: 7, 16: 199, 24: 7, 32: 67, 64: 6, 128: 3}  # jobs
# smallest gang of the class: duration quantiles at _P
PHILLY_DURATION_S = {
    1: (1, 52, 62, 122, 1117, 2716, 8512, 19140, 68250, 135400, 266900, 865700, 3256000),
    2: (2, 9, 11, 16, 21, 76, 72740, 197100, 343900, 523300, 808100, 1474000, 2583000),
    3: (3, 75, 137.8, 772.8, 17410, 89390, 184400, 274000, 533400, 907400, 1206000, 2446000, 2751000),
    5: (1, 125, 216.2, 1876, 23680, 173200, 352000, 525600, 795200, 1060000, 2000000, 2656000, 4628000),
    9: (1, 35.4, 72.2, 566, 21140, 104200, 248000, 443200, 613600, 922600, 1274000, 1613000, 1711000),
}
PHILLY_PROBABILITIES = _P
PHILLY_GAP_MEAN_S = 114.4
PHILLY_JOBS_PER_DAY = 755.2  # 86,400 s / 114.4 s
PHILLY_GAP_MEDIAN_S = 8.0  # coefficient of variation 15.1: a lognormal with this mean and median has 14.3
# relative arrival rates of the hours from 0 h, and of the weekdays from Monday
PHILLY_HOURS = (
    1.274,
    0.985,
    1.119,
    1.103,
    0.7,
    1.153,
    1.673,
    2.089,
    1.109,
    1.006,
    1.024,
    0.869,
    0.749,
    0.705,
    0.638,
    0.649,
    0.882,
    0.668,
    0.801,
    0.728,
    1.016,
    0.917,
    1.134,
    1.01,
)
PHILLY_WEEKDAYS = (0.863, 1.066, 1.138, 1.286, 1.443, 0.609, 0.595)
PHILLY_TENANTS = {
    "6214e9": 41226,
    "11cb48": 16091,
    "6c71a0": 9953,
    "b436b2": 7423,
    "103959": 1934,
    "ee9e8c": 1511,
    "0e4a51": 1435,
    "ed69ec": 1137,
    "7f04ca": 723,
    "2869ce": 422,
    "e13805": 374,
    "23dbec": 8,
    "51b7ef": 4,
    "925e2b": 3,
    "795a4c": 3,
}  # jobs

VENUS_GPU_JOBS_PER_DAY = 691.7  # 28.82 an hour
VENUS_MEAN_GPUS = 6.733
VENUS_HOURS = (
    0.897,
    0.658,
    0.6,
    0.384,
    0.268,
    0.205,
    0.187,
    0.224,
    0.374,
    0.796,
    1.295,
    1.474,
    1.164,
    1.299,
    1.559,
    1.656,
    1.734,
    1.733,
    1.282,
    1.313,
    1.345,
    1.364,
    1.149,
    1.038,
)
VENUS_WEEKDAYS = (1.022, 1.104, 1.274, 1.201, 0.947, 0.68, 0.771)
VENUS_SLICE_GPUS = {
    1: 75,
    2: 79,
    3: 6,
    4: 123,
    5: 6,
    6: 12,
    8: 691,
    16: 181,
    24: 15,
    32: 33,
    40: 6,
    48: 5,
    56: 18,
    64: 28,
    72: 3,
    80: 3,
    88: 4,
    96: 12,
    104: 6,
    112: 16,
    120: 99,
    128: 401,
    136: 34,
    144: 11,
}  # jobs
VENUS_SLICE_DURATION_S = (1, 4, 5, 19, 93, 228.5, 2527.8, 15226, 89166, 162100, 257950, 374020, 567330)
VENUS_PROBABILITIES = _P

DALLY_GPUS = {1: 270, 2: 13, 4: 52, 8: 109, 16: 42, 32: 11, 40: 1, 48: 1, 56: 1}  # jobs
DALLY_PROBABILITIES = (0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1)
DALLY_DURATION_S = {
    1: (7272, 7843.9, 8284.4, 10095, 48189, 130610, 201940, 228110, 383680, 761520),
    2: (7233, 7637.2, 8210.6, 36240, 76158, 139830, 215600, 251460, 637460, 644930),
    8: (7218, 8042.8, 9468, 41896, 53825, 88707, 189810, 299500, 471510, 1165600),
    9: (7667, 10187, 36884, 41727, 74048, 169720, 256250, 393700, 769770, 1131300),
}
# smallest gang of the class: jobs of each model, in the order of DALLY_MODELS
DALLY_MODELS = ("AlexNet", "BERT", "MobileNetV3", "ResNet18", "ResNet50", "VGG")
DALLY_MODEL_JOBS = {
    1: (27, 94, 17, 35, 67, 30),
    2: (9, 11, 17, 3, 23, 2),
    8: (13, 15, 52, 0, 27, 2),
    9: (4, 5, 39, 0, 8, 0),
}
# median time per iteration (the file's; it is the time of one sample), in the order of DALLY_MODELS
DALLY_ITERATION_S = (1.2283e-3, 8.3395e-3, 7.6658e-4, 5.6692e-4, 1.4910e-3, 2.8115e-4)

# the models of Chronus's measured placement table (github S-Lab-System-Group/ChronusArtifact)
CHRONUS_MODELS = ("alexnet", "vgg16", "resnet101", "mobilenet_v2", "inception_v3")

# application and data set: input and model, 10^9 bytes
HARMONY_GB: dict[str, tuple[float, float]] = {
    "nmf-netflix64x": (45.6, 1.0),
    "nmf-netflix128x": (91.2, 5.0),
    "lda-pubmed": (4.3, 2.1),
    "lda-nytimes": (0.6, 1.1),
    "mlr-synthetic78": (78.4, 12.0),
    "mlr-synthetic155": (155.0, 24.0),
    "lasso-synthetic78": (78.4, 12.0),
    "lasso-synthetic155": (155.0, 24.0),
}
