"""What a user writes about a cluster, in YAML or JSON: read safely, checked, and built into a Topology.

The schema, full form (every `count` is 1 where it is left out, names are numbered):

    name: my-cluster                      # optional
    machine_order: natural                # optional; or a whole number, the seed of a random order
    regions:
      - name: east                        # letters, digits, "_" and "-"; unique
        count: 1                          # several equal ones: east-0, east-1, ...
        clusters:
          - name: a                       # unique in its region
            count: 1
            gpu_type: V100                # optional, any text
            racks:
              - count: 4                  # four equal racks
                machines:
                  - {count: 8, slots: 2, gpus_per_slot: 4}      # slots: 1 by default
    tiers:                                # optional; what is left out is unknown; network/written.py
      - {name: rack, bandwidth_gbps: 400, latency_us: 5, oversubscription: 2}

The short form, one cluster of equal machines: `{racks: 2, machines: 8, slots: 2, gpus_per_slot: 4}`; machines
is per rack, racks and slots are 1 by default; name, machine_order, gpu_type and tiers as above.
Tier names: slot (inside a slot), machine (between slots), rack (between machines), network (between racks).
A mapping with `nodes` is a graph of machines, switches and links instead: link_files.py. Regions with `storage_tb` and
links between them have clusters of GPU and CPU machines: geo/files.py.
"""

from __future__ import annotations

import difflib
import functools
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .errors import InputError
from .tiers import TIER_NAMES
from .topology import MAX_GPUS, MOST_LATENCY_US, NATURAL, Tier, Topology, check_gpu_count, checked_order

MAX_FILE_BYTES = 4 * 2**20
MAX_DEPTH = 100  # of lists and mappings in each other
MAX_NODES = 200_000  # values in one file, aliases counted as often as they are used
_SHORT_KEYS = ("racks", "machines", "slots", "gpus_per_slot")
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"


