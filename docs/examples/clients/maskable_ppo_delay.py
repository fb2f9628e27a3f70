"""Ten minutes of MaskablePPO on one core, then its mean JCT and that of `fifo` on seeds that it has not seen."""

import gymnasium
from sb3_contrib import MaskablePPO

from clustergym import policies
from clustergym.agents import sb3_vec_env

form = {"action": "discrete", "observation": "flat", "order": "shortest", "slots": 8, "preemption": False}
envs = sb3_vec_env("Delay", 16, seed=0, reference="fifo", **form)
agent = MaskablePPO("MlpPolicy", envs, 5e-4, gamma=1.0, n_steps=256, batch_size=512, n_epochs=4, ent_coef=0.003, seed=0)
agent.learn(2_000_000)
env, fifo = gymnasium.make("clustergym/Delay-v0", **form), policies.make("fifo")
for name in ("fifo", "MaskablePPO"):
    jcts = []
    for seed in range(1_000, 1_050):
        seen, info = env.reset(seed=seed)
        while "metrics" not in info:
            mask = info["action_mask"]
            action = fifo.act(env) if name == "fifo" else agent.predict(seen, action_masks=mask, deterministic=True)[0]
            seen, *_, info = env.step(action)
        jcts.append(info["metrics"]["jct_mean"])
    print(f"{name}: mean JCT {sum(jcts) / len(jcts):,.0f} s")
