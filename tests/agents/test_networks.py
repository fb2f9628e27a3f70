"""The candidate network: equivariant, blind to the number of slots, deaf to what is not legal."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra agents")
pytest.importorskip("sb3_contrib", reason="needs the extra agents")

from gymnasium import spaces  # noqa: E402

from clustergym.agents.networks import LEGAL, CandidateNetwork, DenseNetwork, Standard  # noqa: E402
from clustergym.agents.policies import MaskableScoredPolicy, ScoredPolicy  # noqa: E402
from clustergym.envs.observation_layout import Part, Table, Tables  # noqa: E402

HOLD = 3  # column of the candidates


def layout(slots: int, running: int) -> Tables:
    return Tables(12, (Table(slots, 12, 4), Table(running, 9, 2)), 12, (Part(5, HOLD),), 0, HOLD)


def observation(slots: int, running: int, seed: int, batch: int = 3) -> np.ndarray:
    """Random features; every row taken, and candidates legal by chance, advancing always."""
    tables = layout(slots, running)
    rng = np.random.default_rng(seed)
    flat = rng.random((batch, tables.size), np.float32)
    queue, run, candidates = parts_of(flat, slots, running)
    queue[:, :, 0] = run[:, :, 0] = 1.0
    candidates[:, :, LEGAL] = rng.random(candidates.shape[:2]) < 0.5
    candidates[:, 0, LEGAL] = 1.0
    candidates[:, :, HOLD] = 0.0
    candidates[:, 4 : 1 + 4 * slots : 4, HOLD] = 1.0
    return flat


def parts_of(flat: np.ndarray, slots: int, running: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Views of queue, running and candidates in a flat observation."""
    a, b = 12 + 12 * slots, 12 + 12 * slots + 9 * running
    return (
        flat[:, 12:a].reshape(len(flat), slots, 12),
        flat[:, a:b].reshape(len(flat), running, 9),
        flat[:, b:].reshape(len(flat), -1, 12),
    )


def scores(network: torch.nn.Module, flat: np.ndarray, slots: int, running: int) -> tuple[np.ndarray, ...]:
    tensor = torch.as_tensor(flat)
    legal = torch.as_tensor(parts_of(flat, slots, running)[2][:, :, LEGAL] > 0)
    with torch.no_grad():
        return tuple(one.numpy() for one in network(tensor, legal))


def network_of(slots: int, running: int) -> CandidateNetwork:
    torch.manual_seed(0)
    network = CandidateNetwork(layout(slots, running))
    torch.nn.init.normal_(network.score.weight)
    return network


