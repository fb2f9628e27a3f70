"""A training run as one checked value, from the environment's configuration file and the user's changes.

The files are `agents/configs/<environment>.yaml`, and others beside them; docs/tutorials/training.md has the runs
behind their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer, field_validator, model_validator

from ...envs.registration import ENVIRONMENTS
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose, loaded, short_name
from ...simulator.files.user_code import is_user_code, shown_word
from ...simulator.files.yaml_files import load_mapping

FOLDER = Path(__file__).resolve().parents[1] / "configs"
NETS = ("candidates", "mlp")
# Keys of training itself and of our networks, which `env` may not set.
OF_TRAINING = ("topology", "workload", "network", "observation", "action", "mask", "reference", "render_mode")

Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=0.0, le=1.0)]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Scenario(_Checked):
    """A setting from which workloads are drawn."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]  # in tables and logs
    topology: str  # a word, as on the command line
    network: str  # likewise
    workloads: Annotated[tuple[str, ...], Field(min_length=1)]  # words of generators, or paths; each episode draws one
    share: Positive = 1  # rows of the batch that play it, relative to the other scenarios

    @property
    def variant(self) -> dict[str, Any]:
        """As keyword arguments of the environment."""
        return {"topology": self.topology, "network": self.network, "workload": self.workloads}


