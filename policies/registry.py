"""Policies by name: their environments, parameters and builders."""

from __future__ import annotations

import builtins
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any

from ..simulator.base.capabilities import environments, environments_with, resolve
from ..simulator.base.errors import InputError
from ..simulator.base.names import bind, choose, parse_name, short_name
from ..simulator.base.said_once import say_once
from ..simulator.files.user_code import PREFIX, UserObject, is_user_code, own
from ..simulator.jobs.estimates import Estimates
from .base import Policy
from .own import as_player, by_word, declared, environments_in, installed, package_of
from .transports import TRANSPORTS, with_transport

REQUIRED = "(must be given)"  # in a list of parameters, in place of a default


@dataclass(frozen=True)
class Entry:
    """One policy."""

    builder: str | Callable[..., Policy]  # or `.module:name` in this package, imported when needed
    summary: str  # one line
    requires: str = "start"  # decisions and features (simulator/base/capabilities.py); it plays where they are offered
    first: tuple[str, ...] = ()  # first arguments of the builder, which are no parameters of the policy
    transport: str = ""  # how its jobs share full links (transports.py); empty: fairly
    only_named: bool = False  # it may take minutes an episode, or asks for a log: it plays only where it is named

    @property
    def environments(self) -> tuple[str, ...]:
        """Ids of the environments that offer what it requires."""
        return environments_with(self.requires)

    @property
    def factory(self) -> Callable[..., Policy]:
        """The builder, bound to `first` and the transport."""
        builder = _found(self.builder) if isinstance(self.builder, str) else self.builder
        scheduler = partial(builder, *self.first) if self.first else builder
        return with_transport(scheduler, self.transport, scheduler) if self.transport else scheduler


