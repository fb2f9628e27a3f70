"""Network contention, as text names it: link_network.py says what it is, entering.py how jobs run on it."""

from __future__ import annotations

import dataclasses
from functools import cached_property

from .entering import NetworkRates
from .link_network import LinkNetwork


class Contention(LinkNetwork):
    """Link contention; arguments and errors are those of `LinkNetwork`."""

    @cached_property
    def rate_provider(self) -> NetworkRates:
        """The source of the rates of jobs, which it writes into the record."""
        return NetworkRates(self)

    def dedicated(self) -> Contention:
        """The same network where no job ever meets another."""
        return dataclasses.replace(self, mode="dedicated")

    def resizing(self) -> Contention:
        """The same network where data-parallel jobs may have any number of workers."""
        return dataclasses.replace(self, workers="elastic")
