"""The schema of warehouse_files.py as pydantic models; imported when needed: the simulator does without pydantic."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..base.codes import LEVELS
from ..cluster.region_hardware import MOST_REGIONS

Text = Annotated[str, Field(strict=True, min_length=1, max_length=100)]
Count = Annotated[int, Field(ge=0, le=10**7, strict=True)]
Many = Annotated[int, Field(ge=1, le=10**9, strict=True)]
Amount = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=10**9)]
Speed = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=10**9)]
Terabytes = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=10**6)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Cluster(_Strict):
    """A dynamic cluster."""

    name: Text
    gpu_type: Text | None = None
    gpu_machines: Count = 0
    gpus_per_machine: Count = 8
    cpu_machines: Count = 0
    machines_per_rack: Many = 16


class Region(_Strict):
    """A region with its clusters."""

    name: Text
    storage_tb: Terabytes
    fault_group: Text | None = None
    egress_gbps: Speed | None = None
    ingress_gbps: Speed | None = None
    clusters: list[Cluster]


class Link(_Strict):
    """A link that is not as fast as the others."""

    from_: Text = Field(alias="from")
    to: Text
    gbps: Speed


class App(_Strict):
    """An application and its quotas."""

    name: Text
    cpu_hours: dict[Text, Amount] = Field(default_factory=dict)


class Table(_Strict):
    """A table."""

    name: Text
    size_tb: Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=10**6)]
    home: Text
    replicas: tuple[Text, ...] = ()
    partitions: Many = 1
    read_share: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0


class Job(_Strict):
    """What reads tables."""

    name: Text
    tables: Annotated[list[Text], Field(min_length=1)]
    kind: Literal["training", "analytics"] = "training"
    gpu_type: Text | None = None
    gpus: Count = 0
    gpu_hours: Amount = 0.0
    cpu_hours: Amount = 0.0
    priority: Annotated[int, Field(ge=0, le=LEVELS - 1, strict=True)] = LEVELS - 1
    app: Text | None = None
    team: Count = 0
    recurring: Annotated[bool, Field(strict=True)] = True


class RegionHardwareSpec(_Strict):
    """Regions without what lies and runs in them."""

    name: Text | None = None
    wan_gbps: Speed = 400.0
    links: tuple[Link, ...] = ()
    regions: Annotated[list[Region], Field(min_length=1, max_length=MOST_REGIONS)]


class Spec(RegionHardwareSpec):
    """The whole."""

    apps: tuple[App, ...] = ()
    tables: Annotated[list[Table], Field(min_length=1)]
    jobs: tuple[Job, ...] = ()
