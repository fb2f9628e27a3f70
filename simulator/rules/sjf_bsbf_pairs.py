"""Two jobs on the same GPUs: the sum of their completion times if they share, and if the new one waits.

Source: paper sjf-bsbf, Sec. V-A, Eq. 16-25 and Theorem 1. A running job B has `running_s` of work left, a new job A
brings `new_s`, both as seconds alone on these GPUs. If A starts now, each is xi times slower until one of them ends.

Theorem 1 as we read it. Let A start after kappa, 0 <= kappa <= running_s. While A would end before B, every second
of kappa costs A a second and gains nothing; later, the sum changes with kappa at the constant rate 2 - 2 xi_B +
xi_B / xi_A. So the sum rises first and may fall at the end: it is least at kappa = 0 or when B has ended, never
between. Which one is decided by comparing the two sums (the paper: "the same as directly comparing the fully
overlapped time and the fully non-overlapped time").

The printed condition differs. Eq. 25 shares where 2 xi_B + xi_A - 2 xi_A xi_B > 0, which is our rate with A and B
exchanged: there kappa is a stretch that A runs alone, its range ends at t_A i_A, and B is the one that is inserted. It
also speaks of Case 2 only, ignores how long the jobs are, and calls both branches increasing. By comparison:
* B ends first (Case 1): they share where xi_B (2 - 1 / xi_A) <= 2, however long they are.
* A ends first (Case 2): they share where new_s (xi_A (2 - 1 / xi_B) - 1) <= running_s: a short job joins a long one.
The first implies the second, so a pair either shares at any length, or only if the running job is long enough
(`least_ratio`). Equal jobs break even at xi = 1.5. A tie shares: nobody loses, and the new job is served at once.
"""

from ..compiler.jit import entry, kernel

EQUAL = 1.0 + 1e-12  # sums that differ by rounding only are equal


@entry
def side_by_side_s(new_s, xi_new, running_s, xi_running):
    """If the new job starts now: seconds until one of both ends, and what the new and the running one need then, alone.

    So they end after the first plus the second, and after the first plus the third; one of these is 0.
    """
    slow_new = new_s * xi_new
    slow_running = running_s * xi_running
    if slow_new >= slow_running:  # Eq. 18, 19
        return slow_running, new_s - slow_running / xi_new, 0.0
    return slow_new, 0.0, running_s - slow_new / xi_running  # Eq. 22, 23 at kappa = 0


@kernel
def together_s(new_s, xi_new, running_s, xi_running):
    """Sum of the completion times, from now, if the new job starts now."""
    both_s, new_after_s, running_after_s = side_by_side_s(new_s, xi_new, running_s, xi_running)
    return 2.0 * both_s + (new_after_s + running_after_s)


@kernel
def apart_s(new_s, running_s):
    """The same if the new job starts when the running one has ended."""
    return 2.0 * running_s + new_s


@kernel
def shares(together, apart):
    """True if starting now is no worse, by the two sums."""
    return together <= apart * EQUAL


@entry
def pair_jct(t_a, i_a, xi_a, t_b, i_b, xi_b):
    """Theorem 1: the least sum of completion times of a new job A and a running job B, and whether A starts now.

    Args:
        t_a, t_b: seconds per iteration alone.
        i_a, i_b: iterations (left).
        xi_a, xi_b: how many times slower each is beside the other, >= 1.

    Returns:
        (seconds, bool).
    """
    return least_jct(t_a * i_a, t_a * i_a, xi_a, t_b * i_b, xi_b)


@entry
def least_jct(new_s, accumulated_s, xi_new, running_s, xi_running):
    """`pair_jct` by work, where the new job has more of it (`accumulated_s`) beside the running one: it accumulates."""
    together = together_s(accumulated_s, xi_new, running_s, xi_running)
    apart = apart_s(new_s, running_s)
    if shares(together, apart):
        return together, True
    return apart, False


@entry
def least_ratio(xi_new, xi_running):
    """They share if the running job has at least so many times the work of the new one; 0: always."""
    if xi_running * (2.0 - 1.0 / xi_new) <= 2.0 * EQUAL:
        return 0.0
    return max(0.0, xi_new * (2.0 - 1.0 / xi_running) - 1.0)
