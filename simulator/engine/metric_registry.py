"""The metrics of a run: the one list that windows, tables, TensorBoard, reports and the documentation read.

A metric is added here and where it is computed: in metrics.py, of regions in regions/region_metrics.py and
table_placement/placement_metrics.py, of job groups in groups/group_metrics.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

LESS, EITHER, MORE = -1, 0, 1
JOBS, TIME, GROWTH, RUN = "jobs", "time", "growth", "run"
GPUS, GROUPS, REGIONS = "gpus", "groups", "regions"  # what runs are of: GPUs of one cluster, job groups, regions
SHOWN = {"share": ("%", 100.0), "bytes": ("TB", 1e-12), "count": ("", 1.0), "ratio": ("", 1.0)}  # in tables, and factor


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: its key among the metrics of a run. text: what it is.
        unit: `s`, `h`, `bytes`, `kWh`, `$`, `kg`, `share` (0 to 1), `count`, `ratio`.
        better: `LESS`, `MORE` or `EITHER`.
        window: its value in a window of time: of the `JOBS` that arrive in it, its `TIME`, the `GROWTH` in it; `RUN`:
            that of the whole run.
        header, place: of its column in tables, "": none, and its order from the left.
        tables: the kinds of runs whose tables have the column.
        own_tag: its tag in TensorBoard, if that is not below `more/`.
        chart: title of its chart on TensorBoard's page of Custom Scalars, which metrics may share; empty: none.
        curve: title of its learning curve in reports; empty: none.
    """

    name: str
    unit: str
    better: int
    window: str
    text: str
    header: str = ""
    place: int = 0
    tables: tuple[str, ...] = (GPUS, GROUPS, REGIONS)
    own_tag: str = ""
    chart: str = ""
    curve: str = ""

    @property
    def tag(self) -> str:
        """Its tag in TensorBoard."""
        seconds = "_s" if self.unit == "s" and not self.name.endswith("_s") else ""
        return self.own_tag or f"more/{self.name}{seconds}"

    @property
    def shown_unit(self) -> str:
        """The unit that tables have."""
        return SHOWN.get(self.unit, (self.unit,))[0]

    @property
    def factor(self) -> float:
        """From `unit` to `shown_unit`."""
        return SHOWN.get(self.unit, ("", 1.0))[1]

    @property
    def title(self) -> str:
        """Header and unit of its column, one under the other."""
        return f"{self.header}\n[{self.shown_unit}]" if self.shown_unit else self.header


