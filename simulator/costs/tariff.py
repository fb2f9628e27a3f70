"""What is paid for: electricity by region and hour, the power that units draw, traffic between regions, storage."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import InputError
from ..cluster.region_network import CPU_TYPE
from ..files.file_marks import MARK, path_unless
from .electricity import Electricity, sums_of

if TYPE_CHECKING:
    from ..cluster.topology import Topology

MONTH_S = 730.0 * 3600.0  # a twelfth of 8,760 hours
GIGABYTE, TERABYTE = 1e9, 1e12
MOST_W, MOST_PRICE = 1e6, 1e6
# Watts of a free unit, and of one that is held. Held: the maximum power that NVIDIA's data sheets of V100
# SXM2, A100 SXM and H100 SXM name, which a job seldom draws all the time. Not held, and CPU machines: assumed.
POWER_W = {"V100": (40.0, 300.0), "A100": (55.0, 400.0), "H100": (75.0, 700.0), CPU_TYPE: (100.0, 350.0)}
NEEDED = {"needs": ("prices",)}
_POWER = re.compile(r"([^\s:,/]+):([^\s:,/]+)/([^\s:,/]+)")


@dataclass(frozen=True)
class Tariff:
    """Prices of electricity, traffic and storage, in regions, and the power that is drawn there.

    Args:
        prices: price and carbon intensity of electricity by region and hour: the path of a csv
            (costs/electricity.py); none: nothing is said of costs.
        watts: of a unit that is free and of one that is held, by type: `A100:55/400,CPU:100/350`; types that are not
            named have the values of costs/tariff.py.
        egress_per_gb: $ for 1e9 bytes that leave a region for another, >= 0.
        storage_per_tb_month: $ for 1e12 bytes that are stored for 730 hours, >= 0.

    Raises:
        InputError: a value that does not fit.
    """

    prices: str = field(metadata={MARK: path_unless(("none",))})
    watts: str = field(default="", metadata=NEEDED)
    egress_per_gb: float = field(default=0.02, metadata=NEEDED)  # as public clouds list it between their regions
    storage_per_tb_month: float = field(default=23.0, metadata=NEEDED)  # as public clouds list it, $0.023 for a GB

    def __post_init__(self) -> None:
        for name in ("egress_per_gb", "storage_per_tb_month"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= MOST_PRICE:
                raise InputError(f"{name} = {value!r}: expected $ from 0 to {MOST_PRICE:,.0f}")
        for name in ("prices", "watts"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} = {getattr(self, name)!r}: expected text")
        _ = self.power_w

    @classmethod
    def of(cls, prices: str | None = None, **given: object) -> Tariff | None:
        """A tariff with these prices; None where there are none."""
        options = {key: value for key, value in given.items() if value is not None}
        return None if prices is None or prices in ("", "none") else cls(prices, **options)  # type: ignore[arg-type]

    @cached_property
    def power_w(self) -> dict[str, tuple[float, float]]:
        """Watts by type, of a unit that is free and of one that is held."""
        found = dict(POWER_W)
        for part in self.watts.split(",") if self.watts else ():
            match = _POWER.fullmatch(part.strip())
            if match is None:
                raise InputError(f"watts = {self.watts!r}: {part!r} is not TYPE:FREE/HELD, e.g. A100:55/400")
            found[match[1]] = (self._watts(part, match[2]), self._watts(part, match[3]))
        return found

    def _watts(self, part: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0.0 <= value <= MOST_W:
            raise InputError(f"watts = {self.watts!r}: {text!r} in {part!r}: expected watts from 0 to {MOST_W:,.0f}")
        return value

    def watts_of(self, kind: str) -> tuple[float, float]:
        """Watts of a unit of a type that is free, and of one that is held; InputError: nothing is known of the type."""
        if kind not in self.power_w:
            known = ", ".join(sorted(self.power_w))
            raise InputError(f"watts: nothing is said of {kind}; expected watts={kind}:FREE/HELD (known: {known})")
        return self.power_w[kind]

    def electricity(self, topology: Topology) -> Electricity:
        """Price and carbon intensity in the regions of a topology, in its order; see `Electricity.load`."""
        return Electricity.load(self.prices, topology.region_names)

    def write_into(self, s: np.void, topology: Topology, types: Sequence[str]) -> None:
        """Write it into a record with regions and room for hours; `types`: of units, as the record numbers them.

        InputError: a type without a price, or a table that does not fit the regions.
        """
        table, regions = self.electricity(topology), topology.num_regions
        s["n_hours"] = table.hours
        s["price_sum"][:regions, : table.hours + 1] = sums_of(table.price_per_mwh)
        s["carbon_sum"][:regions, : table.hours + 1] = sums_of(table.carbon_g_per_kwh)
        s["egress_per_byte"] = self.egress_per_gb / GIGABYTE
        s["storage_per_byte_s"] = self.storage_per_tb_month / TERABYTE / MONTH_S
        for number, kind in enumerate(types):
            if kind in topology.cluster_gpu_type:
                free, held = self.watts_of(kind)
                s["held_w"][number] = held - free
        idle_w = np.array([self.watts_of(kind)[0] for kind in topology.cluster_gpu_type])
        clusters = topology.num_clusters
        s["free_w"][:regions] = np.bincount(topology.cluster_region, idle_w * s["cluster_gpus"][:clusters], regions)
        s["metered_s"][:] = s["stored_since_s"][:] = s["start_s"]
