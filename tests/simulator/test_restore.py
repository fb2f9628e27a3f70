"""Larger passes for a running job: `Resize` with a sub-batch, and `restore=on`, which asks for it when partners leave.

bert takes 3.487 GiB and 0.534 more a sample of a pass, cifar10 2.104 and 0.0071; on one 2080 Ti a pass of b samples
takes 0.1774 + 0.0224 b s of bert, and 0.04018 + 0.00026 b s of cifar10.
"""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym import policies
from clustergym.envs.sharing.columns import CANDIDATES
from clustergym.policies.bsbf.sjf_bsbf_partners import pair_jct, side_by_side_s
from clustergym.simulator.base.decisions import Advance, Preempt, Resize, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload, open_workload

ONE = "flat:machines=1,gpus_per_machine=1"
NO_INTERFERENCE = Sharing(interference="constant:xi=1.0", memory_gb=11.0)
CIFAR_STRETCH = 4 * (0.04018 + 0.00026 * 128) / (0.04018 + 0.00026 * 512)
BERT_STRETCH = 8 * (0.1774 + 0.0224) / (0.1774 + 8 * 0.0224)


def simulator_of(word, jobs, sharing=NO_INTERFERENCE, topology=ONE):
    """At its first decision; jobs are (arrival_s, duration_s, model, batch) on one GPU each."""
    arrivals, durations, models, batches = map(list, zip(*jobs, strict=True))
    workload = Workload.from_arrays("hand", arrivals, [1] * len(jobs), durations, model=models, batch_size=batches)
    simulator = Simulator(topology, sharing=sharing, rule=policies.make(word).rule)
    simulator.reset(workload)
    return simulator


TWO_JOBS = [(0, 100, "bert", 8), (0, 1000, "cifar10", 512)]


@pytest.mark.parametrize(
    ("restore", "left_s"), [("off", 1000 * CIFAR_STRETCH - 100), ("on", 1000 - 100 / CIFAR_STRETCH)]
)
def test_a_job_grows_into_the_memory_that_its_partner_leaves(restore, left_s):
    """Bert holds 7.76 of 11 GiB: of 512 samples 128 fit beside it, in 4 passes of 0.07346 s for one of 0.1733: 1.6956
    times as long. When it ends at 100, 100 / 1.6956 = 58.98 s of 1,000 are done; the rest takes 941.02 s in whole
    passes, or 1,595.6 s in those of 128."""
    simulator = simulator_of(f"sjf-ffs:restore={restore}", TWO_JOBS)
    simulator.run()
    assert simulator.jobs()["finish_s"] == pytest.approx([100.0, 100.0 + left_s], rel=1e-12)
    assert simulator.view.sub_batch(1) == (512 if restore == "on" else 128)
    assert simulator.metrics()["migrations"] == simulator.metrics()["preemptions"] == 0
    parts = gpu_seconds(simulator.state)
    assert parts["held"] == pytest.approx(sum(parts[name] for name in ("compute", "comm", "interference", "restore")))


def test_the_rule_hands_out_the_resize_as_a_decision():
    """No job waits at 100 s: the decision point is there for the job that can grow. Then there is none."""
    simulator = simulator_of("sjf-ffs:restore=on", TWO_JOBS)
    policy = policies.make("sjf-ffs:restore=on")
    for expected in (Start(0, [0], 8), Start(1, [0], 128), Advance(), Resize(1, [0], sub_batch=512), Advance()):
        decision = simulator.ask(policy)
        assert decision == expected
        simulator.apply(decision)
    assert simulator.done


def test_without_restore_there_is_no_decision_point_for_it():
    simulator = simulator_of("sjf-ffs", TWO_JOBS)
    simulator.schedule()
    simulator.advance()
    assert simulator.done


def test_a_waiting_job_is_served_before_a_running_one_grows():
    """A third job waits when bert ends: it shares first (cifar10 in passes of 128 leaves 8 GiB), and takes the room."""
    simulator = simulator_of("sjf-ffs:restore=on", [*TWO_JOBS, (50, 5000, "bert", 8)])
    simulator.schedule()
    simulator.advance()
    simulator.advance()
    assert simulator.view.now_s == 100.0
    assert simulator.preview_pass() == [Start(2, [0], 8)]


