"""Elastic jobs (Pollux, OSDI'21): what they train, what they see, how fast they go on the GPUs they hold."""
