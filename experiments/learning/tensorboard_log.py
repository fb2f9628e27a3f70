"""Metrics as TensorBoard scalars; heuristics and agents share tags, so that their curves overlay.

Every run has its own folder: an agent's grows while it learns (`AgentLog`), a heuristic's has level lines
(`write_heuristics`). Evaluations on other workloads have tags of their own (`write_evaluation`), so that a chart never
shows both. Each run carries the layout of the Custom Scalars page and a row of the HParams page.

TensorBoard sorts groups of tags by name and opens the first two: the main ones come first in the alphabet
(`against_greedy`, `gpu_utilisation`, `jct`; of evaluations `by_seed`, `test`), the rest stands under `more`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulator.engine.metric_registry import METRICS, SECTIONS
from ..comparing.intervals import by_policy
from ..comparing.table import ranges
from ..playing.runs import Run, grouped
from ..report.pictures import of_runs
from ..storing.event_file import AGENT, AGENT_WORDS, HEURISTIC, EventFile, files, folder_names, scalars_of
from ..storing.run_files import short_hash

if TYPE_CHECKING:
    from tensorboard.compat.proto.summary_pb2 import Summary

LEARNING = {"return of training episodes": "rollout/ep_rew_mean", "loss": "train/loss"}
LEARNING |= {"entropy loss": "train/entropy_loss"}
CRITICS = {"explained variance": "train/explained_variance", "value loss": "train/value_loss"}
# The metrics that are logged for every scenario of a training, and the columns of the HParams page.
HEADLINES = tuple(metric.name for metric in SECTIONS["any"] if metric.chart and metric.own_tag)
FINAL = "outcome/"
VALIDATION = "validation workloads"
AGAINST = "against_.+/mean"  # ratios of mean JCT to a reference's, the mean over the scenarios of a training
Places = Mapping[str, str]
Levels = Mapping[str, Mapping[str, float]]
NOWHERE: Places = {}  # of an unknown setting
TEST, BY_SEED = "test/", "by_seed/jct/mean_s"
# A heuristic does not learn: its scalar is a level line, from the start to where agents' curves usually end.
LAST_STEP = 1_000_000


def tag(metric: str) -> str:
    """The tag of a metric; one that an environment adds keeps its name."""
    return METRICS[metric].tag if metric in METRICS else metric


def applying(runs: Iterable[Run]) -> set[str]:
    """The metrics that are not missing or 0 in all of these runs; `jobs_finished` only where a job did not finish."""
    by_seed: dict[int, list[Run]] = {}
    found: set[str] = set()
    for run in runs:
        by_seed.setdefault(run.seed, []).append(run)
        found |= {name for name, value in run.metrics.items() if value and math.isfinite(value)}
    finished = [[run.metrics.get("jobs_finished", run.jobs) for run in mine] for mine in by_seed.values()]
    most = [max(run.jobs for run in mine) for mine in by_seed.values()]
    if all(min(counts) >= jobs for counts, jobs in zip(finished, most, strict=True)):
        found.discard("jobs_finished")
    return found


class AgentLog:
    """The TensorBoard run of an agent that learns: curves over training steps, pictures, its row of HParams.

    A call returns when its data is on disk: after a kill at any moment the log can be opened again. A metric is written
    from the step on at which `applying` first has it. An earlier log in `folder` stays up to step `resume_at`, or is
    replaced (None). Without a `critic` its figures are not written.
    """

    def __init__(self, folder: Path, resume_at: int | None = None, critic: bool = True) -> None:
        self._file = EventFile(folder, resume_at, AGENT)
        self._left_out = () if critic else tuple(CRITICS.values())
        self._shown = {name for name in METRICS if tag(name) in self._file.tags}
        if self._file.last_step < 0:
            self._file.write(0, summary=_layout())

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write {tag: value} at a training step; nan values are left out."""
        self._file.write(step, summary=_scalars({k: v for k, v in values.items() if k not in self._left_out}))

    def show(self, metrics: Collection[str]) -> None:
        """Write these metrics from now on even where they are 0 (they are not for others beside the agent)."""
        self._shown |= set(metrics)

    def evaluation(self, step: int, runs: Sequence[Run], beside: Sequence[Run] = ()) -> None:
        """Write the result of an agent at a training step: mean metrics over seeds, and pictures.

        `runs` are of the agent alone, one a seed; the first with a timeline gives the Gantt chart. `beside` are runs of
        heuristics on the same workloads, for the picture of the distribution.
        """
        self.show(applying([*runs, *beside]))
        means = next(iter(by_policy(runs).values()))
        self.scalars(step, {tag(name): value.mean for name, value in means.items() if name in self._shown})
        for name, png in _pictures(runs, beside):
            self._file.write(step, summary=_image(name, png))

    def hparams(self, config: Mapping[str, Any], metrics: Mapping[str, float], places: Places = NOWHERE) -> None:
        """Write the run's row of the HParams page.

        `config` may be nested; other values than numbers, text and truth values are shown as text. `metrics` are final
        results by metric name, tags `outcome/...`. `places` are `workload`, `topology` and `network` of the validation.
        """
        folder = self._file.path.parent
        flat = _about(folder.name, "agent", VALIDATION, places) | flattened(config)
        finals = {FINAL + tag(name): value for name, value in metrics.items()}
        step = max(self._file.last_step, 0)
        first, *others = map(tag, HEADLINES)
        self._file.write(step, summary=_experiment(flat, (first, *finals, *others)))
        self._file.write(step, summary=_session(flat, folder))
        self._file.write(step, summary=_scalars(finals))

    @property
    def last_step(self) -> int:
        """The latest training step with an entry; -1: there is none."""
        return self._file.last_step

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_heuristics(
    runs: Sequence[Run], logdir: Path, last_step: int = LAST_STEP, more: Levels | None = None, places: Places = NOWHERE
) -> None:
    """Write one TensorBoard run a policy, `logdir`/<policy>: the mean over seeds of every metric as a level line.

    Earlier lines of the same policy are replaced. `runs` are on the validation workloads of the agents beside them, and
    lines end at the last training step of those. `more`: policy -> tag -> level, beside the metrics.
    """
    shown = applying(runs)
    names = folder_names(list(estimates := by_policy(runs)))
    for policy, row in estimates.items():
        levels = {tag(name): value.mean for name, value in row.items() if name in shown}
        levels |= (more or {}).get(policy, {})
        with _level_lines(logdir / names[policy], _about(policy, _kind_of(policy), VALIDATION, places)) as file:
            for step in (0, max(last_step, 1)):
                file.write(step, summary=_scalars(levels))


