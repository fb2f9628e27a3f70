"""Policies by name: which there are, where they play, and what parameters they take."""

from __future__ import annotations

import builtins
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any

from ..simulator.base.errors import InputError
from ..simulator.base.names import bind, choose, parse_name, short_name
from ..simulator.base.said_once import say_once
from ..simulator.files.own_code import PREFIX, Own, is_own, own
from ..simulator.jobs.estimates import Estimates
from .base import Policy
from .own import by_word, declared, environments_in, handed, installed, package_of
from .transports import TRANSPORTS, with_transport

DELAY = "clustergym/Delay-v0"
SHARING = "clustergym/Sharing-v0"
TIME_SHIFT = "clustergym/TimeShift-v0"
GEO = "clustergym/Geo-v0"
DATA_PLACEMENT = "clustergym/DataPlacement-v0"
GROUPING = "clustergym/Grouping-v0"
BOTH = (DELAY, SHARING)
ENVIRONMENTS = (DELAY, SHARING, TIME_SHIFT, GEO, DATA_PLACEMENT, GROUPING)
REQUIRED = "(must be given)"  # in a list of parameters, in place of a default


@dataclass(frozen=True)
class Entry:
    """One policy: what builds it, one line about it, and the ids of the environments that it plays in.

    Attributes:
        builder: what builds it, or where that is: `.module:name`, a module of this package that is imported when
            somebody asks for the policy.
        summary: one line.
        environments: their ids.
        first: the first arguments of what builds it, which are no parameters of the policy.
        transport: how its jobs share full links, if not fairly (transports.py).
        is_slow: whether it may take minutes an episode, so that it plays only where it is named.
    """

    builder: str | Callable[..., Policy]
    summary: str
    environments: tuple[str, ...] = (DELAY,)
    first: tuple[str, ...] = ()
    transport: str = ""
    is_slow: bool = False

    @property
    def factory(self) -> Callable[..., Policy]:
        """What builds it from its parameters."""
        builder = _found(self.builder) if isinstance(self.builder, str) else self.builder
        scheduler = partial(builder, *self.first) if self.first else builder
        return with_transport(scheduler, self.transport, scheduler) if self.transport else scheduler


