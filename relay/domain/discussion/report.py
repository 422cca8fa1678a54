"""Rules of security reports. Signed-in readers of a repository send reports, and its owner reads them and
decides. Reporters can read their own reports and are notified of the decision.
"""

from __future__ import annotations

from localstore.core.errors import Conflict, EditionLacks, Invalid, NotFound
from localstore.core.model import limits
from localstore.core.model.advisory import AdvisoryDraft
from localstore.core.model.base import Page
from localstore.core.model.report import (
    Report,
    ReportCreate,
    ReportDecided,
    ReportDecision,
    ReportQuery,
)
from relay.base import edition
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339, rfc3339_or_none
from relay.base.ids import new_id
from relay.caller import View, account_name
from relay.db import paging
from relay.db.engine.database import Row, Tx
from relay.domain.catalog import advisory
from relay.domain.discussion import posting
from relay.domain.discussion.rows import report as rows
from relay.domain.discussion.rows.report import ReportRow

_FROM = {"triaged": ("new",), "dismissed": ("new", "triaged"), "published": ("new", "triaged")}


async def page(view: View, query: ReportQuery) -> Page[Report]:
    """Security reports of a repository, newest first

    Callers other than the owner get only their own reports.
    """
    if view.repo.owner_id == view.me.account_id:
        view.require("owner")  # a token that only reads does not list a part of them as if it were all
    filters: dict[str, str] = {} if query.state is None else {"of_state": query.state}
    if not view.has("owner"):
        filters["who"] = view.me.account_id
    async with view.read() as tx:
        keyset = rows.keyset_of(query.state is not None, "who" in filters)
        return await paging.read_page(tx, keyset, query, _row_to_wire, of_repo=view.repo.id, **filters)


async def create(view: View, body: ReportCreate) -> Report:
    """Report a security fault to the owner of a repository in confidence

    Only the owner is notified.
    """
    posting.require_short(body.body, "/body")
    report_id, me = new_id(), view.me.account_id
    async with view.write(account_name(me)) as tx:
        await posting.require_room(tx, view)
        if await tx.value(rows.COUNT, of_repo=view.repo.id) >= limits.REPORTS:
            raise Conflict(f"{view.repo.full_name} has {limits.REPORTS} reports, and no repository has more")
        await tx.run(
            rows.INSERT,
            id=report_id,
            repo_id=view.repo.id,
            title=body.title,
            body=body.body,
            severity=body.severity,
            state="new",
            reporter_id=me,
            created_at=now_ms(),
            decided_at=None,
            advisory_id=None,
        )
        await view.node.hub.announce(
            tx, view.repo.id, "report.create", audience="owner", id=report_id, account=view.repo.owner_id
        )
        return _to_wire(await _find(tx, view, report_id))


async def decide(view: View, report: str, body: ReportDecision) -> Report:
    """Decide about a report

    A repeated decision is not an error. A decision to publish makes an advisory from the report; it raises
    EditionLacks if the edition has no advisories.
    """
    state = body.decision
    if body.affected and state != "published":
        raise Invalid("only what is published speaks of packages", pointer="/affected")
    advisory_id = None
    async with view.write() as tx:
        old = await _find(tx, view, report)
        if old.state != state:
            if old.state not in _FROM[state]:
                raise ReportDecided(
                    f"this report is {old.state}, and does not become {state}", state=old.state
                )
            if state == "published":
                if not advisory.PUBLISHING.in_edition(edition.EDITION):
                    raise EditionLacks(
                        f"{edition.EDITION} publishes no advisories; the report stays {old.state}, and can "
                        "be triaged or dismissed"
                    )
                draft = AdvisoryDraft(
                    summary=old.title, details=old.body, severity=old.severity, affected=body.affected
                )
                advisory_id = (await advisory.publish(tx, view, draft)).id
            decided = {"new_state": state, "new_advisory": advisory_id, "now": now_ms()}
            await tx.run(rows.DECIDE, of_repo=view.repo.id, of_report=report, **decided)
            await view.node.hub.announce(
                tx,
                view.repo.id,
                "report.decide",
                audience="owner",
                id=report,
                decision=state,
                told=old.reporter_id,
            )
        return _to_wire(await _find(tx, view, report))


async def _find(tx: Tx, view: View, report: str) -> ReportRow:
    row = await tx.one(rows.ONE, of_repo=view.repo.id, of_report=report)
    if row is None:
        raise NotFound
    return rows.to_row(row)


def _row_to_wire(row: Row) -> Report:
    return _to_wire(rows.to_row(row))


def _to_wire(report: ReportRow) -> Report:
    return Report(
        id=report.id,
        title=report.title,
        body=report.body,
        severity=report.severity,
        state=report.state,
        reporter=to_actor(report.reporter_id, report.reporter_handle, report.reporter_kind),
        created_at=rfc3339(report.created_at),
        decided_at=rfc3339_or_none(report.decided_at),
        advisory_id=report.advisory_id,
    )
