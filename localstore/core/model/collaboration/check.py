"""Checks: what runs report on by name. An enabled check has to pass on a seal before it counts as checked."""

from __future__ import annotations

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Count, Model, Page, PageQuery
from localstore.core.model.collaboration.run import Run, State


class Check(Model, frozen=True):
    """`last`: the run of this name that was recorded last, on whatever seal."""

    name: str
    enabled: bool
    last: Run | None


class Rollup(Model, frozen=True):
    """How many checks a seal has, by the newest attempt of each. `passed` includes skipped ones, `failed`
    cancelled ones, `pending` enabled ones that have not reported."""

    total: Count = 0
    passed: Count = 0
    failed: Count = 0
    pending: Count = 0


class SealCheck(Model, frozen=True):
    """One check of a seal, by its newest attempt. `required`: it is enabled. `attempt` 0 and no `run_id`: it
    is required and has not reported, which is `pending`."""

    name: str
    state: State
    required: bool
    attempt: Count
    summary: str | None
    details_url: str | None
    seal_id: str
    started_at: str | None
    completed_at: str | None
    run_id: str | None


class SealChecks(Model, frozen=True):
    """All checks of a seal, by name."""

    seal_id: str
    rollup: Rollup
    items: list[SealCheck]


LIST = Endpoint("GET", f"{REPO}/checks", query=PageQuery, returns=Page[Check])
ENABLE = Endpoint("PUT", f"{REPO}/checks/{{name...}}", returns=Check)
DISABLE: Endpoint[None] = Endpoint("DELETE", f"{REPO}/checks/{{name...}}", status=204)
OF_SEAL = Endpoint("GET", f"{REPO}/seals/{{seal_id}}/checks", returns=SealChecks)
