"""Paper cassini: what is checked of it."""

from __future__ import annotations

from . import cassini_interleaving, cassini_links, cassini_table2, cassini_theory, cassini_traces

REPRODUCTIONS = (
    *cassini_theory.REPRODUCTIONS,
    *cassini_links.REPRODUCTIONS,
    *cassini_table2.REPRODUCTIONS,
    *cassini_interleaving.REPRODUCTIONS,
    *cassini_traces.REPRODUCTIONS,
)
