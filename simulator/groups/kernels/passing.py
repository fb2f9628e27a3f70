"""Time passes: what is counted per second goes on."""

from ...compiler.jit import kernel
from ...running.deadlines import pass_deadlines


@kernel
def pass_time(s, time_s):
    """Modify `s`: the clock goes on to `time_s`."""
    elapsed = time_s - s.now_s
    if elapsed > 0.0:
        s.active_integral += elapsed * (s.waiting + s.running)
        s.slowdown_integral += elapsed * s.slowdown_rate
        s.held_integral += elapsed * (s.n_machines - s.free_machines - s.down_machines)
        s.down_integral += elapsed * s.down_machines
        s.groups_integral += elapsed * s.n_groups
        s.executed_integral += elapsed * s.n_executed
        s.moving_integral += elapsed * s.n_loading
        pass_deadlines(s, time_s)
        s.now_s = time_s
