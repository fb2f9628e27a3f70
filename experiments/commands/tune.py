"""`clustergym tune`: better parameters of a policy or of a training, and what they are worth on unseen seeds."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...simulator.base.names import short_name
from ..console.interrupt import leaving
from ..console.terminal import BadArgument, arguments, out, print_json, progress, say, typed, warnings_on_one_line
from .evaluate import MOST_PROCESSES, Assignments, parse_seeds
from .options import (
    Format,
    Json,
    Network,
    Oversize,
    Quiet,
    Ray,
    Seed,
    Topology,
    TrustPy,
    TrustZip,
    chosen_policies,
    cluster,
    described_setting,
    open_setting,
    whole,
)
from .train import configured, expect_installed, open_all

if TYPE_CHECKING:
    from ..playing.executors import Executor
    from ..tuning.judging import Judged
    from ..tuning.of_policy import PolicyParameters
    from ..tuning.of_training import TrainingParameters
    from ..tuning.space import Parameter
    from ..tuning.trial_search import Search, Trial

TRIALS, TRAININGS = 50, 20
SEEDS, JUDGE_SEEDS = "1000-1019", "0-49"
SHOWN = 5  # trials in the table, beside the defaults

PolicyWord = Annotated[
    str | None,
    typer.Option("--policy", metavar="NAME", help="Tune its parameters; those in the word, NAME:key=value, stay."),
]
Space = Annotated[
    str | None,
    typer.Option("--space", metavar="NAME|FILE", help="What may be chosen, in YAML; default: what comes with NAME."),
]
Trials = Annotated[
    int | None,
    typer.Option(
        "--trials", metavar="N", parser=whole(1, 1_000_000), help=f"In all; default {TRIALS}, trainings {TRAININGS}."
    ),
]
Logdir = Annotated[
    Path | None, typer.Option("--logdir", metavar="DIR", help="Keep the trials; the same command goes on there.")
]
Processes = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", metavar="N", parser=whole(1, MOST_PROCESSES), help="Processes: seeds, or trainings, at once."
    ),
]
Train = Annotated[bool, typer.Option("--train", help="Tune the configuration of a training instead.")]
Seeds = Annotated[
    str | None, typer.Option("--seeds", metavar="LIST", help=f"What trials are played on; default {SEEDS}.")
]
JudgeSeeds = Annotated[str, typer.Option("--judge-seeds", metavar="LIST", help="What the best one is judged on.")]
Metric = Annotated[
    str | None, typer.Option("--metric", metavar="NAME", help="What is to get better; default jct_mean.")
]
Workloads = Annotated[
    list[str] | None, typer.Option("--workload", metavar="NAME|PATH", help="As of evaluate, or of train.")
]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="With --train: its values, in YAML.")]
Timesteps = Annotated[
    int | None, typer.Option("--timesteps", metavar="N", parser=whole(1), help="With --train: of each trial.")
]
Prune = Annotated[bool, typer.Option("--prune/--no-prune", help="Stop trials early that are clearly worse.")]


@dataclass(frozen=True)
class _Manner:
    """How to search: what may be chosen, how often, where, where it is kept, how it is said."""

    space: tuple[Parameter, ...]
    source: str
    trials: int
    seed: int
    processes: int
    executor: Executor | None
    logdir: Path | None
    judge_seeds: tuple[int, ...]
    json: bool
    quiet: bool


def tune(
    env: Annotated[str, typer.Argument(metavar="ENV", help="Environment: its id or short name (Delay).")],
    policy: PolicyWord = None,
    train: Train = False,
    space: Space = None,
    trials: Trials = None,
    seeds: Seeds = None,
    judge_seeds: JudgeSeeds = JUDGE_SEEDS,
    metric: Metric = None,
    workload: Workloads = None,
    topology: Topology = None,
    network: Network = None,
    set_: Assignments = None,
    format: Format = None,
    oversize: Oversize = "error",
    config: Config = None,
    timesteps: Timesteps = None,
    prune: Prune = True,
    logdir: Logdir = None,
    jobs: Processes = 1,
    ray: Ray = None,
    seed: Seed = 0,
    trust_sb3_zip: TrustZip = False,
    trust_py: TrustPy = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for better parameters of a policy, or of a training, and judge the best on seeds that none was tuned on.

    The first trial has the defaults. With --logdir trials are kept: the same command goes on where it was stopped.
    """
    from ..tuning import trial_search

    trial_search.expect_installed()
    with warnings_on_one_line(quiet):
        of_training = {"--config": config, "--timesteps": timesteps}
        _expect_one(policy, train, of_training, {"--seeds": seeds, "--metric": metric, "--ray": ray})
        _expect_free(logdir)
        unseen = tuple(parse_seeds(judge_seeds, "--judge-seeds"))
        executor = cluster(ray, quiet)
        places = {"workload": workload, "topology": topology, "network": network}
        subject: PolicyParameters | TrainingParameters
        if train:
            if format is not None or oversize != "error":
                raise BadArgument("--format and --oversize go with --policy, not with --train")
            subject = _training(env, config, timesteps, places, set_ or (), logdir, prune)
            word = space or "training"
        else:
            assert policy is not None
            named = {**places, "workload": _one(workload), "format": format, "oversize": oversize}
            setting = described_setting(env, **named, assignments=set_ or ())  # type: ignore[arg-type]
            tuned_on = tuple(parse_seeds(seeds or SEEDS))
            _expect_apart(tuned_on, unseen)
            subject = _policy(setting, policy, tuned_on, metric or "jct_mean", prune, jobs, executor)
            word = space or _space_of(policy, setting.environment)
        parameters, source = _opened(word, subject)
        count = trials or (TRAININGS if train else TRIALS)
        manner = _Manner(parameters, source, count, seed, jobs, executor, logdir, unseen, json, quiet)
        _tune(subject, manner, _command(env, places, set_ or (), format, oversize))