class Config(_Checked):
    """A training run.

    `variance` reduces the variance of workloads: with `reference` the reward is the difference to the policy
    `reference` on the same workload; with `group` the advantage is the difference to the mean of `replicas` runs of the
    same workload, and a rollout is one episode of every row, without discounts and with scaled advantages, so that
    n_steps, gamma, gae_lambda, vf_coef and normalise have no effect. `reference` is `greedy` by default; where the
    environment lets jobs be stopped, the greedy that does so at the same cost (under `semantics=artist-sim` none does).

    `imitate` is a policy to clone before PPO, the reference by default, or `none`: `imitation_steps` of its decisions,
    in `imitation_epochs` passes, of which a share `imitation_own` is taken at states that a clone of the others reaches
    (Delay-v0, Sharing-v0); then logits are divided by `soften`, for exploration. `start_from` is the word of an agent:
    the training begins with its weights, and imitates nothing. The fields from `num_envs` to `normalise` are those of
    PPO in stable-baselines3; `normalise` scales rewards by the spread of returns.
    """

    environment: str
    algo: Literal["maskable-ppo", "ppo"] = "maskable-ppo"
    net: str = "candidates"  # `candidates`, `mlp`, or a class of your own, `py:FILE.py:NAME` (networks.py)
    net_options: dict[str, float | int] = Field(default_factory=dict)  # its width and so on
    squash: bool = True  # far features count by their logarithm (your own network need not support it)
    holds: bool = False  # the agent may hold single jobs, where there are such candidates
    env: dict[str, Any] = Field(default_factory=dict)  # `reward` may be a function or `py:FILE.py:NAME`
    training: Annotated[tuple[Scenario, ...], Field(min_length=1)]  # to train on
    validation: Annotated[tuple[Scenario, ...], Field(min_length=1)]  # for choosing checkpoint and mode
    validation_seeds: Positive = 20  # of each; not trained on
    variance: Literal["reference", "group", "none"] = "group"
    reference: str = ""
    replicas: Annotated[int, Field(ge=2)] = 16
    imitate: str | None = ""
    start_from: str | None = None
    imitation_steps: Positive = 30_000
    imitation_epochs: Positive = 10
    imitation_own: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    soften: Annotated[float, Field(ge=1.0)] = 1.0
    timesteps: Positive = 4_000_000  # decisions of all rows together; only the first rollout may exceed them
    num_envs: Positive = 128
    n_steps: Positive = 256
    batch_size: Annotated[int, Field(ge=2)] = 2048
    n_epochs: Positive = 2
    learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] = 2e-3
    lr_schedule: Literal["linear", "constant"] = "linear"  # it falls to 0 over the whole length, or stays
    gamma: Rate = 1.0
    gae_lambda: Rate = 1.0
    clip_range: Annotated[float, Field(gt=0.0)] = 0.2
    ent_coef: Annotated[float, Field(ge=0.0)] = 0.001
    vf_coef: Annotated[float, Field(ge=0.0)] = 0.5
    max_grad_norm: Annotated[float, Field(gt=0.0)] = 0.5
    normalise: bool = False
    evaluations: Positive = 16  # in all
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0  # of everything

    @field_validator("net")
    @classmethod
    def _is_network(cls, net: str) -> str:
        return net if is_user_code(net) else choose(net, NETS, "network")

    @field_validator("imitate")
    @classmethod
    def _is_policy(cls, imitate: str | None) -> str | None:
        return None if imitate == "none" else imitate

    @field_serializer("env")
    def _named(self, env: dict[str, Any]) -> dict[str, Any]:
        return {key: shown_word(value) if callable(value) else value for key, value in env.items()}

    @model_validator(mode="after")
    def _fits(self) -> Config:
        if self.variance == "reference" and not self.pays_jct:
            raise ValueError("variance = 'reference' compares mean JCTs; with another reward give 'group' or 'none'")
        if not self.reference:
            object.__setattr__(self, "reference", _better_greedy(self.environment, self.env))
        if self.start_from is not None:
            object.__setattr__(self, "imitate", None)
        if self.imitate == "":
            object.__setattr__(self, "imitate", self.reference)
        if self.variance == "group" and self.num_envs % self.replicas:
            raise ValueError(f"num_envs = {self.num_envs}: expected a multiple of replicas = {self.replicas}")
        if self.batch_size > self.num_envs * self.n_steps:
            raise ValueError(f"batch_size = {self.batch_size}: a rollout has only num_envs x n_steps = {self.rollout}")
        return self

    @property
    def rollout(self) -> int:
        """Decisions between two updates."""
        return self.num_envs * self.n_steps

    @property
    def steps_of_rollout(self) -> int:
        """`n_steps`, or fewer, so that no more than `timesteps` are trained."""
        return max(1 if self.num_envs > 1 else 2, min(self.n_steps, self.timesteps // self.num_envs))

    @property
    def pays_jct(self) -> bool:
        """Whether the reward is `jct`."""
        return self.env.get("reward", "jct") == "jct"


def _better_greedy(environment: str, env: Mapping[str, Any]) -> str:
    """The better greedy that plays by the rules of an environment with these keyword arguments."""
    entry = ENVIRONMENTS.get(environment)
    if entry is not None and loaded(entry.config).unit != "GPUs":  # jobs are no gangs; there is one of the name
        return "greedy"
    if not env.get("preemption", True) or env.get("semantics", "events") != "events":
        return "greedy"
    cost = env.get("preemption_cost", 0.0)
    seconds = "/".join(f"{float(part):g}" for part in (cost if isinstance(cost, list | tuple) else (cost,)))
    word = f"greedy:preempt=on,preemption_cost={seconds},round={float(env.get('round', 0.0)):g}"
    return word.removesuffix(",round=0")


def default_config(environment: str) -> dict[str, Any]:
    """The shipped configuration of an environment as plain values, by id, short or own name; InputError: none."""
    files = {path.stem.capitalize(): path for path in FOLDER.glob("*.yaml")}
    names = {name.lower(): name for name in map(short_name, ENVIRONMENTS)}
    files = {names.get(name.lower(), name): path for name, path in files.items()}
    return read_yaml(files[choose(short_name(environment), files, "environment with a training configuration")])


def read_yaml(path: Path) -> dict[str, Any]:
    """A mapping from a YAML file; InputError if the file cannot be read, or holds something else."""
    return load_mapping(path, "training configuration")


def make_config(values: Mapping[str, Any], source: str) -> Config:
    """Check the values of a configuration; InputError: naming `source`, the key, the value and what was expected."""
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            choose(key, Config.model_fields, f"key of {source}:")
        if first["type"] == "missing":
            raise InputError(f"{source}: {key} is missing") from None
        message = first["msg"].removeprefix("Value error, ")
        if not key:
            raise InputError(f"{source}: {message}") from None
        raise InputError(f"{source}: {key} = {first['input']!r}: {message[0].lower()}{message[1:]}") from None


def expect_fitting(config: Config) -> None:
    """Build one environment, and check every key of `env` and `net_options`; InputError: naming a wrong one."""
    from ...envs.cluster_env import ClusterEnv
    from ...envs.registration import env_class
    from ..networks import network_class

    factory = env_class(config.environment)
    if config.imitation_own and factory.demonstration is not ClusterEnv.demonstration:  # there the expert is played
        followed = f"in {config.environment} the expert has to be followed"
        raise InputError(f"imitation_own = {config.imitation_own:g}: {followed}; leave it out")
    own = [key for key in signature(factory).parameters if key not in OF_TRAINING]
    for key in config.env:
        choose(key, own, "key of env:")
    if factory(**config.env).tables.hold_column is None and config.holds:
        raise InputError(f"holds = true: in {config.environment} no action holds a job; leave it out")
    network, _ = network_class(config.net)
    options = [key for key in signature(network).parameters if key not in ("tables", "critic", "squash")]
    if config.imitate is not None and config.soften != 1.0 and not hasattr(network, "soften"):
        raise InputError(f"soften = {config.soften:g}: {config.net} has no soften(factor); set soften=1")
    for key, value in config.net_options.items():
        choose(key, options, "key of net_options:")
        if key in ("width", "heads") and not (isinstance(value, int) and value >= 1):
            raise InputError(f"net_options.{key} = {value!r}: expected a whole number of at least 1")


def assign(values: dict[str, Any], key: str, text: str) -> None:
    """Modify `values`: give the key, with dots between nested names, the value of the YAML `text`; or InputError."""
    *parents, last = key.split(".")
    choose(key.split(".", maxsplit=1)[0], Config.model_fields, "key of the configuration:")
    place = values
    for name in parents:
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise InputError(f"configuration: {key!r}: {name} has no keys")
    try:
        place[last] = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: dates such as 2024-13-45
        raise InputError(f"configuration: {key} = {text!r}: not a value that YAML reads") from None
