"""The log of copies while `copy_log_on`, emptied at every instant; costs follow (experiments/playing/copy_rows.py)."""

from ..compiler.jit import kernel
from ..costs.meters import store

# What an entry says of a table and a region, its target.
TAKEN = 0  # bytes of room are taken for a copy that is to come,
SENDS = 1  # a region begins to send it,
SENT = 2  # or does not any more: bytes that it sent,
ARRIVED = 3  # it is complete,
GIVEN_UP = 4  # or broken off: its room is free;
FREED = 5  # bytes of copies that were there are deleted


@kernel
def log_copy(s, kind, table, source, target, size):
    """Modify `s`: append an entry, if the log is on."""
    if s.copy_log_on == 0:
        return
    entry = s.copy_log_count
    if entry >= s.copy_log.shape[0]:
        s.copy_log_overflow = 1
        return
    s.copy_log[entry, 0] = kind
    s.copy_log[entry, 1] = s.now_s
    s.copy_log[entry, 2] = table
    s.copy_log[entry, 3] = source
    s.copy_log[entry, 4] = target
    s.copy_log[entry, 5] = size
    s.copy_log_count = entry + 1


@kernel
def take_room(s, table, region, size):
    """Modify `s`: a copy that is to come takes room from now on."""
    store(s, region, size)
    log_copy(s, TAKEN, table, -1, region, size)


@kernel
def give_up_room(s, table, region, size):
    """Modify `s`: a copy does not come: its room is free."""
    store(s, region, -size)
    log_copy(s, GIVEN_UP, table, -1, region, size)


@kernel
def free_room(s, table, region, size):
    """Modify `s`: so many bytes of the copies of a table in a region are deleted."""
    store(s, region, -size)
    log_copy(s, FREED, table, -1, region, size)
