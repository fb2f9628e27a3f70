"""Cables of a network that fail and come back at random times, as machines do (lifecycle/outages.py).

A cable is a link and the one back beside it, if any, named by its first link. Python writes the links' new jobs
and capacities before time passes (contention/link_states.py).
"""

import math

from ..compiler.jit import kernel
from ..numerics.heap import schedule_event
from ..numerics.random import exponential, seed_of

CABLES = -(1 << 25)  # random numbers: streams from here on down; those of regions lie above


@kernel
def cable_event(s, link):
    """Modify `s`: the cable whose first link this is fails or comes back; `n_links`: other capacities are due."""
    item = s.first_cable_event + link
    if link == s.n_links:
        schedule_event(s, item, math.inf)
    elif s.cable_down[link]:
        s.cable_down[link] = 0
        schedule_event(
            s, item, s.now_s + exponential(seed_of(s), CABLES - link, 2 * s.cable_failures[link], s.link_mtbf_s)
        )
    else:
        count = s.cable_failures[link]
        s.cable_down[link] = 1
        s.cable_failures[link] = count + 1
        s.link_failures += 1
        schedule_event(s, item, s.now_s + exponential(seed_of(s), CABLES - link, 2 * count + 1, s.link_mttr_s))
    s.links_changed = s.net_changed = 1


@kernel
def draw_cable_failure(s, link):
    """Modify `s`: draw the first failure of the cable whose first link this is."""
    first_s = s.start_s + exponential(seed_of(s), CABLES - link, 0, s.link_mtbf_s)
    schedule_event(s, s.first_cable_event + link, first_s)
