"""`clustergym train`: an agent, its checkpoints, and its curves beside the heuristics'."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...simulator.base.names import short_name
from ..console import terminal
from ..console.interrupt import leaving
from ..console.terminal import BadArgument, arguments, out, print_json, print_lines, progress, say, typed
from ..playing.executors import Executor, Processes, count_of
from . import options as opt
from .options import Json, Network, Quiet, Ray, Topology, TrustPy, argument, cluster, option, pairs, parse_seeds, whole

if TYPE_CHECKING:
    from ...agents.training.config import Config

CHECKPOINT = "checkpoint"
Values = dict[str, Any]
OF_CLONES = ("imitation_steps", "imitation_epochs", "imitation_own", "soften")  # mean nothing without imitation
_TIMESTEPS = "Decisions to train for at most, in all; with --resume more than before."
_START = "Begin with the weights of an agent: maskable-ppo:DIR/best, zoo:ENV."
_VARIANCE = "Rewards against the reference policy's, or advantages against replicas of the workload."
_IMITATE = "Clone this policy before learning; by default a good rule; or none."
_SEEDS = "A training for each, in DIR/seed=N; the same command goes on where it stopped."
Variance = Annotated[str | None, option("--variance", "reference|group|none", _VARIANCE)]
Net = Annotated[str | None, option("--net", "candidates|mlp|py:FILE.py:NAME", "The network; your own by py:.")]
Imitated = Annotated[str | None, option("--imitate", "POLICY|none", _IMITATE)]
Seeds = Annotated[str | None, option("--seeds", "LIST", _SEEDS)]
Jobs = Annotated[int, option("--jobs -j", "N", "With --seeds: trainings at once.", whole(1, opt.MOST_PROCESSES))]


def train(
    env: Annotated[str, argument("ENV", "Environment: its id or short name (Delay); or Delay-preemptive.")],
    logdir: Annotated[Path, option("--logdir", "DIR", "Where agent, checkpoint and TensorBoard logs go.")],
    timesteps: Annotated[int | None, option("--timesteps", "N", _TIMESTEPS, whole(1))] = None,
    algo: Annotated[str | None, option("--algo", "maskable-ppo|ppo", "The learner.")] = None,
    net: Net = None,
    imitate: Imitated = None,
    start_from: Annotated[str | None, option("--start-from", "POLICY", _START)] = None,
    variance: Variance = None,
    workload: Annotated[
        list[str] | None, option("--workload", "NAME|PATH", "Train on these instead of the mix; repeatable.")
    ] = None,
    topology: Topology = None,
    network: Network = None,
    config: Annotated[Path | None, option("--config", "FILE", "Values in YAML, in place of the defaults.")] = None,
    set_: Annotated[
        list[str] | None, option("--set", "KEY=VALUE...", "Any value of the configuration: gamma=0.99, env.slots=32.")
    ] = None,
    seed: Annotated[int | None, option("--seed", "N", "Seed of everything.", whole(0, 2**31 - 1))] = None,
    resume: Annotated[bool, option("--resume", None, "Go on from the checkpoint in DIR.")] = False,
    seeds: Seeds = None,
    jobs: Jobs = 1,
    ray: Ray = None,
    trust_py: TrustPy = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an agent, and keep the best one that it was on held-out workloads."""
    expect_installed()
    _expect_fitting(seeds, ray, jobs, seed, resume)
    options = {"timesteps": timesteps, "algo": algo, "net": net, "imitate": imitate, "variance": variance, "seed": seed}
    given = {key: value for key, value in (options | {"start_from": start_from}).items() if value is not None}
    changed = {k: v for k, v in (("workload", workload), ("topology", topology), ("network", network)) if v}
    with terminal.warnings_on_one_line(quiet):
        if resume:
            beside = [*given, *changed, *(name for name, value in (("config", config), ("set", set_)) if value)]
            beside = ["--" + key.replace("_", "-") for key in beside if key != "timesteps"]
            if beside:
                raise BadArgument(f"--resume goes on as begun: leave out {', '.join(beside)}")
            checked = _begun(logdir, env, timesteps)
        else:
            checked = _opened(logdir, env, config, given, changed, set_ or ())
        if seeds is not None:
            _train_each(checked, parse_seeds(seeds), logdir, cluster(ray) or Processes(jobs), json, quiet)
        else:
            _print(checked, logdir, _train(checked, logdir, resume, quiet), json)


