"""How many streams cross each link by a forwarding table: compiled."""

from ..compiler.jit import entry


@entry
def cross(table, target, node, goal, to, many, level, total):
    """Modify `total`: streams over each link, those that are as far from their beginning one after the other.

    Args:
        table: int32 (N, M C), the next link of each node towards each NIC. target: int (L,), the node at its end.
        node, goal: int64 (k,), where the streams begin, modified, and end. to: int64 (k,), the NIC there.
        many: float64 (k,), streams.
        level: float64 (L,), zeros, scratch. total: float64 (L,).

    Returns:
        False if there is no way for one of them.
    """
    is_there = False
    while not is_there:
        is_there = True
        for i in range(node.size):
            if node[i] == goal[i]:
                continue
            link = table[node[i], to[i]]
            if link < 0:
                return False
            level[link] += many[i]
            node[i] = target[link]
            is_there = is_there and node[i] == goal[i]
        for link in range(total.size):
            total[link] += level[link]
            level[link] = 0.0
    return True