SUMMARIES = {
    "random": "a random order and random GPUs, drawn from the seed: the baseline that everything should beat",
    "random-start": "in regions: while there are legal starts one of them, each as likely, also in place of lower "
    "priorities",
    "greedy": "shortest first; a job waits for a better tier if it ends sooner so; among groups the largest sum of "
    "rates",
    "fifo": "first in, first out, by arrival; head=reserve (EASY) and head=conservative: with backfilling",
    "sjf": "shortest job first, by isolated run time; running jobs are left alone; heads as fifo",
    "edf": "earliest deadline first, jobs without one last; running jobs are left alone",
    "replay": "as it was: each job starts when its log says that it started (start_s), on its machines where known",
    "srtf": "shortest remaining time first: made anew at each event, preemptive",
    "srsf": "shortest remaining service (GPUs x time left) first, preemptive",
    "las": "two-dimensional least attained service: queues by GPUs x time held, preemptive",
    "tiresias": "Tiresias (NSDI'19): discretised 2D-LAS; models with skewed tensors are consolidated",
    "sjf-ffs": "shortest job first; what finds too few free GPUs shares the first that hold one job",
    "sjf-bsbf": "SJF-BSBF (IWQoS'24): shortest job first; shares GPUs where the pair ends sooner so",
    "pollux": "Pollux (OSDI'21): searches for the most goodput, shared fairly, every round; adapt=off: sizes as asked",
    "tiresias-rounds": "Tiresias as Pollux's simulator plays it: two queues, looked at every round",
    "themis": "Themis (NSDI'20): GPUs are leased, and auctioned to those jobs that are farthest from fair",
    "themis+cassini": "CASSINI (NSDI'24) on Themis: of its placements the most compatible, and time-shifts for jobs "
    "that share links",
    "themis+crux": "Themis; on full links Crux (SIGCOMM'24) lets the jobs go first for whose bytes most computing "
    "waits",
    "themis+mltcp": "Themis; on full links MLTCP (HotNets'24) gives more to flows that have sent more of their "
    "iteration",
    "pollux+cassini": "CASSINI on Pollux, jobs of the size that they ask",
    "dally+cassini": "CASSINI on Dally",
    "sjf-bsbf+cassini": "CASSINI on SJF-BSBF",
    "least-shared": "Themis; of its placements the one with the fewest shared links, no job shifted",
    "ideal": "Themis where every job has all links to itself: the bound for the others",
    "best-rotations": "of Themis' placements and all rotations those that are best when they are played: a nearer "
    "bound, and slow",
    "lookahead": "of Themis' placements, or none, the one with which jobs are through soonest, by playing each one "
    "on; slow",
    "mast": "MAST (OSDI'24): one queue by priority, quota and credit; each region's best plan, the best of all wins",
    "federated": "a workload is bound to the region with the lowest demand over supply of its GPU type when it arrives",
    "global": "MAST that places several workloads jointly: Table 1's ideal",
    "scope": "any cell of paper mast's Table 1: scopes of the queue and of the allocation",
    "bring": "a scheduler whose waiting workloads have their tables brought to regions with units free for them",
    "static": "V0 of paper mast: tables stay where users put them; copies for disasters",
    "tetris-v1": "Tetris (OSDI'24), V1: homes by hill climbing, overload no worse than underload",
    "tetris-v2": "Tetris, V2: overload costs more, storage is balanced too, hot tables are spread",
    "milp": "the best homes by mixed-integer programming, replicas as tetris-v2",
    "everywhere": "in regions: a scheduler with every table in every region, free, from time 0; it bounds the value of "
    "data only",
    "gandiva": "Gandiva (OSDI'18) as Dally's authors read it: by affinity, moves to better tiers; slicing= adds "
    "time slices",
    "dally": "Dally (Big Data'25): delay timers, tuned by demand and tier; most slowed down first",
    "dally-manual": "Dally with fixed timers: 12 h for a machine, 24 h in all for a rack",
    "dally-nowait": "Dally that never waits for a better tier",
    "dally-consolidated": "Dally that waits for the best tier as long as it takes",
    "isolated": "one job a group, on as many machines as it needs: Harmony's first baseline",
    "naive-colocation": "jobs share equal partitions as they come, and may run out of memory: its second baseline",
    "harmony": "Harmony (ICDCS'21): groups in which COMP and COMM keep CPU and network busy, regrouped where it pays",
    "oracle": "the best utilisation at every event: exact up to 10 jobs, above by local search",
    "muri": "Muri (SIGCOMM'22), by analogy: jobs whose stages interleave, by matchings",
}
# Builder and further fields of `Entry`. Orders that stop jobs by time left or service are meant for exclusive GPUs;
# Tiresias is also a baseline of papers that share them.
_BUILT: dict[str, tuple[Any, ...]] = {
    "random": (".random.random_policy:random_policy", "start | plan | region, bring | group"),
    "random-start": (".random.random_starts:random_starts", "region, preempt"),
    "greedy": (".greedy.greedy:greedy", "start, make room | region, preempt | group"),
    "fifo": (".ordered:backfilled", "start", ("fifo",)),
    "sjf": (".greedy.shortest:shortest_job", "start | region"),
    "edf": (".ordered:ordered", "start", ("edf",)),
    "replay": (".replay:Replay", "start", (), "", True),
    "srtf": (".greedy.shortest:remaining", "start, preempt; exclusive | region, preempt", ("srtf",)),
    "srsf": (".greedy.shortest:remaining", "start, preempt; exclusive | region, preempt", ("srsf",)),
    "las": (".ordered:las", "start, preempt; exclusive"),
    "tiresias": (".tiresias:tiresias", "start, preempt"),
    "sjf-ffs": (".bsbf:shared", "start, share", ("sjf-ffs", "first-fit")),
    "sjf-bsbf": (".bsbf:shared", "start, share", ("sjf-bsbf", "best-benefit")),
    "pollux": (".pollux.pollux:Pollux", "start, preempt, resize; elastic | plan"),
    "tiresias-rounds": (".tiresias:TiresiasRounds", "start, preempt; elastic"),
    "themis": (".themis:Themis", "plan"),
    "themis+cassini": (".cassini.cassini_schedulers:themis_cassini", "plan, shift; links"),
    "themis+crux": (".themis:Themis", "plan; links", (), "crux"),
    "themis+mltcp": (".themis:Themis", "plan; links", (), "mltcp"),
    "pollux+cassini": (".cassini.cassini_schedulers:pollux_cassini", "plan, shift; links"),
    "dally+cassini": (".cassini.cassini_schedulers:dally_cassini", "plan, shift; links"),
    "sjf-bsbf+cassini": (".cassini.cassini_schedulers:bsbf_cassini", "plan, shift; links"),
    "least-shared": (".themis:LeastShared", "plan; links"),
    "ideal": (".themis:ideal", "plan; links"),
    "best-rotations": (".cassini.best_rotations:BestRotations", "plan, shift; links", (), "", True),
    "lookahead": (".cassini.lookahead:Lookahead", "plan; links", (), "", True),
    "mast": (".mast.mast:scoped_scheduler", "region, preempt", ("mast", "global", "region")),
    "federated": (".mast.mast:scoped_scheduler", "region, preempt", ("federated", "region", "region")),
    "global": (".mast.mast:scoped_scheduler", "region, preempt", ("global", "global", "global")),
    "scope": (".mast.mast:scoped_scheduler", "region, preempt", ("scope",)),
    "bring": (".mast.bringing:bringing", "region, bring"),
    "static": (".tetris.tetris:static", "tables"),
    "tetris-v1": (".tetris.tetris:tetris_v1", "tables"),
    "tetris-v2": (".tetris.tetris:tetris_v2", "tables"),
    "milp": (".tetris.tetris:milp", "tables"),
    "everywhere": (".two_paths:Everywhere", "region, preempt | tables"),
    "gandiva": (".gandiva.gandiva:gandiva", "start, migrate | start, share"),
    "dally": (".dally:dally", "start, hold, preempt, migrate"),
    "dally-manual": (".dally:dally_manual", "start, hold, preempt, migrate"),
    "dally-nowait": (".dally:dally_nowait", "start, hold, preempt, migrate"),
    "dally-consolidated": (".dally:dally_consolidated", "start, hold, preempt, migrate"),
    "isolated": (".harmony.group_baselines:Isolated", "group"),
    "naive-colocation": (".harmony.group_baselines:Naive", "group"),
    "harmony": (".harmony.harmony:Harmony", "group"),
    "oracle": (".harmony.oracle:Oracle", "group"),
    "muri": (".harmony.muri:Muri", "group"),
}
POLICIES = {name: Entry(builder, SUMMARIES[name], *rest) for name, (builder, *rest) in _BUILT.items()}

