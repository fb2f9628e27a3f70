"""Why a policy decides as it does: the words of decisions worked out by hand, and that asking changes nothing."""

from __future__ import annotations

import csv
import math

import pytest

from clustergym import policies
from clustergym.experiments.cli import run
from clustergym.experiments.playing.evaluation import evaluate, play
from clustergym.experiments.playing.recording import WORDS, Asking, decisions
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing import store
from clustergym.policies import Policy, RulePolicy
from clustergym.simulator.base.decisions import Advance, Preempt, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload

TWO_BY_TWO = "dally:racks=2,machines=2"  # machines of 8 GPUs, racks of 16
SLOWER = "penalty:default=1/2/4"  # machine, rack, network
RULES = ["fifo:head=reserve", "srtf", "las", "dally", "greedy", "greedy:preempt=on", "gandiva"]
SETTING = Setting.of("clustergym/Delay-v0", "dally:racks=2,machines=4", "poisson:jobs=30,backlog=24", "none")


def told(policy, topology, *rows, network="none", sharing=None, **columns):
    """(time, decision, job, why) of a run of jobs (arrival_s, gpus, duration_s)."""
    made = policies.make(policy)
    simulator = Simulator(topology, network, rule=made.rule, sharing=sharing)
    simulator.reset(Workload.from_arrays("by hand", *map(list, zip(*rows, strict=True)), **columns))
    found = decisions(simulator, made.decider(simulator), asked=made)
    return [(one.time_s, WORDS[one.kind], one.job, one.why) for one in found]


def why(policy, topology, job, *rows, decision="start", **others):
    """Of the first such decision about a job."""
    return next(
        words for _, kind, who, words in told(policy, topology, *rows, **others) if (kind, who) == (decision, job)
    )


# Orders and jobs that are passed over.


def test_fifo_tells_the_arrival_and_which_job_does_not_fit():
    """Job 0 holds 6 of 8 GPUs; job 1 wants 4 and waits; job 2 of 1 GPU came at 20 s and passes it."""
    rows = [(0, 6, 100), (10, 4, 100), (20, 1, 100)]
    assert why("fifo", "flat:machines=1", 0, *rows) == "arrived at 0 s; one machine"
    assert (
        why("fifo", "flat:machines=1", 2, *rows)
        == "arrived at 20 s; one machine; before it: 1 needs 4 GPUs, 2 are free"
    )


def test_fifo_strict_passes_no_job():
    """Job 2 starts after job 1, at 100 s."""
    rows = [(0, 6, 100), (10, 4, 100), (20, 1, 100)]
    assert why("fifo:head=strict", "flat:machines=1", 2, *rows) == "arrived at 20 s; one machine"


def test_srtf_tells_what_is_left_of_both():
    """At 100 s job 1 needs 300 s and all 8 GPUs; job 0 has 900 of 1,000 s left."""
    rows = [(0, 8, 1000), (100, 8, 300)]
    stop = why("srtf", "flat:machines=1", 0, *rows, decision="preempt")
    assert stop == "makes way for 1 (run time left 300 s); its own run time left 900 s"
    assert why("srtf", "flat:machines=1", 1, *rows) == "run time left 300 s; one machine"


def test_las_tells_queue_and_service():
    """Thresholds of 1,600 GPU-seconds: 8 GPUs for 200 s; then job 1, in the first queue, takes them."""
    rows = [(0, 8, 1000), (100, 8, 300)]
    stop = why("las:thresholds=1600", "flat:machines=1", 0, *rows, decision="preempt")
    assert stop == "makes way for 1 (queue 0, 0 GPU-seconds held); its own queue 1, 1,600 GPU-seconds held"


def test_weighted_work_is_worked_out():
    """SRSF: 300 s x 8 GPUs."""
    assert why("srsf", "flat:machines=1", 0, (0, 8, 300)) == "run time left 300 s x 8 GPUs = 2,400; one machine"


