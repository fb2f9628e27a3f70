"""Pen, colours and words of pictures."""