# Words of trained agents, and what opens them; `agents` is not imported from here.
AGENTS = dict.fromkeys(("ppo", "maskable-ppo", "sb3", "zoo"), "clustergym.agents.playing.agent_words:open_agent")
SHIPPED = "clustergym.agents.shipped:describe_shipped"
OURS = frozenset((*POLICIES, *AGENTS, PREFIX.removesuffix(":")))  # names that packages cannot take


def list(env_id: str | None = None) -> builtins.list[str]:
    """Names of all policies, or of those that play in an environment (`clustergym/Delay-v0`, or short `Delay`).

    Policies of installed packages come last (own.py); in an environment only those that name it, or require what it
    offers. `shipped` lists the trained agents that come with the package.

    Args:
        env_id: the environment; None: all.

    Returns:
        The names, in the order of the registry.
    """
    others = installed(OURS)
    if env_id is None:
        return [*POLICIES, *others]
    full = resolve(short_name(str(env_id)))
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

    `ppo:PATH`, `maskable-ppo:PATH`, `sb3:FILE.zip` and `zoo:ENV` are trained agents; `params` are then those of
    `open_agent` (agents/playing/agent_words.py). `py:FILE.py:NAME[,key=value...]` and `py:package.module:NAME` are a
    user's own (own.py).

    Args:
        name: the name, or the whole word.
        params: override parameters in the word.

    Returns:
        The policy: play it by `Simulator.run(policy)` or `policy.act(env)`.

    Raises:
        InputError: an unknown name or parameter, a value out of range, or an agent that cannot be loaded.
        MissingExtra: a trained agent without the extra [agents].
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
    """The policy in an environment (policy_by_view.py) of a word as of `make`, or of an object: a copy plays."""
    player = as_player(source)
    policy = make(player) if isinstance(player, str) else player.made()
    return policy if env_id is None else policy.playing_in(env_id)


def able(env_id: str, estimates: str = "exact", plain: bool = False) -> builtins.list[str]:
    """Policies of `list(env_id)` that can play with limited knowledge, without those that play only where named.

    `estimates`: of run times; without any, policies that need them are left out. `raw`: models are unknown and jobs
    not elastic: policies of elastic jobs are left out.
    """
    known = Estimates.load(estimates)
    quick = [word for word in list(env_id) if word not in POLICIES or not POLICIES[word].only_named]
    policies = {word: make_for(word, env_id) for word in quick}
    return [
        word
        for word, policy in policies.items()
        if not (known.hides and policy.knows_run_times) and not (plain and policy.elastic)
    ]


def split(name: str) -> tuple[str, str, dict[str, str]] | None:
    """Scheduler, transport and parameters of a word such as `dally+crux:levels=4`, unless the registry lists it."""
    word = name.strip().partition(":")[0] if isinstance(name, str) else ""
    base, _, transport = word.rpartition("+")
    if word in POLICIES or not base or transport not in TRANSPORTS:
        return None
    return base, transport, parse_name(name, "policy")[1]


def is_agent(name: str) -> bool:
    """Whether a word names a trained agent."""
    return isinstance(name, str) and name.strip().partition(":")[0] in AGENTS