def write_evaluation(runs: Sequence[Run], logdir: Path, places: Mapping[str, str] = NOWHERE) -> None:
    """Write one TensorBoard run a policy, agents too, of an evaluation; steps are seeds, `test/...` has the means."""
    shown = applying(runs)
    names = folder_names(list(estimates := by_policy(runs)))
    of_policy = grouped(runs)
    seeds = sorted({run.seed for run in runs})
    for policy, row in estimates.items():
        levels = {TEST + tag(name): value.mean for name, value in row.items() if name in shown}
        mine = sorted(of_policy[policy], key=lambda run: run.seed)
        played_on = f"seeds {ranges([run.seed for run in mine])}"
        about = _about(policy, _kind_of(policy), played_on, places)
        with _level_lines(logdir / names[policy], about, TEST) as file:
            for step in (seeds[0], max(seeds[-1], seeds[0] + 1)):
                file.write(step, summary=_scalars(levels))
            for run in mine:
                file.write(run.seed, summary=_scalars({BY_SEED: run.metrics["jct_mean"]}))


def extend_heuristics(logdir: Path, last_step: int) -> None:
    """Extend the level lines of `write_heuristics` in `logdir` to a later step; longer lines stay as they are."""
    for folder in sorted(path for path in logdir.iterdir() if path.is_dir() and files(path, HEURISTIC)):
        levels = {name: curve[-1] for name, curve in scalars_of(folder).items()}
        shorter = {name: value for name, (step, value) in levels.items() if step < last_step}
        if shorter:
            file = EventFile(folder, last_step, HEURISTIC)
            file.write(last_step, summary=_scalars(shorter))
            file.close()


def _about(policy: str, kind: str, played_on: str, places: Mapping[str, str]) -> dict[str, bool | float | str]:
    about = {"policy": policy, "kind": kind, "played_on": played_on, **places}
    return {f"about/{name}": value for name, value in about.items()}


def _kind_of(policy: str) -> str:
    return "agent" if policy.partition(":")[0] in AGENT_WORDS else "heuristic"