def test_a_pass_is_told_as_it_goes_on():
    """Three jobs start at once on 8 GPUs; when the third is asked, 2 are free, too few for job 1."""
    rows = [(0, 4, 100), (0, 8, 200), (0, 2, 300), (0, 1, 400)]
    assert why("sjf", "flat:machines=1", 3, *rows).endswith("before it: 1 needs 8 GPUs, 2 are free")


def test_backfilling_says_for_which_job_it_is_no_later():
    """EASY: job 1 of 8 GPUs starts at 100 s; job 2 of 1 GPU ends by 80 s."""
    rows = [(0, 6, 100), (10, 8, 100), (20, 1, 60)]
    assert why("fifo:head=reserve", "flat:machines=1", 2, *rows).endswith("no later for it: 1 needs 8 GPUs, 2 are free")


# Delay timers.


def test_dally_tells_the_timer_that_ran_out():
    """4 free GPUs on each machine; job 4 of 8 refuses the rack for its machine timer of 600 s, then takes it."""
    rows = [(0, 4, 1e6)] * 4 + [(0, 8, 100)]
    words = why("dally-manual:timers=600/6000,lease=0", TWO_BY_TWO, 4, *_apart(rows), network=SLOWER)
    assert words == (
        "Nw_sens 0; 2 machines of one rack: no machine has room and its machine timer of 600 s is over "
        "(it has waited 600 s)"
    )


def test_dally_tells_which_job_refuses_and_for_how_long():
    """Job 5 of 1 GPU comes at 100 s and starts: job 4, which came first, waits for a machine for 500 s more."""
    rows = [*_apart([(0, 4, 1e6)] * 4 + [(0, 8, 100)]), (100, 1, 10)]
    words = why("dally-manual:timers=600/6000,lease=0", TWO_BY_TWO, 5, *rows, network=SLOWER)
    assert "before it" not in words  # fewer GPUs first, at the same Nw_sens
    rows = [*_apart([(0, 4, 1e6)] * 4 + [(0, 8, 100)]), (100, 16, 10)]
    words = why("dally-manual:timers=600/6000,lease=0", TWO_BY_TWO, 5, *rows, network=SLOWER)
    assert words.startswith("Nw_sens 0; ")


def test_dally_stops_whose_lease_is_over():
    """A lease of 3,600 s; job 1 waits for the same 8 GPUs."""
    rows = [(0, 8, 10_000), (100, 8, 300)]
    stop = why("dally", "flat:machines=1", 0, *rows, decision="preempt")
    assert stop == "its lease is over while 1 job waits; Nw_sens 1"


def _apart(rows):
    """Jobs of 5 GPUs first take a machine each, so that those of `rows` after them find as many free on each."""
    return [(arrival_s, 5 if gpus == 4 else gpus, duration_s) for arrival_s, gpus, duration_s in rows][:4] + [
        (arrival_s, 6 if gpus == 8 else gpus, duration_s) for arrival_s, gpus, duration_s in rows[4:]
    ]


# Greedy: now or later.


def test_greedy_tells_both_ends():
    """Job 2 of 6 GPUs needs 1,000 s in a machine, 2,000 s now in a rack: the first machine is free after 4,900 s."""
    rows = [(0, 5, 5000), (0, 5, 9000), (0, 6, 1000)]
    words = why("greedy", "dally:racks=1,machines=2", 2, *_late(rows), network=SLOWER)
    assert words == (
        "run time left 1,000 s; 2 machines of one rack: done in 2,000 s, not more than 0.9 x 5,900 s after waiting "
        "4,900 s for one machine"
    )


def test_greedy_tells_which_job_would_rather_wait():
    """Job 2 would end 1,000 s after 900 s of waiting, sooner than in 2,000 s: longer job 3 of 1 GPU passes it."""
    rows = [(0, 5, 1000), (0, 5, 9000), (0, 6, 1000), (0, 1, 3000)]
    words = why("greedy", "dally:racks=1,machines=2", 3, *_late(rows), network=SLOWER)
    assert words.endswith("before it: 2 would rather wait: done in 1,900 s after 900 s for one machine, now in 2,000 s")


