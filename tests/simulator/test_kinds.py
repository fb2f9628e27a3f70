"""Interference by kind of job: GPUs, batch and sub-batch of both count where the table tells them apart."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

from clustergym import policies
from clustergym.simulator.base.decisions import Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload

GIB = 2.0**30
ONE = "flat:machines=1,gpus_per_machine=1"
# Jobs of 4 samples: alone with whole batches they would take three times as long; in passes of 2 the one that halves
# takes 1.2 times as long, and the other 1.5 times.
BY_SUB_BATCH = """victim,with,xi,sub_batch,with_sub_batch
a,a,3.0,4,4
a,a,1.5,4,2
a,a,1.2,2,4
a,a,1.6,4,1
a,a,1.2,1,4
"""


def two_jobs(tmp_path, memory_gb, policy="sjf-bsbf", table=BY_SUB_BATCH):
    """Two jobs of 100 s and 4 samples on one GPU, 1 + b GiB each; nothing is known of what smaller passes cost."""
    (tmp_path / "table.csv").write_text(table)
    profile = {"source": "hand", "memory": {"base_bytes": GIB, "sample_bytes": GIB, "source": "hand"}, "fits": {}}
    (tmp_path / "a.json").write_text(json.dumps({"models": {"a": profile}}))
    sharing = Sharing(2, str(tmp_path / "table.csv"), memory_gb, profiles=str(tmp_path / "a.json"))
    simulator = Simulator(ONE, rule=policies.make(policy).rule, sharing=sharing)
    simulator.reset(Workload.from_arrays("hand", [0, 0], [1, 1], [100, 100], model=["a", "a"], batch_size=[4, 4]))
    simulator.run()
    return simulator


@pytest.mark.parametrize("policy", ["sjf-bsbf", "sjf-ffs"])
def test_the_slowdown_is_that_of_the_sub_batches(tmp_path, policy):
    """8 GiB: job 0 takes 5 and leaves 3, so job 1 runs in passes of 2.

    It is 1.2 times slower and ends at 120; job 0 at 1.5 has done 80 s of work then, and ends at 140.
    """
    simulator = two_jobs(tmp_path, 8.0, policy)
    assert simulator.jobs()["finish_s"].tolist() == pytest.approx([140.0, 120.0])


def test_algorithm_2_takes_the_sub_batch_with_the_least_jct_of_the_pair(tmp_path):
    """No limit of memory. Whole: 300 + 300 s, one after the other 100 + 200; b = 2: 120 + 140; b = 1: 120 + 145.

    b = 1: job 0, at 1.6, has done 75 s at 120, and ends at 145. So they share at b = 2, though 4 would fit.
    """
    simulator = two_jobs(tmp_path, None)
    assert simulator.jobs()["finish_s"].tolist() == pytest.approx([140.0, 120.0])
    assert two_jobs(tmp_path, None, "sjf-ffs").jobs()["finish_s"].tolist() == [300.0, 300.0]  # the largest that fits


def test_a_batch_or_gpus_of_the_workload_choose_the_row(tmp_path):
    """Jobs of 8 samples are slowed 2 times by one of 4 samples, jobs of 4 not at all by one of 8.

    Both 100 s: job 1 (4 samples) ends at 100, job 0 has done 50 s by then and ends at 150.
    """
    (tmp_path / "table.csv").write_text("victim,with,xi,batch\na,a,1,4\na,a,2,8\n")
    simulator = Simulator(ONE, sharing=Sharing(2, str(tmp_path / "table.csv")))
    simulator.reset(Workload.from_arrays("hand", [0, 0], [1, 1], [100, 100], model=["a", "a"], batch_size=[8, 4]))
    simulator.apply(Start(0, (0,)))
    simulator.apply(Start(1, (0,)))
    assert (simulator.view.interference(0, 1), simulator.view.interference(1, 0)) == (2.0, 1.0)
    simulator.advance()
    assert simulator.jobs()["finish_s"].tolist() == [150.0, 100.0]


def test_as_many_kinds_as_a_record_holds(tmp_path):
    """Batches 1 to 33, each with a slowdown of its own: 33 kinds; where only the largest differs there are two."""
    rows = [f"a,a,{1 + batch / 100},{batch}" for batch in range(1, 34)]
    (tmp_path / "table.csv").write_text("\n".join(["victim,with,xi,batch", *rows]))
    batches = np.arange(1, 34)
    workload = Workload.from_arrays(
        "hand", np.zeros(33), np.ones(33, int), np.full(33, 10.0), model=["a"] * 33, batch_size=batches
    )
    simulator = Simulator(ONE, sharing=Sharing(2, str(tmp_path / "table.csv")))
    with pytest.raises(InputError, match=r"33 kinds of jobs .* by model, batch; a simulator holds at most 32"):
        simulator.reset(workload)
    (tmp_path / "table.csv").write_text("victim,with,xi,batch\na,a,1.5,\na,a,2,33\n")
    simulator = Simulator(ONE, sharing=Sharing(2, str(tmp_path / "table.csv")))
    simulator.reset(workload)
    assert simulator.state.n_kinds == 2


class Hashed:
    """Slowdowns that are drawn anew for every pair of loads: neither monotone in anything nor symmetric."""

    def __init__(self, tells_apart, seed, most):
        self.tells_apart, self.seed, self.most = tells_apart, seed, most

    def load_matrix(self, loads):
        return np.array([[self._xi(a, b) for b in loads] for a in loads])

    def _xi(self, victim, partner):
        drawn = zlib.crc32(repr((self.seed, victim, partner)).encode()) / 2**32
        return 1.0 + self.most * drawn


def starts(simulator, workload, filtered):
    """(time, job, GPUs, sub-batch) of every start; unless `filtered` nothing is known of what may share."""
    found = []
    simulator.reset(workload)
    while not simulator.ended:
        if not filtered:
            simulator.state.pair_ratio[:] = 0.0
            simulator.state.class_key[:] = np.inf  # none was refused yet
        decision = simulator.next_decision()
        if isinstance(decision, Start):
            found.append((simulator.view.now_s, decision.job, tuple(decision.gpus), decision.sub_batch))
        simulator.apply(decision)
    return found


@pytest.mark.parametrize("tells_apart", [("sub_batch",), ("gpus", "batch"), ("gpus", "sub_batch")])
def test_what_saves_time_changes_no_decision(tells_apart):
    """The least ratio over the kinds of a model, and the memory of classes, are but necessary conditions."""
    models, whole = ("bert", "yolov3"), {"bert": 12, "yolov3": 8}
    shared = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        gpus = rng.choice([1, 2, 3], 25)
        names = rng.choice(models, 25)
        batch = np.array([whole[name] for name in names]) // rng.choice([1, 2], 25)
        workload = Workload.from_arrays(
            "random",
            np.sort(rng.uniform(0, 1500, 25)),
            gpus,
            rng.lognormal(6, 1, 25),
            model=names,
            batch_size=batch * gpus,
        )
        sharing = Sharing(2, Hashed(tells_apart, seed, [0.4, 1.5][seed % 2]), [None, 11.0][seed // 2 % 2])
        rule = policies.make("sjf-bsbf").rule
        simulator = Simulator("flat:machines=1,gpus_per_machine=6", rule=rule, sharing=sharing)
        plain = starts(simulator, workload, False)
        assert starts(simulator, workload, True) == plain
        shared += gpu_seconds(simulator.state)["shared"] > 0.0
    assert shared > 4
