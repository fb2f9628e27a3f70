"""Reasons of a compiled rule's decisions, in words: its own terms, as of the decision."""

from .rule_reasons import reasons

__all__ = ["reasons"]
