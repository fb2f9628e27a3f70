"""Which links of a network can bind at all: the others, slack ones, need not be looked at when rates are computed.

A whole link never decides a rate if it has one job only, whose highest rate it is part of (`own_rate`), or if another
link with no more capacity carries all its jobs with at least as many flows each. So the two directions of a cable, and
all links on the way of the same jobs, count as one: the lowest number binds. It is judged when a job or a capacity
changes.
"""

from ..compiler.jit import kernel


@kernel
def sieve(s, job):
    """Modify `s`: a job has come or gone, its uses are still written: which links can bind, for all their jobs."""
    s.is_laid = 0
    use = s.first_use[job]
    while use >= 0:
        _judge(s, s.use_link[use])
        _judge_twins(s, s.use_link[use], job)
        use = s.use_after[use]
    chain_binding(s, job)


@kernel
def _judge_twins(s, link, job):
    """Modify `s`: links with a link's jobs before `job` came, or since it has gone; of equal links one binds."""
    use = s.link_first[link]
    if use >= 0 and s.use_job[use] == job:
        use = s.use_next[use]
    if use < 0:
        return
    use = s.first_use[s.use_job[use]]  # a twin has all the others
    while use >= 0:
        other = s.use_link[use]
        fewer = s.link_users[link] - s.link_users[other]
        if other != link and s.link_capacity[other] == s.link_capacity[link] and 0 <= fewer <= 1:
            _judge(s, other)
        use = s.use_after[use]


@kernel
def _judge(s, link):
    """Modify `s`: whether a link is slack, for it and for all its jobs."""
    slack = _is_slack(s, link)
    if slack != s.is_slack[link]:
        s.is_slack[link] = slack
        s.n_binding += 1 - 2 * slack
        use = s.link_first[link]
        while use >= 0:
            chain_binding(s, s.use_job[use])
            use = s.use_next[use]


@kernel
def chain_binding(s, job):
    """Modify `s`: the list of a job's uses of links that can bind."""
    first = -1
    use = s.first_use[job]
    while use >= 0:
        if not s.is_slack[s.use_link[use]]:
            s.use_binding[use] = first
            first = use
        use = s.use_after[use]
    s.first_binding[job] = first


@kernel
def _is_slack(s, link):
    if s.link_users[link] < 2 and (s.link_users[link] < 1 or s.link_capacity[link] == s.link_whole[link]):
        return 1
    s.sievings += 1
    first = s.link_first[link]
    use = first
    while use >= 0:
        job = s.use_job[use]
        s.sieve_mark[job] = s.sievings
        s.sieve_flows[job] = s.use_flows[use]
        use = s.use_next[use]
    use = s.first_use[s.use_job[first]]  # a link that binds before this one has all its jobs
    while use >= 0:
        if _binds_first(s, s.use_link[use], link):
            return 1
        use = s.use_after[use]
    return 0


@kernel
def _binds_first(s, other, link):
    """True if link `other` is full before the marked `link`; of equal ones, if it is the one with the lower number."""
    users = s.link_users[link]
    if other == link or s.link_capacity[other] > s.link_capacity[link] or s.link_users[other] < users:
        return False
    same = s.link_capacity[other] == s.link_capacity[link] and s.link_users[other] == users
    use = s.link_first[other]
    while use >= 0:
        job = s.use_job[use]
        if s.sieve_mark[job] == s.sievings:
            if s.use_flows[use] < s.sieve_flows[job]:
                return False
            same = same and s.use_flows[use] == s.sieve_flows[job]
            users -= 1
        use = s.use_next[use]
    return users == 0 and (not same or other < link)