def read_text(path: str | os.PathLike[str], what: str, max_bytes: int = MAX_FILE_BYTES) -> str:
    """The text of a UTF-8 file.

    Args:
        path: the file.
        max_bytes: the largest size that is read.
        what: how to call it in an error, e.g. "topology".

    Raises:
        InputError: no such file, a folder, unreadable, empty, larger than `max_bytes`, or not text.
    """
    place = f"{what} {os.fspath(path)!r}"
    try:
        if os.path.isdir(path):
            raise InputError(f"{place} is a folder, expected a file")
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"{place} is a pipe or a device, expected a file")
        if os.path.getsize(path) > max_bytes:
            raise InputError(f"{place} has {os.path.getsize(path)} bytes, expected at most {max_bytes}")
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{place} is not text: byte {error.start} is not UTF-8") from None
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{place}: there is no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        raise InputError(f"{place} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if "\0" in text:
        raise InputError(f"{place} is not text: it contains NUL characters")
    if not text.strip():
        raise InputError(f"{place} is empty")
    return text


def load_mapping(path: str | os.PathLike[str], what: str = "file") -> dict[str, Any]:
    """The mapping in a YAML or JSON file (JSON if the name ends in .json); nothing in it is run.

    Args:
        path: the file.
        what: how to call the file in an error, e.g. "topology".

    Raises:
        InputError: the file cannot be read, is malformed or truncated, uses tags such as !!python/object,
            gives a key twice, nests too deep, or holds something else than a mapping.
    """
    text = read_text(path, what)
    place = f"{what} {os.fspath(path)!r}"
    parse = _parse_json if os.fspath(path).lower().endswith(".json") else parse_yaml
    try:
        value = parse(text, place)
        _check_size(value, place)
    except RecursionError:
        raise InputError(f"{place} nests too deep") from None
    if not isinstance(value, dict):
        raise InputError(f"{place} holds {_show(value)}, expected a mapping (key: value)")
    return value


def load_topology(path: str | os.PathLike[str]) -> Topology:
    """The Topology that a YAML or JSON file describes; an InputError names the file and the place in it."""
    mapping = load_mapping(path, "topology")
    return topology_from_mapping(mapping, f"topology {os.fspath(path)!r}", Path(path).stem)


def topology_from_mapping(mapping: Mapping[str, Any], source: str, name: str = "custom") -> Topology:
    """The Topology that a mapping in this module's schema describes.

    Args:
        source: how errors call it. name: of the topology, where the mapping does not give one.

    Raises:
        InputError: one sentence with the source, the place in it, the value and what was expected.
    """
    if not isinstance(mapping, Mapping):
        raise InputError(f"{source} is {_show(mapping)}, expected a mapping")
    from .geo.files import has_lands, world_from_mapping

    if "nodes" in mapping:
        from .link_files import topology_from_node_link

        return topology_from_node_link(mapping, source, name)
    if has_lands(mapping):
        world = world_from_mapping(mapping, source, name)
        try:
            return world.topology()
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
    short = "regions" not in mapping and any(key in mapping for key in _SHORT_KEYS)
    models = _models()
    spec = validated(models.Short if short else models.Full, mapping, source)
    regions = _short_regions(spec, models) if short else spec.regions
    # Every element holds at least one GPU, so from here on nothing is larger than the largest topology.
    check_gpu_count(sum(_region_gpus(region) for region in regions), source)
    tiers, order = _tiers(spec.tiers, source), checked_order(spec.machine_order, source)
    return _build(_numbered(regions, "region"), spec.name or name, tiers, order, source)


def _short_regions(spec: Any, models: SimpleNamespace) -> list[Any]:
    machine = models.Machines(count=spec.machines, slots=spec.slots, gpus_per_slot=spec.gpus_per_slot)
    rack = models.Racks(count=spec.racks, machines=[machine])
    return [models.Region(clusters=[models.Cluster(gpu_type=spec.gpu_type, racks=[rack])])]


def _numbered(items: Sequence[Any], noun: str) -> list[tuple[str, Any]]:
    """Each item as often as its `count` says, with its name: numbered if there are several or it has none."""
    named: list[tuple[str, Any]] = []
    for item in items:
        for copy in range(item.count):
            own = item.name if item.count == 1 else f"{item.name}-{copy}"
            named.append((own if item.name else f"{noun}{len(named)}", item))
    return named


def _check_unique(names: Sequence[str], place: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{place}: the name {twice[0]!r} is used {names.count(twice[0])} times, expected once")


def _region_gpus(region: Any) -> int:
    def rack_gpus(rack: Any) -> int:
        return rack.count * sum(group.count * group.slots * group.gpus_per_slot for group in rack.machines)

    return region.count * sum(cluster.count * sum(map(rack_gpus, cluster.racks)) for cluster in region.clusters)


def _build(regions: list[tuple[str, Any]], name: str, tiers: tuple[Tier, ...], order: str, source: str) -> Topology:
    """Check the names, then lay out how many children each element has."""
    _check_unique([own for own, _ in regions], f"{source}: regions")
    per_region = [_numbered(region.clusters, "cluster") for _, region in regions]
    for (own, _), clusters in zip(regions, per_region, strict=True):
        _check_unique([cluster for cluster, _ in clusters], f"{source}: clusters of region {own!r}")
    flat = [cluster for clusters in per_region for cluster in clusters]
    slot_gpus, machine_slots, rack_machines = [], [], []
    for _, cluster in flat:
        for rack in cluster.racks:
            slots = np.concatenate([np.full(group.count, group.slots) for group in rack.machines])
            gpus = [np.full(group.count * group.slots, group.gpus_per_slot) for group in rack.machines]
            machine_slots.append(np.tile(slots, rack.count))
            slot_gpus.append(np.tile(np.concatenate(gpus), rack.count))
            rack_machines.append(np.full(rack.count, len(slots)))
    return Topology.from_counts(
        name,
        slot_gpus=np.concatenate(slot_gpus),
        machine_slots=np.concatenate(machine_slots),
        rack_machines=np.concatenate(rack_machines),
        cluster_racks=[sum(rack.count for rack in cluster.racks) for _, cluster in flat],
        region_clusters=[len(clusters) for clusters in per_region],
        cluster_gpu_type=[cluster.gpu_type for _, cluster in flat],
        region_names=[own for own, _ in regions],
        cluster_names=[own for own, _ in flat],
        tiers=tiers,
        machine_order=order,
    )


def _tiers(given: Sequence[Any], source: str) -> tuple[Tier, ...]:
    _check_unique([tier.name for tier in given], f"{source}: tiers")
    by_name = {tier.name: tier for tier in given}
    unknown = float("nan")
    tiers = []
    for name in TIER_NAMES:
        spec = by_name.get(name)
        numbers = (spec.bandwidth_gbps, spec.latency_us, spec.oversubscription) if spec else (None,) * 3
        bandwidth, latency_us, ratio = (unknown if number is None else float(number) for number in numbers)
        tiers.append(Tier(name, bandwidth, latency_us * 1e-6, ratio))
    return tuple(tiers)


@functools.cache
def _models() -> SimpleNamespace:
    """The schema as pydantic models; made when first needed, so the simulator imports without pydantic."""
    from typing import Annotated, Literal

    from pydantic import BaseModel, ConfigDict, Field

    Count = Annotated[int, Field(ge=1, le=MAX_GPUS, strict=True)]
    Name = Annotated[str, Field(pattern=_NAME, max_length=100, strict=True)]
    Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

    class TierSpec(Strict):
        name: Literal["slot", "machine", "rack", "network"]
        bandwidth_gbps: Annotated[Number, Field(gt=0)] | None = None
        latency_us: Annotated[Number, Field(ge=0, le=MOST_LATENCY_US)] | None = None
        oversubscription: Annotated[Number, Field(ge=1)] | None = None

    class Machines(Strict):
        count: Count = 1
        slots: Count = 1
        gpus_per_slot: Count

    class Racks(Strict):
        count: Count = 1
        machines: Annotated[list[Machines], Field(min_length=1)]

    class Cluster(Strict):
        name: Name | None = None
        count: Count = 1
        gpu_type: Annotated[str, Field(strict=True, max_length=100)] = ""
        racks: Annotated[list[Racks], Field(min_length=1)]

    class Region(Strict):
        name: Name | None = None
        count: Count = 1
        clusters: Annotated[list[Cluster], Field(min_length=1)]

    class Full(Strict):
        name: Name | None = None
        machine_order: Any = NATURAL  # checked by `checked_order`, for one sentence in place of two of a union
        regions: Annotated[list[Region], Field(min_length=1)]
        tiers: tuple[TierSpec, ...] = ()

    class Short(Strict):
        name: Name | None = None
        machine_order: Any = NATURAL
        gpu_type: Annotated[str, Field(strict=True, max_length=100)] = ""
        racks: Count = 1
        machines: Count
        slots: Count = 1
        gpus_per_slot: Count
        tiers: tuple[TierSpec, ...] = ()

    models = (Full, Short, Region, Cluster, Racks, Machines, TierSpec)
    return SimpleNamespace(**{model.__name__: model for model in models})


def validated(model: Any, mapping: Mapping[str, Any], source: str) -> Any:
    """An instance of the pydantic `model` from `mapping`; InputError naming `source` and the first bad place."""
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(mapping))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=True)
    except (RecursionError, TypeError) as error:  # TypeError: keys that are not text, at the top
        raise InputError(f"{source}: {error}") from None
    # A misspelt key also shows as a missing one; the misspelling is the useful half.
    problem = next((one for one in problems if one["type"] == "extra_forbidden"), problems[0])
    raise InputError(f"{source}: {_sentence(problem, model)}")


