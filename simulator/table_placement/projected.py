"""Where tables will be when everything that is on the way has arrived: what the slow path plans on."""

from __future__ import annotations

import numpy as np

from ..regions.region_view import RegionView
from ..warehouse.warehouse import Warehouse


def expected_homes(view: RegionView) -> np.ndarray:
    """The home of each table once none moves any more, int64 (tables,)."""
    s = view.record
    home, target = s["table_home"][: s["n_tables"]], s["table_target"][: s["n_tables"]]
    return np.where(target >= 0, target, home).astype(np.int64)


def expected_copies(view: RegionView) -> np.ndarray:
    """Where each table will lie then, bool (tables, regions): neither what is to be deleted nor a home that is left."""
    s = view.record
    n = int(s["n_tables"])
    bits = s["table_copies"][:n] & ~s["table_doomed"][:n]
    leaves = (s["table_target"][:n] >= 0) & (s["table_wanted"][:n] >> s["table_home"][:n] & 1 == 0)
    bits &= ~np.where(leaves, 1 << s["table_home"][:n], 0)
    copies = (bits[:, None] >> np.arange(int(s["n_regions"])) & 1).astype(bool)
    for table, _, region, _ in view.transfers:
        copies[table, region] = True
    copies[np.arange(n), expected_homes(view)] = True
    return copies


def expected_warehouse(view: RegionView) -> Warehouse:
    """The tables so, with what is known of those who read them."""
    return view.warehouse().at(expected_homes(view), expected_copies(view))