POLICIES: dict[str, Entry] = {
    "random": Entry(
        ".random.random_policy:random_policy",
        "a random order and random GPUs, drawn from the seed: the baseline that everything should beat",
        (*BOTH, TIME_SHIFT, GEO, GROUPING),
    ),
    "random-start": Entry(
        ".random.random_starts:random_starts",
        "in regions: while there are legal starts one of them, each as likely, also in place of lower priorities",
        (GEO,),
    ),
    "greedy": Entry(
        ".greedy.greedy:greedy",
        "shortest first; a job waits for a better tier if it ends sooner so; among groups the largest sum of rates",
        (DELAY, GEO, GROUPING),
    ),
    "fifo": Entry(
        ".ordered:backfilled",
        "first in, first out, by arrival; head=reserve (EASY) and head=conservative: with backfilling",
        BOTH,
        ("fifo",),
    ),
    "sjf": Entry(
        ".greedy.shortest:shortest_job",
        "shortest job first, by isolated run time; running jobs are left alone; heads as fifo",
        (*BOTH, GEO),
    ),
    "edf": Entry(
        ".ordered:ordered",
        "earliest deadline first, jobs without one last; running jobs are left alone",
        BOTH,
        ("edf",),
    ),
    "srtf": Entry(
        ".greedy.shortest:remaining",
        "shortest remaining time first: made anew at each event, preemptive",
        (DELAY, GEO),
        ("srtf",),
    ),
    "srsf": Entry(
        ".greedy.shortest:remaining",
        "shortest remaining service (GPUs x time left) first, preemptive",
        (DELAY, GEO),
        ("srsf",),
    ),
    "las": Entry(".ordered:las", "two-dimensional least attained service: queues by GPUs x time held, preemptive"),
    "tiresias": Entry(
        ".tiresias:tiresias",
        "Tiresias (NSDI'19): discretised 2D-LAS; models with skewed tensors are consolidated",
        BOTH,
    ),
    "sjf-ffs": Entry(
        ".bsbf:shared",
        "shortest job first; what finds too few free GPUs shares the first that hold one job",
        (SHARING,),
        ("sjf-ffs", "first-fit"),
    ),
    "sjf-bsbf": Entry(
        ".bsbf:shared",
        "SJF-BSBF (IWQoS'24): shortest job first; shares GPUs where the pair ends sooner so",
        (SHARING,),
        ("sjf-bsbf", "best-benefit"),
    ),
    "pollux": Entry(
        ".pollux.pollux:Pollux",
        "Pollux (OSDI'21): searches for the most goodput, shared fairly, every round; adapt=off: sizes as asked",
        (SHARING, TIME_SHIFT),
    ),
    "tiresias-rounds": Entry(
        ".tiresias:TiresiasRounds",
        "Tiresias as Pollux's simulator plays it: two queues, looked at every round",
        (SHARING,),
    ),
    "themis": Entry(
        ".themis:Themis",
        "Themis (NSDI'20): GPUs are leased, and auctioned to those jobs that are farthest from fair",
        (TIME_SHIFT,),
    ),
    "themis+cassini": Entry(
        ".cassini.cassini_schedulers:themis_cassini",
        "CASSINI (NSDI'24) on Themis: of its placements the most compatible, and time-shifts for jobs that share links",
        (TIME_SHIFT,),
    ),
    "themis+crux": Entry(
        ".themis:Themis",
        "Themis; on full links Crux (SIGCOMM'24) lets the jobs go first for whose bytes most computing waits",
        (TIME_SHIFT,),
        transport="crux",
    ),
    "themis+mltcp": Entry(
        ".themis:Themis",
        "Themis; on full links MLTCP (HotNets'24) gives more to flows that have sent more of their iteration",
        (TIME_SHIFT,),
        transport="mltcp",
    ),
    "pollux+cassini": Entry(
        ".cassini.cassini_schedulers:pollux_cassini", "CASSINI on Pollux, jobs of the size that they ask", (TIME_SHIFT,)
    ),
    "dally+cassini": Entry(".cassini.cassini_schedulers:dally_cassini", "CASSINI on Dally", (TIME_SHIFT,)),
    "sjf-bsbf+cassini": Entry(".cassini.cassini_schedulers:bsbf_cassini", "CASSINI on SJF-BSBF", (TIME_SHIFT,)),
    "least-shared": Entry(
        ".themis:LeastShared",
        "Themis; of its placements the one with the fewest shared links, nobody shifted",
        (TIME_SHIFT,),
    ),
    "ideal": Entry(
        ".themis:ideal", "Themis where every job has all links to itself: the bound for the others", (TIME_SHIFT,)
    ),
    "best-rotations": Entry(
        ".cassini.best_rotations:BestRotations",
        "of Themis' placements and all rotations those that are best when they are played: a nearer bound, and slow",
        (TIME_SHIFT,),
        is_slow=True,
    ),
    "lookahead": Entry(
        ".cassini.lookahead:Lookahead",
        "of Themis' placements, or none, the one with which jobs are through soonest, by playing each one on; slow",
        (TIME_SHIFT,),
        is_slow=True,
    ),
    "mast": Entry(
        ".mast.mast:scoped_scheduler",
        "MAST (OSDI'24): one queue by priority, quota and credit; each region's best plan, the best of all wins",
        (GEO,),
        ("mast", "global", "region"),
    ),
    "federated": Entry(
        ".mast.mast:scoped_scheduler",
        "a workload is bound to the region with the lowest demand over supply of its GPU type when it arrives",
        (GEO,),
        ("federated", "region", "region"),
    ),
    "global": Entry(
        ".mast.mast:scoped_scheduler",
        "MAST that places several workloads jointly: Table 1's ideal",
        (GEO,),
        ("global", "global", "global"),
    ),
    "scope": Entry(
        ".mast.mast:scoped_scheduler",
        "any cell of paper mast's Table 1: scopes of the queue and of the allocation",
        (GEO,),
        ("scope",),
    ),
    "bring": Entry(
        ".mast.bringing:bringing",
        "a scheduler whose waiting workloads have their tables brought to regions with units free for them",
        (GEO,),
    ),
    "static": Entry(
        ".tetris.tetris:static",
        "V0 of paper mast: tables stay where users put them; copies for disasters",
        (DATA_PLACEMENT,),
    ),
    "tetris-v1": Entry(
        ".tetris.tetris:tetris_v1",
        "Tetris (OSDI'24), V1: homes by hill climbing, overload no worse than underload",
        (DATA_PLACEMENT,),
    ),
    "tetris-v2": Entry(
        ".tetris.tetris:tetris_v2",
        "Tetris, V2: overload costs more, storage is balanced too, hot tables are spread",
        (DATA_PLACEMENT,),
    ),
    "milp": Entry(
        ".tetris.tetris:milp", "the best homes by mixed-integer programming, replicas as tetris-v2", (DATA_PLACEMENT,)
    ),
    "everywhere": Entry(
        ".two_paths:Everywhere",
        "in regions: a scheduler with every table in every region, free, from time 0; it bounds the value of data only",
        (GEO, DATA_PLACEMENT),
    ),
    "gandiva": Entry(
        ".gandiva.gandiva:gandiva",
        "Gandiva (OSDI'18) as Dally's authors read it: by affinity, moves to better tiers; slicing= adds time slices",
        BOTH,
    ),
    "dally": Entry(
        ".dally:dally", "Dally (Big Data'25): delay timers, tuned by demand and tier; most slowed down first"
    ),
    "dally-manual": Entry(".dally:dally_manual", "Dally with fixed timers: 12 h for a machine, 24 h in all for a rack"),
    "dally-nowait": Entry(".dally:dally_nowait", "Dally that never waits for a better tier"),
    "dally-consolidated": Entry(".dally:dally_consolidated", "Dally that waits for the best tier as long as it takes"),
    "isolated": Entry(
        ".harmony.group_baselines:Isolated",
        "one job a group, on as many machines as it needs: Harmony's first baseline",
        (GROUPING,),
    ),
    "naive-colocation": Entry(
        ".harmony.group_baselines:Naive",
        "jobs share equal partitions as they come, and may run out of memory: its second baseline",
        (GROUPING,),
    ),
    "harmony": Entry(
        ".harmony.harmony:Harmony",
        "Harmony (ICDCS'21): groups in which COMP and COMM keep CPU and network busy, regrouped where it pays",
        (GROUPING,),
    ),
    "oracle": Entry(
        ".harmony.oracle:Oracle",
        "the best utilisation at every event: exact up to 10 jobs, above by local search",
        (GROUPING,),
    ),
    "muri": Entry(
        ".harmony.muri:Muri",
        "Muri (SIGCOMM'22), by analogy: jobs whose stages interleave, by matchings",
        (GROUPING,),
    ),
}

