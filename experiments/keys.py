"""The keys of `--set` as fields of `Setting`: what is given, else what is an environment's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..simulator.base.errors import InputError
from ..simulator.engine.time_window import Window
from ..simulator.events.initialise import Failures
from ..simulator.jobs.estimates import Estimates
from ..simulator.rules.semantics import load_semantics
from ..simulator.sharing.sharing_model import Sharing
from .hosting import config_fields

SHARING = ("jobs_per_gpu", "interference", "memory_gb", "gpu", "memory")  # fields of a setting, arguments of `Sharing`


def settings(
    horizon_s: float = math.inf,
    mtbf_s: float | None = None,
    mttr_s: float | None = None,
    checkpoint_s: float | None = None,
    region_mtbf_s: float | None = None,
    region_mttr_s: float | None = None,
    semantics: str = "events",
    jobs_per_gpu: int | None = None,
    interference: str | None = None,
    memory_gb: float | None = None,
    gpu: str | None = None,
    memory: str | None = None,
    tables_every_s: float | None = None,
    estimates: str = "",
    window: str = "",
) -> dict[str, Any]:
    """The keys of `--set` as fields of `Setting`; `memory_gb=inf`: memory has no limit.

    Raises:
        InputError: a value out of range, unknown semantics, or repair times where nothing fails.
    """
    load_semantics(semantics)
    if not horizon_s > 0.0:
        raise InputError(f"--set horizon_s = {horizon_s:g}: expected seconds > 0")
    options = {"mtbf_s": mtbf_s, "mttr_s": mttr_s, "checkpoint_s": checkpoint_s}
    regional = {"region_mtbf_s": region_mtbf_s, "region_mttr_s": region_mttr_s}
    given = {key: value for key, value in (options | regional).items() if value is not None}
    lone = [key for key in ("mttr_s", "checkpoint_s") if key in given]
    if mtbf_s is None and lone and (region_mtbf_s is None or mttr_s is not None):
        raise InputError(f"--set {lone[0]}: machines fail only with a mean time between failures, mtbf_s=...")
    if region_mtbf_s is None and region_mttr_s is not None:
        raise InputError("--set region_mttr_s: regions fail only with a mean time between failures, region_mtbf_s=...")
    Failures(**given)  # it checks the ranges
    if tables_every_s is not None and not tables_every_s > 0.0:
        raise InputError(f"--set tables_every_s = {tables_every_s:g}: expected seconds > 0")
    shared = {"jobs_per_gpu": jobs_per_gpu, "interference": interference, "memory_gb": memory_gb, "gpu": gpu}
    shared["memory"] = memory
    shared["tables_every_s"] = tables_every_s
    shared["estimates"] = estimates or None  # "none" means something
    shared["window"] = Window.load(window).describe() if window else None
    told = {key: value for key, value in shared.items() if value is not None}
    return {"horizon_s": horizon_s, "semantics": semantics, **given, **told}


def sharing_of(environment: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Setting` that say how GPUs are shared: those that are given, else the environment's own.

    Raises:
        InputError: a value out of range, or one for an environment whose jobs do not share GPUs.
    """
    from ..envs.registration import ENVIRONMENTS

    own = ENVIRONMENTS[environment].sharing
    found = {key: given[key] for key in SHARING if key in given}
    if own is None:
        if found:
            raise InputError(f"{next(iter(found))}: jobs of {environment} do not share GPUs")
        return {}
    fields = {**own, **found}
    if fields["memory_gb"] == math.inf:
        fields["memory_gb"] = None
    Sharing(**fields)  # it checks the values
    return fields


def own_fields(environment: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Setting` that only some environments have: as given, else the environment's own.

    Raises:
        InputError: a value out of range, or one for an environment without such things.
    """
    from ..envs.registration import ENVIRONMENTS

    entry = ENVIRONMENTS[environment]
    known = {"estimates": Estimates.load(given["estimates"]).describe()} if "estimates" in given else {}
    if known and not entry.run_times:
        raise InputError(f"estimates: nobody asks for run times in {environment}")
    every_s = entry.tables_every_s
    found = {key: given[key] for key in ("tables_every_s", "region_mtbf_s", "region_mttr_s") if key in given}
    if every_s is None and found:
        raise InputError(f"{next(iter(found))}: {environment} has no regions")
    own = {} if every_s is None else {"tables_every_s": every_s, **found}
    return {**sharing_of(environment, given), **own, **known, **config_fields(environment, given)}
