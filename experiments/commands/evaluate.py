"""`clustergym evaluate`: the metric table of some policies on some seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...simulator.base.errors import MissingExtra
from ..console import terminal
from ..console.interrupt import leaving
from ..console.terminal import BadArgument, arguments, expect_writable, out, print_json, print_lines, progress, typed
from . import options as opt
from .options import Env, Format, Json, Network, Quiet, Ray, TrustPy, cluster, keys_of, open_setting, option, whole

if TYPE_CHECKING:
    from ..playing.executors import Executor
    from ..playing.runs import Run
    from ..settings.evaluation_setting import Setting
    from ..storing.store import Evaluation, Store

    Described = Callable[..., Setting]
    Words = list[str]
    Played = tuple[list[Run], list[str]]  # runs, and lines to print about them

DEFAULT_SEEDS = "0-9"
FEW = 3  # Gantt charts that are named one by one
_POLICIES = "LABEL=WORD, WORD; `policies ENV`."
Policies = Annotated[list[str] | None, option("--policies", "NAMES", _POLICIES)]
Seeds = Annotated[str | None, option("--seeds", "LIST", f"0-9, or 0,3,5-7; default {DEFAULT_SEEDS}.")]
OneSeed = Annotated[int | None, option("--seed", "N", "Short for --seeds N.", whole(0))]
Logdir = Annotated[Path | None, option("--logdir", "DIR", "Keep results, pictures, logs.")]
Decisions = Annotated[Path | None, option("--decisions", "FILE", "Write every decision as csv.")]
JobsTable = Annotated[Path | None, option("--jobs-table", "FILE", "Write a row a job: csv or parquet.")]
Stretches = Annotated[Path | None, option("--stretches-table", "FILE", "Write when jobs held GPUs, as csv.")]
Copies = Annotated[Path | None, option("--copies-table", "FILE", "Write copies of tables as csv.")]
Jobs = Annotated[int, option("--jobs -j", "N", "Processes to use.", whole(1, opt.MOST_PROCESSES))]
Baseline = Annotated[str | None, option("--baseline", "POLICY", "Compare mean JCTs with its.")]
_SWEEP = "At n values of a parameter or option; KEY=a/b/c: at these."
SweepOver = Annotated[str | None, option("--sweep", "KEY=a..b:n", _SWEEP)]
Fresh = Annotated[bool, option("--fresh", None, "Forget the runs in --logdir.")]


@dataclass(frozen=True)
class Options:
    """Where to play, whether to forget earlier runs and to record all runs, and whether silently."""

    processes: int
    executor: Executor | None
    fresh: bool
    record_all: bool
    quiet: bool


def evaluate(
    env: Env,
    policies: Policies = None,
    workload: opt.Workload = None,
    topology: opt.Topology = None,
    network: Network = None,
    seeds: Seeds = None,
    seed: OneSeed = None,
    set_: opt.Assignments = None,
    format: Format = None,
    oversize: opt.Oversize = "error",
    logdir: Logdir = None,
    decisions: Decisions = None,
    jobs_table: JobsTable = None,
    stretches_table: Stretches = None,
    copies_table: Copies = None,
    jobs: Jobs = 1,
    ray: Ray = None,
    baseline: Baseline = None,
    sweep: SweepOver = None,
    fresh: Fresh = False,
    trust_sb3_zip: opt.TrustZip = False,
    trust_py: TrustPy = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Play policies on the same workloads and print their metrics: mean and 95 % interval over seeds.

    With --logdir every finished run is kept there at once: the same command goes on where it was stopped.
    """
    from ..settings.plain_traces import is_plain

    with terminal.warnings_on_one_line(quiet):
        chosen = _seeds(seeds, seed)
        if fresh and logdir is None:
            raise BadArgument("--fresh: it forgets the runs in --logdir, which is not given")
        places, assigned = {"workload": workload, "topology": topology, "network": network}, tuple(set_ or ())
        described: Described = partial(opt.described_setting, env, format=format, oversize=oversize, assume=True)
        setting = described(**places, assignments=assigned)
        facts = (setting.environment, setting.config.semantics.describe(), setting.config.estimates.describe())
        words = opt.chosen_policies(policies or (), *facts, plain=not policies and is_plain(setting), labels=True)
        open_setting(setting, chosen[0])
        names = shown_names(words)
        if baseline is not None and baseline not in {**names, **dict.fromkeys(names.values())}:
            raise BadArgument(f"--baseline {baseline!r} is none of the policies: {' '.join(words)}; add it")
        baseline = None if baseline is None else names.get(baseline, baseline)
        files = _Files(decisions, jobs_table, stretches_table, copies_table)
        files.check(setting)
        options = Options(jobs, cluster(ray), fresh, bool(files.given), quiet)
        if sweep is not None:
            if files.given:
                raise BadArgument(f"{next(iter(files.given))} goes without --sweep")
            name, settings = _swept(sweep, setting, partial(described, **places), assigned)
            _evaluate_each(name, settings, words, chosen, logdir, options, baseline, json)
            return
        runs, notes = played(setting, words, chosen, logdir, options)
        notes += files.written(runs, setting)
        print_runs(setting, words, chosen, runs, baseline, notes, json)


