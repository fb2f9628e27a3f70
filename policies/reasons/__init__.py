"""Why a compiled rule decides as it does, in words: its own terms, as they stood when it decided."""

from .rule import reasons

__all__ = ["reasons"]
