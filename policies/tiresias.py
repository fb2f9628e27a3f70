"""Tiresias: discretised two-dimensional least attained service, and placement by the skew of the model.

Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI'19, as paper dally and
other simulators describe it. Discretised 2D-LAS: a job of W GPUs that has held them for t seconds has attained W x t;
queues by thresholds, first come first served inside a queue. Placement: "Tiresias consolidates jobs with high skew,
while other jobs accept any resource offer they receive" (paper dally, Sec. III-B); skew is the largest tensor over all
gradients.
Choices: thresholds are fixed at 3250 and 7200 GPU-seconds, those of the published code; a job is never promoted; the
skew above which a model is consolidated is not published as a number, `simulator/profiles/skew.py` says what we take. A
model whose skew is not known counts as skewed; where none is known, so that it is `las:placer=consolidated`, a warning
says so.
"""

from __future__ import annotations

from functools import partial

from .ordered import las

tiresias = partial(las, placer="skew", _name="tiresias")
