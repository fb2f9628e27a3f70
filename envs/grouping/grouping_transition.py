"""The kernels of Grouping-v0: what a candidate does, the clock of its simulator, and what an agent sees."""

from ...simulator.compiler.jit import kernel
from ...simulator.groups.group_codes import NONE
from ...simulator.groups.kernels.group_clock import advance
from ..step import stepping
from .action_parts import carry_out
from .grouping_window import may_pass, refresh
from .observation import observe, write_mask


@kernel
def _go(s, w, m):
    w.has_acted = 0
    w.code = advance(s)


@kernel
def _leave(s, w, m):
    if may_pass(s):
        _go(s, w, m)


@kernel
def _follow(s, w, m):
    """The code of the last stop stays."""


@kernel
def _forget(w):
    w.pinned_group = NONE


@kernel
def _show(s, w, m):
    refresh(s, w)
    w.can_act |= w.has_acted  # after a first decision only candidate 0 ends the instant


@kernel
def _observe(s, w, m, features, mask):
    observe(s, w, features)
    write_mask(w, mask)


@kernel
def _used_machines(s):
    return s.n_machines - s.free_machines - s.down_machines


KERNELS = stepping(
    carry_out, _show, _observe, leave=_leave, follow=_follow, go=_go, forget=_forget, used=_used_machines
)