@pytest.mark.parametrize("word", ["sjf-ffs:restore=on", "sjf-bsbf:restore=on", "sjf-ffs:restore=on,round=90"])
def test_a_job_alone_on_its_gpus_runs_in_the_largest_passes(word):
    simulator = Simulator(
        "bsbf-physical",
        "allreduce:calibration=measured,gpu=2080ti",
        rule=policies.make(word).rule,
        sharing=Sharing(3, "constant:xi=1.1", 11.0),
    )
    simulator.reset(open_workload("philly-sample:jobs=64,hours=2", seed=3))
    grown = 0
    while not simulator.done:
        grown += sum(isinstance(decision, Resize) for decision in simulator.preview_pass())
        simulator.schedule()
        view, s = simulator.view, simulator.state
        for job in view.running.tolist():
            if all(view.load[gpu] == 1 for gpu in view.gpus_of(job)):
                base, each = s.memory_base[s.model[job]], s.memory_sample[s.model[job]]
                fits = [view.batch(job) >> e for e in range(20) if base + each * (view.batch(job) >> e) <= s.gpu_memory]
                assert view.sub_batch(job) == fits[0]
        simulator.advance()
    assert grown > 0


def test_a_resize_changes_the_passes_and_costs_nothing():
    """Bert in passes of 1, eight for one, takes 4.482 times as long; from 100 s on it runs whole, then in halves."""
    simulator = simulator_of("fifo", [(0, 1000, "bert", 8), (100, 1, "bert", 8), (200, 1, "bert", 8)])
    simulator.apply(Start(0, (0,), 1))
    simulator.advance()
    simulator.apply(Resize(0, (0,), sub_batch=8))
    simulator.advance()
    assert simulator.view.now_s == 200.0
    done_s = 100.0 + 100.0 / BERT_STRETCH
    simulator.apply(Resize(0, (0,), sub_batch=4))
    stretch = 2 * (0.1774 + 4 * 0.0224) / (0.1774 + 8 * 0.0224)
    simulator.advance()
    assert simulator.view.now_s == pytest.approx(200.0 + (1000.0 - done_s) * stretch, rel=1e-12)
    assert simulator.metrics()["migrations"] == 0
    assert simulator.view.free_memory[0] == pytest.approx(11.0 * 2**30)


def test_smaller_passes_make_room_for_refused_jobs():
    """Beside bert in passes of 8 another does not fit even with 1 sample (4.02 of 3.24 GiB), in passes of 4 it does."""
    simulator = simulator_of("sjf-ffs", [(0, 1000, "bert", 8), (0, 2000, "bert", 8)])
    assert simulator.schedule() == 1 and simulator.next_decision() == Advance()
    simulator.apply(Resize(0, (0,), sub_batch=4))
    assert simulator.next_decision() == Start(1, (0,), 2)


def test_stopped_and_started_in_other_passes_is_no_resize():
    """At one instant a stop and a start with another sub-batch are a new start; a resize is not."""
    simulator = simulator_of("fifo:preemption_cost=10", [(0, 100, "bert", 8), (50, 1, "bert", 8)])
    simulator.apply(Start(0, (0,), 4))
    simulator.advance()
    simulator.apply(Resize(0, (0,), sub_batch=8))
    simulator.apply(Preempt(0))
    simulator.apply(Start(0, (0,), 8))
    assert simulator.metrics()["preemptions"] == 0  # back as it was after the resize
    simulator.apply(Preempt(0))
    simulator.apply(Start(0, (0,), 2))
    assert simulator.metrics()["preemptions"] == 1


