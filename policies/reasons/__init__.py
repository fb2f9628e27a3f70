"""Why a compiled rule decides as it does, in words: its own terms, as they stood when it decided."""

from .rule_reasons import reasons

__all__ = ["reasons"]
