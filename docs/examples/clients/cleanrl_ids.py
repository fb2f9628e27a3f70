"""An id that CleanRL's scripts can name: an action is one number, an observation one box, no episode is cut off."""

import math

import gymnasium

import clustergym  # registers the environments

form = {"action": "discrete", "observation": "flat", "slots": 8, "preemption": False, "max_decisions": math.inf}
gymnasium.register("Delay-flat-v0", gymnasium.spec("clustergym/Delay-v0").entry_point, kwargs=form)
