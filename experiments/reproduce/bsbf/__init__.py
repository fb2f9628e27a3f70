"""Paper sjf-bsbf."""
