"""Masked DQN of TorchRL: the mask is in the observation, where ActionMask and the Q-values read it."""

import gymnasium
import torch
from tensordict.nn import TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs import ActionMask, DTypeCastTransform, GymWrapper, TransformedEnv
from torchrl.modules import MLP, EGreedyModule, QValueActor
from torchrl.objectives import DQNLoss, SoftUpdate

import clustergym  # registers the environments

form = {"action": "discrete", "observation": "flat", "mask": "observation", "slots": 8, "preemption": False}
made = gymnasium.make("clustergym/Delay-v0", **form)
env = TransformedEnv(GymWrapper(made, categorical_action_encoding=True))
env.append_transform(DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]))
env.append_transform(ActionMask())

network = MLP(env.observation_spec["observation"].shape[-1], env.action_spec.n, num_cells=[64])
greedy = QValueActor(network, in_keys=["observation"], spec=env.action_spec, action_mask_key="action_mask")
exploring = TensorDictSequential(greedy, EGreedyModule(env.action_spec, action_mask_key="action_mask"))
loss = DQNLoss(greedy, action_space="categorical")
target = SoftUpdate(loss, eps=0.99)
optimiser = torch.optim.Adam(loss.parameters(), lr=1e-3)
buffer = ReplayBuffer(storage=LazyTensorStorage(2_000), batch_size=64)
steps = 0
for played in Collector(env, exploring, frames_per_batch=100, total_frames=2_000):
    buffer.extend(played)
    assert played["action_mask"].gather(-1, played["action"].unsqueeze(-1)).all()  # legal, every one
    loss(buffer.sample())["loss"].backward()
    optimiser.step()
    target.step()
    optimiser.zero_grad()
    steps += played.numel()
print(f"TorchRL's DQN: {steps} steps")
