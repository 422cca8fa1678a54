"""Security reports: confidential messages to the owner of a repository, and the decisions about them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.advisory import AffectedPackages
from localstore.core.model.base import Actor, Model, Page, PageQuery, Sent, visible
from localstore.core.model.issue import Text
from localstore.core.model.limits import REPORT_TITLE_CHARS


class ReportDecided(Conflict):
    """The report was decided before; `state`: the decision. Published and dismissed are final."""

    code = "report_decided"


Severity = Literal["low", "medium", "high", "critical"]
Decision = Literal["triaged", "published", "dismissed"]
ReportState = Literal["new", "triaged", "published", "dismissed"]


class Report(Model, frozen=True):
    """A security report. `advisory_id`: the advisory that was published for it, None without one."""

    id: str
    title: str
    body: str
    severity: Severity
    state: ReportState
    reporter: Actor
    created_at: str
    decided_at: str | None = None
    advisory_id: str | None = None


class ReportCreate(Sent, frozen=True):
    """A new report. `body`: description of the fault, and how to reproduce it."""

    title: Annotated[str, visible(REPORT_TITLE_CHARS)]
    body: Text
    severity: Severity = "medium"


class ReportDecision(Sent, frozen=True):
    """The decision about a report. `triaged` means that somebody works on it, `published` that an advisory is
    published, `dismissed` that it is no security fault. `affected`: packages that the advisory names;
    without any, the advisory applies to every version of the repository."""

    decision: Annotated[Decision, msgspec.Meta(description="triaged, published or dismissed")]
    affected: AffectedPackages = msgspec.field(default_factory=list)


class ReportQuery(PageQuery, frozen=True):
    """A filter of security reports. `state`: only reports in this state."""

    state: ReportState | None = None


_REPORTS = f"{REPO}/reports"
LIST = Endpoint("GET", _REPORTS, query=ReportQuery, returns=Page[Report])
CREATE = Endpoint("POST", _REPORTS, body=ReportCreate, returns=Report, status=201)
DECIDE = Endpoint("POST", f"{_REPORTS}/{{report}}/decision", body=ReportDecision, returns=Report)
