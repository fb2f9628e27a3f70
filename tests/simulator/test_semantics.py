"""`semantics=artist-sim` by hand: chunks, leases, auctions, moves; and what its parameters refuse."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.experiments.cli import run
from clustergym.experiments.commands.options import described_setting
from clustergym.experiments.playing.recording import decisions
from clustergym.simulator.base.codes import START
from clustergym.simulator.base.decisions import Hold, Migrate, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.semantics import Semantics, artist_sim, load_semantics
from clustergym.simulator.workloads import Workload, WorkloadWarning
from clustergym.tests.support.paths import WORKLOADS

LONG = 1e6
ONE = "flat:machines=1,gpus_per_machine=4"
TWO = "flat:machines=2,gpus_per_machine=4"


def laid(semantics, topology, *rows, policy="fifo", iteration_s=1.0, network="none", **options):
    """Jobs of (arrival_s, gpus, duration_s), all with iterations of so many seconds."""
    arrival_s, gpus, duration_s = map(list, zip(*rows, strict=True))
    iterations = np.array(duration_s) / iteration_s
    workload = Workload.from_arrays("by hand", arrival_s, gpus, duration_s, iterations=iterations)
    semantics = load_semantics(semantics)
    rule = policies.make(policy).rule_under(semantics)
    simulator = Simulator(topology, network, rule=rule, semantics=semantics, **options)
    simulator.reset(workload)
    return simulator


def starts(simulator):
    """(instant, job) of every start; the run is played to its end."""
    return [(row.time_s, row.job) for row in decisions(simulator) if row.kind == START]


@pytest.mark.parametrize(
    ("iteration_s", "duration_s", "started_s", "finish_s"),
    [
        # chunks of 4,000 iterations of 0.1 s; the ninth ends with the lease, at 3600; auction 4 x 1 s later
        (0.1, 10000, [0, 3604, 7208], 7208 + 2800),
        # of 1400 s: the third ends at 4200, past the lease
        (0.35, 8400, [0, 4204], 8404),
        # of 3500 s: a quarter of the next one would end at 4375, past the lease, so released early, auction at once
        (0.875, 7000, [0, 3500], 7000),
        # of 2800 s: a quarter more ends at 3500, so another one is begun, and ends at 5600
        (0.7, 8400, [0, 5604], 5604 + 2800),
        # the last chunk counts whole: 1000 s are three chunks of 400 s
        (0.1, 1000, [0], 1200),
    ],
)
def test_a_grant_is_as_many_chunks_as_its_lease_has_room_for(iteration_s, duration_s, started_s, finish_s):
    """One job on 4 GPUs: a chunk is 1000 iterations per GPU."""
    simulator = laid("artist-sim", ONE, (0, 4, duration_s), iteration_s=iteration_s)
    found = starts(simulator)
    assert [time_s for time_s, _ in found] == pytest.approx(started_s, rel=1e-12)
    assert simulator.jobs()["finish_s"][0] == pytest.approx(finish_s, rel=1e-12)
    assert simulator.jobs()["preemptions"][0] == len(started_s) - 1


@pytest.mark.parametrize(("lease_s", "at_s"), [(0, 1002.0), (100, 102.0), (1e9, 1002.0)])
def test_a_lease_ends_in_the_loss_of_the_gpus_and_an_auction_a_second_per_gpu_later(lease_s, at_s):
    """2 jobs of 2 GPUs and 1000 s on 2 GPUs, continuous progress. The second starts when the first is cleaned up."""
    topology = "flat:machines=1,gpus_per_machine=2"
    simulator = laid(
        f"artist-sim:lease_s={lease_s},chunk=0", topology, (0, 2, 1000), (0, 2, 1000), policy="las:thresholds="
    )
    assert starts(simulator)[1] == (at_s, 1)


def test_freed_gpus_can_be_taken_at_any_auction_before_their_own():
    """4 GPUs, freed at 100, auctioned at 104. A job that comes at 101 calls an auction, which serves what waits."""
    busy = (0, 4, 100)
    assert starts(laid("artist-sim:chunk=1", ONE, busy, (1, 4, 8)))[1] == (104.0, 1)
    assert starts(laid("artist-sim:chunk=1", ONE, busy, (1, 4, 8), (101, 1, 8)))[1] == (101.0, 1)


def test_an_arrival_calls_an_auction_only_if_a_gpu_is_free():
    simulator = laid("artist-sim:chunk=1", ONE, (0, 4, 100), (50, 1, 8))
    simulator.schedule()
    simulator.advance()
    assert simulator.view.now_s == 104.0


@pytest.mark.parametrize(("newcomer", "start_s"), [(False, 5004.0), (True, 2000.0)])
def test_a_delay_timer_that_runs_out_is_noticed_at_the_next_auction(newcomer, start_s):
    """1 GPU is free on each of 2 machines until 5001; 2 GPUs are asked for at 100, timers of 1000 s.

    No job comes: offered the GPUs freed at 5001 three seconds later. A gang that does not fit comes at 2000: the
    auction that it calls gives the older job both machines.
    """
    rows = [(0, 3, 5001), (0, 3, 5001), (100, 2, 50)] + [(2000, 8, 10)] * newcomer
    semantics = "artist-sim:lease_s=0,chunk=1"
    simulator = laid(semantics, TWO, *rows, policy="dally-manual:timers=1000")
    assert [time_s for time_s, job in starts(simulator) if job == 2] == [start_s]


def test_a_job_holds_two_gangs_while_its_move_is_pending():
    """24 GPUs. Job 0 on machines 0 and 1, chunks of 200 s; at 150 job 1 comes, and job 0 finds machine 2.

    It holds 4 GPUs until 200, when its chunk ends; the second gang has done nothing for 50 s.
    """
    semantics = "artist-sim:lease_s=0,chunk=100"
    simulator = laid(semantics, "dally:racks=1,machines=3", (0, 2, 1000), (150, 1, 10), policy="gandiva")
    simulator.apply(Start(0, [0, 8]))
    simulator.advance()
    assert simulator.view.now_s == 150.0
    simulator.schedule()
    assert len(simulator.view.free_gpus) == 24 - 4 - 1
    assert simulator.view.gpus_of(0) == [0, 8]
    simulator.run()
    assert simulator.jobs()["finish_s"][0] == 1000.0
    assert simulator.state.migrated[0] == 1
    assert gpu_seconds(simulator.state)["restore"] == pytest.approx(2 * 50.0)


def test_a_job_that_is_about_to_move_cannot_be_moved_again():
    simulator = laid("artist-sim:lease_s=0,chunk=100", "dally:racks=1,machines=3", (0, 2, 1000), (150, 1, 10))
    simulator.apply(Start(0, [0, 8]))
    simulator.advance()
    simulator.apply(Migrate(0, [16, 17]))
    with pytest.raises(InvalidDecision, match="about to move"):
        simulator.apply(Migrate(0, [18, 19]))


def test_a_job_cannot_reserve_its_own_gpus():
    """8 GPUs, 4 of them job 0's: a move to 0-3 would take 2 and 3 twice. At the end all GPUs are free."""
    simulator = laid("artist-sim:lease_s=0,chunk=1000", TWO, (0, 4, 5000), (1, 2, 50))
    simulator.apply(Start(0, [2, 3, 4, 5]))
    simulator.advance()
    with pytest.raises(InvalidDecision):
        simulator.apply(Migrate(0, [0, 1, 2, 3]))
    simulator.run()
    assert len(simulator.view.free_gpus) == 8


