"""Pollux (OSDI'21): the policy, its genetic search, and the same for jobs of the size that they ask."""
