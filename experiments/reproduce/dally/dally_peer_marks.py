"""The logs behind `dally-peer` in short: who has the authors' jobs can hold our grants against them.

The logs themselves, of the authors' simulator as corrected (docs/results/reproductions.md says how), are not ours to
publish. Of each policy's grants there is a hash at every 500th and at the last, over all grants up to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

EVERY = 500
DIGITS = 12


@dataclass(frozen=True)
class Marks:
    """A log in short.

    Attributes:
        count: grants.
        makespan, jct_mean, jct_p99: seconds.
        hashes: of the first 500 grants, 1,000, ..., and of all; a space between two.
    """

    count: int
    makespan: float
    jct_mean: float
    jct_p99: float
    hashes: str

    def identical(self, grants: Sequence[tuple[float, str, tuple[str, ...]]]) -> int:
        """How many grants from the first on are those of the log, down to a multiple of 500 where not all are.

        Args:
            grants: seconds, compared to a millisecond; job; GPUs in ascending order.
        """
        at = [*range(EVERY, self.count, EVERY), self.count]
        digest, same = hashlib.sha256(), 0
        marks = dict(zip(at, self.hashes.split(), strict=True))
        for number, (time_s, job_id, gpus) in enumerate(grants, start=1):
            digest.update(f"{time_s:.3f} {job_id} {' '.join(gpus)}\n".encode())
            if number in marks:
                if digest.hexdigest()[:DIGITS] != marks[number]:
                    break
                same = number
        return same


MARKS = {
    "tiresias": Marks(
        10545,
        2217507.608468451,
        312166.3937856232,
        1909365.3895744516,
        "6fceeeb81875 aadc08e19780 60627f4b4a01 d8fbaa48a01a 53240b1f1aa5 013237b4f8e4 7a77ed2a638d 30b218230b65 "
        "3c273d611c47 0263a47bfdee a074a2aa8928 c56ea11fa4a3 867b58e57156 19a48433c9fe c67bc14280a0 8590bd474dff "
        "a3ba5c7edffd a5a9951cfba5 bc6db380ecbe ce5a1803cf5a 4b6522fc0492 fa9006f80a8a ",
    ),
    "dauto24": Marks(
        10139,
        2395558.7668664847,
        374822.74938043166,
        2196083.798059675,
        "d624c1ea898c 954fd2efa746 87a58d8a43f5 aecb3e915ffe 79382f4f11ee 6dffb2913780 42d2a2983bbf f421baf5a8e0 "
        "e39cd6351eb7 54c761cce6d3 4471716a866a 26bd6935f9a1 961371e3daf1 2a7bf22a1752 50aa0cf1b3ff 0322fa165806 "
        "d4c6ab0e9fc8 9e6700a4fbf7 8c161c8e453b 8fd157ac6a37 b959f2a7898b ",
    ),
    "dnowait": Marks(
        10702,
        3000586.312014062,
        476989.81162449584,
        2623809.5833631447,
        "a65c225dc8ec 4925eadb952d 4f725f49a36a 0e71cb0a10bd 700971fec4b0 a4763e2bd0d7 c6b583be6133 878bc4949c0d "
        "7657bfb180c3 f4f1591a58bf f9b23887476b 5a637ea01d02 47c5afbcb431 b163a38c3263 a4efe1d0e73a b0f6d8dfceec "
        "4614d50611e4 0603da2693f9 60508ccce335 4e1eae507b37 036ffa1e0344 630661a69892 ",
    ),
}
