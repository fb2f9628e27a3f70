"""Unit-seconds held, of GPUs and others, in fixed bins from the first arrival on; when full, of twice the width."""

from ..compiler.jit import kernel


@kernel
def book(s, elapsed_s):
    """Modify `s`: so many seconds go by from `now_s` on, with what is held now."""
    bins = s.usage_held_s.shape[1]
    at = s.now_s - s.start_s
    end = at + elapsed_s
    while end > bins * s.usage_bin_s:
        _widen(s)
    cpus = s.type_held[s.cpu_type]
    gpus = -cpus
    for kind in range(s.n_types):
        gpus += s.type_held[kind]
    number = min(bins - 1, int(at / s.usage_bin_s))
    while at < end:
        until = min(end, (number + 1) * s.usage_bin_s) if number + 1 < bins else end
        if until > at:
            s.usage_held_s[0, number] += gpus * (until - at)
            s.usage_held_s[1, number] += cpus * (until - at)
            at = until
        number += 1


@kernel
def _widen(s):
    bins = s.usage_held_s.shape[1]
    s.usage_bin_s *= 2.0
    for kind in range(2):
        for number in range(bins):
            if number < bins // 2:
                two = s.usage_held_s[kind, 2 * number] + s.usage_held_s[kind, 2 * number + 1]
                s.usage_held_s[kind, number] = two
            else:
                s.usage_held_s[kind, number] = 0.0
