"""Tiers of a cluster, innermost first; a placement's tier is the innermost level that holds the whole gang."""

SLOT = 0
MACHINE = 1
RACK = 2
NETWORK = 3
TIERS = 4
TIER_NAMES = ("slot", "machine", "rack", "network")
UNPLACED = -1