# Words whose rest is a path or the name of an environment, and what opens them. The rooms above are not imported from
# here: who asks for a trained agent imports them.
AGENTS = dict.fromkeys(("ppo", "maskable-ppo", "sb3", "zoo"), "clustergym.agents.playing.agent_words:open_agent")
SHIPPED = "clustergym.agents.shipped:describe_shipped"
OURS = frozenset((*POLICIES, *AGENTS, PREFIX.removesuffix(":")))  # names that no package can take


def list(env_id: str | None = None) -> builtins.list[str]:
    """Names of all policies, or of those that play in an environment (`clustergym/Delay-v0`, or short `Delay`).

    After ours come those that installed packages declare (own.py); in an environment those of them that name it.
    Trained agents are not among them: `shipped` lists those that come with the package.

    Args:
        env_id: the environment; None: all of them.

    Returns:
        The names, in the order of the registry.
    """
    others = installed(OURS)
    if env_id is None:
        return [*POLICIES, *others]
    wanted = short_name(str(env_id))
    known = {short_name(i) for e in POLICIES.values() for i in e.environments}
    choose(wanted, known, "environment")
    full = f"clustergym/{wanted}-v0"
    names = [name for name, entry in POLICIES.items() if full in entry.environments]
    for name, point in others.items():
        try:
            if full in _named_by(declared(point)):
                names.append(name)
        except InputError as error:
            say_once(f"{error}; it is left out")
    return names