@dataclass(frozen=True)
class _Files:
    decisions: Path | None
    jobs: Path | None
    stretches: Path | None
    copies: Path | None

    @property
    def given(self) -> dict[str, Path]:
        every = {"--decisions": self.decisions, "--jobs-table": self.jobs}
        every |= {"--stretches-table": self.stretches, "--copies-table": self.copies}
        return {name: path for name, path in every.items() if path is not None}

    def check(self, setting: Setting) -> None:
        from ...envs.registration import ENVIRONMENTS
        from ...simulator.configuration.cluster_config import REGIONS

        features = ENVIRONMENTS[setting.environment].features
        if self.copies is not None and REGIONS not in features:
            raise BadArgument(f"--copies-table: {setting.environment} has no regions, and no copies of tables")
        for name in ("--jobs-table", "--stretches-table"):
            if name in self.given and setting.config.unit != "GPUs":
                raise BadArgument(f"{name}: jobs of {setting.environment} hold no GPUs")
        for name, path in self.given.items():
            endings = (".csv", ".parquet") if name == "--jobs-table" else (".csv",)
            if path.suffix.lower() not in endings and (path.suffix.lower() == ".parquet" or endings[1:]):
                raise BadArgument(f"{name} {path}: expected a name that ends in {' or '.join(endings)}")
            if list(self.given.values()).count(path) > 1:
                raise BadArgument(f"{name} {path}: another option writes there too")
            expect_writable(path, name)

    def written(self, runs: list[Run], setting: Setting) -> list[str]:
        from ..storing import results

        if self.decisions is not None:
            results.write_decisions(runs, self.decisions)
        if self.jobs is not None:
            results.write_jobs(runs, setting, self.jobs)
        if self.stretches is not None:
            results.write_stretches(runs, setting, self.stretches)
        if self.copies is not None:
            results.write_copies(runs, self.copies)
        words = {"--decisions": "decisions", "--jobs-table": "jobs"}
        words |= {"--stretches-table": "jobs on GPUs", "--copies-table": "copies"}
        return [f"{words[name]}: {path}" for name, path in self.given.items()]


def _swept(text: str, setting: Setting, given: Described, assigned: tuple[str, ...]) -> tuple[str, dict[str, Setting]]:
    from ..settings import sweeping

    with arguments():
        words = {place: getattr(setting, place) for place in sweeping.PLACES}
        sweep = sweeping.load(text, words, keys_of(setting.environment))
    found = {}
    for value in sweep.values:
        if sweep.place:
            word = sweeping.with_parameter(getattr(setting, sweep.place), sweep.key, value)
            found[value] = given(**{sweep.place: word}, assignments=assigned)
        else:
            found[value] = given(assignments=(*assigned, f"{sweep.key}={value}"))
    return sweep.name, found


def _evaluate_each(
    name: str,
    settings: Mapping[str, Setting],
    words: list[str],
    seeds: list[int],
    logdir: Path | None,
    options: Options,
    baseline: str | None,
    json: bool,
) -> None:
    from ..comparing import table
    from ..playing.runs import as_shown

    for setting in settings.values():
        open_setting(setting, seeds[0])
    if logdir is not None:
        logdir.mkdir(parents=True, exist_ok=True)
    folders = {value: None if logdir is None else logdir / f"{name}={value}" for value in settings}
    runs = {value: played(one, words, seeds, folders[value], options)[0] for value, one in settings.items()}
    if json:
        rows_by_value = ((value, rows(mine, settings[value])) for value, mine in runs.items())
        print_json([{**row, "sweep": {name: value}} for value, found in rows_by_value for row in found])
        return
    table.print_setting(out(), next(iter(settings.values())), words, seeds)
    out().print(f"sweep of {name}: {', '.join(settings)}; the setting above is that of the first", markup=False)
    table.print_sweep(out(), name, {value: as_shown(mine) for value, mine in runs.items()}, baseline)
    print_lines(*filter(None, [_heads(next(iter(settings.values())), words)]))
    if logdir is not None:
        from ..report.pictures import of_sweep

        shown = ", ".join(path.name for path in of_sweep(name, settings, runs, baseline, logdir))
        print_lines(f"results: {logdir}/{name}=*; pictures: {logdir}/{shown}")
        print_lines(f"one page of all: clustergym compare {logdir}/{name}=*")


