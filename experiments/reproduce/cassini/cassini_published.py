"""What paper cassini publishes about links, rotations and single snapshots, as numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SnapshotJob:
    """A row of Table 2: mean communication time of an iteration, seconds, with time-shifts and without."""

    model: str
    batch: int
    with_s: float
    without_s: float


@dataclass(frozen=True)
class Snapshot:
    """Jobs that share a link from the start (Table 2), their compatibility score and time-shifts, seconds."""

    number: int
    jobs: tuple[SnapshotJob, ...]
    score: float
    shifts_s: tuple[float, ...]

    @property
    def names(self) -> list[str]:
        """What to call its jobs: by model and batch, and where several have the same by their place, too."""
        names = [f"{job.model} ({job.batch})" for job in self.jobs]
        return [name if names.count(name) == 1 else f"{name}, job {i}" for i, name in enumerate(names, 1)]


SNAPSHOTS = (
    Snapshot(
        1,
        (SnapshotJob("WideResNet101", 800, 0.138, 0.205), SnapshotJob("VGG16", 1400, 0.148, 0.199)),
        1.0,
        (0.0, 0.150),
    ),
    Snapshot(
        2,
        (
            SnapshotJob("VGG19", 1400, 0.168, 0.220),
            SnapshotJob("VGG16", 1700, 0.163, 0.220),
            SnapshotJob("ResNet50", 1600, 0.059, 0.055),
        ),
        1.0,
        (0.0, 0.158, 0.046),
    ),
    Snapshot(
        3,
        (SnapshotJob("VGG19", 1024, 0.166, 0.176), SnapshotJob("VGG16", 1200, 0.168, 0.177)),
        0.9,
        (0.0, 0.100),
    ),
    Snapshot(
        4,
        (SnapshotJob("RoBERTa", 12, 0.164, 0.210), SnapshotJob("RoBERTa", 12, 0.180, 0.208)),
        0.8,
        (0.0, 0.060),
    ),
    Snapshot(
        5,
        (
            SnapshotJob("BERT", 8, 0.209, 0.213),
            SnapshotJob("VGG19", 1400, 0.294, 0.292),
            SnapshotJob("WideResNet101", 800, 0.265, 0.266),
        ),
        0.6,
        (0.0, 0.042, 0.191),
    ),
)

# Figure 5: iterations of 40 and 60 ms; the text has neither the length of the Up phases nor their rate.
CIRCLE_S = (0.040, 0.060)
PERIMETER_S = 0.120
ROTATION_DEGREES = 30.0

# Figure 2: two VGG19 on one link, the second shifted: 90th percentile of the iteration time, without over with
PAIR_MODEL = "VGG19"
PAIR_SHIFT_S = 0.120
PAIR_GAIN = 1.26
PAIR_ITERATIONS = 1000

# Figure 17: adjustments a minute, snapshots 1 to 3, at a trigger of 5 % of the iteration
ADJUSTMENTS = 2.0
TRIGGER = 0.05

# Figure 18, the text: 5 degrees give 100 % accuracy of the time-shifts
DEGREES = 5.0
ACCURACY = 100.0
