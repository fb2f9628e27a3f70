"""A trained agent on disk: a folder of numbers and names, and nothing that could run.

`agent.json` is its `AgentDescription`, `weights.safetensors` holds its weights. Algorithm and network are looked up in
this package's tables, never imported; each weight must fit the policy that is built from the description (security:
docs/tutorials/agents.md).
"""

from __future__ import annotations

import json
import math
import platform
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from gymnasium import spaces
from pydantic import BaseModel, ConfigDict, Field

from ...envs.observation_layout import Tables
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.files.regular_files import expect_plain_file
from ...simulator.files.user_code import expect_trusted, is_user_code, own
from ...simulator.files.yaml_files import validated
from ..networks import NETWORKS
from ..policies import ALGORITHMS, policy_class
from .folders import complete_folder, replaced_whole
from .tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from stable_baselines3.common.policies import BasePolicy

SCHEMA_VERSION = 1
DESCRIPTION, WEIGHTS = "agent.json", "weights.safetensors"
MOST_DESCRIPTION_BYTES = 2**24
MOST_FEATURES = 2**16  # of an observation; 256 waiting and 256 running jobs have 24,000
MOST_WIDTH = 4096  # of a layer, and of any other whole number that shapes a network
POLICY_KWARGS = ("tables", "holds", "critic", "options")
LAYOUT = f"a mapping of {', '.join(field.name for field in fields(Tables))}"
PACKAGES = ("stable-baselines3", "sb3-contrib", "torch", "numpy", "gymnasium")

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Normalisation(BaseModel):
    """Scaling of observations: (x - mean) / sqrt(var + epsilon), cut at +-clip, as in SB3's `VecNormalize`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mean: list[Finite]
    var: list[Annotated[float, Field(ge=0.0, allow_inf_nan=False)]]
    epsilon: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1e-8
    clip: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 10.0


class AgentDescription(BaseModel):
    """An agent and its origin: the content of `agent.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1  # of this description
    algo: str  # `maskable-ppo` or `ppo`
    network: str  # `candidates`, `mlp`, or the word of a user's own (networks.py)
    policy_kwargs: dict[str, Any] = Field(default_factory=dict)  # of the policy class (policies.py), plain values
    environment: str  # the id of its training environment
    env_kwargs: dict[str, Any] = Field(default_factory=dict)  # of that environment: its window on any cluster
    columns: dict[str, list[str]]  # of its observation, by part and by name
    mode: Literal["argmax", "sampled"] = "argmax"  # `argmax` plays the likeliest action, `sampled` draws
    normalisation: Normalisation | None = None  # of observations; None: none
    command: str = ""  # the command line of the training
    config: dict[str, Any] = Field(default_factory=dict)  # of the training
    versions: dict[str, str] = Field(default_factory=dict)  # of Python and of the packages; filled in when it is saved
    seed: int | None = None  # of the training
    steps: int = 0  # of the training
    evaluation: dict[str, Any] = Field(default_factory=dict)  # its results, by metric or by setting


@dataclass(frozen=True)
class SavedAgent:
    """An agent that was loaded."""

    policy: BasePolicy  # with its weights, on the CPU, in evaluation mode
    description: AgentDescription
    files: tuple[Path, ...]  # that it was read from


def save_agent(folder: str | Path, policy: BasePolicy, description: AgentDescription) -> None:
    """Replace the agent in `folder`, if there is one; a kill leaves the old one or the new one.

    Raises:
        InputError: the description does not describe this policy, or the folder cannot be written.
    """
    folder = Path(folder)
    weights = policy.state_dict()
    expect_weights(weights, build_policy(description, str(folder)), folder / WEIGHTS)
    described = description.model_copy(update={"versions": description.versions or _versions()})
    text = json.dumps(described.model_dump(mode="json"), indent=2, ensure_ascii=False)
    with replaced_whole(folder) as draft:
        write_tensors(draft / WEIGHTS, weights)
        (draft / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def load_agent(path: str | Path) -> SavedAgent:
    """The agent in a folder that `save_agent` wrote.

    Raises:
        InputError: there is no agent, or it is invalid: one sentence.
    """
    path = Path(path)
    if path.is_file():
        hint = "a .zip of stable-baselines3 is played by the policy's word sb3:FILE.zip"
        raise InputError(f"{path}: this is a file; expected the folder of an agent ({hint})")
    folder = complete_folder(path)
    if not folder.is_dir():
        raise InputError(f"{path}: there is no such folder; expected one with {DESCRIPTION} and {WEIGHTS}")
    description = read_description(folder)
    policy = build_policy(description, str(folder / DESCRIPTION))
    weights = read_tensors(folder / WEIGHTS)
    expect_weights(weights, policy, folder / WEIGHTS)
    policy.load_state_dict(weights)
    policy.set_training_mode(False)
    _expect_playing(policy, folder)
    files = own(description.network, "network").files if is_user_code(description.network) else ()
    return SavedAgent(policy, description, (folder / DESCRIPTION, folder / WEIGHTS, *files))


def read_description(folder: str | Path) -> AgentDescription:
    """The description of the agent in a folder; InputError: it is missing, invalid, or of another version."""
    path, content = Path(folder) / DESCRIPTION, content_of(folder)
    if "columns" not in content:
        raise InputError(f"{path}: its columns have no names yet; give it some by: clustergym name-columns {folder}")
    return validated(AgentDescription, content, str(path))


def content_of(folder: str | Path) -> dict[str, Any]:
    """The description of the agent in a folder as it stands there; InputError: it is missing, or of a newer version."""
    path = Path(folder) / DESCRIPTION
    expect_plain_file(path)
    try:
        if path.stat().st_size > MOST_DESCRIPTION_BYTES:
            raise InputError(f"{path}: {path.stat().st_size:,} bytes; expected at most {MOST_DESCRIPTION_BYTES:,}")
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        nearer = next((one.parent for one in sorted(Path(folder).glob(f"*/{DESCRIPTION}"))), None)
        hint = f"; did you mean {nearer}?" if nearer is not None else ""
        raise InputError(f"{path}: it cannot be read: {error.strerror}{hint}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected keys and values")
    found = content.get("schema_version")
    if found != SCHEMA_VERSION:
        newer = isinstance(found, int) and found > SCHEMA_VERSION
        advice = "a newer clustergym wrote it; update to load it" if newer else f"expected {SCHEMA_VERSION}"
        raise InputError(f"{path}: schema_version = {found!r}: {advice}")
    return content


def build_policy(description: AgentDescription, source: str = "agent") -> BasePolicy:
    """The policy of a description, with random weights; InputError, which names `source`: there is no such policy."""
    algo = choose(description.algo, ALGORITHMS, f"algo in {source}:")
    network = description.network
    if is_user_code(network):
        expect_trusted(network, f"network in {source}")
    else:
        choose(network, NETWORKS, f"network in {source}:")
    kwargs = description.policy_kwargs
    expect_trusted([description.env_kwargs, kwargs], f"arguments in {source}")
    for key in kwargs:
        choose(key, POLICY_KWARGS, f"key of policy_kwargs in {source}:")
    _expect_plain(kwargs, "policy_kwargs", source)
    try:
        tables = Tables.from_json(kwargs["tables"])
        size, candidates, parts = tables.size, tables.candidates, [part.size for part in tables.parts]
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{source}: policy_kwargs.tables: expected the layout of an observation, {LAYOUT}") from None
    if not (0 < size <= MOST_FEATURES and 0 < candidates <= MOST_FEATURES and all(part > 0 for part in parts)):
        raise InputError(f"{source}: policy_kwargs.tables: {size:,} features, {candidates:,} candidates: not sane")
    normalisation = description.normalisation
    if normalisation is not None and {len(normalisation.mean), len(normalisation.var)} != {size}:
        raise InputError(f"{source}: normalisation: expected mean and var of {size:,} features each")
    observed: spaces.Space = spaces.Box(0.0, 1.0, (size,), np.float32)
    actions = spaces.MultiDiscrete([candidates, *parts]) if parts else spaces.Discrete(candidates)
    try:
        with torch.random.fork_rng(devices=[]):  # saving must not change a training's random numbers
            return policy_class(algo)(observed, actions, _no_learning, network=network, **kwargs)
    except Exception as error:  # torch's errors about invalid sizes
        raise InputError(f"{source}: policy_kwargs: no policy can be built of them ({_one_line(error)})") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _no_learning(progress: float) -> float:
    return 0.0


def _expect_plain(value: Any, place: str, source: str) -> None:
    """Refuse all but plain numbers, text, lists and mappings, and numbers that would fill the memory."""
    if isinstance(value, dict):
        for key, item in value.items():
            _expect_plain(item, f"{place}.{key}", source)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            _expect_plain(item, f"{place}[{number}]", source)
    elif isinstance(value, int) and abs(value) > MOST_WIDTH:
        raise InputError(f"{source}: {place} = {value!r:.40}: expected a number of at most {MOST_WIDTH:,}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{source}: {place} = {value!r}: expected a finite number")
    elif not isinstance(value, bool | int | float | str | None):
        raise InputError(f"{source}: {place} = {value!r:.40}: expected a number, text, a list or a mapping")


def expect_weights(
    weights: dict[str, torch.Tensor], policy: BasePolicy, path: Path, described_by: str = DESCRIPTION
) -> None:
    """Refuse weights whose names, shapes or types are not those of the policy, or that are not finite."""
    expected = policy.state_dict()
    for word, names in (("missing", expected.keys() - weights.keys()), ("unknown", weights.keys() - expected.keys())):
        if names:
            raise InputError(f"{path}: tensor {min(names)!r} is {word}; {described_by} describes another policy")
    for name, tensor in weights.items():
        wanted = expected[name]
        if tensor.shape != wanted.shape or tensor.dtype != wanted.dtype:
            found, should = (f"{list(t.shape)} {str(t.dtype).removeprefix('torch.')}" for t in (tensor, wanted))
            raise InputError(f"{path}: tensor {name!r} is {found}; {described_by} describes {should}")
        if not torch.isfinite(tensor).all():
            raise InputError(f"{path}: tensor {name!r} holds numbers that are not finite")


def _expect_playing(policy: BasePolicy, folder: Path) -> None:
    """Refuse a policy that fails on an observation of the right size."""
    size = policy.observation_space.shape or ()
    try:
        with torch.inference_mode():
            policy.get_distribution(torch.zeros((1, *size)))  # type: ignore[operator]
    except Exception as error:
        message = f"policy_kwargs: the policy cannot be played ({_one_line(error)})"
        raise InputError(f"{folder / DESCRIPTION}: {message}") from None


def _versions() -> dict[str, str]:
    from ... import __version__

    found = {"python": platform.python_version(), "clustergym": __version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # on the path but not installed
            continue
    return found