def _expect_one(policy: str | None, train: bool, of_training: Mapping[str, Any], of_policy: Mapping[str, Any]) -> None:
    if (policy is None) != train:
        raise BadArgument("tune what? expected --policy NAME or --train" + (", not both" if train else ""))
    for name, value in (of_policy if train else of_training).items():
        if value is not None:
            raise BadArgument(f"{name} goes with {'--policy' if train else '--train'}")


def _expect_free(logdir: Path | None) -> None:
    from ..learning.training import CONFIG
    from ..storing import evaluation_file

    for name, what in ((evaluation_file.NAME, "an evaluation"), (CONFIG, "a training")):
        if logdir is not None and (logdir / name).exists():
            raise BadArgument(f"--logdir {logdir}: {what} is there; tune into a folder of its own")


def _expect_apart(tuned_on: Sequence[int], unseen: Sequence[int]) -> None:
    both = sorted(set(tuned_on) & set(unseen))
    if both:
        raise BadArgument(f"--judge-seeds: {both[0]} is among --seeds, which is tuned on; expected others")


def _one(workload: Sequence[str] | None) -> str | None:
    if workload is not None and len(workload) > 1:
        raise BadArgument("--workload is given twice; several go with --train")
    return workload[0] if workload else None


def _policy(
    setting: Any,
    policy: str,
    seeds: tuple[int, ...],
    metric: str,
    prune: bool,
    jobs: int,
    executor: Executor | None,
) -> PolicyParameters:
    from ..tuning.of_policy import PolicyParameters

    if len(policy.split()) != 1:
        raise BadArgument(f"--policy {policy!r}: expected one policy")
    chosen_policies(
        [shlex.quote(policy)],
        setting.environment,
        setting.config.semantics.describe(),
        setting.config.estimates.describe(),
    )
    open_setting(setting, seeds[0])
    subject = PolicyParameters(setting, policy, seeds, metric, prune, jobs, executor)
    with arguments():
        _ = subject.fixed
    return subject


def _training(
    env: str,
    config: Path | None,
    timesteps: int | None,
    places: Mapping[str, Any],
    assignments: Sequence[str],
    logdir: Path | None,
    prune: bool,
) -> TrainingParameters:
    from ..tuning.of_training import TrainingParameters

    expect_installed()
    if logdir is None:
        raise BadArgument("--train makes a folder a trial; give --logdir DIR")
    given = {} if timesteps is None else {"timesteps": timesteps}
    checked = configured(env, config, given, {key: value for key, value in places.items() if value}, assignments)
    open_all(checked)
    return TrainingParameters(checked.model_dump(mode="json"), logdir, prune)


def _space_of(policy: str, env_id: str) -> str:
    """The name of the space that comes with a policy."""
    from ...policies import maker_of
    from ..tuning.space import shipped

    name = policy.partition(":")[0]
    short = short_name(env_id).lower()
    for word in (f"{name}-{short}", name):
        if word in shipped():
            return word
    taken = [key for key in inspect.signature(maker_of(policy)[0]).parameters if not key.startswith("_")]
    raise BadArgument(
        f"--policy {policy}: no space comes with it; give --space FILE with ranges of: {', '.join(taken) or 'nothing'}"
    )


