"""Rules of reviews: which reviewers are requested, which verdicts an account may give on a version, and which
verdicts are valid.
"""

from __future__ import annotations

from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model import limits
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.proposal import Draft
from localstore.core.model.review import HeadMoved, OwnProposal, Review, ReviewCreate
from relay.base.clock import now_ms
from relay.base.ids import new_id
from relay.caller import View, account_name
from relay.db import paging
from relay.db.collaboration import review as rows
from relay.db.collaboration.proposal import ProposalRow
from relay.db.engine.database import Tx
from relay.domain.discussion import posting, subject
from relay.domain.discussion.subject import Subject
from relay.domain.proposal import pending, states, versions, wire


async def page(view: View, number: str, query: PageQuery) -> Page[Review]:
    """Reviews of a proposal, oldest first"""
    async with view.read(near=True) as tx:
        row = await states.find(tx, view, number)
    await versions.settle(view.node, view.repo.id, row.number)
    async with view.read() as tx:
        of = {"of_repo": view.repo.id, "of_number": row.number}
        return await paging.read_page(
            tx, rows.PAGE, query, lambda columns: wire.to_review(rows.to_row(columns)), **of
        )


async def create(view: View, number: str, body: ReviewCreate) -> Review:
    """Review the newest version of a proposal

    Also publishes the caller's draft comments on lines. A new verdict of an account with a role in the
    repository replaces the account's last verdict.
    """
    posting.require_short(body.body, "/body")
    me = view.me.account_id
    async with view.write(account_name(me)) as tx:
        row = await states.find(tx, view, number)
        _require_sayable(view, row, body)
        if (
            body.verdict != "approve"
            and not body.body.strip()
            and not await pending.has_pending(tx, view, row.number)
        ):
            raise Invalid("say what is to change, or what you think; the body is empty", pointer="/body")
        await posting.require_room(tx, view)
        of = {"of_repo": view.repo.id, "of_number": row.number}
        if await tx.value(rows.COUNT, **of) >= limits.REVIEWS:
            raise Conflict(f"#{row.number} has {limits.REVIEWS} reviews, and no proposal has more")
        review_id = new_id()
        await tx.run(
            rows.INSERT,
            id=review_id,
            repo_id=view.repo.id,
            number=row.number,
            account_id=me,
            verdict=body.verdict,
            body=body.body,
            version=row.version,
            seal_id=row.head_seal,
            created_at=now_ms(),
            dismissed_at=None,
        )
        if body.verdict == "comment":
            await tx.run(rows.SET_REQUESTED, **of, who=me, is_requested=False)
            await tx.run(rows.DROP_EMPTY, **of)
        elif view.role is not None and not await tx.run(rows.SET_VERDICT, **of, who=me, new_review=review_id):
            await _insert(tx, view, states.subject_of(row), me, review_id)
        await subject.take_part(tx, view, states.subject_of(row))
        await pending.publish_pending(tx, view, row.number, review_id)
        details = {"id": review_id, "verdict": body.verdict, "version": row.version}
        await subject.record_change(tx, view, "review.create", row.number, **details)
        return await _read_review(tx, view, row.number, review_id)


async def dismiss(view: View, number: str, review: str) -> Review:
    """Dismiss the verdict of a review. It then no longer counts, but its text stays."""
    async with view.write() as tx:
        row = await states.find(tx, view, number)
        of = {"of_repo": view.repo.id, "of_number": row.number, "review": review}
        current = await _read_review(tx, view, row.number, review)
        if current.verdict == "comment":
            raise Conflict("a comment is not a verdict, so there is nothing to dismiss")
        if current.dismissed_at is None:
            await tx.run(rows.DISMISS, **of, now=now_ms())
            await tx.run(rows.DROP_VERDICT, **of)
            await tx.run(rows.DROP_EMPTY, of_repo=view.repo.id, of_number=row.number)
            await subject.record_change(tx, view, "review.dismiss", row.number, id=review)
        return await _read_review(tx, view, row.number, review)


async def request(tx: Tx, view: View, of: Subject, handles: list[str]) -> None:
    """Request reviews of the accounts with these handles. Raises Invalid for an account without a role in the
    repository, and for the author."""
    for handle in handles:
        who = await subject.find_member(tx, view, handle, "/reviewers")
        if who == of.author_id:
            raise Invalid(
                f"{handle} wrote #{of.number}, and reviews are other people's", pointer="/reviewers"
            )
        values = {"of_repo": view.repo.id, "of_number": of.number, "who": who}
        if not await tx.run(rows.SET_REQUESTED, **values, is_requested=True):
            await _insert(tx, view, of, who, None)
        await subject.record_change(tx, view, "review.request", of.number, account_id=who)


async def unrequest(tx: Tx, view: View, of: Subject, handles: list[str]) -> None:
    for handle in handles:
        who = await subject.find_account(tx, view, handle)
        values = {"of_repo": view.repo.id, "of_number": of.number}
        if await tx.run(rows.SET_REQUESTED, **values, who=who or "", is_requested=False):
            await tx.run(rows.DROP_EMPTY, **values)
            await subject.record_change(tx, view, "review.unrequest", of.number, account_id=who)


def _require_sayable(view: View, row: ProposalRow, body: ReviewCreate) -> None:
    if body.seal_id is not None and body.seal_id != row.head_seal:
        raise HeadMoved(row.number, row.head_seal)
    if body.verdict == "comment":
        return
    if row.state != "open":
        raise Conflict(f"#{row.number} is {row.state}; only an open proposal is approved or refused")
    if row.author_id == view.me.account_id:
        raise OwnProposal(f"#{row.number} is yours, and a verdict on it is somebody else's; add a comment")
    if row.draft and body.verdict == "approve":
        raise Draft(f"#{row.number} is a draft; its author says when it is ready")


async def _insert(tx: Tx, view: View, of: Subject, who: str, review: str | None) -> None:
    reviewer_rows = await tx.all(rows.REVIEWERS, of_repo=view.repo.id, numbers=[of.number])
    if len(reviewer_rows) >= limits.REVIEWERS:
        raise Conflict(f"#{of.number} has {limits.REVIEWERS} reviewers, and no proposal has more")
    await tx.run(
        rows.REVIEWER,
        repo_id=view.repo.id,
        number=of.number,
        account_id=who,
        state=of.state,
        requested=review is None,
        review_id=review,
    )


async def _read_review(tx: Tx, view: View, number: int, review: str) -> Review:
    row = await tx.one(rows.ONE, of_repo=view.repo.id, of_number=number, review=review)
    if row is None:
        raise NotFound
    return wire.to_review(rows.to_row(row))
