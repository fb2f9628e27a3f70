"""MaskablePPO whose TensorBoard shows the cluster: JCT, queueing and GPU use beside level lines of greedy and fifo."""

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from stable_baselines3.common.vec_env import VecMonitor

from clustergym.agents import MetricsCallback, sb3_vec_env

form = {"action": "discrete", "observation": "flat", "order": "shortest", "slots": 8, "preemption": False}
envs = VecMonitor(sb3_vec_env("Delay", 16, seed=0, reference="fifo", **form), info_keywords=("jct_mean",))
# The same ten episodes at every evaluation; a limit, since an agent that has learnt little may wait 6,400 times.
fixed = VecMonitor(sb3_vec_env("Delay", 5, seeds=range(100, 110), max_decisions=500, **form))
callbacks = [
    MetricsCallback(baselines=("greedy", "fifo")),
    MaskableEvalCallback(fixed, eval_freq=1_024, n_eval_episodes=10, best_model_save_path="runs/mine/best"),
]
settings = {"gamma": 1.0, "n_steps": 256, "batch_size": 512, "n_epochs": 4, "ent_coef": 0.003, "seed": 0, "verbose": 1}
model = MaskablePPO("MlpPolicy", envs, 5e-4, tensorboard_log="runs/mine", **settings)
model.learn(100_000, callback=callbacks)
print(f"MaskablePPO: {model.num_timesteps} steps")
