"""Masked DQN of Tianshou 2: it looks for `obs` and `mask` in the observation."""

import gymnasium
from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import clustergym  # registers the environments


def make():
    form = {"action": "discrete", "observation": "flat", "mask": "obs/mask"}
    return gymnasium.make("clustergym/Delay-v0", **form, slots=8, preemption=False)


env = make()
network = Net(state_shape=env.observation_space["obs"].shape, action_shape=env.action_space.n, hidden_sizes=[64])
policy = DiscreteQLearningPolicy(model=network, action_space=env.action_space, eps_training=0.1)
algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=100)
training = Collector(algorithm, DummyVectorEnv([make] * 4), VectorReplayBuffer(2_000, 4), exploration_noise=True)
testing = Collector(algorithm, DummyVectorEnv([make]))
result = algorithm.run_training(
    OffPolicyTrainerParams(
        training_collector=training,
        test_collector=testing,
        max_epochs=2,
        epoch_num_steps=1_000,
        collection_step_num_env_steps=100,
        update_step_num_gradient_steps_per_sample=0.1,
        show_progress=False,
    )
)
print(f"Tianshou's DQN: {result.train_step} training steps, {training.collect_step} steps")
