"""Options that several commands share, and the setting that they describe."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...simulator.base.errors import InputError
from ..console.terminal import BadArgument, arguments, word_or_file

if TYPE_CHECKING:
    from ..playing.executors import Executor
    from ..settings.evaluation_setting import Setting

MOST_SEEDS = 100_000
MOST_PROCESSES = 1024
ARTIST_READER = {"scale": "gang", "caps": "batch"}
BETWEEN = r"\s+(?=[A-Za-z_][\w.]*=)"  # one KEY=VALUE and the next
ELASTIC = (
    "--set elastic: the policy says whether jobs are elastic; under pollux they are, under pollux:adapt=off and all "
    "others they have the GPUs and the batch that they ask"
)


def whole(low: int, high: int = 2**62) -> Callable[[str | int], int]:
    """A parser of whole numbers from `low` to `high`; its complaint names the value."""

    def parse(text: str | int) -> int:
        word = str(text).strip()
        if not (word.isascii() and word.removeprefix("-").isdigit() and len(word) < 20 and low <= int(word) <= high):
            limit = f"from {low} to {high:,}" if high < 2**62 else f"of at least {low}"
            raise typer.BadParameter(f"{word!r} is not a whole number {limit}")
        return int(word)

    return parse


def option(names: str, metavar: str | None, help: str | None, parser: Any = None, **more: Any) -> Any:
    """An option of a command; `names` has a space between them."""
    return typer.Option(*names.split(), metavar=metavar, help=help, parser=parser, **more)


def argument(metavar: str, help: str) -> Any:
    """An argument of a command."""
    return typer.Argument(metavar=metavar, help=help)


def _trusting(variable: str) -> Callable[[bool], bool]:
    """The callback of a flag: sets a variable of the environment, for worker processes too, which load agents."""

    def trust(wanted: bool) -> bool:
        if wanted:
            os.environ[variable] = "1"
        return wanted

    return trust


def cluster(address: str | None) -> Executor | None:
    """The Ray cluster that `--ray` names; None: this machine does the work. Errors: see `RayCluster`."""
    if address is None:
        return None
    from ..playing.on_ray import RayCluster

    return RayCluster(address)


_RAY = "Ray: auto, local or HOST:PORT."
_ZIP = "Open SB3's .zip agents, which can run any code: only those you trust."
_PY = "Run code py:... in the folder of an agent: only folders that you trust."
_SPEEDS = "How fast models are on types of GPUs (model, type, speed), in regions; all alike without it."
_NETWORK = "Network model; `networks`."
Ray = Annotated[str | None, option("--ray", "HOST:PORT", _RAY)]
Json = Annotated[bool, option("--json", None, "One JSON document on stdout.")]
Quiet = Annotated[bool, option("--quiet -q", None, "No progress, no warnings.")]
Seed = Annotated[int, option("--seed", "N", "Seed of whatever is random.", whole(0))]
NoSeed = Annotated[int, option("--seed", None, "Accepted everywhere; nothing is random here.", whole(0), hidden=True)]
TrustZip = Annotated[bool, option("--trust-sb3-zip", None, _ZIP, callback=_trusting("CLUSTERGYM_TRUST_SB3_ZIP"))]
TrustPy = Annotated[bool, option("--trust-py", None, _PY, callback=_trusting("CLUSTERGYM_TRUST_PY"))]
Format = Annotated[str | None, option("--format", "NAME", "Trace format, if not recognised.")]
Workload = Annotated[str | None, option("--workload", "NAME|PATH", "Generator, or a trace; `workloads`.")]
Topology = Annotated[str | None, option("--topology", "NAME|PATH", "Preset, or a file; `topologies`.")]
Network = Annotated[str | None, option("--network", "NAME", _NETWORK)]
Speeds = Annotated[str | None, option("--speeds", "gavel|FILE.csv", _SPEEDS)]
Env = Annotated[str, argument("ENV", "Environment: its id or short name (Delay).")]
Assignments = Annotated[list[str] | None, option("--set", "KEY=VALUE...", "See `clustergym options ENV`.")]
Oversize = Annotated[str, option("--oversize", "WHAT", "Too large jobs: error, drop, cap.", show_default=False)]


def expect_own_folder(logdir: Path | None, verb: str, *others: str) -> None:
    """BadArgument where DIR holds something else (`an evaluation`, `a training`) already."""
    from ..learning.training import CONFIG
    from ..storing import evaluation_file

    made = {"an evaluation": evaluation_file.NAME, "a training": CONFIG}
    for what in others:
        if logdir is not None and (logdir / made[what]).exists():
            raise BadArgument(f"--logdir {logdir}: {what} is there; {verb} into a folder of its own")


def described_setting(
    env: str,
    workload: str | None = None,
    topology: str | None = None,
    network: str | None = None,
    *,
    format: str | None = None,
    oversize: str = "error",
    assignments: Sequence[str] = (),
    assume: bool = False,
) -> Setting:
    """The setting that the options of a command describe, not opened yet; None: the environment's default.

    Args:
        env: id or short name of the environment.
        workload, topology, network: words, or paths of files.
        format, oversize: of a trace, and of jobs larger than the cluster.
        assignments: values of `--set`, `key=value` each, or several.
        assume: fill in what a trace without models does not say (settings/plain_traces.py).

    Raises:
        BadArgument: a name or a value that is not valid.
        InputError: a file that cannot be used.
    """
    from ...envs.registration import resolve
    from ...simulator.base.names import choose
    from ..settings.evaluation_setting import Setting

    with arguments():
        env_id = resolve(env)
        words = pairs(assignments)
        if "elastic" in words:
            raise BadArgument(ELASTIC)
        options = _options(env_id, {key: value for key, value in words.items() if key not in OF_METRICS})
        choose(oversize, ("error", "drop", "cap"), "value of --oversize")
        rest: Any = {"format": _format(workload, format, options.get("semantics", "events")), "oversize": oversize}
        rest |= {"window": words.get("window"), "by": words.get("by")}
        setting = Setting.of(env_id, topology, workload, network, **rest, **options)
    if not assume or workload is None:
        return setting
    from ..settings.plain_traces import assumed

    with word_or_file(setting.topology), word_or_file(workload):
        return assumed(setting, {**words, **({} if network is None else {"network": network})})


OF_METRICS = {  # keys of `--set` about metrics
    "window": "START/END: metrics between these seconds since the first arrival; END may be inf.",
    "by": "a second table by user, tenant, model, gpus, level, hour or user/hour; in regions also by region, copy.",
}


def keys_of(env_id: str) -> list[str]:
    """The keys of `--set` in an environment."""
    from ...envs.configured import options_of

    return [*options_of(env_id), *OF_METRICS]


def options_of_set(env_id: str) -> list[dict[str, Any]]:
    """What `--set` takes in an environment, a dict each: name, default as it is there, and summary."""
    from ...envs.configured import options_of
    from ...envs.registration import ENVIRONMENTS
    from ...simulator.base.names import text_of

    usual = ENVIRONMENTS[env_id].options
    rows = [
        {
            "name": key,
            "default": text_of(usual.get(key, one.default)),
            "summary": re.sub(r" \(\w+(/\w+)*\.py\)", "", one.summary),  # without names of modules
        }
        for key, one in options_of(env_id).items()
    ]
    return rows + [{"name": key, "default": "none", "summary": text} for key, text in OF_METRICS.items()]


def _options(env_id: str, words: Mapping[str, str]) -> dict[str, Any]:
    from ...envs.configured import config_class, expect_option

    for key in words:
        expect_option(env_id, key, *OF_METRICS)
    return config_class(env_id).from_words(words, "--set")


def _format(workload: str | None, format: str | None, semantics: str) -> str | None:
    """The format of a trace: under the semantics of ArtISt-sim jobs are read as there; a given format wins."""
    from ...simulator.base.names import parse_name
    from ...simulator.rules.semantics import load_semantics
    from ...simulator.workloads import is_path, recognise
    from ...simulator.workloads.log_samples import is_sampled

    if load_semantics(semantics).name != "artist-sim" or workload is None:
        return format
    if is_sampled(workload) and "format=" not in workload:
        said = "samples of a log name how jobs are read, as format=artist-sim:scale=gang"
        raise BadArgument(f"--set semantics=artist-sim: {said}")
    if not (format or is_path(workload)):
        return format
    with word_or_file(workload):
        name, options = parse_name(format, "format") if format else (recognise(workload), {})
    if name != "artist-sim":
        return format
    return "artist-sim:" + ",".join(f"{key}={value}" for key, value in (ARTIST_READER | options).items())


def open_setting(setting: Setting, seed: int = 0) -> None:
    """Open all that the words of a setting name; `seed`: the first to be played. Errors: as `described_setting`."""
    from ...simulator.cluster.topology import Topology
    from ...simulator.configuration.network_choice import on_topology
    from ...simulator.network.isolated import gang_factors
    from ..settings.evaluation_setting import network_of, workload_of

    with arguments():
        network = network_of(setting)
        setting.config.check()
    with word_or_file(setting.topology):
        topology = Topology.load(setting.topology)
    with word_or_file(setting.workload):
        workload = workload_of(setting, seed if setting.is_drawn else 0)
        setting.config.estimates.check(workload)
    if workload.ps is None:  # a simulator of GPUs refuses PS jobs on any network
        gang_factors(on_topology(network, topology), workload, topology)


def chosen_policies(
    values: Sequence[str],
    env_id: str,
    semantics: str = "events",
    estimates: str = "exact",
    plain: bool = False,
    labels: bool = False,
) -> list[str]:
    """The words of policies in `values`, each of which may hold several; all that play in the environment if none.

    With `labels` a word may have one before it, as LABEL=WORD, and keeps it.

    "All" leaves out those that may take minutes an episode (`best-rotations`, `lookahead`), those that need run times
    where nothing is known of them, and those of elastic jobs where nothing is known of models (`raw`).

    Raises:
        BadArgument: an unknown policy or parameter, a policy that does not play there or that the semantics exclude, a
            word that is given twice, or a policy that needs run times, of which nothing is known.
        InputError: a trained agent that cannot be loaded.
    """
    from ...policies import able, environments_of, make_for
    from ...policies import list as policies_of
    from ...simulator.jobs.estimates import Estimates
    from ...simulator.rules.semantics import load_semantics
    from ..playing.runs import label_and_word, players_of

    known = Estimates.load(estimates)
    typed = [word for value in values for word in _split(value)] if values else able(env_id, estimates, plain)
    if not typed:
        raise BadArgument("--policies: no name is given; leave the option out to play all of them")
    with arguments():
        words = [label_and_word(word)[1] for word in typed]
    for word, after in zip(words, [*typed[1:], ""], strict=True):
        if not labels and word not in typed:
            raise BadArgument(f"policy {typed[words.index(word)]!r}: labels are for --policies of evaluate and whatif")
        if "," in word.partition(":")[0]:
            raise BadArgument(f"--policies {word!r}: names are separated by spaces: {' '.join(word.split(','))!r}")
        with word_or_file(word.partition(":")[2]), _after_part_of_label(word, after):
            plays = env_id in environments_of(word, env_id)
        if not plays:
            raise BadArgument(f"policy {word!r} does not play in {env_id}; these do: {', '.join(policies_of(env_id))}")
        with word_or_file(word.partition(":")[2]):
            policy = make_for(word, env_id)
            policy.rule_under(load_semantics(semantics))
            policy.expect_known(known)
        if words.count(word) > 1:
            raise BadArgument(f"--policies: {word!r} is given twice")
    with arguments():
        players_of(typed)  # two of one label
    return typed


@contextmanager
def _after_part_of_label(word: str, after: str) -> Iterator[None]:
    """An unknown `word` before one with a label, `after`, may be part of that label."""
    from ..playing.runs import LABEL_HOLDS, label_and_word

    try:
        yield
    except InputError as error:
        if ":" in word or not label_and_word(after)[0]:
            raise
        raise InputError(f"{error}; or, if {f'{word} {after}'!r} is meant, a label holds {LABEL_HOLDS}") from None


def _split(value: str) -> list[str]:
    """The words of one value; a word in quotes may hold spaces, as the path of a file does."""
    if not {'"', "'"} & set(value):
        return value.split()
    try:
        return shlex.split(value)
    except ValueError:
        raise BadArgument(f"--policies {value!r}: a quotation mark is not closed") from None


def pairs(assignments: Sequence[str], option: str = "--set") -> dict[str, str]:
    """Keys and values of `key=value` words of an option; a space that no `key=` follows is part of a value."""
    pairs: dict[str, str] = {}
    for value in (one for text in assignments for one in re.split(BETWEEN, text.strip())):
        key, equals, text = value.partition("=")
        if not equals or not key.strip():
            raise BadArgument(f"{option} {value!r}: expected key=value")
        if key.strip() in pairs:
            raise BadArgument(f"{option}: {key.strip()!r} is given twice")
        pairs[key.strip()] = text.strip()
    return pairs


def parse_seeds(text: str, option: str = "--seeds") -> list[int]:
    """Seeds from the text of an option: "0-9", "3", "0,2,5-7"; each once, in the order given."""
    seeds: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        if not (_is_whole(first) and (_is_whole(last) if dash else True)):
            raise BadArgument(f"{option} {text!r}: {part.strip()!r} is no seed or range; expected e.g. 0-9 or 0,3,5-7")
        low, high = int(first), int(last or first)
        if high < low:
            raise BadArgument(f"{option} {text!r}: the range {part.strip()!r} runs backwards")
        if high - low >= MOST_SEEDS or len(seeds) + high - low >= MOST_SEEDS:
            raise BadArgument(f"{option} {text!r}: more than {MOST_SEEDS:,} seeds")
        seeds |= dict.fromkeys(range(low, high + 1))
    return list(seeds)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