def _late(rows):
    """All but the first two come at 100 s."""
    return [*rows[:2], *((100, gpus, duration_s) for _, gpus, duration_s in rows[2:])]


def test_greedy_preempting_weighs():
    """theta 1.2: 10,000 s x 8^0.5 of the running job against 100 s x 8^0.5."""
    rows = [(0, 8, 10_100), (100, 8, 100)]
    stop = why("greedy:preempt=on", "flat:machines=1", 0, *rows, decision="preempt", network=SLOWER)
    assert stop == (
        "makes way for 1 (run time left 100 s x 8 GPUs^0.5 = 283); its own run time left 10,000 s x 8 GPUs^0.5 = "
        "28,284, more than 1.2 times that"
    )


# Sharing.


def test_bsbf_tells_both_sums():
    """Theorem 1: at 1 s job 0 has 1,000 s left, job 1 brings 100 s, xi 1.2 for both.

    Together 120 s, then 1,000 - 120 / 1.2 = 900 s of job 0: 120 + 1,020 = 1,140 s; apart 2 x 1,000 + 100 = 2,100 s.
    """
    words = why(
        "sjf-bsbf",
        "flat:machines=1,gpus_per_machine=1",
        1,
        (0, 1, 1001),
        (1, 1, 100),
        sharing=Sharing(interference="constant:xi=1.2", memory_gb=math.inf),
        model=["cifar10", "cifar10"],
        batch_size=[32, 32],
    )
    assert words == (
        "run time left 100 s; beside 0: with 0 both need 1,140 s in all (1.2 and 1.2 times slower), 2,100 s if it waits"
    )


def test_bsbf_tells_which_job_finds_no_partner():
    """xi 3: job 0 has 50 s left, job 1 brings 100 s: 350 s together, 200 s apart. Job 2 takes the other GPU."""
    words = why(
        "sjf-bsbf",
        "flat:machines=1,gpus_per_machine=2",
        2,
        (0, 1, 51),
        (1, 2, 100),
        (2, 1, 500),
        sharing=Sharing(interference="constant:xi=3", memory_gb=math.inf),
        model=["cifar10"] * 3,
        batch_size=[32] * 3,
    )
    assert words == (
        "run time left 500 s; one machine; before it: 1 needs 2 GPUs, 1 is free, and finds too few partners with which "
        "sharing pays"
    )


# The whole: nothing changes, everything built in says something, users may say something too.


@pytest.mark.parametrize("word", RULES)
def test_asking_changes_nothing(word):
    """To the bit; and the words are there for every decision."""
    alone, asked = play(SETTING, word, 0), play(SETTING, word, 0, record=True)
    assert {name: repr(value) for name, value in alone.metrics.items()} == {
        name: repr(value) for name, value in asked.metrics.items()
    }
    assert asked.decisions and all(row[-1] for row in asked.decisions)


@pytest.mark.parametrize(
    ("environment", "word"),
    [
        ("Sharing", "sjf-ffs"),
        ("Sharing", "pollux:adapt=off"),
        ("TimeShift", "themis+cassini"),
        ("Geo", "mast"),
        ("Geo", "random"),
    ],
)
def test_every_decision_of_a_built_in_policy_has_words(environment, word):
    setting = Setting.of(environment, horizon_s=3000.0)
    rows = play(setting, word, 0, record=True).decisions
    assert rows and [row for row in rows if not row[-1]] == []