BAD = {
    "elastic only": (Resize(0, (0,)), "not elastic; expected sub_batch"),
    "with a batch": (Resize(0, (0,), 8, 4), "not elastic; expected sub_batch"),
    "other GPUs": (Resize(0, (1,), sub_batch=4), r"expected its own, \[0\]"),
    "its own one": (Resize(0, (0,), sub_batch=2), "that is the one that it has"),
    "no halving": (Resize(0, (0,), sub_batch=3), "its batch of 8 samples a GPU, or that halved"),
    "none": (Resize(0, (0,), sub_batch=0), "its batch of 8 samples a GPU, or that halved"),
    "too large": (Resize(0, (0,), sub_batch=8), "GiB left, and 8 samples a pass need 7.76"),
    "not running": (Resize(2, (0,), sub_batch=4), "is waiting"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_resize_that_cannot_be_is_one_sentence(name):
    simulator = simulator_of("fifo", [(0, 100, "bert", 8)] * 3, topology="flat:machines=1,gpus_per_machine=2")
    simulator.apply(Start(0, (0,), 2))
    simulator.apply(Start(1, (0,), 2))
    before = simulator.records.tobytes()
    decision, part = BAD[name]
    with pytest.raises(InvalidDecision, match=part) as error:
        simulator.apply(decision)
    assert "\n" not in str(error.value) and simulator.records.tobytes() == before


def test_a_resize_where_gpus_are_not_shared_is_one_sentence():
    simulator = Simulator(ONE)
    simulator.reset(Workload.from_arrays("hand", [0], [1], [100], batch_size=[8]))
    simulator.apply(Start(0, (0,)))
    with pytest.raises(InvalidDecision, match="GPUs are not shared in this simulator"):
        simulator.apply(Resize(0, (0,), sub_batch=4))


def test_restore_goes_with_sharing():
    with pytest.raises(InputError, match="restore goes with sharing"):
        Rule("srtf", restore=True)


def test_the_ends_of_a_pair_add_up_to_its_sum():
    """100 s join 300 s at xi 1.5 and 2: the new job ends at 150, when the other has done 75, and ends at 375. Of 300 s
    that join 100 s the running one ends at 200, when the new one has done 133.3, and ends at 366.7."""
    assert side_by_side_s(100.0, 1.5, 300.0, 2.0) == (150.0, 0.0, 225.0)
    assert side_by_side_s(300.0, 1.5, 100.0, 2.0) == (200.0, 300.0 - 200.0 / 1.5, 0.0)
    rng = np.random.default_rng(0)
    for new_s, xi_new, running_s, xi_running in rng.uniform(1.0, 9.0, (1000, 4)).tolist():
        both_s, new_after_s, running_after_s = side_by_side_s(new_s, xi_new, running_s, xi_running)
        ends = (both_s + new_after_s) + (both_s + running_after_s)
        best_s, at_once = pair_jct(new_s, 1.0, xi_new, running_s, 1.0, xi_running)
        assert ends == pytest.approx(best_s, rel=1e-14) if at_once else ends > best_s


FIRST, RESIZE = 1 + 3, 1 + 6 * 3 + 1  # the partner alone of the first waiting job; resize of the first running one


def two_berts(**options):
    """Sharing-v0, one GPU of 12 GiB: bert of 60 s runs, another of 1,000 s waits; 1 sample fits beside the first."""
    workload = Workload.from_arrays("hand", [0, 0], [1, 1], [60, 1000], model=["bert"] * 2, batch_size=[8, 8])
    own = {"topology": ONE, "network": "none", "interference": "constant:xi=1.0", "memory_gb": 12.0, "slots": 3}
    env = gymnasium.make("clustergym/Sharing-v0", workload=workload, running_slots=3, **{**own, **options}).unwrapped
    env.reset(seed=0)
    return env, env.step((1, 0))[0]


def column(observation, candidate, *columns):
    return observation["candidates"].reshape(-1, len(CANDIDATES))[candidate, columns].tolist()


def seconds(features):
    return [math.expm1(value * math.log1p(30 * 86400.0)) for value in features]


TOGETHER = (CANDIDATES.new_together, CANDIDATES.other_together)
APART = (CANDIDATES.new_apart, CANDIDATES.other_apart)


def test_a_candidate_shows_when_both_would_end():
    """In passes of 1 the new job takes 4.482 x 1,000 s: it ends at 4,482 beside or after a partner that ends at 60. If
    it waits it ends at 1,060. So the pair loses 3,422 s of 1,120."""
    _, observation = two_berts()
    assert seconds(column(observation, FIRST, *TOGETHER)) == pytest.approx([1000 * BERT_STRETCH, 60.0], rel=1e-4)
    assert seconds(column(observation, FIRST, *APART)) == pytest.approx([1060.0, 60.0], rel=1e-4)
    assert column(observation, FIRST, CANDIDATES.gain) == [0.0]


def test_the_partner_that_gains_least_decides_what_is_shown():
    """Two hold a GPU each, 100 and 20 s, at xi 1.5. A gang of 30 s beside both: with the first it ends at 45, and that
    at 115 (apart 130 and 100: it gains), with the second at 40 and 30 (apart 50 and 20: nothing gained)."""
    workload = Workload.from_arrays("hand", [0, 0, 0], [1, 1, 2], [100, 20, 30], model=["bert"] * 3, batch_size=[8] * 3)
    env = gymnasium.make(
        "clustergym/Sharing-v0", topology="flat:machines=1,gpus_per_machine=2", network="none", workload=workload,
        interference="constant:xi=1.5", memory_gb=None, slots=3, running_slots=3,
    ).unwrapped  # fmt: skip
    env.reset(seed=0)
    env.step((1, 0))
    observation = env.step((1, 0))[0]
    both = 1 + 2  # those that fit first
    assert seconds(column(observation, both, *TOGETHER, *APART)) == pytest.approx([40.0, 30.0, 50.0, 20.0], rel=1e-4)
    assert column(observation, both, CANDIDATES.gain) == [0.5]


def test_a_candidate_without_partners_shows_its_own_end():
    env, _ = two_berts()
    env.reset(seed=0)
    observation = env.observe()
    shown = column(observation, 1, *TOGETHER, *APART)
    assert seconds(shown) == pytest.approx([60.0, 0.0, 60.0, 0.0], rel=1e-4)


def test_where_run_times_are_not_known_the_ends_are_not_either():
    _, observation = two_berts(estimates="none")
    assert column(observation, FIRST, *TOGETHER, *APART) == [0.0] * 4


@pytest.mark.parametrize(("exponent", "played"), [(0, 8), (1, 4), (2, 2), (9, 2)])
def test_an_agent_gives_a_job_larger_passes_when_its_partner_has_left(exponent, played):
    """No job waits at 60 s. The second has done 60 / 4.482 = 13.4 s; whole, the rest takes 986.6 s, and 7.76 GiB."""
    env, _ = two_berts()
    observation, *_ = env.step((FIRST, 0))
    assert env.view.now_s == 60.0 and env.view.sub_batch(1) == 1
    legal = env.action_masks()
    assert legal[RESIZE] and np.flatnonzero(legal[env.action_space.nvec[0] :]).tolist() == [0, 1, 2]
    assert column(observation, RESIZE, CANDIDATES.resize, CANDIDATES.takes_second, CANDIDATES.passes) == [1.0, 1.0, 0.0]
    left_s = 1000.0 - 60.0 / BERT_STRETCH
    assert seconds(column(observation, RESIZE, CANDIDATES.time_left)) == pytest.approx([left_s], rel=1e-4)
    assert column(observation, RESIZE, CANDIDATES.memory_left) == pytest.approx(
        [1 - (3.4873 + 8 * 0.534375) / 12], abs=1e-4
    )
    (decision,) = env.interface.decisions((RESIZE, exponent))
    assert decision == Resize(1, (0,), sub_batch=played)
    assert env.interface.action(decision).tolist() == [RESIZE, min(exponent, 2)]
    *_, ended, _, info = env.step((RESIZE, exponent))
    assert info["adjusted_action"] is (exponent == 9) and not info["invalid_action"]
    if played == 8:
        assert ended and env.simulator.jobs()["finish_s"] == pytest.approx([60.0, 60.0 + left_s], rel=1e-12)
    else:
        assert env.view.now_s == 60.0 and env.view.sub_batch(1) == played and env.action_masks()[RESIZE]


def test_one_exponent_gives_the_largest_passes_that_fit():
    env, _ = two_berts(exponents=1)
    env.step((FIRST, 0))
    env.step((RESIZE, 0))
    assert env.view.sub_batch(1) == 8


def test_a_job_that_could_grow_is_offered_once():
    """Advancing is a decision: without another event the episode goes on to its end."""
    env, _ = two_berts()
    env.step((FIRST, 0))
    *_, ended, _, info = env.step((0, 0))
    assert ended and info["metrics"]["makespan"] == pytest.approx(1000 * BERT_STRETCH)


@pytest.mark.parametrize("slots", [{}, {"slots": 1, "running_slots": 1}])
def test_restore_through_steps_resizes(slots):
    env = gymnasium.make("clustergym/Sharing-v0", interference="constant:xi=1.1", **slots).unwrapped
    policy = policies.make("sjf-ffs:restore=on")
    env.reset(seed=11)
    ended, resized = False, 0
    while not ended:
        action = policy.act(env)
        resized += isinstance(env.interface.decisions(action)[0], Resize)
        *_, ended, _, info = env.step(action)
        assert not (info["invalid_action"] or info["adjusted_action"])
    own = env.simulator
    alone = Simulator(own.topology, own.network, rule=policy.rule, sharing=own.sharing)
    alone.reset(own.workload, int(own.state.seed))
    assert alone.run() == info["metrics"] and resized > 0


def test_batches_resize_as_single_environments_do():
    options = {"interference": "constant:xi=1.1", "slots": 4, "running_slots": 4, "max_decisions": 150}
    envs = clustergym.make_vec("Sharing", 2, autoreset_mode="disabled", **options)
    singles = [gymnasium.make("clustergym/Sharing-v0", **options) for _ in range(2)]
    envs.reset(seed=5)
    for i, env in enumerate(singles):
        env.reset(seed=5 + i)
    rng, first = np.random.default_rng(5), int(envs.single_action_space.nvec[0])
    resizes = 1 + 6 * 4 + 1 + 2 * np.arange(4)
    seen = 0
    for _ in range(140):
        actions = []
        for row in envs.action_masks():
            legal, parts = np.flatnonzero(row[:first]), np.flatnonzero(row[first:])
            grows = np.intersect1d(legal, resizes)
            seen += len(grows) > 0
            actions.append([rng.choice(grows if len(grows) else legal), rng.choice(parts)])
        observations, rewards, terminated, truncated, _ = envs.step(np.array(actions))
        for i, env in enumerate(singles):
            shown, reward, *ends, _ = env.step(actions[i])
            assert all(np.array_equal(observations[key][i], shown[key]) for key in shown)
            assert (reward, *ends) == (rewards[i], terminated[i], truncated[i])
        if (terminated | truncated).any():
            break
    assert seen > 5


@pytest.mark.parametrize(("restore", "end_s"), [("off", 1694.8), ("on", 1694.8)])
def test_restore_leaves_passes_that_larger_ones_would_make_slower(tmp_path, restore, end_s):
    """cifar10 runs beside bert, which leaves at 100 s, and ncf, which stays and triples its time in passes of 512."""
    pairs = [f"{a},{b},1,," for a in ("bert", "cifar10", "ncf") for b in ("bert", "cifar10", "ncf")]
    rows = ["victim,with,xi,sub_batch,", *pairs, "cifar10,ncf,3,512,", "cifar10,ncf,1.2,256,", "cifar10,ncf,1,128,"]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(row.removesuffix(",") for row in rows) + "\n")
    workload = Workload.from_arrays(
        "hand", [0, 0, 1], [1, 1, 2], [5000, 100, 1000], model=["ncf", "bert", "cifar10"], batch_size=[1024, 8, 1024]
    )
    rule = policies.make("sjf-ffs", restore=restore).rule
    simulator = Simulator("flat:machines=1,gpus_per_machine=2", rule=rule, sharing=Sharing(2, str(table), 11.0))
    simulator.reset(workload)
    simulator.run()
    assert simulator.jobs()["finish_s"][2] == pytest.approx(end_s, abs=0.1)
