"""Compiled orders, placers and scheduling passes, chosen by integer code; `policies/` gives them their paper names."""