def make(name: str, **params: Any) -> Policy:
    """A policy by name: `make("sjf", head="strict")`, or with its parameters in the name: `make("sjf:head=strict")`.

    `ppo:PATH`, `maskable-ppo:PATH`, `sb3:FILE.zip` and `zoo:ENV` are trained agents: the rest of the word is the path
    or the environment, and `params` are those of `open_agent` (agents/playing/agent_words.py).
    `py:FILE.py:NAME[,key=value...]` and `py:package.module:NAME` are a user's own; see own.py.

    Args:
        name: the name, or the whole word.
        params: its parameters, in place of those in the word.

    Returns:
        The policy: play it by `Simulator.run(policy)` or `policy.act(env)`.

    Raises:
        InputError: an unknown name or parameter, a value that it does not take, or an agent that cannot be loaded.
        MissingExtra: a trained agent, where the extra [agents] is not installed.
    """
    if is_agent(name):
        kind, _, rest = name.strip().partition(":")
        policy = bind(partial(_found(AGENTS[kind]), kind, rest), params, f"policy {kind}")
        policy.name = name.strip()
        return policy
    if (found := _brought(name)) is not None:
        return by_word(found, name.strip() if not params else spelt(name.strip(), params), params)
    factory, given = maker_of(name)
    word = name.strip().partition(":")[0]
    policy = bind(factory, {**given, **params}, f"policy {word}")
    if given or params:
        policy.given = frozenset({**given, **params})
        policy.name = name if not params else f"{word}:" + ",".join(f"{k}={v}" for k, v in {**given, **params}.items())
    return policy


def make_for(source: Any, env_id: str | None) -> Policy:
    """Whoever plays under a name in an environment, where two of one name may differ (twofold.py).

    Args:
        source: a name as `make` takes it, or an object that decides, of which this is a copy.
        env_id: id of the environment.
    """
    player = handed(source)
    policy = make(player) if isinstance(player, str) else player.made()
    if env_id is not None:
        policy = policy.playing_in(env_id)
    return policy.among_groups() if env_id == GROUPING else policy


def able(env_id: str, estimates: str = "exact", plain: bool = False) -> builtins.list[str]:
    """Those of `list(env_id)` that can play where so much is known of jobs, but not those that take minutes an episode.

    Args:
        env_id: id of the environment.
        estimates: what is known of run times; where nothing is, policies that need them are left out.
        plain: whether nothing is known of models, and jobs are not elastic: policies of elastic jobs are left out.
    """
    known = Estimates.load(estimates)
    quick = [word for word in list(env_id) if word not in POLICIES or not POLICIES[word].is_slow]
    policies = {word: make_for(word, env_id) for word in quick}
    return [
        word
        for word, policy in policies.items()
        if not (known.hides and policy.knows_run_times) and not (plain and policy.elastic)
    ]


def split(name: str) -> tuple[str, str, dict[str, str]] | None:
    """The scheduler, the transport and the parameters of a word such as `dally+crux:levels=4`; None: it is none such.

    Those that the registry lists itself are none: they have their own entries.
    """
    word = name.strip().partition(":")[0] if isinstance(name, str) else ""
    base, _, transport = word.rpartition("+")
    if word in POLICIES or not base or transport not in TRANSPORTS:
        return None
    return base, transport, parse_name(name, "policy")[1]


def is_agent(name: str) -> bool:
    """Whether a policy's word names a trained agent."""
    return isinstance(name, str) and name.strip().partition(":")[0] in AGENTS


def environments_of(name: str) -> tuple[str, ...]:
    """The ids of the environments that a policy plays in, by its word: a user's own in all that it is asked to.

    Raises as `make`.
    """
    if is_agent(name):
        return make(name).environments  # type: ignore[attr-defined]
    if (found := _brought(name)) is not None:
        return _named_by(found) or getattr(make(name), "environments", ()) or ENVIRONMENTS
    if (composed := split(name)) is not None:
        return tuple(env_id for env_id in environments_of(composed[0]) if env_id == TIME_SHIFT) or (TIME_SHIFT,)
    _expect_known(name)
    return POLICIES[parse_name(name, "policy")[0]].environments


