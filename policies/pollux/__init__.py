"""Pollux (OSDI'21): the policy, its genetic search, and Pollux for jobs of fixed size."""