def _opened(word: str, subject: PolicyParameters | TrainingParameters) -> tuple[tuple[Parameter, ...], str]:
    """The space, read and checked to its ends."""
    from ..tuning.space import check_ends, parse, read_space

    with arguments():
        said, source = read_space(word)
        found = parse(said, source, subject.kind_of, subject.fixed)
        check_ends(found, subject.check, subject.fixed, source)
    return found, source


def _tune(subject: PolicyParameters | TrainingParameters, manner: _Manner, setting_words: str) -> None:
    from ..playing.executors import count_of
    from ..storing.command_log import recorded
    from ..tuning.trial_search import Search, alone

    if manner.logdir is None:
        search = Search(subject, manner.space, None, manner.seed)
        with leaving("interrupted; nothing is kept. With --logdir DIR the same command goes on where it was stopped"):
            search.begin()
            trials = _played(search, manner)
            judged = _judged(subject, search, trials, manner)
    else:
        manner.logdir.mkdir(parents=True, exist_ok=True)
        kept = f"interrupted; the trials that were over are kept in {manner.logdir}. Go on with: {typed.get()}"
        with alone(manner.logdir), recorded(manner.logdir, count_of(manner.executor, manner.processes)), leaving(kept):
            search = Search(subject, manner.space, manner.logdir, manner.seed, _at_once(subject, manner))
            search.begin()
            trials = _played(search, manner)
            judged = _judged(subject, search, trials, manner)
    from ..tuning.report import Found, document, print_all

    found = Found(search, trials, judged, manner.judge_seeds, setting_words)
    if manner.json:
        print_json(document(found))
    else:
        print_all(out(), found)


def _at_once(subject: Any, manner: _Manner) -> int:
    """How many trials are played at the same time: of a policy its seeds are, so that the next trial knows the last."""
    return 1 if hasattr(subject, "processes") else manner.processes


def _played(search: Search, manner: _Manner) -> list[Trial]:
    """Play what is missing; all trials that have ended."""
    from ..tuning import trials as table

    count = manner.trials
    missing = search.missing(count)
    with progress("tuning", count, manner.quiet) as show:
        done = count - len(missing)
        show(done)
        best = search.best_of(search.finished())
        for number, trial in enumerate(search.run(missing, partial(_tell, show, done)), start=1):
            show(done + number)
            if manner.logdir is not None:
                table.write(search.finished(), manner.space, manner.logdir)
            now = search.best_of(search.finished())
            if not manner.quiet and now is not None and best is not None and now.place != best.place:
                say(f"trial {trial.place}: {now.outcome.value:.4f} {now.outcome.word} (best so far)")
            best = now
    return search.finished()


def _tell(show: Callable[[float], None], done: int, more: float) -> None:
    show(done + more)


def _judged(
    subject: PolicyParameters | TrainingParameters, search: Search, trials: Sequence[Trial], manner: _Manner
) -> list[Judged]:
    """The best trial beside the defaults; nothing if these are the best."""
    from ..tuning.judging import judge
    from ..tuning.of_policy import PolicyParameters

    best = search.best_of(trials)
    if best is None or best.place == 0:
        return []
    if isinstance(subject, PolicyParameters):
        settings, words, metric = {"": subject.setting}, (subject.policy, best.outcome.word), subject.metric
    else:
        subject.write_best(best.values)
        settings, words, metric = subject.settings(), (subject.agent(0), subject.agent(best.place)), "jct_mean"
    total = 2 * len(manner.judge_seeds) * len(settings)
    with progress("judging", total, manner.quiet) as show:
        return judge(
            settings,
            *words,
            manner.judge_seeds,
            metric=metric,
            processes=manner.processes,
            executor=manner.executor,
            folder=manner.logdir,
            progress=show,
        )


def _command(env: str, places: Mapping[str, Any], assignments: Sequence[str], format: str | None, oversize: str) -> str:
    """ENV and the options that say what is played on, as they were typed."""
    words = [env]
    for name, value in places.items():
        for word in value if isinstance(value, list) else [value] if value else []:
            words += [f"--{name}", word]
    for text in assignments:
        words += ["--set", text]
    words += ["--format", format] if format else []
    words += ["--oversize", oversize] if oversize != "error" else []
    return shlex.join(words)
