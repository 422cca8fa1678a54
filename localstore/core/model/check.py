"""Checks of a repository. A check is a name, such as `ci/test`, under which runs report results for seals.
Protection rules can demand that the enabled checks pass before a merge; the enabled ones are called
required."""

from __future__ import annotations

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Count, Model, Page, PageQuery
from localstore.core.model.run import Run, State


class Check(Model, frozen=True):
    """A check of a repository. `enabled`: the check is required, so protection rules can demand that it
    passes. `last`: its newest run on any seal."""

    name: str
    enabled: bool
    last: Run | None


class Rollup(Model, frozen=True):
    """How many checks of a seal have passed, have failed or are pending, judged by the newest run of each.
    Skipped checks count as `passed`, cancelled ones as `failed`, and required checks without a run as
    `pending`."""

    total: Count = 0
    passed: Count = 0
    failed: Count = 0
    pending: Count = 0


class SealCheck(Model, frozen=True):
    """The state of one check of a seal, from its newest run. `required`: the check is enabled, so protection
    rules can demand that it passes. If no run was recorded, `attempt` is 0, there is no `run_id`, and the
    check counts as pending."""

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