def test_a_failure_does_not_make_a_job_work_more_than_it_has():
    """100 iterations, one chunk of 1000 s, failures every 500 s or so: what is left never falls below 0."""
    failures = Failures(500.0, 10.0, 0.0)
    simulator = laid(
        "artist-sim:lease_s=0,chunk=1000", "flat:machines=1,gpus_per_machine=1", (0, 1, 100), failures=failures
    )
    while not simulator.ended:
        simulator.schedule()
        simulator.advance()
        assert simulator.state.iterations_left[0] >= 0.0


def test_so_many_auctions_that_one_must_go_let_no_free_gpu_wait():
    """600 jobs of 1 s, one every 2 s, on one GPU, auctioned 1e9 s after each: arrivals call auctions too."""
    rows = [(2.0 * i, 1, 1.0) for i in range(600)]
    simulator = laid("artist-sim:release_s=1e9,chunk=1", "flat:machines=1,gpus_per_machine=1", *rows)
    simulator.run()
    table = simulator.jobs()
    assert (table["first_start_s"] == table["arrival_s"]).all()


def test_a_lease_shorter_than_the_restore_still_comes_to_its_end():
    """Two jobs on one GPU take turns; progress is continuous, each restore takes twice the lease."""
    simulator = laid(
        "artist-sim:lease_s=100,chunk=0", ONE, (0, 4, 1000), (0, 4, 1000), policy="fifo:preemption_cost=200"
    )
    simulator.state.horizon_s = 1e5
    assert simulator.run()["jobs_finished"] == 2