def _brought(name: str) -> Own | None:
    """What the word of a user's own policy names, or of one that a package declares; None: it is none of them."""
    if is_own(name):
        return own(name, "policy")
    word, _, rest = name.strip().partition(":") if isinstance(name, str) else ("", "", "")
    if word in POLICIES or word not in (others := installed(OURS)):
        return None
    return declared(others[word], rest)


def _named_by(found: Own) -> tuple[str, ...]:
    """The environments that a user's class or function names itself."""
    named = environments_in(found.factory, str(found))
    for env_id in named:
        choose(env_id, ENVIRONMENTS, f"environment of {found}:")
    return named


def spelt(name: str, params: Mapping[str, Any]) -> str:
    """A word with more parameters."""
    joint = "," if is_own(name) or ":" in name else ":"
    return name + (joint if params else "") + ",".join(f"{key}={value}" for key, value in params.items())


def maker_of(name: str) -> tuple[Callable[..., Any], dict[str, str]]:
    """What makes the policy of a word, and the parameters that the word gives, as text.

    Raises:
        InputError: an unknown policy, or a trained agent, which nobody makes from parameters.
    """
    if is_agent(name):
        raise InputError(f"policy {name!r}: a trained agent has no parameters of a policy")
    if (found := _brought(name)) is not None:
        return found.factory, dict(found.params)
    if (composed := split(name)) is not None:
        base, transport, given = composed
        return with_transport(partial(make, base), transport, maker_of(base)[0]), given
    _expect_known(name)
    word, given = parse_name(name, "policy")
    return POLICIES[word].factory, given


def _expect_known(name: str) -> None:
    """InputError for a word of no policy, before its parameters are looked at, which may be an attempt at a path."""
    word = name.strip().partition(":")[0] if isinstance(name, str) else name
    if word == "" or word in POLICIES:
        return
    try:
        choose(word, (*POLICIES, *installed(OURS), *AGENTS), "policy")
    except InputError as error:
        raise InputError(f"{error}; one of your own: {PREFIX}FILE.py:NAME or {PREFIX}package.module:NAME") from None


def shipped() -> builtins.list[dict[str, Any]]:
    """The trained agents that come with the package, as `describe` has the others."""
    return _found(SHIPPED)()


def _found(place: str) -> Callable[..., Any]:
    """What `module:name` stands for; `.module` is one of this package."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module, __package__), name)


def describe() -> builtins.list[dict[str, Any]]:
    """One dict a policy: name, summary (one line), environments, parameters (name -> default), and knows_run_times.

    Of those that installed packages declare also `package`.
    """
    ours = [
        _row(name, entry.summary, builtins.list(entry.environments), entry.factory, entry.factory())
        for name, entry in POLICIES.items()
    ]
    return ours + [_declared_row(name, point) for name, point in installed(OURS).items()]


def _row(
    name: str, summary: str, environments: builtins.list[str], factory: Callable[..., Any], policy: Policy | None
) -> dict[str, Any]:
    return {
        "name": name,
        "summary": summary,
        "environments": environments,
        "parameters": {
            key: REQUIRED if one.default is one.empty else one.default for key, one in parameters_of(factory).items()
        },
        "knows_run_times": policy is not None and policy.knows_run_times,
    }


def parameters_of(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that a word can give to what makes a policy, by name; an object, or compiled code, has none."""
    try:
        taken = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return {}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {one.name: one for one in taken if one.kind in named and not one.name.startswith("_")}


def _declared_row(name: str, point: EntryPoint) -> dict[str, Any]:
    """The row of a policy that a package declares; where it cannot be loaded that is its summary."""
    whose = f"of the package {package_of(point)}"
    try:
        found = declared(point)
        named = _named_by(found)
    except InputError as error:
        return {"name": name, "summary": str(error), "environments": [], "parameters": {}, "knows_run_times": False}
    try:
        policy = make(name)
    except InputError:  # it has parameters that must be given
        policy = None
    environments = named or getattr(policy, "environments", ()) or ENVIRONMENTS
    about = (inspect.getdoc(found.factory) or "a policy").partition("\n")[0]
    return _row(name, f"{about} ({whose})", builtins.list(environments), found.factory, policy)
