"""Tiresias: discretised two-dimensional least attained service, and placement by the skew of the model.

Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI'19, Sec. 3.2.2 (Discretized
2D-LAS: a job of W GPUs that has run for t seconds has attained W x t; queues by thresholds; FIFO inside a queue) and
Sec. 3.3 (placement: a job whose largest tensor dominates its gradients is consolidated on as few machines as possible
and waits for them; others take whatever GPUs are free).
Departures: thresholds are fixed GPU-seconds (3250 and 7200, the published code's), not learnt; no promotion of starved
jobs (PROMOTE_KNOB is off in that code too); the skew above which a model is consolidated is not published as a number,
`simulator/profiles/skew.py` says what we take.
"""

from __future__ import annotations

from functools import partial

from .ordered import las

tiresias = partial(las, placer="skew", _name="tiresias")
