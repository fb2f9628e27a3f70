"""Columns of jobs from the numbers that were drawn for them."""

from ..compiler.jit import entry


@entry
def lay_lognormal(uniform, values, edges, growth, median_s, longest_s, sizes, duration_s):
    """Modify `sizes` and `duration_s`: gang sizes with given probabilities, and lognormal durations.

    Args:
        uniform: float64 (jobs,), drawn from 0 to 1.
        values: int64 (values,), gang sizes.
        edges: float64 (values,), the sums of their probabilities, of each and those before it.
        growth: float64 (jobs,), durations in medians.
        median_s, longest_s: seconds; durations go from 1 s to the second.
        sizes: int64 (jobs,). duration_s: float64 (jobs,).
    """
    last = values.size - 1
    for job in range(uniform.size):
        drawn, place = uniform[job] * edges[last], 0
        while place < last and edges[place] <= drawn:
            place += 1
        sizes[job] = values[place]
        duration_s[job] = min(max(median_s * growth[job], 1.0), longest_s)