@contextmanager
def _level_lines(folder: Path, config: Mapping[str, bool | float | str], prefix: str = "") -> Iterator[EventFile]:
    """A new event file for a policy that does not learn, with its row of the HParams page."""
    file = EventFile(folder, None, HEURISTIC)
    if prefix:  # in a training the agent's row says what the columns are
        file.write(0, summary=_experiment(config, [prefix + tag(name) for name in HEADLINES]))
    file.write(0, summary=_session(config, folder))
    file.write(0, summary=_layout())
    yield file
    file.close()


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, bool | float | str]:
    """Nested parameters with names joined by "/"; lists and other values as text."""
    flat: dict[str, bool | float | str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{key}/")
        else:
            flat[f"{prefix}{key}"] = value if isinstance(value, bool | int | float | str) else _as_text(value)
    return flat


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "none" if value is None else str(value)


def _scalars(values: Mapping[str, float]) -> Summary:
    from tensorboard.compat.proto.summary_pb2 import Summary

    known = [(name, value) for name, value in values.items() if not math.isnan(value)]
    return Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in known])


def _image(name: str, png: bytes) -> Summary:
    from tensorboard.compat.proto.summary_pb2 import Summary

    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))  # of the IHDR chunk
    picture = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
    return Summary(value=[Summary.Value(tag=name, image=picture)])


def _pictures(runs: Sequence[Run], beside: Sequence[Run]) -> list[tuple[str, bytes]]:
    """The distribution of JCT and the Gantt chart; none without matplotlib, which the page of images needs."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        return []
    return [(f"pictures/{name.replace('-', '_')}", png) for name, png in of_runs(runs, beside).items()]


def _charts(section: str, prefix: str = "") -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for metric in SECTIONS[section]:
        if metric.chart:
            found.setdefault(metric.chart, []).append(prefix + metric.tag)
    return found


def _layout() -> Summary:
    """The Custom Scalars page: category -> chart -> regular expressions of tags.

    Every run has all of it: where the first run by name lacks a category, TensorBoard 2.21 keeps only the charts of the
    first run that has it. Charts that few environments fill stand in categories that are closed at first.
    """
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata

    shown = {
        "Agents and heuristics": {"mean JCT over that of the reference": [AGAINST], **_charts("any")},
        "Learning": {title: [name] for title, name in (LEARNING | CRITICS).items()},
        "Evaluation": {"mean JCT of each seed [s]": [BY_SEED], **_charts("any", TEST)},
    }
    closed = {"Job groups": _charts("groups"), "Job groups, evaluation": _charts("groups", TEST)}

    def chart(title: str, tags: list[str]) -> layout_pb2.Chart:
        lines = layout_pb2.MultilineChartContent(tag=[f"^{tag}$" for tag in tags])
        return layout_pb2.Chart(title=title, multiline=lines)

    categories = [
        layout_pb2.Category(title=title, chart=[chart(*one) for one in charts.items()], closed=title in closed)
        for title, charts in (shown | closed).items()
    ]
    content = layout_pb2.Layout(category=categories).SerializeToString()
    tensor = TensorProto(dtype=DT_STRING, string_val=[content], tensor_shape=TensorShapeProto())
    about = metadata.create_summary_metadata()
    return Summary(value=[Summary.Value(tag=metadata.CONFIG_SUMMARY_TAG, tensor=tensor, metadata=about)])


def _session(config: Mapping[str, bool | float | str], folder: Path) -> Summary:
    """A run's parameters for the HParams page, which averages rows of one name: each folder has its own name."""
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb

    place = folder.resolve()
    name = f"{place.parent.name}/{place.name} {short_hash(str(place))[:4]}"
    return hparams_pb(dict(config), trial_id=name, start_time_secs=time.time())


def _experiment(config: Mapping[str, bool | float | str], metrics: Sequence[str]) -> Summary:
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    kinds = {bool: api_pb2.DATA_TYPE_BOOL, str: api_pb2.DATA_TYPE_STRING}
    types = {name: kinds.get(type(value), api_pb2.DATA_TYPE_FLOAT64) for name, value in config.items()}
    columns = [api_pb2.HParamInfo(name=name, type=kind) for name, kind in types.items()]
    shown = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in dict.fromkeys(metrics)]
    experiment = api_pb2.Experiment(hparam_infos=columns, metric_infos=shown, time_created_secs=time.time())
    about = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(experiment=experiment))
    return Summary(value=[Summary.Value(tag=metadata.EXPERIMENT_TAG, tensor=metadata.NULL_TENSOR, metadata=about)])
