"""Tools that watch over a change that is to change nothing: digests of runs, walks of a reader, counts of the house."""