def print_runs(
    setting: Setting, words: Words, seeds: list[int], runs: list[Run], baseline: str | None, notes: Words, json: bool
) -> None:
    """Print the setting, the table, what else was asked, and `notes`; or JSON."""
    from ..comparing import table
    from ..playing.runs import as_shown

    if json:
        print_json(rows(runs, setting))
        return
    table.print_setting(out(), setting, words, seeds)
    shown = as_shown(runs)
    table.print_table(out(), shown, [_heads(setting, words)])
    for by in setting.groupings:
        table.print_groups(out(), shown, by)
    if baseline is not None:
        table.print_comparison(out(), shown, baseline)
    print_lines(*notes)


def shown_names(words: Words) -> dict[str, str]:
    """Word -> its name in tables, of words with or without labels."""
    from ..playing.runs import label_and_word

    return {word: label or word for label, word in map(label_and_word, words)}


def _heads(setting: Setting, words: Words) -> str:
    from ..comparing.heads import note_of_heads

    return note_of_heads({name: word for word, name in shown_names(words).items()}, setting)


def rows(runs: list[Run], setting: Setting) -> list[dict[str, Any]]:
    """The runs as JSON: policy, seed, metrics, semantics and setting."""
    from ...policies import make_for
    from ..settings.describing import semantics_of
    from ..settings.evaluation_setting import network_of

    common = setting.words() | {"network": network_of(setting).describe()}
    words = dict.fromkeys(run.policy for run in runs)
    described = {word: semantics_of(make_for(word, setting.environment), setting) for word in words}
    found = []
    for run in runs:
        about = {"policy": run.policy, **({"label": run.label} if run.label else {}), "seed": run.seed}
        about |= {"depends_on_seed": run.is_drawn}
        about |= {"knows_run_times": run.knows_run_times}
        found.append({**about, "metrics": run.metrics, "semantics": described[run.policy], "setting": common})
    return found


def played(setting: Setting, words: list[str], seeds: list[int], logdir: Path | None, options: Options) -> Played:
    """The runs, and lines to print about them."""
    if logdir is None:
        with leaving("interrupted; nothing is kept. With --logdir DIR the same command goes on where it was stopped"):
            return _play(setting, words, seeds, None, options), []
    again = " ".join(word for word in typed.get().split(" ") if word != "--fresh")
    with leaving(f"interrupted; the runs that were over are kept in {logdir}. Go on with: {again}"):
        return _into(logdir, setting, words, seeds, options)


def _play(setting: Setting, words: list[str], seeds: list[int], store: Store | None, options: Options) -> list[Run]:
    from ..playing.evaluation import Record
    from ..playing.evaluation import evaluate as run_all

    record: Record = "all" if options.record_all else "first" if store is not None else "nothing"
    with progress("evaluating", len(words) * len(seeds), options.quiet) as show:
        report = show if store is None else _writing_tables(show, store)
        workers: Any = {"processes": options.processes, "executor": options.executor}
        return run_all(setting, words, seeds, **workers, record=record, progress=report, store=store)


def _writing_tables(show: Callable[[float], None], store: Store) -> Callable[[float], None]:
    from ..storing.store import tables_now_and_then

    write_if_due = tables_now_and_then(store)

    def report(done: float) -> None:
        show(done)
        write_if_due()

    return report


def _into(logdir: Path, setting: Setting, words: list[str], seeds: list[int], options: Options) -> Played:
    """Play with a store in `logdir`, write its table, logs and pictures; returns the runs and lines to print."""
    from ..playing.executors import count_of
    from ..report import pictures
    from ..storing import command_log
    from ..storing.store import TABLE, open_store, read, write_table

    opt.expect_own_folder(logdir, "evaluate", "a training")
    store = open_store(logdir, setting, words, options.fresh)
    with command_log.recorded(logdir, count_of(options.executor, options.processes)):
        runs = _play(setting, words, seeds, store, options)
        write_table(store)
        found = read(logdir)
        names = [path.name for path in pictures.of_evaluation(found)]
        board = _logged(found, logdir)
    charts = [name for name in names if name.startswith("gantt-")]
    shown = [name for name in names if name not in charts] + (charts if len(charts) <= FEW else ["gantt-POLICY.svg"])
    return runs, [f"results: {logdir / TABLE}; pictures: {', '.join(shown)}", board]


def _logged(found: Evaluation, logdir: Path) -> str:
    from ..learning.tensorboard_log import write_evaluation
    from ..settings.sweeping import PLACES
    from ..storing.event_file import expect_installed

    try:
        expect_installed()
    except MissingExtra as error:
        return f"no event files: {error}"
    words = found.setting.words()
    write_evaluation(found.runs, logdir, {name: str(words[name]) for name in PLACES})
    return f"TensorBoard: tensorboard --logdir {logdir}"


def _seeds(text: str | None, seed: int | None) -> list[int]:
    if text is not None and seed is not None:
        raise BadArgument("--seeds and --seed are both given; one of them is enough")
    if seed is not None:
        text = str(seed)
    return opt.parse_seeds(DEFAULT_SEEDS if text is None else text)
