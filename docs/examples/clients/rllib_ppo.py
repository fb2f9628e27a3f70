"""Masked PPO of RLlib's new API stack: its own masking module finds the mask in the observation."""

import gymnasium
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env


def make(config):
    import clustergym  # registers the environments, in every worker

    form = {"action": "discrete", "observation": "flat", "mask": "observations"}
    return gymnasium.make("clustergym/Delay-v0", **form, **config)


register_env("masked-delay", make)
config = (
    PPOConfig()
    .environment("masked-delay", env_config={"slots": 8, "preemption": False})
    .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
    .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
    .training(gamma=1.0, train_batch_size_per_learner=1_000, minibatch_size=250, num_epochs=2)
)
ppo = config.build_algo()
while (result := ppo.train())["num_env_steps_sampled_lifetime"] < 2_000:
    pass
ppo.stop()
print(f"RLlib's PPO: {result['num_env_steps_sampled_lifetime']:.0f} steps")
