"""Paper harmony: what must hold of its reproductions, on few and small workloads."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from clustergym.experiments.reproduce.harmony import harmony_model, harmony_naive, harmony_solvers
from clustergym.experiments.reproduce.harmony.harmony_model import Group, execute
from clustergym.experiments.reproduce.harmony.harmony_reload import least_s
from clustergym.experiments.reproduce.harmony.harmony_runs import binned, use_drawn
from clustergym.experiments.reproduce.harmony.harmony_solvers import small_problem
from clustergym.experiments.reproduce.reproductions import reproductions
from clustergym.experiments.reproduce.rows import Options
from clustergym.policies.harmony.oracle import exact
from clustergym.tests.support import reproducing
from clustergym.tests.support.reproducing import play_of

pytestmark = pytest.mark.reproduction

PUBLISHED = (
    *("main", "naive", "breakdown", "ratio", "google", "arrivals"),
    *("model-error", "sensitivity", "oracle", "scale", "reload"),
)


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    return Options(cache=tmp_path_factory.mktemp("runs"), quick=True, quiet=True)


def rows_of(name: str, options: Options):
    return reproducing.rows_of(f"harmony-{name}", options)


def group(*jobs: tuple[float, float], machines: int = 8) -> Group:
    comp, comm = np.array(jobs).T
    return Group(comp, comm, np.zeros(len(jobs)), np.zeros(len(jobs)), machines)


# ---- one group


def test_a_job_bound_group_takes_longer_where_push_and_pull_are_apart():
    """Case 2 of the review: COMP 1, 6, 1 s and COMM 1, 5, 1 s: Eq. 1 says 11 s; 12 s where all begin with PULL."""
    jobs = group((8.0, 1.0), (48.0, 5.0), (8.0, 1.0))
    assert jobs.predicted_s == 11.0
    assert execute(jobs, harmony_model.executor_config()).period_s == pytest.approx([11.0] * 3)
    split = execute(jobs, harmony_model.executor_config(comm="split"))
    assert split.period_s == pytest.approx([12.0] * 3)
    assert split.error == pytest.approx(12.0 / 11.0 - 1.0)


def test_a_secondary_comm_makes_a_network_bound_group_faster_than_predicted():
    """The review's case 4: COMP 1 and 1 s, COMM 4 and 2 s, busy .8: Eq. 1 says 6 s, it takes 5.2 s."""
    found = execute(group((8.0, 4.0), (8.0, 2.0)), harmony_model.executor_config(busy=0.8))
    assert found.predicted_s == 6.0
    assert found.period_s == pytest.approx([5.2, 5.2])


def test_eq_1_is_exact_where_an_iteration_has_one_comm():
    found = harmony_model.errors({}, [harmony_model.drawn_group(seed) for seed in range(1000, 1040)])
    assert np.abs(found).max() < 1e-7


# ---- memory


def test_climbing_finds_the_least_that_any_shares_on_disk_could_give(options):
    rows = rows_of("reload", options)
    assert rows["best alpha of 0, .1, ... 1"].ok
    assert rows["iteration with an alpha for each job"].ours == pytest.approx(least_s(), rel=1e-3)


# ---- Algorithm 1


def test_exact_groupings_are_those_of_enumeration():
    for seed in range(200, 210):
        problem = small_problem(seed, 3, 5)
        assert problem.score(exact(problem)) == pytest.approx(harmony_solvers.enumerated(problem))


def test_all_groupings_are_enumerated():
    """Two jobs on two machines: none; one of them on 1 or 2; both in one group on 1 or 2; both alone, 1 and 1."""
    problem = small_problem(0, 2, 2)
    assert len(list(harmony_solvers._plans(problem))) == 1 + 2 * 2 + 2 + 1


def test_all_prefixes_are_within_two_percent_of_a_long_search(options):
    """Of a tenth of the steps here."""
    rows = rows_of("oracle", options)
    assert rows["tiny problems whose exact grouping is that of enumeration"].ok
    large = "80 jobs on 100 machines, ratio spread 0.3, {}: score over that of a long search"
    assert rows[large.format("all prefixes")].ok
    assert rows[large.format("as printed")].ours < rows[large.format("all prefixes")].ours


# ---- runs


def test_cpu_use_and_makespan_are_one_result(options):
    rows = rows_of("main", options)
    assert rows["without move costs: ratio of CPU use over that of makespans"].ok
    assert {f"isolated's {name} over harmony's" for name in ("average JCT", "makespan")} <= set(rows)
    assert any(name.startswith("bound: ") for name in rows)


def test_figure_11_is_drawn_from_what_was_seen_of_the_run(options, tmp_path):
    """The mean over time of what is drawn is the metric."""
    pytest.importorskip("matplotlib")
    play = play_of("harmony-main", dataclasses.replace(options, out=tmp_path))
    play.runs = play.sweep("test", [(policy, "80 jobs") for policy in ("isolated", "harmony")])
    assert [path.name for path in use_drawn(play)] == ["harmony-use.png"]
    assert (tmp_path / "harmony-use.png").read_bytes().startswith(b"\x89PNG")
    outcome = play.runs.of("harmony", "80 jobs")[0]
    edges_s, values = binned(outcome, outcome["network_use"])
    mean = (values * np.diff(edges_s)).sum() / edges_s[-1]
    assert mean == pytest.approx(outcome.metrics["network_utilisation"])


def test_partitions_that_some_job_does_not_fit_into_are_left_out(options):
    """The largest data of Table I, 155 + 24 GB, need 1.36 x 179 / 32 machines, 8: there are at most 12 partitions."""
    able, unable = harmony_naive.parted(play_of("harmony-naive", options))
    assert able == [(6, 2), (12, 2)]
    assert unable == [(25, 2)]


def test_isolated_has_the_machines_that_were_calibrated_for_its_workload(options):
    play = play_of("harmony-readings", options)
    words = [
        play.cases("isolated", at)[0].policy
        for at in (
            "compute-heavy",
            "readings, isolated on 4 machines",
            "readings, isolated passes over jobs that do not fit",
        )
    ]
    assert words == ["isolated:dop=7", "isolated:dop=4", "isolated:dop=5,head=skip"]
    assert play.cases("harmony", "80 jobs")[0].policy == "harmony"


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PUBLISHED, "readings", "calibration"])
def test_each_prints_its_rows(name, options):
    found = reproductions()[f"harmony-{name}"].run(options)
    assert found.rows and found.notes
