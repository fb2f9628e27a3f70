"""The loop that plays compiled rules."""
