"""Costs of a run over regions until now: energy, its price and carbon, traffic between regions, storage.

A free or failed unit draws the power of a free one; one that a job holds draws its type's power when held, containers
and checkpoints included. Power does not depend on the job.
"""

from ..base.codes import LANES
from ..compiler.jit import entry, kernel
from ..costs.meters import HOUR_S, integral_until
from .wan import left_bytes

ENERGY_KWH, ENERGY_COST, CARBON_KG, EGRESS_COST, STORAGE_COST = 0, 1, 2, 3, 4
SPENT = ("energy_kwh", "energy_cost", "carbon_kg", "egress_cost", "storage_cost")  # as `spent` has them


@kernel
def count_spent(s):
    """Modify `s.spent`: kWh, $ for them, kg of CO2, $ for traffic, $ for storage so far. Nothing is booked."""
    watt_s, watt_price, watt_carbon, byte_s = 0.0, 0.0, 0.0, 0.0
    for region in range(s.n_regions):
        price = integral_until(s.price_sum, s.n_hours, region, s.now_s)
        carbon = integral_until(s.carbon_sum, s.n_hours, region, s.now_s)
        watt_s += s.free_w[region] * (s.now_s - s.start_s)
        watt_price += s.free_w[region] * (price - integral_until(s.price_sum, s.n_hours, region, s.start_s))
        watt_carbon += s.free_w[region] * (carbon - integral_until(s.carbon_sum, s.n_hours, region, s.start_s))
        for kind in range(s.n_types):
            unit_s, unit_price = s.held_unit_s[region, kind], s.held_price[region, kind]
            unit_carbon = s.held_carbon[region, kind]
            held, since_s = s.region_held[region, kind], s.metered_s[region, kind]
            if held > 0:
                unit_s += held * (s.now_s - since_s)
                unit_price += held * (price - integral_until(s.price_sum, s.n_hours, region, since_s))
                unit_carbon += held * (carbon - integral_until(s.carbon_sum, s.n_hours, region, since_s))
            watt_s += s.held_w[kind] * unit_s
            watt_price += s.held_w[kind] * unit_price
            watt_carbon += s.held_w[kind] * unit_carbon
        byte_s += s.stored_byte_s[region] + s.stored_bytes[region] * (s.now_s - s.stored_since_s[region])
    s.spent[ENERGY_KWH] = watt_s / HOUR_S / 1e3
    s.spent[ENERGY_COST] = watt_price / 1e6
    s.spent[CARBON_KG] = watt_carbon / 1e6
    s.spent[EGRESS_COST] = _sent_bytes(s) * s.egress_per_byte
    s.spent[STORAGE_COST] = byte_s * s.storage_per_byte_s


@kernel
def _sent_bytes(s):
    """Bytes that have left a region for another: those of copies that were broken off, or are on the way, too."""
    sent = s.bytes_moved + s.bytes_wasted
    if s.n_transfers > 0:
        for lane in range(LANES):
            for source in range(s.n_regions):
                for target in range(s.n_regions):
                    transfer = s.wan_first[lane, source, target]
                    while transfer >= 0:
                        sent += s.transfer_bytes[transfer] - left_bytes(s, transfer)
                        transfer = s.transfer_next[transfer]
    return sent


@entry
def spend(states, row):
    """`count_spent`."""
    count_spent(states[row])
