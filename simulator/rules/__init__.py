"""Compiled orders, delay timers and waiting rules, chosen by integer code; `policies/` gives them their paper names."""
