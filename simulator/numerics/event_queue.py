"""The heap of what happens next: one event an item at most (state.event_fields)."""

import math

from ..compiler.jit import kernel
from . import heap


@kernel
def schedule_event(s, item, time_s):
    """Modify `s`: the next event of `item` is at `time_s`; infinity takes it off the heap."""
    place = s.event_of[item]
    if time_s == math.inf:
        if place >= 0:
            heap.remove(s.event_key, s.event_item, s.event_of, 0, s.event_count, item)
            s.event_count -= 1
    elif place >= 0:
        heap.change(s.event_key, s.event_item, s.event_of, 0, s.event_count, item, time_s)
    else:
        heap.push(s.event_key, s.event_item, s.event_of, 0, s.event_count, time_s, item)
        s.event_count += 1
