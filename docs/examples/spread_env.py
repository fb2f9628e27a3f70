"""An environment of your own: a waiting job starts on the emptiest machine or on the fullest one, or it is held.

    python docs/examples/spread_env.py

It defines one family of decisions, composes an environment of it and of the project's holds, plays a heuristic and
trains an agent for some seconds. docs/tutorials/compose.md explains it.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from sb3_contrib import MaskablePPO

import clustergym
from clustergym.agents import sb3_vec_env
from clustergym.envs.agent_interface import AgentInterface
from clustergym.envs.cluster_env import ClusterEnv
from clustergym.envs.columns import JOB_SIZE, TIME, Column, flag, joined, table
from clustergym.envs.families.composing import composed, window_of
from clustergym.envs.families.family import Family
from clustergym.envs.families.hold import UntilOffer
from clustergym.envs.families.job_rows import running_rows, waiting_rows
from clustergym.envs.registration import ENVIRONMENTS, Entry, register
from clustergym.envs.vector import ClusterVectorEnv
from clustergym.envs.window import fill_slots, observe_size, scaled_gpus, scaled_time, unforce, waiting_candidate
from clustergym.policies.passes.starts import start
from clustergym.simulator.compiler.jit import kernel
from clustergym.simulator.jobs.remaining_time import expected_end_s, isolated_left_s
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.running.placers import take_in_machine

# A family: what can be decided, which candidates are legal, what they look like, and what they do.

EMPTIEST, FULLEST = 0, 1


@kernel
def find_machine(s, job, kind):
    """The machine with room for a job that has most free GPUs, or fewest; -1: none has room."""
    best = -1
    for machine in range(s.n_machines):
        free = s.machine_free[machine]
        is_fuller = best < 0 or free < s.machine_free[best]
        is_emptier = best < 0 or free > s.machine_free[best]
        if free >= s.gpus[job] and (is_emptier if kind == EMPTIEST else is_fuller):
            best = machine
    return best


@kernel
def mark(s, w, m, first):
    for slot in range(w.waiting_shown):
        if find_machine(s, w.waiting_job[slot], EMPTIEST) >= 0:
            here = waiting_candidate(w, slot, first)
            w.legal[here + EMPTIEST] = w.legal[here + FULLEST] = 1
            w.can_act = 1


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    offer[to.emptiest + kind] = 1.0
    offer[to.left] = scaled_gpus(w, s.machine_free[find_machine(s, job, kind)] - s.gpus[job])
    offer[to.time_left] = shown[of.time_left]


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    s.gang_size = 0
    take_in_machine(s, find_machine(s, job, kind), s.gpus[job])
    start(s, job)
    return False


class MachineStart(Family):
    """Start on the emptiest machine with room, or on the fullest."""

    name, table, kinds, stands_for = "machine", "queue", ("emptiest", "fullest"), (clustergym.Start,)
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)

    def actions_for(self, window, decision):
        """Either may be the machine of a policy."""
        return (EMPTIEST,), (FULLEST,)


# An environment: tables of jobs, a list of families, and a window. Columns have names, units and ranges.

CLUSTER = table(free=Column("free GPUs"), time=Column("time since the first arrival", TIME))
QUEUE = joined(JOB_SIZE, table(time_left=Column("isolated run time left", TIME)))
RUNNING = joined(JOB_SIZE, table(time_left=Column("time to its end", TIME)))
CANDIDATES = table(
    legal=flag("legal"),
    advance=flag("advance"),
    emptiest=flag("start on the emptiest machine"),
    fullest=flag("start on the fullest machine"),
    hold=flag("hold"),
    left=Column("GPUs left free there"),
    time_left=Column("isolated run time left", TIME),
    gpus=Column("GPUs"),
    free_after=Column("GPUs that would be free afterwards"),
)


@kernel
def look(s, w, m):
    fill_slots(s, w)


@kernel
def write_cluster(s, w, m, features):
    features[CLUSTER.free] = scaled_gpus(w, s.free_gpus)
    features[CLUSTER.time] = scaled_time(w, s.now_s - s.start_s)


@kernel
def write_waiting(s, w, m, slot, job, shown):
    observe_size(s, shown, job)
    shown[QUEUE.time_left] = scaled_time(w, isolated_left_s(s, job))
    return True  # nothing is remembered of what was written before


@kernel
def write_running(s, w, m, slot, job, shown):
    observe_size(s, shown, job)
    shown[RUNNING.time_left] = scaled_time(w, expected_end_s(s, job) - s.now_s)
    return True


@kernel
def no_parts(w, mask, at):
    """An action is a candidate alone."""


FAMILIES = MachineStart, UntilOffer
TABLES = waiting_rows(QUEUE, write_waiting), running_rows(RUNNING, write_running)


class SpreadInterface(AgentInterface):
    """The window of Spread-v0."""

    columns = {"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "candidates": CANDIDATES}
    dtype = staticmethod(lambda: window_of(FAMILIES, ()))
    kernels = composed(
        FAMILIES,
        TABLES,
        CANDIDATES,
        look=look,
        cluster=write_cluster,
        cluster_columns=len(CLUSTER),
        parts=no_parts,
        forget=unforce,
    )

    def __init__(self, **window):
        super().__init__(families=(MachineStart(), UntilOffer()), others=(), **window)


ENVIRONMENTS["clustergym/Spread-v0"] = Entry(
    summary="start waiting jobs on the emptiest or on the fullest machine, or hold them",
    paper="",
    entry_point=f"{__name__}:SpreadEnv",
    vector_entry_point=f"{__name__}:SpreadVectorEnv",
    defaults={
        "topology": "flat:machines=8,gpus_per_machine=4",
        "workload": "poisson:jobs=60,gpus=1/2/4",
        "network": "none",
    },
    decisions=frozenset({"start", "hold"}),
    features=frozenset({"run times"}),
)


class SpreadEnv(ClusterEnv):
    """Start waiting jobs on the emptiest or on the fullest machine, or hold them."""

    part = "Spread-v0"

    def __init__(self, topology=None, workload=None, network=None, *, slots=16, running_slots=8, **given):
        config, common = self.configured(topology, network, given)
        interface = SpreadInterface(slots=slots, running_slots=running_slots, horizon_s=config.horizon_s)
        super().__init__(config.build(Rule("fifo")), interface, workload, common)


class SpreadVectorEnv(ClusterVectorEnv):
    """N environments `SpreadEnv`, stepped by one kernel call."""

    env_class = SpreadEnv


register()


class ShortestOnFullest:
    """A heuristic of yours: the shortest waiting job, on the fullest machine that has room."""

    requires = "start"
    knows_run_times = True

    def decide(self, view):
        for job in sorted(view.queue, key=lambda job: (view.isolated_s(job), job)):
            rooms = [(free, machine) for machine, free in enumerate(view.free_by_machine) if free >= view.gpus(job)]
            if rooms:
                _, machine = min(rooms)
                free = [gpu for gpu in view.free_gpus if view.topology.gpu_machine[gpu] == machine]
                return clustergym.Start(job, free[: view.gpus(job)])
        return clustergym.Advance()


def played(env: Any, act: Any) -> float:
    """Mean JCT of an episode, in seconds."""
    observation, info = env.reset(seed=0)
    ended = False
    while not ended:
        observation, _, terminated, truncated, info = env.step(act(observation, info))
        ended = terminated or truncated
    return info["jct_mean"]


def main(decisions: int = 4096) -> None:
    """Play the heuristic, a rule of the project, and an agent trained for so many decisions."""
    env = gymnasium.make("clustergym/Spread-v0")
    print(env)
    heuristic, fifo = ShortestOnFullest(), clustergym.policies.make("fifo")
    print("shortest on fullest", played(env, lambda *_: env.unwrapped.act_of(heuristic)))
    print("fifo", played(env, lambda *_: fifo.act(env)))
    agent = MaskablePPO("MultiInputPolicy", sb3_vec_env("Spread", 8, seed=0), n_steps=64, gamma=1.0, seed=0)
    agent.learn(decisions)

    def act(observation, info):
        masks = np.asarray(info["action_mask"], bool)
        return agent.predict(observation, action_masks=masks, deterministic=True)[0]

    print("agent", played(env, act))


if __name__ == "__main__":
    main()
