"""Algorithm 1 decides as the plain-Python reference does, which was written without reading it."""

import numpy as np
import pytest

from clustergym.policies.harmony.harmony import algorithm1
from clustergym.policies.harmony.problem import Problem
from clustergym.tests.support.harmony_reference import schedule

PROBLEMS = range(100)


def drawn(seed: int) -> Problem:
    """1 to 14 jobs on 1 to 40 machines, COMP over COMM spread widely; every third with models that may not fit."""
    rng = np.random.default_rng(1000 + seed)
    jobs, machines = int(rng.integers(1, 15)), int(rng.integers(1, 41))
    comm = rng.uniform(0.5, 10.0, jobs)
    comp = comm * machines * rng.lognormal(-1.0, rng.uniform(0.1, 1.2), jobs)
    models = rng.uniform(0.0, 3.0, jobs) if seed % 3 == 0 else None
    return Problem(comp, comm, machines, model_bytes=models, ram_bytes=1.36)


@pytest.mark.parametrize("balance", ["job", "group"])
@pytest.mark.parametrize("stop", ["all", "printed"])
def test_groups_are_those_of_the_reference(stop, balance):
    """On 100 problems: the same groups in the same order, of the same jobs, on as many machines."""
    different = []
    for seed in PROBLEMS:
        problem = drawn(seed)
        models = None if problem.model_bytes is None else problem.model_bytes.tolist()
        expected = schedule(
            list(zip(problem.comp.tolist(), problem.comm.tolist(), strict=True)),
            problem.machines,
            stop=stop,
            balance=balance,
            model_bytes=models,
            ram_bytes=problem.ram_bytes,
        )
        groups = [(tuple(sorted(members)), machines) for members, machines in expected]
        if algorithm1(problem, stop=stop, balance=balance).groups() != groups:
            different.append((seed, groups))
    assert different == []