def test_chunk_0_is_continuous_and_tiny_chunks_nearly_so():
    ends = [
        laid(f"artist-sim:chunk={chunk}", TWO, (0, 4, 5000), (0, 4, 7000), (0, 8, 100)).run()["makespan"]
        for chunk in ("0", "1e-9", "1e-4")
    ]
    assert ends[1] == pytest.approx(ends[0], rel=1e-6) and ends[2] == pytest.approx(ends[0], rel=1e-3)


def test_a_chunk_larger_than_any_job_is_done_once():
    """1e12 iterations of 1 s per GPU, on 4 GPUs: the job ends with its first chunk."""
    simulator = laid("artist-sim:chunk=1e12", ONE, (0, 4, 100))
    simulator.run()
    assert simulator.jobs()["finish_s"][0] == 4e12


# work and waste


@pytest.mark.parametrize("gpus", [1, 4, 8, 16])
def test_a_trace_without_iterations_runs_with_chunk_0_and_says_so(gpus):
    """One job of 1,800 s. With iterations of 1 s each it would run whole chunks: 2,000 to 16,000 s."""
    simulator = Simulator("dally:racks=2", "none", semantics="artist-sim")
    with pytest.warns(WorkloadWarning, match="does not give the iterations .* chunk=0"):
        simulator.reset(Workload.from_arrays("by hand", [0.0], [gpus], [1800.0]))
    metrics = simulator.run()
    assert metrics["makespan"] == 1800.0
    assert (metrics["gpu_hours_lost"], metrics["gpu_utilisation"]) == (0.0, gpus / 128)


@pytest.mark.parametrize(
    ("semantics", "known"), [("artist-sim", True), ("artist-sim:chunk=0", False), ("events", False)]
)
def test_nothing_is_said_where_chunks_have_a_length_or_there_are_none(semantics, known, recwarn):
    iterations = [1800.0] if known else None
    workload = Workload.from_arrays("by hand", [0.0], [1], [1800.0], iterations=iterations)
    Simulator(ONE, "none", semantics=semantics).reset(workload)
    assert not recwarn.list


@pytest.mark.parametrize(("gpus", "ended_s"), [(1, 2000.0), (4, 4000.0), (8, 8000.0), (16, 16000.0)])
def test_no_job_computes_longer_than_its_work(gpus, ended_s):
    """1,800 iterations of 1 s in chunks of 1,000 a GPU: jobs end as in the authors' simulator, and the rest is lost."""
    simulator = laid("artist-sim:lease_s=0", "dally:racks=2", (0, gpus, 1800))
    metrics, parts = simulator.run(), gpu_seconds(simulator.state)
    assert metrics["makespan"] == ended_s
    assert (parts["held"], parts["compute"], parts["comm"]) == (gpus * ended_s, gpus * 1800.0, 0.0)
    assert parts["lost"] == gpus * (ended_s - 1800.0) == pytest.approx(3600.0 * metrics["gpu_hours_lost"])
    assert metrics["gpu_utilisation"] == pytest.approx(gpus * 1800.0 / (128 * ended_s))


def test_the_rest_of_a_last_chunk_is_lost_while_it_runs():
    """4 GPUs, 100 s of work in a chunk of 4,000 s; another job comes at 60 s and at 1,000 s."""
    simulator = laid("artist-sim:lease_s=0", TWO, (0, 4, 100), (60, 1, 8), (1000, 1, 8))
    found = {}
    while not simulator.ended:
        simulator.schedule()
        parts = gpu_seconds(simulator.state)
        found[simulator.view.now_s] = [parts[name] for name in ("held", "compute", "lost")]
        simulator.advance()
    assert found[60.0] == [240.0, 240.0, 0.0]
    # by then the second job has run 940 s of its chunk of 1,000, and worked for 8 of them
    assert found[1000.0] == [4000.0 + 940.0, 400.0 + 8.0, 3600.0 + 932.0]