def _sentence(problem: Mapping[str, Any], model: Any) -> str:
    location = tuple(part for part in problem["loc"] if part != "[key]")
    place = _place(location)
    kind = problem["type"]
    if kind == "missing":
        return f"{place} is missing"
    if kind == "extra_forbidden":
        known = _keys_at(model, location[:-1])
        close = difflib.get_close_matches(str(location[-1]), known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        return f"{place}: unknown key; {hint}known: {', '.join(known)}"
    return f"{place} = {_show(problem['input'])}: expected {_expected(kind, problem)}"


def _expected(kind: str, problem: Mapping[str, Any]) -> str:
    context = problem.get("ctx", {})
    fixed = {
        "int_type": "a whole number",
        "float_type": "a number",
        "string_type": "text",
        "list_type": "a list",
        "tuple_type": "a list",
        "finite_number": "a finite number",
        "model_type": "a mapping",
        "dict_type": "a mapping",
        "string_pattern_mismatch": "letters, digits, '_' and '-'",
        "invalid_key": "keys that are text",
    }
    if kind in fixed:
        return fixed[kind]
    for short_or_long, key, words in (("too_short", "min_length", "at least"), ("too_long", "max_length", "at most")):
        if kind == short_or_long:
            count = context[key]
            return f"a list with {words} {'one item' if count == 1 else f'{count} items'}"
    for key, words in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("max_length", "at most")):
        if key in context:
            return f"{words} {context[key]}{' characters' if key == 'max_length' else ''}"
    if kind == "literal_error":
        return str(context["expected"])
    return str(problem["msg"])


