"""Meters of costs in a region: unit-seconds held by type, their price and carbon, bytes stored.

A meter is brought to date when its quantity changes, never by the hour: with the stored sums over whole hours
(tariff.py), an integral is the difference of two look-ups. A record without prices has no meters.
"""

import math

from ..compiler.jit import kernel

HOUR_S = 3600.0


@kernel
def integral_until(sums, hours, region, time_s):
    """Integral from time 0 of hourly values that repeat; `sums`: float64 (regions, > hours), up to each hour."""
    at = time_s / HOUR_S
    hour = math.floor(at)
    rounds = hour // hours
    place = hour - rounds * hours
    below = sums[region, place]
    return rounds * sums[region, hours] + below + (at - hour) * (sums[region, place + 1] - below)


@kernel
def meter_units(s, region, kind, units):
    """Modify `s`: so many more units of a type are held in a region from now on; fewer, if negative."""
    if s.n_hours == 0:
        return
    held, since_s, now_s = s.region_held[region, kind], s.metered_s[region, kind], s.now_s
    if now_s > since_s:
        if held > 0:
            price = integral_until(s.price_sum, s.n_hours, region, now_s)
            carbon = integral_until(s.carbon_sum, s.n_hours, region, now_s)
            s.held_unit_s[region, kind] += held * (now_s - since_s)
            s.held_price[region, kind] += held * (price - integral_until(s.price_sum, s.n_hours, region, since_s))
            s.held_carbon[region, kind] += held * (carbon - integral_until(s.carbon_sum, s.n_hours, region, since_s))
        s.metered_s[region, kind] = now_s
    s.region_held[region, kind] = held + units


@kernel
def store(s, region, size):
    """Modify `s`: so many more bytes are taken in a region from now on; fewer, if negative."""
    if s.n_hours > 0:
        s.stored_byte_s[region] += s.stored_bytes[region] * (s.now_s - s.stored_since_s[region])
        s.stored_since_s[region] = s.now_s
    s.stored_bytes[region] += size