def test_the_rest_of_a_last_chunk_is_not_communication():
    """2 GPUs on two machines at half the speed: 100 s of work take 200 of the chunk's 800 s, half of them to talk."""
    simulator = laid("artist-sim:chunk=200,lease_s=0", TWO, (0, 2, 100), network="penalty:default=1/2/2")
    simulator.apply(Start(0, [0, 4]))
    metrics, parts = simulator.run(), gpu_seconds(simulator.state)
    assert [parts[name] for name in ("held", "compute", "comm", "lost")] == [1600.0, 200.0, 200.0, 1200.0]
    assert metrics["comm_time_mean"] == 100.0


def test_what_a_failure_undoes_is_lost_once():
    """100 s of work in chunks of 1,000 s, failures every 300 s or so: all but the last chunk's 100 s are lost."""
    failures = Failures(300.0, 10.0, 0.0)
    topology = "flat:machines=1,gpus_per_machine=1"
    simulator = laid("artist-sim:lease_s=0,chunk=1000", topology, (0, 1, 100), failures=failures)
    simulator.reset(simulator.workload, seed=1)
    while not simulator.ended:
        simulator.schedule()
        parts = gpu_seconds(simulator.state)
        assert parts["held"] == pytest.approx(parts["compute"] + parts["lost"])
        assert 0.0 <= parts["compute"] <= 100.0 and simulator.state.iterations_left[0] >= 0.0
        simulator.advance()
    assert simulator.metrics()["failures"] > 0
    assert gpu_seconds(simulator.state)["compute"] == pytest.approx(100.0)


# files of jobs


@pytest.mark.parametrize(("given", "read_as"), [(None, "gang,caps=batch"), ("artist-sim:caps=on", "gang,caps=on")])
def test_a_file_of_artist_sim_is_read_as_there_unless_said_otherwise(given, read_as):
    path = WORKLOADS / "synthetic_artist_sim.csv"
    setting = described_setting("Delay", str(path), format=given, assignments=["semantics=artist-sim"])
    assert setting.format == f"artist-sim:scale={read_as}"


def test_the_command_says_once_that_chunks_have_no_length(capsys):
    words = [
        "evaluate",
        "Delay",
        "--workload",
        "poisson:jobs=5",
        "--network",
        "none",
        "--policies",
        "fifo sjf",
        "--seeds",
        "0-2",
    ]
    assert run([*words, "--set", "semantics=artist-sim"]) == 0
    assert capsys.readouterr().err.count("does not give the iterations") == 1


# Delay-v0


def env_of(rows, topology=TWO, **options):
    arrival_s, gpus, duration_s = map(list, zip(*rows, strict=True))
    workload = Workload.from_arrays("by hand", arrival_s, gpus, duration_s, iterations=duration_s)
    env = gymnasium.make(
        "clustergym/Delay-v0", topology=topology, workload=workload, network="none", **options
    ).unwrapped
    env.reset(seed=0)
    return env


def test_decision_points_are_auctions():
    """4 GPUs for 100 s, then 4 s of cleaning; the job that waits since 50 is shown at 104."""
    env = env_of([(0, 4, 100), (50, 4, 100)], topology=ONE, semantics="artist-sim:chunk=1")
    env.step((1, 0, 0))
    assert env.view.now_s == 104.0


def test_a_start_after_nothing_was_to_come_is_no_stall():
    """Both jobs of 4 GPUs are held until 300, after everything else; then one starts, and the other has to wait."""
    env = env_of([(0, 4, 50), (0, 4, 50), (10, 1, 5)], topology=ONE, semantics="artist-sim:chunk=1", skip_idle=False)
    for job in (0, 1):
        env.simulator.apply(Hold(job, 300.0))
    for action in ((0, 0, 0), (1, 0, 0), (0, 0, 0)):
        env.step(action)
    while env.view.running.size or env.view.queue.size or env.view.held.size:
        mask = env.action_masks()
        _, _, terminated, _, _ = env.step((1 if mask[1] else 0, 0, 0))
        if terminated:
            break
    assert env.simulator.done