def _place(location: Sequence[str | int]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the whole"


def _keys_at(model: Any, location: Sequence[str | int]) -> list[str]:
    """The keys that the schema knows at a place; the models nest only through lists of models."""
    from typing import get_args

    for part in location:
        if isinstance(part, str):
            model = get_args(model.model_fields[part].annotation)[0]
    return list(model.model_fields)


def _show(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing"
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check_size(value: Any, place: str) -> None:
    """Refuse what would take for ever to walk: aliases can make a small file huge, or endless."""
    stack, seen = [value], 0
    while stack:
        item = stack.pop()
        seen += 1
        if seen + len(stack) > MAX_NODES:
            raise InputError(f"{place} holds more than {MAX_NODES} values")
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _parse_json(text: str, place: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = Counter(key for key, _ in pairs)
        for key, count in keys.items():
            if count > 1:
                raise InputError(f"{place}: the key {_show(key)} is given {count} times in one mapping")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InputError(f"{place}: line {error.lineno}, column {error.colno}: not JSON, {error.msg}") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{place}: {error}") from None


def parse_yaml(text: str, place: str, loader: Any = None) -> Any:
    """What a text in YAML holds; nothing in it is run.

    Args:
        text: in YAML.
        place: how errors call it.
        loader: of PyYAML, a safe one; None: one that also refuses keys that are given twice.

    Raises:
        InputError: it is malformed, or nests too deep.
    """
    import yaml

    loader = loader or _yaml_loader()
    try:
        _check_depth(yaml.parse(text, Loader=loader), place)
        return yaml.load(text, Loader=loader)  # a subclass of the safe loader
    except yaml.constructor.ConstructorError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"{place}: {at}{_one_line(error.problem)}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError(f"{place}: {at}not YAML, {_one_line(error.problem or error.context)}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{place}: not YAML, {_one_line(error)}") from None
    except (
        ValueError,
        TypeError,
        OverflowError,
    ) as error:  # dates such as 2024-13-45, integers of 5,000 digits
        raise InputError(f"{place}: not YAML, {_one_line(error)}") from None


def _check_depth(events: Iterable[Any], place: str) -> None:
    """Refuse deep nesting before anything is built: libyaml's composer recurses until the process dies."""
    from yaml.events import CollectionEndEvent, CollectionStartEvent

    depth = 0
    for event in events:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise InputError(f"{place} nests too deep: more than {MAX_DEPTH} levels")


def _one_line(message: object) -> str:
    return " ".join(str(message).split())[:200]


@functools.cache
def _yaml_loader() -> Any:
    """PyYAML's safe loader, with each key once and with 1e9 as a number (YAML 1.1 would make it text)."""
    import re

    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[Any] = set()
            for key_node, _ in node.value:
                key = (key_node.tag, key_node.value) if isinstance(key_node.value, str) else None
                if key is not None and key in seen:
                    problem = f"the key {_show(key_node.value)} is given twice in one mapping"
                    raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
                seen.add(key)
            return super().construct_mapping(node, deep=deep)

    exponent = re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", exponent, list("-+0123456789"))
    return Loader
