"""Security reports."""

from __future__ import annotations

from localstore.core.model.base import Page
from localstore.core.model.collaboration import report as endpoints
from localstore.core.model.collaboration.report import Report, ReportCreate, ReportDecision, ReportQuery
from relay.caller import View
from relay.domain.discussion import report as reports
from relay.http.routing import serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.LIST, operation="report.list", flag=FLAG)
async def list_reports(view: View, query: ReportQuery) -> Page[Report]:
    """Security reports of a repository, for others than its owner those that they made, the newest first"""
    return await reports.page(view, query)


@serves(endpoints.CREATE, operation="report.create", flag=FLAG, errors=(409,))
async def create_report(view: View, body: ReportCreate) -> Report:
    """Tell the owner of a repository in confidence what is wrong with it"""
    return await reports.create(view, body)


@serves(endpoints.DECIDE, operation="report.decide", flag=FLAG, errors=(409, 501))
async def decide_report(view: View, report: str, body: ReportDecision) -> Report:
    """Say what becomes of a report"""
    return await reports.decide(view, report, body)