# Which runs have them -> metrics in the order of a run's; `any`: of every run, 0 where they mean nothing.
SECTIONS: Mapping[str, tuple[Metric, ...]] = {
    "any": (
        Metric("jct_mean", "s", LESS, JOBS, "completion time of finished jobs, finish - arrival: mean", "JCT mean", 1,
               own_tag="jct/mean_s", chart="mean JCT [s]", curve="Mean JCT on held-out workloads"),
        Metric("jct_median", "s", LESS, JOBS, "the same: median", own_tag="jct/median_s"),
        Metric("jct_p95", "s", LESS, JOBS, "the same: 95th percentile", own_tag="jct/p95_s"),
        Metric("jct_p99", "s", LESS, JOBS, "the same: 99th percentile", "JCT p99", 1,
               own_tag="jct/p99_s", chart="99th percentile of JCT [s]", curve="99th percentile of JCT"),
        Metric("makespan", "s", LESS, JOBS, "last finish - first arrival; of a run that has not ended, until now",
               "makespan", 1, (GPUS, GROUPS), own_tag="makespan_s", chart="makespan [s]"),
        Metric("queueing_delay_mean", "s", LESS, JOBS, "time without GPUs between arrival and finish, of finished jobs",
               "queueing", 1, own_tag="queueing_delay/mean_s", chart="mean queueing delay [s]"),
        Metric("queueing_delay_p95", "s", LESS, JOBS, "the same: 95th percentile", own_tag="queueing_delay/p95_s"),
        Metric("queueing_delay_p99", "s", LESS, JOBS, "the same: 99th percentile", own_tag="queueing_delay/p99_s"),
        Metric("comm_time_mean", "s", LESS, JOBS, "exposed communication of a finished job: time running beyond what "
               "computing alone takes; of job groups, time in groups beyond what COMP alone takes there"),
        Metric("slowdown_mean", "ratio", LESS, JOBS, "JCT / run time alone on the best placement of the empty cluster"),
        Metric("finish_time_fairness_mean", "ratio", LESS, JOBS,
               "Themis' rho: JCT / time alone on a 1/N share, N the mean number of jobs"),
        Metric("finish_time_fairness_max", "ratio", LESS, JOBS, "the largest rho of a job"),
        Metric("gpu_utilisation", "share", MORE, TIME, "GPU-seconds of computing that is done / all GPU-seconds of the "
               "makespan; of job groups machine-seconds of COMP that is kept, without collecting garbage / all",
               "GPU use", 2, (GPUS,), "gpu_utilisation", "GPU utilisation", "GPU utilisation"),
        Metric("allocation_rate", "share", MORE, TIME, "GPU-seconds during which a job or several held the GPU / all; "
               "of job groups machine-seconds in groups / all", "GPUs\nallocated", 5, (REGIONS,)),
        Metric("cpu_allocation_rate", "share", MORE, TIME, "the same of CPU machines of regions"),
        Metric("fragmentation", "share", LESS, TIME, "GPU-seconds free on machines that are partly used / all"),
        Metric("jobs_finished", "count", MORE, JOBS, "jobs that finished", "finished", tables=()),
        Metric("preemptions", "count", EITHER, GROWTH, "how often a job was stopped for another", "preempted", 3,
               chart="preemptions"),
        Metric("migrations", "count", EITHER, GROWTH, "how often a running job was moved"),
        Metric("failures", "count", LESS, GROWTH, "machines that failed by themselves"),
        Metric("gpu_hours_lost", "h", LESS, GROWTH, "GPU-hours (of job groups machine-hours) of work that failures "
               "undid, or that a job ran past its work in its last chunk"),
        Metric("slo_violation_rate", "share", LESS, JOBS, "jobs that had not finished at their deadline, of those due "
               "by now / all with a deadline; in regions arrived jobs that waited for their first start longer than "
               "their level may (the time to save the jobs that were stopped for it counts) / those with a limit",
               "late\nstarts", 4, (REGIONS,)),
        Metric("congestion_bytes", "bytes", LESS, GROWTH, "bytes offered above the capacity of links"),
        Metric("bytes_moved", "bytes", EITHER, GROWTH, "bytes of complete copies between regions",
               "copied", 7, (REGIONS,)),
        Metric("data_wait_rate", "share", LESS, JOBS, "jobs that no region that was up could run when they arrived, "
               "for want of tables / arrived jobs", "data\nwaits", 6, (REGIONS,)),
        Metric("data_wait_mean", "s", LESS, JOBS, "how long these waited until one could; 0: there are none"),
        Metric("iteration_time_mean", "s", LESS, RUN, "duration of an iteration of any job; 0: no network contention"),
        Metric("iteration_time_p99", "s", LESS, RUN, "the same: 99th percentile, to 0.9 %"),
        Metric("shift_adjustments", "count", LESS, GROWTH, "iterations that began a slot later, since they were late "
               "for theirs (paper cassini, Sec. 5.7)"),
    ),
    "outages": (
        Metric("outages", "count", LESS, RUN, "rows of the list that have begun, and fault groups that failed",
               own_tag="outages"),
        Metric("stopped_for_outages", "count", LESS, RUN, "jobs stopped, with their state saved, by those with notice",
               own_tag="stopped_for_outages"),
    ),
    "links": (
        Metric("link_failures", "count", LESS, GROWTH, "cables that have failed"),
        Metric("stalled_s", "s", LESS, GROWTH, "time in which jobs would send but no way was left, of all jobs"),
    ),
    "prices": (
        Metric("energy_kwh", "kWh", LESS, GROWTH, "energy that all units drew, free or held", "energy", 8),
        Metric("energy_cost", "$", LESS, GROWTH, "its price, by region and hour"),
        Metric("carbon_kg", "kg", LESS, GROWTH, "its CO2, by region and hour", "CO2", 9),
        Metric("egress_cost", "$", LESS, GROWTH, "price of the bytes that left a region for another, those of copies "
               "that were broken off too"),
        Metric("storage_cost", "$", LESS, GROWTH, "price of the bytes that lay in regions, room that is taken for "
               "copies on the way too"),
        Metric("cost_total", "$", LESS, GROWTH, "price of energy, traffic and storage; carbon has none", "cost", 8),
    ),
    "tables": (
        Metric("placement_cost", "ratio", LESS, RUN, "Figure 4 of paper mast, Expressions 1 to 3",
               own_tag="placement_cost"),
        Metric("worst_region_load", "ratio", LESS, RUN, "GPU-hours a day of high-priority jobs / supply, of the region "
               "where that is highest", own_tag="worst_region_load"),
        Metric("home_rate", "share", MORE, RUN, "jobs that train where all their tables have their home",
               own_tag="home_rate"),
        Metric("collocated_rate", "share", MORE, RUN, "GPU-hours of high-priority jobs that some region has all tables "
               "and GPUs for", own_tag="collocated_rate"),
        Metric("home_start_rate", "share", EITHER, RUN, "jobs of the run that started first at the home of all their "
               "tables / those that started and read any"),
    ),
    "groups": (
        Metric("cpu_utilisation", "share", MORE, TIME, "machine-seconds of COMP / all machine-seconds of the makespan "
               "(paper harmony, Eq. 4, over time)", "CPU use", 2,
               own_tag="cpu_utilisation", chart="CPU and network utilisation", curve="CPU utilisation"),
        Metric("network_utilisation", "share", MORE, TIME, "machine-seconds for which COMM keeps the links busy / all",
               "network use", 2,
               own_tag="network_utilisation", chart="CPU and network utilisation", curve="Network utilisation"),
        Metric("jobs_running_mean", "count", EITHER, TIME, "jobs that are executed, mean over the makespan",
               own_tag="jobs_running_mean", chart="jobs in groups, and groups"),
        Metric("groups_mean", "count", EITHER, TIME, "groups, mean over the makespan",
               own_tag="groups_mean", chart="jobs in groups, and groups"),
        Metric("dop_mean", "count", EITHER, RUN, "machines of a group, mean over the makespan", own_tag="dop_mean"),
        Metric("out_of_memory", "count", LESS, GROWTH, "groups that ran out of memory", own_tag="out_of_memory"),
        Metric("moves", "count", EITHER, GROWTH, "entries of jobs into groups", own_tag="moves", chart="moves"),
        Metric("move_time_share", "share", LESS, RUN, "job-seconds of loading / job-seconds of loading and being "
               "executed", own_tag="move_time_share"),
    ),
}  # fmt: skip
METRICS: Mapping[str, Metric] = {metric.name: metric for section in SECTIONS.values() for metric in section}
NAMES = tuple(metric.name for metric in SECTIONS["any"])


def kind_of(names: Collection[str]) -> str:
    """What runs with these metrics are of: `GPUS`, `GROUPS` or `REGIONS`."""
    return GROUPS if "cpu_utilisation" in names else REGIONS if "home_start_rate" in names else GPUS


def columns(names: Collection[str]) -> list[Metric]:
    """The columns of a table of runs that have these metrics, from left to right."""
    kind = kind_of(names)
    shown = [METRICS[name] for name in METRICS if name in names and METRICS[name].header]
    return sorted((one for one in shown if kind in one.tables), key=lambda metric: metric.place)