@pytest.mark.parametrize("placer", ["tier", "first", "count"])
def test_a_move_through_env_step_takes_no_gpu_twice(placer):
    """2 GPUs on two machines of 4, one of which is freed; moved whenever that is legal. All GPUs are free at last."""
    rows = [(0, 3, 500), (0, 3, 5000), (0, 2, 5000), (600, 1, 10), (900, 1, 10)]
    env = env_of(rows, semantics="artist-sim:lease_s=0,chunk=100", placer=placer, slots=4, running_slots=4)
    for _ in range(100):
        legal = np.flatnonzero(env.action_masks()[:33]).tolist()
        moves = [c for c in legal if c > 20 and (c - 21) % 3 == 1]
        starts_ = [c for c in legal if 0 < c <= 20 and c % 5]
        _, _, terminated, _, _ = env.step((([*moves, *starts_, 0])[0], 0, 0))
        if terminated:
            break
    assert terminated
    assert env.simulator.metrics()["migrations"] > 0
    assert len(env.view.free_gpus) == 8


# mistakes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("artist", "artist-sim"),
        ("", "empty"),
        ("artist-sim:lease=3", "lease_s"),
        ("artist-sim:lease_s=-1", "lease_s"),
        ("artist-sim:lease_s=1e-9", "0.001"),
        ("artist-sim:lease_s=inf", "number"),
        ("artist-sim:lease_s=nan", "number"),
        ("artist-sim:chunk=-1", "chunk"),
        ("artist-sim:chunk=many", "chunk"),
        ("artist-sim:release_s=inf", "release_s"),
        ("artist-sim:chunk=1,chunk=2", "twice"),
        ("events:lease_s=5", "lease_s"),
    ],
)
def test_a_mistake_is_one_sentence(text, says):
    with pytest.raises(InputError) as caught:
        load_semantics(text)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_semantics_are_values():
    assert load_semantics("artist-sim:lease_s=1800") == artist_sim(1800.0)
    assert load_semantics(Semantics()) == load_semantics("events")


@pytest.mark.parametrize(
    ("name", "given", "there"),
    [
        ("dally", {"lease": 0.0}, "3600"),
        ("dally", {"placer": "tier"}, "first"),
        ("tiresias", {"round": 60.0}, "0"),
        ("las", {"thresholds": (1.0, 2.0)}, "empty"),
        ("tiresias", {"quantum": 60.0}, "1"),
        ("gandiva", {"slicing": 60.0}, "0"),
    ],
)
def test_what_auctions_set_aside_is_refused_where_it_was_given(name, given, there):
    """Not where it was left out, nor where it is what is played there."""
    auctions, policy = load_semantics("artist-sim"), policies.make(name, **given)
    (parameter,) = given
    with pytest.raises(InputError, match=rf"sets {parameter} aside \(there it is {there}\)"):
        policy.rule_under(auctions)
    assert policy.rule_under(load_semantics("events")) == policy.rule
    assert policies.make(name).rule_under(auctions).order != "turns"


@pytest.mark.parametrize("word", ["dally:lease=3600,round=0,placer=first", "las:thresholds=", "gandiva:slicing=0"])
def test_what_auctions_play_anyway_may_be_given(word):
    policy = policies.make(word)
    assert policy.rule_under(load_semantics("artist-sim")) == policy.at_auctions


def test_an_environment_under_auctions_refuses_such_a_policy():
    env = env_of(((0, 1, 10), (0, 1, 10)), semantics="artist-sim")
    env.reset(seed=0)
    with pytest.raises(InputError, match="sets lease aside"):
        policies.make("dally:lease=0").act(env)


def test_a_moved_job_does_not_end_for_a_rounding_error():
    """Without chunks a grant ends when its job moves. 8.8 + (59.6 - 8.8) is less than 59.6 in floating point."""
    before_s, at_s = 8.8, 59.6
    assert before_s + (at_s - before_s) < at_s
    simulator = laid("artist-sim:lease_s=0,chunk=0,release_s=0", ONE, (before_s, 1, 100.0), (at_s, 1, 10.0))
    simulator.apply(Start(0, [0]))
    simulator.advance()
    assert simulator.view.now_s == at_s
    simulator.apply(Migrate(0, [1]))
    simulator.run()
    assert simulator.jobs()["finish_s"][0] == pytest.approx(before_s + 100.0)
    assert gpu_seconds(simulator.state)["compute"] == pytest.approx(110.0)
