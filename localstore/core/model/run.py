"""Runs: results of checks on a seal, reported by the programs or people that ran them. The relay records runs
and executes nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.base import Actor, Count, Model, Page, PageQuery, Sent, visible
from localstore.core.model.limits import (
    CHECK_NAME_CHARS,
    DETAILS_URL_CHARS,
    REF_NAME_BYTES,
    RUN_SUMMARY_CHARS,
)
from localstore.core.model.release import SealId


class RunCompleted(Conflict):
    """The run is completed and cannot be changed; `attempt` is its number. To repeat the run, record a new
    attempt."""

    code = "run_completed"


class RunPending(Conflict):
    """The newest attempt of the run is not completed; `run` is its id."""

    code = "run_pending"


Status = Literal["queued", "in_progress", "completed"]
Conclusion = Literal["success", "failure", "neutral", "cancelled", "skipped", "timed_out"]
State = Literal["pass", "fail", "pending", "skip", "cancel"]
"""What a run says about its seal."""

_NAME = visible(CHECK_NAME_CHARS)
CheckName = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=CHECK_NAME_CHARS,
        # A path without empty segments, . and ..
        pattern=rf"^(?!\.{{0,2}}(/|$))(?!.*/\.{{0,2}}(/|$)){(_NAME.pattern or '^').removeprefix('^')}",
        description=f"{_NAME.description}, such as test or ci/lint",
    ),
]
Summary = Annotated[
    str,
    msgspec.Meta(
        max_length=RUN_SUMMARY_CHARS,
        pattern=r"^[^\x00]*$",
        description=f"text of at most {RUN_SUMMARY_CHARS} characters without NUL",
    ),
]
DetailsUrl = Annotated[
    str,
    msgspec.Meta(
        max_length=DETAILS_URL_CHARS,
        pattern=r"^https?://[A-Za-z0-9._~:\[\]%-]+([/?#][!-~]*)?(?!\n)$",
        description=f"an http or https address without user name, of at most {DETAILS_URL_CHARS} characters",
    ),
]


PREFIX = "the first 4 or more hex digits of an id"


class Run(Model, frozen=True):
    """One attempt of the check `name` on a seal. `attempt`: counts from 1. `conclusion`: None until the run
    is completed. `branch`: the branch on which the seal was made. `reported_by`: who recorded the run."""

    id: str
    name: str
    seal_id: str
    branch: str
    attempt: Count
    status: Status
    conclusion: Conclusion | None
    summary: str | None
    details_url: str | None
    reported_by: Actor
    created_at: str
    started_at: str | None
    completed_at: str | None


class RunCreate(Sent, frozen=True):
    """A new run. `seal_id`: the full id of a seal of this repository. `status`: by default completed if there
    is a conclusion, otherwise queued."""

    name: CheckName
    seal_id: SealId
    status: Status | None = None
    conclusion: Conclusion | None = None
    summary: Summary | None = None
    details_url: DetailsUrl | None = None


class RunPatch(Sent, frozen=True):
    """A change of a run; absent members change nothing. A `conclusion` completes the run."""

    status: Status | None = None
    conclusion: Conclusion | None = None
    summary: Summary | None = None
    details_url: DetailsUrl | None = None


class RunQuery(PageQuery, frozen=True):
    """A filter of runs; all given members must match. `name`: compared without case. `prefix`: the beginning
    of the run's id."""

    prefix: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4,32}(?!\n)$", description=PREFIX)] | None = None
    seal: SealId | None = None
    branch: Annotated[str, msgspec.Meta(min_length=1, max_length=REF_NAME_BYTES)] | None = None
    name: CheckName | None = None
    status: Status | None = None
    conclusion: Conclusion | None = None


def state_of(status: str, conclusion: str | None) -> State:
    """How a run counts in the summary of a seal's checks: pending, pass, skip or fail. A neutral conclusion
    counts as skip."""
    if status != "completed":
        return "pending"
    if conclusion == "success":
        return "pass"
    if conclusion in ("neutral", "skipped"):
        return "skip"
    return "cancel" if conclusion == "cancelled" else "fail"


_ONE = f"{REPO}/runs/{{run}}"
LIST = Endpoint("GET", f"{REPO}/runs", query=RunQuery, returns=Page[Run])
CREATE = Endpoint("POST", f"{REPO}/runs", body=RunCreate, returns=Run, status=201)
GET = Endpoint("GET", _ONE, returns=Run)
UPDATE = Endpoint("PATCH", _ONE, body=RunPatch, returns=Run)
CANCEL = Endpoint("POST", f"{_ONE}/cancel", returns=Run)
RERUN = Endpoint("POST", f"{_ONE}/rerun", returns=Run, status=201)