def name_columns(
    agent: Annotated[Path, argument("DIR", "The agent's folder, with its agent.json.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Name the columns of an agent that was trained before they had names, so that it can be played."""
    expect_installed()
    from ...agents.playing.column_names import name_columns as name

    with arguments():
        columns = name(agent)
    if json:
        print_json(columns)
    else:
        print_lines(f"{agent}: {sum(map(len, columns.values()))} columns have names now")


def _opened(logdir: Path, *described: Any) -> Config:
    from ..learning.training import CONFIG

    opt.expect_own_folder(logdir, "train", "an evaluation")
    if (logdir / CONFIG).exists():
        raise BadArgument(
            f"--logdir {logdir}: a training is there already; go on with --resume, or name another folder"
        )
    checked = configured(*described)
    open_all(checked)
    logdir.mkdir(parents=True, exist_ok=True)
    return checked


def expect_installed() -> None:
    """Raise MissingExtra without the libraries of a training."""
    from ...simulator.base.errors import MissingExtra

    try:
        import sb3_contrib  # noqa: F401
        import tensorboard  # noqa: F401
    except ImportError:
        raise MissingExtra('training needs more; install it with: pip install "clustergym[agents]"') from None


def _begun(logdir: Path, env: str, timesteps: int | None) -> Config:
    from ...agents.training.config import default_config, make_config
    from ...simulator.files.user_code import expect_trusted
    from ..learning.training import CONFIG, read_config

    values = read_config(logdir)
    expect_trusted({key: values.get(key) for key in ("net", "env", "training", "validation")}, str(logdir / CONFIG))
    checked = make_config(values, str(logdir / CONFIG))
    with arguments():
        if default_config(env)["environment"] != checked.environment:
            raise BadArgument(f"--logdir {logdir}: the training there is one of {checked.environment}")
    if timesteps is not None and timesteps < checked.timesteps:
        more = f"expected more than the {checked.timesteps:,} decisions of the training there"
        raise BadArgument(f"--timesteps {timesteps}: {more}, or --resume without it")
    return checked.model_copy(update={"timesteps": timesteps or checked.timesteps})


def configured(env: str, file: Path | None, given: Values, words: Values, assignments: Sequence[str]) -> Config:
    """The configuration that the options of a command describe, checked but not opened.

    Args:
        env: short name or id of the environment, or the name of a configuration.
        file, given, assignments: values in place of the defaults: of a file, by key, and of `--set`.
        words: workloads, topology and network to train on instead.

    Raises:
        BadArgument: a key or a value that is not valid.
        InputError: a file that cannot be used.
    """
    from ...agents.training.config import assign, default_config, make_config, read_yaml

    with arguments():
        values = default_config(env)
    if file is not None:
        values |= read_yaml(file)
        make_config(values, str(file))
    with arguments():
        values |= given
        changes = pairs(assignments)
        if "start_from" in given and "imitate" in {**given, **changes}:
            raise BadArgument("--start-from begins with an agent's weights and imitates nothing: leave --imitate out")
        for key, text in changes.items():
            if key in given:
                raise BadArgument(f"--set {key}={text}: --{key} says {given[key]}; give one of them")
            assign(values, key, text)
        if words:
            _replace_scenarios(values, words)
        config = make_config(values, "configuration")
        idle = [key for key in OF_CLONES if key in changes]
        if idle and config.imitate is None:
            why = "--imitate none" if config.start_from is None else "--start-from"
            raise BadArgument(f"--set {idle[0]}={changes[idle[0]]}: nothing is imitated ({why}); leave it out")
        return config


def open_all(config: Config) -> None:
    """Open all that a configuration names, so that a mistake shows before the work."""
    from ...agents.training.config import expect_fitting
    from ...agents.training.starting import starting_agent

    with arguments():
        expect_fitting(config)
        if config.start_from is not None:
            starting_agent(config)
    for scenario in (*config.training, *config.validation):
        for workload in scenario.workloads:
            opt.open_setting(opt.described_setting(config.environment, workload, scenario.topology, scenario.network))
    for word in (config.reference, config.imitate):
        if word is not None:
            opt.chosen_policies([word], config.environment, estimates=config.env.get("estimates", "exact"))


def _replace_scenarios(values: dict[str, Any], words: dict[str, Any]) -> None:
    """Modify `values`: train and validate on `words`; the rest is that of the first scenario."""
    own = dict(values["training"][0])
    workloads = words.pop("workload", None)
    if workloads:
        own["workloads"] = list(workloads)
    own |= words
    values["training"] = values["validation"] = [{**own, "name": "own", "share": 1}]


def _train(config: Config, logdir: Path, resume: bool, quiet: bool) -> dict[str, Any]:
    from ...agents.files.checkpoint import read_checkpoint
    from ...agents.files.folders import complete_folder
    from ...agents.training.starting import what_differs
    from ...agents.training.trainer import Training
    from ..learning.training import TrainingLog, words_beside, write_config
    from ..storing.command_log import recorded

    # Killed before its first checkpoint, a training begins anew, which ends with the same weights too.
    resume = resume and complete_folder(logdir / CHECKPOINT).is_dir()
    saved = read_checkpoint(logdir / CHECKPOINT) if resume else None
    with recorded(logdir, 1), progress("training", config.timesteps, quiet) as show:
        log = TrainingLog(logdir, config, saved.step if saved else None, show, quiet)
        training = Training(config, logdir, log, command=_command_of(logdir))
        if not quiet:
            say(training.about)
            if saved and saved.data["config"]["timesteps"] < config.timesteps:
                say(what_differs(config, saved))
        write_config(logdir, config)
        if not resume:
            log.heuristics(training.validation, words_beside(config))
        short = short_name(config.environment)
        again = shlex.join(["clustergym", "train", short, "--logdir", str(logdir), "--resume"])
        with leaving(f"interrupted; what is learnt so far is kept. Go on with: {again}", training.keep):
            best = training.run(resume)
        log.finished(best)
    return {**best, "trained": training.step, "imitation": training.loop_state.imitation}


def _expect_fitting(seeds: str | None, ray: str | None, jobs: int, seed: int | None, resume: bool) -> None:
    if seeds is None:
        if ray is not None or jobs > 1:
            raise BadArgument(f"{'--jobs' if ray is None else '--ray'} goes with --seeds: a training is one process")
        return
    for name, is_given in (("--seed", seed is not None), ("--resume", resume)):
        if is_given:
            raise BadArgument(f"{name} goes without --seeds, which goes on by itself")


def _train_each(config: Config, seeds: list[int], logdir: Path, executor: Executor, json: bool, quiet: bool) -> None:
    from ..learning.training_seeds import PIECE_S, folder_of, train_seeds
    from ..storing.command_log import recorded

    configs = {seed: config.model_copy(update={"seed": seed}) for seed in seeds}
    total = config.timesteps * len(seeds)
    kept = f"interrupted; up to {PIECE_S / 60:g} minutes of each training are lost, what it was before is in {logdir}"
    said = leaving(f"{kept}. Go on with: {typed.get()}")
    with recorded(logdir, count_of(executor, 1)), said, progress("training", total, quiet) as show:
        best = train_seeds(configs, logdir, executor, show)
    if json:
        print_json([{"seed": seed, "agent": str(folder_of(logdir, seed) / "best"), **best[seed]} for seed in seeds])
        return
    _print_each(config, logdir, best)


def _print_each(config: Config, logdir: Path, best: Mapping[int, Mapping[str, Any]]) -> None:
    from ..console import terminal
    from ..learning.training_seeds import folder_of

    table = terminal.plain_table()
    table.add_column(f"mean JCT / {config.reference}'s on held-out workloads", no_wrap=True)
    names = list(next(iter(best.values()))["ratios"])
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for seed, reached in best.items():
        table.add_row(f"seed {seed}", *(f"{reached['ratios'][name]:.3f}" for name in names))
    out().print(table)
    words = " ".join(f"{config.algo}:{folder_of(logdir, seed) / 'best'}" for seed in best)
    short = short_name(config.environment)
    again = f"clustergym evaluate {short} --policies {shlex.quote(words + ' ' + config.reference)} --seeds 0-49"
    print_lines(f"compare them   {again} --baseline {config.reference}")


def _command_of(logdir: Path) -> str:
    """The command that began the training there, in whatever process it goes on."""
    from ..storing import command_log

    commands = [str(entry["command"]) for entry in command_log.read(logdir)]
    begun = [command for command in commands if "--resume" not in command.split()]
    longer = [command for command in commands if {"--resume", "--timesteps"} <= set(command.split())]
    # A damaged log says nothing.
    return " && ".join(dict.fromkeys([(begun or commands or [typed.get()])[-1], *longer]))


def _print(config: Config, logdir: Path, best: dict[str, Any], json: bool) -> None:
    from ..console import terminal

    if json:
        print_json({"agent": str(logdir / "best"), **best})
        return
    table = terminal.plain_table()
    table.add_column("held-out workloads", no_wrap=True)
    table.add_column(f"mean JCT / {best['reference']}'s", justify="right", no_wrap=True)
    for name, ratio in best["ratios"].items():
        table.add_row(name, f"{ratio:.3f}")
    if best["imitation"]:
        table.add_row("mean", f"{best['score']:.3f}")
        table.add_row(f"mean, the clone of {best['imitation']['model']} alone", f"{best['imitation']['score']:.3f}")
    out().print(table)
    short, words = short_name(config.environment), f"{config.algo}:{logdir / 'best'} {best['reference']}"
    evaluated = f"--policies {shlex.quote(words)} --seeds 0-49 --baseline {best['reference']}{_options_of(config)}"
    print_lines(
        f"{best['trained']:,} decisions were trained on, {config.timesteps:,} were asked for",
        f"the best agent is that of step {best['step']:,}, {best['mode']}: {logdir / 'best'}",
        f"compare it   clustergym evaluate {short} {evaluated}",
        f"its curves   tensorboard --logdir {shlex.quote(str(logdir))}",
    )


def _options_of(config: Config) -> str:
    """The options of `evaluate` for the first setting of the validation, where it is not the default."""
    from ...envs.configured import options_of
    from ...envs.registration import ENVIRONMENTS
    from ...simulator.base.names import text_of
    from ...simulator.files.user_code import is_user_code

    entry, scenario = ENVIRONMENTS[config.environment], config.validation[0]
    given = {"workload": scenario.workloads[0], "topology": scenario.topology, "network": scenario.network}
    words = [f"--{key} {shlex.quote(value)}" for key, value in given.items() if value != entry.defaults[key]]
    known = options_of(config.environment)
    values = {key: value for key, value in config.env.items() if key in known and (value or key == "memory_gb")}
    words += [f"--set {shlex.quote(f'{key}={text_of(value)}')}" for key, value in values.items()]
    trust = is_user_code(config.net) or any(is_user_code(value) for key, value in config.env.items() if key != "reward")
    return "".join(f" {word}" for word in [*words, *(["--trust-py"] if trust else [])])