def test_a_rule_that_is_asked_decision_by_decision_says_the_same():
    """As in an environment, where the pass is not made at once."""
    made = policies.make("srtf")
    simulator = Simulator("flat:machines=1", rule=made.rule)
    simulator.reset(Workload.from_arrays("by hand", [0.0, 100.0], [8, 8], [1000.0, 300.0]))
    found = {}
    while not simulator.ended:
        decision = simulator.ask(made)
        found.setdefault((type(decision), getattr(decision, "job", -1)), made.why(simulator.view, decision))
        simulator.apply(decision)
    assert found[Preempt, 0] == "makes way for 1 (run time left 300 s); its own run time left 900 s"
    assert found[Start, 1] == "run time left 300 s; one machine" and found[Advance, -1] == ""


class Widest:
    """A user's policy that says why."""

    def decide(self, view):
        for job in sorted(view.queue, key=lambda job: (-view.gpus(job), job)):
            if (gpus := view.find_gpus(job, "tier")) is not None:
                return Start(job, gpus)
        return Advance()

    def why(self, view, decision):
        return f"widest:\n{view.gpus(decision.job)} GPUs of {len(view.free_gpus)} free"


def test_a_users_policy_may_say_why():
    (found,) = evaluate(SETTING, [Widest()], [0], record="first")
    assert found.decisions[0][-1] == "widest: 16 GPUs of 64 free"


class Silent(Widest):
    why = None


BROKEN = """
from clustergym.simulator.base.decisions import Advance, Start


class Broken:
    def decide(self, view):
        for job in view.queue:
            if (gpus := view.find_gpus(job, "tier")) is not None:
                return Start(job, gpus)
        return Advance()

    def why(self, view, decision):
        return view.workload.job_id[decision.job + 1000]
"""


class Number(Policy, Widest):
    name = "number"
    decide = Widest.decide

    def why(self, view, decision):
        return 7


def test_a_why_that_fails_is_told_like_a_decide_that_fails(tmp_path):
    (tmp_path / "mine.py").write_text(BROKEN)
    word = f"py:{tmp_path}/mine.py:Broken"
    with pytest.raises(InputError, match=r"seed 0: IndexError: .* \(.*mine.py, line 13\)"):
        evaluate(SETTING, [word], [0], record="first")
    assert evaluate(SETTING, [word], [0])[0].jobs == 30  # nothing asks
    assert not evaluate(SETTING, [Silent()], [0], record="first")[0].decisions[0][-1]
    with pytest.raises(InputError, match="why gave 7; expected text"):
        evaluate(SETTING, [Number()], [0], record="first")


def test_a_rule_says_what_its_subclass_says():
    class Curt(RulePolicy):
        def why(self, view, decision):
            return f"because {decision.job}"

        whys = Policy.whys

    curt = Curt("curt", policies.make("fifo").rule)
    assert play(SETTING, curt, 0, record=True).decisions[0][-1] == "because 0"


def test_the_command_writes_a_column_and_the_store_keeps_it(tmp_path):
    to = tmp_path / "decisions.csv"
    arguments = ["evaluate", "Delay", "--policies", "fifo", "--seeds", "0", "--workload", SETTING.workload, "--network"]
    assert run([*arguments, "none", "--decisions", str(to), "--logdir", str(tmp_path / "kept"), "--quiet"]) == 0
    rows = list(csv.reader(to.open()))
    assert rows[0] == ["policy", "seed", "time_s", "job_id", "decision", "gpus", "why"]
    assert rows[1][-1] == "arrived at 0 s; one machine"
    (kept,) = store.read(tmp_path / "kept").runs
    assert [row[-1] for row in kept.decisions] == [row[-1] for row in rows[1:]]


def test_a_pass_is_told_wherever_it_decides(monkeypatch):
    """Looking for instants at which a rule cannot decide leaves out none at which it does."""
    for word in (*RULES, "srtf:lease=600", "dally:lease=0", "gandiva:slicing=600"):
        asked = play(SETTING, word, 1, record=True).decisions
        with monkeypatch.context() as patched:
            patched.setattr(Asking, "_may_decide", lambda self: True)
            assert play(SETTING, word, 1, record=True).decisions == asked
