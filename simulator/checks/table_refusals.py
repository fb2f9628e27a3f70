"""Whether a decision (kind: MOVE, REPLICATE or DROP) about a table can be carried out now, and its KiB over links."""

from ..base.codes import DROP, MOVE, REPLICATE
from ..compiler.jit import entry, kernel
from ..regions.wan import missing_bytes

(
    ALLOWED,
    REGION_DOWN,
    COPY_THERE,
    COPY_COMES,
    NO_ROOM,
    TOO_MANY_COPIES,
    HOME_ALREADY,
    HOME_TO_BE,
    LAST_COPY,
    HOME_LIES_THERE,
    HOME_MOVES_THERE,
    COPY_GOES,
    NO_COPY,
) = range(13)


@kernel
def copied_bytes(s, table, region, kind, whole):
    """What carrying out a decision would send over links; 0: nothing, or what it asks for is there or on the way."""
    if kind == DROP or (kind == MOVE and region == s.table_home[table]):
        return 0
    missing = missing_bytes(s, table, region)
    if kind == MOVE or whole:
        return missing
    return 0 if missing < s.table_size[table] else s.replica_size[table]


@kernel
def refusal(s, table, region, kind, whole):
    """Why a decision about a table that there is cannot be carried out now; ALLOWED: it can."""
    if kind == DROP:
        return _refused_drop(s, table, region)
    gives_up = kind == MOVE and region == s.table_home[table]
    if not gives_up and not s.up_regions >> region & 1:
        return REGION_DOWN
    if kind == MOVE:
        if s.table_target[table] < 0 and region == s.table_home[table]:
            return HOME_ALREADY
        if region == s.table_target[table]:
            return HOME_TO_BE
    elif s.table_wanted[table] >> region & 1:
        grows = whole and s.replica_size[table] < s.table_size[table]
        if not grows or s.table_complete[table] >> region & 1:
            return COPY_THERE if s.table_copies[table] >> region & 1 else COPY_COMES
    size = copied_bytes(s, table, region, kind, whole)
    if size > s.storage_bytes[region] - s.stored_bytes[region]:
        return NO_ROOM
    return TOO_MANY_COPIES if size > 0 and s.free_transfer < 0 else ALLOWED


@kernel
def _refused_drop(s, table, region):
    if s.table_wanted[table] >> region & 1:
        stays = region == s.table_home[table] or region == s.table_target[table]
        others = s.table_copies[table] & ~s.table_doomed[table] & s.up_regions & ~(1 << region)
        return ALLOWED if stays or others or not s.table_copies[table] >> region & 1 else LAST_COPY
    if region == s.table_home[table]:
        return HOME_LIES_THERE
    if region == s.table_target[table]:
        return HOME_MOVES_THERE
    return COPY_GOES if s.table_doomed[table] >> region & 1 else NO_COPY


@kernel
def is_idle(s, table, region, kind):
    """Whether a decision gives a replica to a region that is the table's home and stays so."""
    return kind == REPLICATE and s.table_home[table] == region and s.table_target[table] < 0


@entry
def refusal_of(states, row, table, region, kind, whole):
    """`refusal`, for Python."""
    return refusal(states[row], table, region, kind, whole)


@entry
def bytes_of(states, row, table, region, kind, whole):
    """`copied_bytes`, for Python."""
    return copied_bytes(states[row], table, region, kind, whole)
