"""What an action means is said once: kernels carry it out, and interfaces rehearse them."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest

from clustergym.envs.families.hold import UNTIL_OFFER
from clustergym.envs.geo.geo_window import candidate_of, start_of
from clustergym.envs.registration import make_vec
from clustergym.envs.step import NO_CANDIDATE, candidate_played
from clustergym.envs.window import choice_of, running_candidate, waiting_candidate
from clustergym.simulator.base.decisions import Hold
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.tiers import MACHINE, RACK
from clustergym.tests.support.small_envs import SMALL


def begun(name: str, **options: Any) -> Any:
    """A small environment at its first decision."""
    env = gymnasium.make(f"clustergym/{name}-v0", **{**SMALL[f"clustergym/{name}-v0"], **options}).unwrapped
    env.reset(seed=0)
    return env


@pytest.mark.parametrize(
    ("legal", "candidate", "played"),
    [
        ([1, 0, 1], 2, 2),
        ([1, 0, 1], 1, 0),
        ([1, 0, 1], 3, 0),
        ([0, 0, 1], 1, 2),
        ([0, 1, 1], -1, 1),
        ([0, 0, 0], -1, NO_CANDIDATE),
    ],
)
def test_a_candidate_that_is_not_legal_lets_time_pass_or_is_the_first_that_is(legal, candidate, played):
    for kind in (np.int8, np.bool_):
        assert candidate_played(np.array(legal, kind), len(legal), candidate) == played


def test_a_candidate_behind_those_that_count_is_none():
    assert candidate_played(np.array([1, 1, 1], np.int8), 2, 2) == 0


@pytest.mark.parametrize("name", ["Delay", "Sharing", "Grouping"])
def test_candidates_and_slots_are_one_another(name):
    env = begun(name, slots=3, running_slots=2)
    w, (waiting, running, *_) = env.interface.window, env.tables.tables
    first = 1
    for is_waiting, table, at in ((True, waiting, waiting_candidate), (False, running, running_candidate)):
        for slot in range(table.rows):
            for kind in range(table.kinds):
                job = (w.waiting_job if is_waiting else w.running_job)[slot]
                assert at(w, slot, kind) == first and choice_of(w, first) == (is_waiting, slot, job, kind)
                first += 1
    assert w.candidates == env.tables.candidates == first + sum(table.rows for table in env.tables.tables[2:])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Delay", {"migration": True}),
        ("Delay", {"placer": "random", "preemption_cost": 30.0}),
        ("Sharing", {"partners": 3}),
        ("Grouping", {"ram_gb": 8.0}),
    ],
)
def test_decisions_and_actions_are_each_others_inverse_and_leave_the_run_alone(name, options):
    """Of every legal candidate, the other parts at random."""
    env, rng, kinds = begun(name, **options), np.random.default_rng(0), set()
    for _ in range(60):
        legal, *others = map(np.flatnonzero, np.split(env.action_masks(), np.cumsum(env.form.parts)[:-1]))
        before = env.simulator.raw.record.tobytes()
        for candidate in rng.permutation(legal):
            action = [candidate, *map(rng.choice, others)]
            decisions = env.interface.decisions(action)
            if len(decisions) == 1:
                assert env.interface.decisions(env.interface.action(decisions[0])) == decisions
                kinds.add(type(decisions[0]))
        assert env.simulator.raw.record.tobytes() == before
        if env.step(action)[2]:
            break
    assert len(kinds) >= 4


def test_a_hold_takes_the_nearest_delay_and_tier():
    """Delays: until the next offer, until the timer, 60 s; tiers: machine, rack."""
    env = begun("Delay", delays=(60.0,))
    window, candidate = env.interface, 5
    job, until_s = int(window.window.waiting_job[0]), float(env.simulator.state.now_s) + 60.0
    assert window.decisions((candidate, UNTIL_OFFER, 0)) == window.decisions((candidate, -7, 0)) == [Hold(job)]
    longest = [Hold(job, until_s, RACK)]
    assert window.decisions((candidate, 2, 1)) == window.decisions((candidate, 99, 99)) == longest
    assert window.decisions((candidate, 2, -1)) == [Hold(job, until_s, MACHINE)]


def test_starts_in_regions_and_candidates_are_one_another():
    env = begun("Geo")
    w = env.interface.window
    legal = np.flatnonzero(env.action_masks())[1:].tolist()
    assert legal and [candidate_of(w, *start_of(w, candidate)) for candidate in legal] == legal
    assert candidate_of(w, -5, 0, 0) == 0


def test_where_some_tables_will_be_is_a_part_of_where_all_will():
    env = begun("DataPlacement")
    for _ in range(4):
        env.step(int(np.flatnonzero(env.action_masks())[-1]))
    homes, copies = env.view.projected()
    few_homes, few_copies = env.view.projected(2, 3)
    assert (homes[2:5] == few_homes).all() and (copies[2:5] == few_copies).all()
    assert copies[np.arange(len(homes)), homes].all()
    m, (tables, regions) = env.interface.solver, copies.shape
    assert (m["copies"][:tables, :regions] == copies).all() and (m["home"][:tables] == homes).all()


@pytest.mark.parametrize("candidate", [-1, 9999, 2**40])
@pytest.mark.parametrize("name", ["Delay", "Geo"])
def test_a_candidate_that_does_not_exist_is_an_error_and_nothing_happens(name, candidate):
    """Delay-v0 with 2 and 1 slots has 1 + 5 x 2 + 3 = 14 candidates: 0 to 13; an array says the same as a list."""
    env = begun(name, **({"slots": 2, "running_slots": 1} if name == "Delay" else {}))
    last = env.form.parts[0] - 1
    assert name != "Delay" or last == 13
    before = env.simulator.raw.record.tobytes()
    for action in ([candidate, 0, 0], np.array([candidate, 0, 0])) if name == "Delay" else (candidate, [candidate]):
        with pytest.raises(InputError, match=f"candidate {candidate}: expected 0 to {last}$"):
            env.step(action)
    assert env.simulator.raw.record.tobytes() == before
    assert env.step([last, 0, 0] if name == "Delay" else last)[4]["invalid_action"] in (True, False)


def test_other_parts_out_of_range_are_no_errors():
    env = begun("Delay", slots=2, running_slots=1)
    for parts in ([0, -7, 99], np.array([0, 2**40, -1])):
        env.step(parts)


def vector(**options: Any) -> Any:
    envs = make_vec("Delay", 3, **{**SMALL["clustergym/Delay-v0"], "slots": 2, "running_slots": 1}, **options)
    envs.reset(seed=0)
    return envs


def test_a_batch_names_the_row_whose_candidate_does_not_exist():
    envs = vector()
    for candidate in (14, -1):
        with pytest.raises(
            InputError, match=rf"row 1: action \[{candidate}, 0, 0\]: candidate {candidate}: expected 0"
        ):
            envs.step(np.array([[0, 0, 0], [candidate, 0, 0], [0, 0, 0]]))
    assert envs.step(np.array([[0, 0, 0], [13, 9, -9], [0, 0, 0]]))[0]


def test_a_batch_that_is_not_strict_takes_such_a_candidate_for_an_illegal_one():
    envs = vector(strict=False)
    infos = envs.step(np.array([[0, 0, 0], [14, 0, 0], [-1, 0, 0]]))[4]
    assert infos["invalid_action"].tolist()[1:] == [True, True]
    assert copy.deepcopy(envs).batch.strict is False


def test_a_row_that_is_due_for_a_reset_may_have_any_action():
    """Its action is ignored, as Gymnasium says of NEXT_STEP."""
    envs = vector()
    envs._ended[1] = True
    envs.step(np.array([[0, 0, 0], [9999, 0, 0], [0, 0, 0]]))
    with pytest.raises(InputError, match="row 1"):
        envs.step(np.array([[0, 0, 0], [9999, 0, 0], [0, 0, 0]]))
