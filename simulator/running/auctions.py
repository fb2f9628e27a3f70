"""Auctions to come: instants at which a pass is made, where leases end so (semantics.py)."""

import math

from ..compiler.jit import kernel
from ..numerics.heap import schedule_event


@kernel
def call_auction(s, time_s):
    """Modify `s`: there will be an auction at `time_s`; one is enough for any number of calls to the same instant."""
    count = s.n_auctions
    place = count
    while place > 0 and s.auction_s[place - 1] < time_s:
        place -= 1
    if place > 0 and s.auction_s[place - 1] == time_s:
        return
    if count < s.auction_s.size:
        for i in range(count, place, -1):
            s.auction_s[i] = s.auction_s[i - 1]
        s.n_auctions = count + 1
    else:  # as many are to come as GPUs could be given at them: the latest will not be missed
        if place == 0:
            return
        place -= 1
        for i in range(place):
            s.auction_s[i] = s.auction_s[i + 1]
    s.auction_s[place] = time_s
    schedule_event(s, s.auction_event, s.auction_s[s.n_auctions - 1])


@kernel
def open_auction(s):
    """Modify `s`: the first of the auctions to come is held."""
    s.n_auctions -= 1
    schedule_event(s, s.auction_event, s.auction_s[s.n_auctions - 1] if s.n_auctions > 0 else math.inf)