def environments_of(name: str, env_id: str | None = None) -> tuple[str, ...]:
    """Ids of the environments that a policy's word plays in; raises as `make`; `env_id`: where a name is looked for."""
    if is_agent(name):
        return make(name).environments  # type: ignore[attr-defined]
    if (found := _brought(name)) is not None:
        return _named_by(found) or getattr(make(name), "environments", ()) or tuple(environments())
    if (composed := split(name)) is not None:
        environments_of(composed[0])  # raises for an unknown scheduler
        return environments_with("plan; links")
    _expect_known(name, env_id)
    return POLICIES[parse_name(name, "policy")[0]].environments


def _brought(name: str) -> UserObject | None:
    """The object of a user's word `py:...` or of a package's entry point, or None."""
    if is_user_code(name):
        return own(name, "policy")
    word, _, rest = name.strip().partition(":") if isinstance(name, str) else ("", "", "")
    if word in POLICIES or word not in (others := installed(OURS)):
        return None
    return declared(others[word], rest)


def _named_by(found: UserObject) -> tuple[str, ...]:
    named = environments_in(found.factory, str(found))
    for env_id in named:
        choose(env_id, environments(), f"environment of {found}:")
    return named


def spelt(name: str, params: Mapping[str, Any]) -> str:
    """A word with more parameters."""
    joint = "," if is_user_code(name) or ":" in name else ":"
    return name + (joint if params else "") + ",".join(f"{key}={value}" for key, value in params.items())


def maker_of(name: str) -> tuple[Callable[..., Any], dict[str, str]]:
    """The maker of a word's policy, and its parameters, as text. Raises InputError for unknown words and agents."""
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


def _expect_known(name: str, env_id: str | None = None) -> None:
    """Raise InputError for an unknown policy, before its parameters, which may be a path, are looked at.

    `env_id`: the error lists the policies of this environment; None: all.
    """
    word = name.strip().partition(":")[0] if isinstance(name, str) else name
    if word == "" or word in POLICIES:
        return
    try:
        choose(word, (*list(env_id), *AGENTS), "policy" if env_id is None else f"policy of {env_id}")
    except InputError as error:
        raise InputError(f"{error}; one of your own: {PREFIX}FILE.py:NAME or {PREFIX}package.module:NAME") from None


def shipped() -> builtins.list[dict[str, Any]]:
    """The trained agents that come with the package, as rows of `describe`."""
    return _found(SHIPPED)()


def _found(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module, __package__), name)


def describe(env_id: str | None = None) -> builtins.list[dict[str, Any]]:
    """One dict a policy: name, summary (one line), environments, parameters (name -> default), knows_run_times.

    `env_id`: only policies that play in this environment, and only parameters that mean something there.
    """
    env_id = None if env_id is None else resolve(env_id)
    ours = [
        _row(name, entry.summary, builtins.list(entry.environments), entry.factory, entry.factory(), env_id)
        for name, entry in POLICIES.items()
    ]
    rows = ours + [_declared_row(name, point) for name, point in installed(OURS).items()]
    return [row for row in rows if env_id is None or env_id in row["environments"]]


def _row(
    name: str,
    summary: str,
    where: builtins.list[str],
    factory: Callable[..., Any],
    policy: Policy | None,
    env_id: str | None = None,
) -> dict[str, Any]:
    acts_in = {} if policy is None or env_id is None else policy.acts_in
    offered = frozenset() if env_id is None else environments()[env_id].decisions
    return {
        "name": name,
        "summary": summary,
        "environments": where,
        "parameters": {
            key: REQUIRED if one.default is one.empty else one.default
            for key, one in parameters_of(factory).items()
            if key not in acts_in or not offered.isdisjoint(acts_in[key])
        },
        "knows_run_times": policy is not None and policy.knows_run_times,
    }


def parameters_of(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Parameters by name that a word can give to a maker; none for an object or compiled code."""
    try:
        taken = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return {}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {one.name: one for one in taken if one.kind in named and not one.name.startswith("_")}


def _declared_row(name: str, point: EntryPoint) -> dict[str, Any]:
    """The row of a package's policy; the summary is the error if it cannot be loaded."""
    whose = f"of the package {package_of(point)}"
    try:
        found = declared(point)
        named = _named_by(found)
    except InputError as error:
        return {"name": name, "summary": str(error), "environments": [], "parameters": {}, "knows_run_times": False}
    try:
        policy = make(name)
    except InputError:  # required parameters
        policy = None
    where = named or getattr(policy, "environments", ()) or tuple(environments())
    about = (inspect.getdoc(found.factory) or "a policy").partition("\n")[0]
    return _row(name, f"{about} ({whose})", builtins.list(where), found.factory, policy)
