"""`clustergym tune`: better parameters of a policy or of a training, and what they are worth on unseen seeds."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...simulator.base.names import short_name
from ..console.interrupt import leaving
from ..console.terminal import BadArgument, arguments, print_json, progress, say, typed, warnings_on_one_line
from . import options as opt
from .evaluate import Options, played
from .options import Env, Format, Json, Network, Quiet, Ray, Seed, TrustPy, cluster, option, parse_seeds, whole
from .train import configured, expect_installed, open_all

if TYPE_CHECKING:
    from ..comparing.intervals import Comparison
    from ..playing.executors import Executor
    from ..tuning.space import Parameter
    from ..tuning.subjects import PolicyParameters, Subject, TrainingParameters
    from ..tuning.trial_search import Search

TRIALS, TRAININGS = 50, 20
SEEDS, JUDGE_SEEDS = "1000-1019", "0-49"
PolicyWord = Annotated[
    str | None, option("--policy", "NAME", "Tune its parameters; those in the word, NAME:key=value, stay.")
]
Space = Annotated[
    str | None, option("--space", "NAME|FILE", "What may be chosen, in YAML; default: what comes with NAME.")
]
Trials = Annotated[
    int | None, option("--trials", "N", f"In all; default {TRIALS}, trainings {TRAININGS}.", whole(1, 1_000_000))
]
Logdir = Annotated[Path | None, option("--logdir", "DIR", "Keep the trials; the same command goes on there.")]
Processes = Annotated[
    int, option("--jobs -j", "N", "Processes: seeds, or trainings, at once.", whole(1, opt.MOST_PROCESSES))
]
Train = Annotated[bool, option("--train", None, "Tune the configuration of a training instead.")]
Seeds = Annotated[str | None, option("--seeds", "LIST", f"What trials are played on; default {SEEDS}.")]
JudgeSeeds = Annotated[str, option("--judge-seeds", "LIST", "What the best one is judged on.")]
Metric = Annotated[str | None, option("--metric", "NAME", "What is to get better; default jct_mean.")]
Workloads = Annotated[list[str] | None, option("--workload", "NAME|PATH", "As of evaluate, or of train.")]
Config = Annotated[Path | None, option("--config", "FILE", "With --train: its values, in YAML.")]
Timesteps = Annotated[int | None, option("--timesteps", "N", "With --train: of each trial.", whole(1))]
Prune = Annotated[bool, option("--prune/--no-prune", None, "Stop trials early that are clearly worse.")]


@dataclass(frozen=True)
class _Options:
    trials: int
    playing: Options
    logdir: Path | None
    judge_seeds: tuple[int, ...]
    json: bool


def tune(
    env: Env,
    policy: PolicyWord = None,
    train: Train = False,
    space: Space = None,
    trials: Trials = None,
    seeds: Seeds = None,
    judge_seeds: JudgeSeeds = JUDGE_SEEDS,
    metric: Metric = None,
    workload: Workloads = None,
    topology: opt.Topology = None,
    network: Network = None,
    set_: opt.Assignments = None,
    format: Format = None,
    oversize: opt.Oversize = "error",
    config: Config = None,
    timesteps: Timesteps = None,
    prune: Prune = True,
    logdir: Logdir = None,
    jobs: Processes = 1,
    ray: Ray = None,
    seed: Seed = 0,
    trust_sb3_zip: opt.TrustZip = False,
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
        opt.expect_own_folder(logdir, "tune", "an evaluation", "a training")
        unseen = tuple(parse_seeds(judge_seeds, "--judge-seeds"))
        executor = cluster(ray)
        places: dict[str, Any] = {"workload": workload, "topology": topology, "network": network}
        subject: Subject
        if train:
            if format is not None or oversize != "error":
                raise BadArgument("--format and --oversize go with --policy, not with --train")
            subject = _training(env, config, timesteps, places, set_ or (), logdir, prune)
            word, played_on = space or "training", _options_of(subject)
        else:
            assert policy is not None
            places["workload"] = _one(workload)
            named = {**places, "format": format, "oversize": oversize}
            setting = opt.described_setting(env, **named, assignments=set_ or ())
            tuned_on = tuple(parse_seeds(seeds or SEEDS))
            _expect_apart(tuned_on, unseen)
            subject = _policy(setting, policy, tuned_on, metric or "jct_mean", prune, jobs, executor)
            named["oversize"] = None if oversize == "error" else oversize
            word, played_on = space or _space_of(policy, setting.environment), _typed(env, named, set_ or ())
        parameters, library = _opened(word, subject)
        with arguments():
            at_once = jobs if train else 1  # of a policy the seeds are, so that the next trial knows the last
            search = partial(trial_search.Search, subject, parameters, seed=seed, at_once=at_once, library=library)
            search(None)  # its sampler and pruner
        playing = Options(jobs, executor, fresh=False, record_all=False, quiet=quiet)
        options = _Options(trials or (TRAININGS if train else TRIALS), playing, logdir, unseen, json)
        _tune(search, options, played_on)


def _expect_one(policy: str | None, train: bool, of_training: Mapping[str, Any], of_policy: Mapping[str, Any]) -> None:
    if (policy is None) != train:
        raise BadArgument("tune what? expected --policy NAME or --train" + (", not both" if train else ""))
    for name, value in (of_policy if train else of_training).items():
        if value is not None:
            raise BadArgument(f"{name} goes with {'--policy' if train else '--train'}")


def _expect_apart(tuned_on: Sequence[int], unseen: Sequence[int]) -> None:
    both = sorted(set(tuned_on) & set(unseen))
    if both:
        raise BadArgument(f"--judge-seeds: {both[0]} is among --seeds, which is tuned on; expected others")


def _one(workload: Sequence[str] | None) -> str | None:
    if workload is not None and len(workload) > 1:
        raise BadArgument("--workload is given twice; several go with --train")
    return workload[0] if workload else None


def _policy(
    setting: Any, policy: str, seeds: tuple[int, ...], metric: str, prune: bool, jobs: int, executor: Executor | None
) -> PolicyParameters:
    from ..tuning.subjects import PolicyParameters

    if len(policy.split()) != 1:
        raise BadArgument(f"--policy {policy!r}: expected one policy")
    terms = (setting.config.semantics.describe(), setting.config.estimates.describe())
    opt.chosen_policies([shlex.quote(policy)], setting.environment, *terms)
    opt.open_setting(setting, seeds[0])
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
    from ..tuning.subjects import TrainingParameters

    expect_installed()
    if logdir is None:
        raise BadArgument("--train makes a folder a trial; give --logdir DIR")
    given = {} if timesteps is None else {"timesteps": timesteps}
    checked = configured(env, config, given, {key: value for key, value in places.items() if value}, assignments)
    open_all(checked)
    return TrainingParameters(checked.model_dump(mode="json"), logdir, prune)


def _space_of(policy: str, env_id: str) -> str:
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


def _opened(word: str, subject: Subject) -> tuple[tuple[Parameter, ...], Mapping[str, Any]]:
    from ..tuning.space import parse, read_space
    from ..tuning.trial_search import library_of

    with arguments():
        said, source = read_space(word)
        library = library_of(said.pop("optuna", {}), source)
        return parse(said, source, subject), library


def _tune(opened: Callable[[Path | None], Search], options: _Options, setting_words: str) -> None:
    from ..playing.executors import count_of
    from ..storing.command_log import recorded
    from ..tuning.report import document, print_all
    from ..tuning.trial_search import alone

    with ExitStack() as meanwhile:
        kept = "nothing is kept. With --logdir DIR the same command goes on where it was stopped"
        if options.logdir is not None:
            options.logdir.mkdir(parents=True, exist_ok=True)
            meanwhile.enter_context(alone(options.logdir))
            count = count_of(options.playing.executor, options.playing.processes)
            meanwhile.enter_context(recorded(options.logdir, count))
            kept = f"the trials that were over are kept in {options.logdir}. Go on with: {typed.get()}"
        meanwhile.enter_context(leaving(f"interrupted; {kept}"))
        search = opened(options.logdir)
        search.begin()
        _play(search, options)
        judged = _judged(search, options)
    if options.json:
        print_json(document(search, judged, options.judge_seeds))
    else:
        print_all(search, judged, options.judge_seeds, setting_words)


def _play(search: Search, options: _Options) -> None:
    from ..tuning.report import write_trials

    missing, quiet = search.missing(options.trials), options.playing.quiet
    with progress("tuning", options.trials, quiet) as show:
        done = options.trials - len(missing)
        show(done)
        best = search.ranked[:1]
        for number, _ in enumerate(search.run(missing, lambda more: show(done + more)), start=1):
            show(done + number)
            if options.logdir is not None:
                write_trials(search, options.logdir)
            before, best = best, search.ranked[:1]
            if not quiet and before and before[0].number != best[0].number:
                say(f"trial {best[0].number}: {best[0].value:.4f} {search.subject.word(best[0])} (best so far)")


def _judged(search: Search, options: _Options) -> dict[str, Comparison]:
    """By scenario, the best trial beside the defaults on unseen seeds; nothing if the defaults are the best."""
    from ..comparing.intervals import against
    from ..tuning.subjects import VALUES, TrainingParameters

    subject, best, found = search.subject, search.ranked[0], {}
    if best.number == 0:
        return {}
    if isinstance(subject, TrainingParameters):
        subject.write_best(best.user_attrs[VALUES])
    words = [subject.word(trial) for trial in (search.ended[0], best)]
    for name, setting in subject.settings().items():
        folder = None if options.logdir is None else options.logdir / "judged" / name
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        runs, _ = played(setting, words, list(options.judge_seeds), folder, options.playing)
        found[name] = against(runs, words[0], subject.metric)[words[1]]
    return found


def _options_of(subject: TrainingParameters) -> str:
    """ENV and the options of `evaluate` for the first validation scenario."""
    first = subject.config.validation[0]
    places = {"topology": first.topology, "network": first.network, "workload": first.workloads[0]}
    return _typed(short_name(subject.config.environment), places, ())


def _typed(env: str, options: Mapping[str, str | None], assignments: Sequence[str]) -> str:
    words = [(f"--{name}", value) for name, value in options.items() if value] + [("--set", one) for one in assignments]
    return shlex.join([env, *(part for pair in words for part in pair)])