def test_permuting_jobs_permutes_their_scores():
    slots, running = 5, 3
    flat = observation(slots, running, 1)
    order, order_running = np.array([3, 0, 4, 1, 2]), np.array([2, 0, 1])
    shuffled = flat.copy()
    queue, run, candidates = parts_of(shuffled, slots, running)
    source_queue, source_run, source = parts_of(flat, slots, running)
    queue[:], run[:] = source_queue[:, order], source_run[:, order_running]
    moved = [
        0,
        *(1 + 4 * i + k for i in order for k in range(4)),
        *(21 + 2 * j + k for j in order_running for k in range(2)),
    ]
    candidates[:] = source[:, moved]
    network = network_of(slots, running)
    logits, parts, values = scores(network, flat, slots, running)
    logits_moved, parts_moved, values_moved = scores(network, shuffled, slots, running)
    assert np.abs(logits).max() > 1e-3
    np.testing.assert_allclose(logits_moved, logits[:, moved], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(parts_moved, parts, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(values_moved, values, rtol=1e-4, atol=1e-5)


def test_the_same_weights_serve_any_number_of_slots():
    """Empty rows change nothing: 2 + 1 jobs shown in 2 + 1 slots and in 6 + 4 slots have the same scores."""
    small, large = network_of(2, 1), network_of(6, 4)
    large.load_state_dict(small.state_dict())
    flat = observation(2, 1, 2)
    wide = np.zeros((len(flat), layout(6, 4).size), np.float32)
    wide[:, :12] = flat[:, :12]
    for target, source in zip(parts_of(wide, 6, 4), parts_of(flat, 2, 1), strict=True):
        target[:, : source.shape[1]] = source
    candidates, source = parts_of(wide, 6, 4)[2], parts_of(flat, 2, 1)[2]
    candidates[:] = 0.0
    candidates[:, :9], candidates[:, 25:27] = source[:, :9], source[:, 9:]
    before, after = scores(small, flat, 2, 1), scores(large, wide, 6, 4)
    np.testing.assert_allclose(after[0][:, [*range(9), 25, 26]], before[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after[1], before[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after[2], before[2], rtol=1e-4, atol=1e-5)


def test_no_job_at_all_is_no_trouble():
    flat = observation(2, 1, 3)
    flat[:, 12:] = 0.0
    parts_of(flat, 2, 1)[2][:, 0, :2] = 1.0
    assert all(np.isfinite(one).all() for one in scores(network_of(2, 1), flat, 2, 1))


def policy(kind: type, network: str, holds: bool = True):
    torch.manual_seed(1)
    tables = layout(3, 2)
    box = spaces.Box(0.0, 1.0, (tables.size,), np.float32)
    actions = spaces.MultiDiscrete([tables.candidates, 5])
    return kind(box, actions, lambda _: 1e-3, network=network, tables=tables.to_json(), holds=holds)


@pytest.mark.parametrize("network", ["candidates", "mlp"])
@pytest.mark.parametrize("kind", [ScoredPolicy, MaskableScoredPolicy])
def test_only_legal_candidates_are_drawn_even_without_a_mask(kind, network):
    flat = observation(3, 2, 4, batch=400)
    legal = parts_of(flat, 3, 2)[2][:, :, LEGAL] > 0
    actions, values, log_prob = policy(kind, network)(torch.as_tensor(flat))
    drawn = actions[:, 0].numpy()
    assert legal[np.arange(400), drawn].all() and len(set(drawn)) > 5
    assert values.shape == (400, 1) and (log_prob <= 0).all()


@pytest.mark.parametrize("network", ["candidates", "mlp"])
def test_probabilities_of_what_was_drawn_are_evaluated_alike(network):
    flat = torch.as_tensor(observation(3, 2, 5, batch=50))
    own = policy(MaskableScoredPolicy, network)
    actions, values, log_prob = own(flat)
    again_values, again, entropy = own.evaluate_actions(flat, actions)
    torch.testing.assert_close(again, log_prob)
    torch.testing.assert_close(again_values, values)
    assert (entropy >= 0).all()
    torch.testing.assert_close(own.predict_values(flat), values)


def test_a_delay_counts_only_where_a_job_is_held():
    """The log-probability of a start is that of its candidate alone; of a hold, that of candidate and delay."""
    flat = observation(3, 2, 6, batch=1)
    candidates = parts_of(flat, 3, 2)[2]
    candidates[:, :, LEGAL] = 0.0
    candidates[:, [1, 4], LEGAL] = 1.0
    own = policy(MaskableScoredPolicy, "candidates")
    tensor = torch.as_tensor(np.repeat(flat, 7, 0))
    pairs = [(1, 0), (1, 3), *((4, delay) for delay in range(5))]
    log_prob = own.evaluate_actions(tensor, torch.tensor(pairs))[1].exp().detach().numpy()
    assert log_prob[0] == pytest.approx(log_prob[1])
    assert log_prob[0] + log_prob[2:].sum() == pytest.approx(1.0, abs=1e-5)


def test_an_agent_that_may_not_hold_never_does():
    flat = observation(3, 2, 7, batch=300)
    actions = policy(MaskableScoredPolicy, "candidates", holds=False)(torch.as_tensor(flat))[0][:, 0]
    features = torch.as_tensor(parts_of(flat, 3, 2)[2])
    assert (features[torch.arange(300), actions, HOLD] == 0).all()


def test_where_nothing_is_a_hold_the_same_column_costs_a_candidate_nothing():
    """Two legal candidates that differ in it alone are drawn alike."""
    flat = torch.as_tensor(observation(2, 1, 9, batch=1))
    candidates = parts_of(flat, 2, 1)[2]
    candidates[:, 1:, LEGAL] = 0.0
    candidates[:, 3:5] = candidates[:, 4:5].clone()
    candidates[:, 3:5, LEGAL], candidates[:, 3, HOLD] = 1.0, 0.0
    for hold_column, ratio in ((HOLD, 3.0), (None, 0.0)):
        tables = replace(layout(2, 1), hold_column=hold_column)
        torch.manual_seed(0)
        network = CandidateNetwork(tables)
        with torch.no_grad():
            network.candidate.weight[:, HOLD] = 0.0
            scored = network(flat, candidates[:, :, LEGAL] > 0)[0][0]
        assert float(scored[3] - scored[4]) == pytest.approx(ratio, abs=1e-5)


def test_the_mlp_sees_every_table_and_which_candidates_are_legal():
    network = DenseNetwork(layout(3, 2))
    assert network.actor[0].in_features == 12 + 3 * 12 + 2 * 9 + 17


@pytest.mark.parametrize("kind", [CandidateNetwork, DenseNetwork])
def test_without_a_critic_the_same_actor_is_left(kind):
    flat = torch.as_tensor(observation(2, 1, 8))
    legal = torch.ones(len(flat), layout(2, 1).candidates, dtype=torch.bool)
    whole, actor = kind(layout(2, 1)), kind(layout(2, 1), critic=False)
    actor.load_state_dict({name: whole.state_dict()[name] for name in actor.state_dict()})
    assert torch.equal(whole(flat, legal)[0], actor(flat, legal)[0])
    assert not actor(flat, legal)[2].any()
    assert not actor.values(flat).any()
    assert whole.values(flat).any()


def test_what_lies_far_out_counts_by_its_logarithm():
    """Spread 2 about 1: 1 + 2 (e^3 - 1) is e^3 - 1 spreads out, so 3; as far below it is -3; the mean is 0."""
    far = 2.0 * (np.exp(3.0) - 1.0)
    rows = torch.tensor([[1.0 + far], [1.0 - far], [1.0]], dtype=torch.float32)
    for squash, seen in ((True, [3.0, -3.0, 0.0]), (False, [far / 2.0, -far / 2.0, 0.0])):
        standard = Standard(1, squash)
        standard.calibrate(torch.tensor([[-1.0], [3.0]]))
        assert standard(rows).flatten().tolist() == pytest.approx(seen, rel=1e-5)


def test_softening_divides_logits():
    flat = observation(2, 1, 8)
    network = network_of(2, 1)
    before = scores(network, flat, 2, 1)
    network.soften(8.0)
    after = scores(network, flat, 2, 1)
    legal = parts_of(flat, 2, 1)[2][:, :, LEGAL] > 0
    np.testing.assert_allclose(after[0][legal], before[0][legal] / 8.0, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after[1], before[1] / 8.0, rtol=1e-4, atol=1e-6)
