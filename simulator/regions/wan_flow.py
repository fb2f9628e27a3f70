"""Bytes per second over the links between regions (paper mast, Sec. 3.4 and 3.5).

A link has two lanes; copies on the first go before those on the second, on every link and at every cap. The copies of a
lane share by their weights: equal, or the bytes per second for their time, which are also their most. Shares are
max-min, lane after lane: the level (bytes per second and weight) rises for all alike; where a link, or a region's cap,
is used up, its copies stay.
"""

import math

from ..base.codes import LANES
from ..compiler.jit import kernel
from ..numerics.heap import schedule_event

OPEN, CLOSING = -1.0, -2.0  # `wan_flow` while shares are found: not known yet; found, but not taken off yet


@kernel
def serve(s, lane, source, target):
    """Modify `s`: bring what a lane has sent to date."""
    elapsed = s.now_s - s.wan_since_s[lane, source, target]
    s.wan_since_s[lane, source, target] = s.now_s
    if s.wan_count[lane, source, target] > 0 and elapsed > 0.0:
        sent = elapsed * s.wan_flow[lane, source, target]
        s.wan_bytes[source, target] += sent
        s.wan_served[lane, source, target] += sent / s.wan_weight[lane, source, target]


@kernel
def share_link(s, source, target):
    """Modify `s`: other copies than before are on a link, whose lanes are served: flows and next events follow."""
    if s.copies_coupled:
        _share_all(s)
        return
    left = s.wan_rate[source, target]
    for lane in range(LANES):
        if s.wan_count[lane, source, target] > 0:
            serve(s, lane, source, target)
            flow = left
            if s.copy_published:
                flow = min(flow, s.wan_weight[lane, source, target])
            s.wan_flow[lane, source, target] = flow
            left = _rest(left, flow)
        _plan(s, lane, source, target)


@kernel
def _plan(s, lane, source, target):
    first = s.wan_first[lane, source, target]
    time_s = math.inf
    if first >= 0:
        left = max(0.0, s.transfer_end[first] - s.wan_served[lane, source, target])
        flow = s.wan_flow[lane, source, target]
        if flow > 0.0:
            time_s = s.now_s + left * s.wan_weight[lane, source, target] / flow
        elif left == 0.0:
            time_s = s.now_s
    regions = s.stored_bytes.size
    schedule_event(s, s.first_link_event + (lane * regions + source) * regions + target, time_s)


@kernel
def _rest(left, flow):
    rest = left - flow
    return rest if rest > 1e-9 * left or rest == math.inf else 0.0


@kernel
def _share_all(s):
    for region in range(s.n_regions):
        s.egress_left[region] = s.egress_rate[region]
        s.ingress_left[region] = s.ingress_rate[region]
    for source in range(s.n_regions):
        for target in range(s.n_regions):
            s.wan_left[source, target] = s.wan_rate[source, target]
            for lane in range(LANES):
                if s.wan_count[lane, source, target] > 0:
                    serve(s, lane, source, target)
                    s.wan_flow[lane, source, target] = OPEN
    for lane in range(LANES):
        while _ask(s, lane):
            level = _level(s, lane)
            _close(s, lane, level)
        for source in range(s.n_regions):
            for target in range(s.n_regions):
                _plan(s, lane, source, target)


@kernel
def _is_open(s, lane, source, target):
    return s.wan_count[lane, source, target] > 0 and s.wan_flow[lane, source, target] == OPEN


@kernel
def _ask(s, lane):
    """Modify `s`: what the open links ask of each region; True if there are any."""
    for region in range(s.n_regions):
        s.egress_asked[region] = s.ingress_asked[region] = 0.0
    found = False
    for source in range(s.n_regions):
        for target in range(s.n_regions):
            if _is_open(s, lane, source, target):
                s.egress_asked[source] += s.wan_weight[lane, source, target]
                s.ingress_asked[target] += s.wan_weight[lane, source, target]
                found = True
    return found


@kernel
def _room(s, lane, source, target):
    room = s.wan_left[source, target] / s.wan_weight[lane, source, target]
    room = min(room, s.egress_left[source] / s.egress_asked[source])
    return min(room, s.ingress_left[target] / s.ingress_asked[target])


@kernel
def _level(s, lane):
    level = 1.0 if s.copy_published else math.inf
    for source in range(s.n_regions):
        for target in range(s.n_regions):
            if _is_open(s, lane, source, target):
                level = min(level, _room(s, lane, source, target))
    return level


@kernel
def _close(s, lane, level):
    for source in range(s.n_regions):
        for target in range(s.n_regions):
            if _is_open(s, lane, source, target):
                if _room(s, lane, source, target) <= level or (s.copy_published and level == 1.0):
                    s.wan_flow[lane, source, target] = CLOSING
    for source in range(s.n_regions):
        for target in range(s.n_regions):
            if s.wan_count[lane, source, target] > 0 and s.wan_flow[lane, source, target] == CLOSING:
                flow = level * s.wan_weight[lane, source, target]
                s.wan_flow[lane, source, target] = flow
                s.wan_left[source, target] = _rest(s.wan_left[source, target], flow)
                s.egress_left[source] = _rest(s.egress_left[source], flow)
                s.ingress_left[target] = _rest(s.ingress_left[target], flow)
