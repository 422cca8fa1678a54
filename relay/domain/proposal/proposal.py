"""Rules of proposals: which are allowed, who may change them, and what lists of them contain."""

from __future__ import annotations

import re
from contextlib import suppress
from operator import itemgetter
from typing import Any

from localstore.core.errors import Conflict, Invalid, Unavailable
from localstore.core.model import limits
from localstore.core.model.base import Page
from localstore.core.model.proposal import (
    NothingProposed,
    Proposal,
    ProposalCreate,
    ProposalExists,
    ProposalMerged,
    ProposalPatch,
    ProposalQuery,
)
from relay.base.clock import now_ms
from relay.caller import View, account_name, repo_name
from relay.db import ref as refs
from relay.db.collaboration import issue as subjects
from relay.db.collaboration import proposal as rows
from relay.db.collaboration.proposal import ProposalRow
from relay.db.engine.database import Row, Tx
from relay.db.paging import Cursor, page_size
from relay.db.ref import RefRow
from relay.domain.attention.mentions import find_new_mentions
from relay.domain.discussion import posting, subject
from relay.domain.forking import holding
from relay.domain.forking.holding import SharedHistory
from relay.domain.history.ancestry import find_relation
from relay.domain.proposal import branches, elsewhere, review, states, versions, wire
from relay.domain.proposal.elsewhere import ForeignBranch

_CLOSES = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? {1,3}#([1-9][0-9]{0,8})\b", re.IGNORECASE | re.ASCII
)
_SAME = "a proposal goes from one branch to another; head and base are the same"
_PEOPLE = ("author", "assignee", "reviewer", "involves")


async def page(view: View, query: ProposalQuery) -> Page[Proposal]:
    """Proposals, newest first

    Runs a fixed number of statements.
    """
    size = page_size(query.limit)
    async with view.read(snapshot=query.state == "all") as tx:
        filters = await subject.to_filters(tx, view, query, _PEOPLE)
        if filters is None:
            return Page(items=[])
        for name in ("head", "base", "draft"):
            if (value := getattr(query, name)) is not None:
                filters[name] = value
        page_rows = await _read_rows(tx, view, filters, query.cursor, size + 1)
    async with view.read(near=size <= limits.PAGE_DEFAULT) as tx:
        items = await wire.to_proposals(tx, view, list(map(rows.to_row, page_rows[:size])))
    more = len(page_rows) > size
    return Page(items=items, next_cursor=Cursor.write(page_rows[size - 1][0]) if more else None)


async def _read_rows(
    tx: Tx, view: View, filters: dict[str, Any], cursor: str | None, limit: int
) -> list[Row]:
    """Read the rows of a page of proposals. The indexes of filters are sorted by state first. So a filtered
    list of all states needs one statement for each state, unless it is a search for words."""
    parted = filters and not filters.keys() & {"state", *subjects.SEARCHES}
    page_rows: list[Row] = []
    for some in [{**filters, "state": state} for state in rows.STATES] if parted else [filters]:
        lead = await subject.find_leading_filter(tx, view, some, rows.LEADERS, rows.count_statement)
        keyset = rows.keyset_of(frozenset(some), lead)
        values = {**some, "of_repo": view.repo.id, "limit": limit}
        if cursor is None:
            page_rows += await tx.all(keyset.first, **values)
        else:
            (after,) = Cursor.read(cursor, *keyset.blank)
            page_rows += await tx.all(keyset.next, **values, after_number=after)
    return sorted(page_rows, key=itemgetter(0), reverse=True)[:limit] if parted else page_rows


async def get(view: View, number: str) -> Proposal:
    async with view.read(near=True) as tx:
        row = await states.find(tx, view, number)
        if row.settled:
            return await _to_wire(tx, view, row)
    await versions.settle(view.node, view.repo.id, row.number)
    async with view.read(near=True) as tx:
        return await _to_wire(tx, view, await states.find(tx, view, number))


async def create(view: View, body: ProposalCreate) -> Proposal:
    """Propose a branch for another

    The head must have seals that the base does not have. Setting labels, assignees and reviewers needs the
    rights to do so; the author may request reviews.
    """
    posting.require_short(body.body, "/body")
    if body.head == body.base:
        raise Invalid(_SAME, pointer="/base")
    for _ in range(elsewhere.ATTEMPTS):
        async with view.read(snapshot=True) as tx:
            other = await elsewhere.find(tx, view, body.head) if ":" in body.head else None
            await _require_news(tx, view, body, other)
        if other is None:
            return await _create(view, body)
        history = await holding.gather(view.node, other.repo.id, view.repo.id, [other.seal])
        with suppress(_HeadMoved):
            return await _create(view, body, other, history)
    raise Unavailable(f"{body.head} moves too fast to be proposed; try again")


async def _create(
    view: View, body: ProposalCreate, other: ForeignBranch | None = None, history: SharedHistory | None = None
) -> Proposal:
    """Create the proposal. `other`: the head branch, if it is in another repository. `history`: the seals of
    this branch. Raises _HeadMoved if the branch in the other repository has moved meanwhile."""
    names = [account_name(view.me.account_id), *([repo_name(other.repo.id)] if other else [])]
    async with view.write(*names) as tx:
        if body.labels:
            subject.require_operation(view, "issue.label")
        if body.assignees:
            subject.require_operation(view, "issue.assign")
        await posting.require_room(tx, view)
        if other is None or history is None:
            head, head_seal = await _find_branch(tx, view, _local_branch_name(body.head), "/head")
        else:
            again = await elsewhere.find(tx, view, body.head)
            if again is None or (again.repo.id, again.seal) != (other.repo.id, other.seal):
                raise _HeadMoved
            head, head_seal = again.ref, again.seal
            await holding.borrow(tx, view.node, view.repo.id, history)
        base, base_seal = await _find_branch(tx, view, body.base, "/base")
        await _require_first(tx, view, head.id, base)
        inserted = await subject.insert(tx, view, rows.PROPOSAL, body.title, body.body)
        await tx.run(
            rows.INSERT,
            repo_id=view.repo.id,
            number=inserted.number,
            state="open",
            draft=body.draft,
            head_repo_id=other.repo.id if other else None,
            head_id=head.id,
            head=head.name,
            base_id=base.id,
            base=base.name,
            version=1,
            head_seal=head_seal,
            merged_seal=None,
        )
        await versions.add(tx, view, inserted.number, 1, head_seal, base_seal)
        await _note_closes(tx, view, inserted.number, body.body)
        await subject.add_labels(tx, view, inserted, body.labels)
        await subject.assign(tx, view, inserted, body.assignees)
        await review.request(tx, view, inserted, body.reviewers)
        return await _to_wire(tx, view, await states.find(tx, view, inserted.number))


class _HeadMoved(Exception):
    """Raised if the branch of another repository has moved since its seals were read."""


def _local_branch_name(head: str) -> str:
    """Read the branch name from BRANCH or OWNER:BRANCH. The branch is one of this repository."""
    return head.rpartition(":")[2]


async def update(view: View, number: str, patch: ProposalPatch) -> Proposal:
    """Edit, close, reopen, retarget, label or assign a proposal, or request reviews

    The author and moderators may change the text and the base. The author and callers with the role triage
    may change the state and the reviewers. The author and callers with write may change the draft flag.
    Labels and assignees need the role triage.
    """
    if patch.body is not None:
        posting.require_short(patch.body, "/body")
    async with view.write() as tx:
        old = await states.find(tx, view, number)
        view.require_author(old.author_id)
        _require_rights(view, old.author_id, patch)
        if old.state == "merged" and (patch.state, patch.draft, patch.base) != (None, None, None):
            raise ProposalMerged(f"#{old.number} is merged, and stays so")
        await _edit(tx, view, old, patch)
        if patch.base is not None and patch.base != old.base:
            await _retarget(tx, view, old, patch.base)
        if patch.state is not None and patch.state != old.state:
            await _set_state(tx, view, number, patch.state)
        if patch.draft is not None and patch.draft != old.draft:
            await tx.run(rows.SET_DRAFT, of_repo=view.repo.id, of_number=old.number, is_draft=patch.draft)
            kind = "proposal.draft" if patch.draft else "proposal.ready"
            await subject.record_change(tx, view, kind, old.number)
        now = states.subject_of(await states.find(tx, view, number))
        await subject.remove_labels(tx, view, now, patch.remove_labels)
        await subject.add_labels(tx, view, now, patch.add_labels)
        await subject.unassign(tx, view, now, patch.remove_assignees)
        await subject.assign(tx, view, now, patch.add_assignees)
        await review.unrequest(tx, view, now, patch.remove_reviewers)
        await review.request(tx, view, now, patch.add_reviewers)
        return await _to_wire(tx, view, await states.find(tx, view, number))


async def add_label(view: View, number: str, name: str, create: bool) -> Proposal:
    """Add a label to a proposal. `create`: create the label if the repository lacks it."""
    async with view.write() as tx:
        old = states.subject_of(await states.find(tx, view, number))
        await subject.add_named_label(tx, view, old, name, create)
        return await _to_wire(tx, view, await states.find(tx, view, number))


async def remove_label(view: View, number: str, name: str) -> Proposal:
    """Take a label off a proposal"""
    async with view.write() as tx:
        old = states.subject_of(await states.find(tx, view, number))
        await subject.remove_labels(tx, view, old, [name])
        return await _to_wire(tx, view, await states.find(tx, view, number))


async def _to_wire(tx: Tx, view: View, row: ProposalRow) -> Proposal:
    return (await wire.to_proposals(tx, view, [row]))[0]


def _require_rights(view: View, author: str, patch: ProposalPatch) -> None:
    changes = {
        "proposal.edit": patch.title is not None or patch.body is not None or patch.base is not None,
        "proposal.close": patch.state == "closed",
        "proposal.reopen": patch.state == "open",
        "proposal.ready": patch.draft is not None,
        "proposal.reviewers": bool(patch.add_reviewers or patch.remove_reviewers),
        "issue.label": bool(patch.add_labels or patch.remove_labels),
        "issue.assign": bool(patch.add_assignees or patch.remove_assignees),
    }
    for operation, is_changed in changes.items():
        if is_changed:
            subject.require_operation(view, operation, author)


async def _edit(tx: Tx, view: View, old: ProposalRow, patch: ProposalPatch) -> None:
    if patch.title is None and patch.body is None:
        return
    title = patch.title or old.title
    body = old.body if patch.body is None else patch.body
    await tx.run(
        subjects.EDIT,
        of_repo=view.repo.id,
        of_number=old.number,
        new_title=title,
        new_body=body,
        new_state=old.state,
        new_state_reason=None,
        new_closed_at=old.closed_at,
        now=now_ms(),
    )
    await subject.replace_words(tx, view, states.subject_of(old), title, body)
    await tx.run(rows.DROP_CLOSING, of_repo=view.repo.id, of_number=old.number)
    await _note_closes(tx, view, old.number, body)
    await subject.announce(tx, view, "proposal.edit", old.number, **find_new_mentions(old.body, body))


async def _note_closes(tx: Tx, view: View, number: int, body: str) -> None:
    """Record which issues merging the proposal will close. The text of the proposal names them, as in `closes
    #12`."""
    issues = sorted({int(digits) for digits in _CLOSES.findall(body)} - {number})[: limits.CLOSES]
    await tx.many(
        rows.CLOSING, [{"repo_id": view.repo.id, "number": number, "issue": issue} for issue in issues]
    )


async def _retarget(tx: Tx, view: View, old: ProposalRow, name: str) -> None:
    base, _ = await _find_branch(tx, view, name, "/base")
    if base.id == old.head_id:
        raise Invalid(_SAME, pointer="/base")
    if old.state == "open":
        await _require_first(tx, view, old.head_id, base)
    await branches.retarget(tx, view, old, base)


async def _set_state(tx: Tx, view: View, number: str, state: str) -> None:
    row = await states.find(tx, view, number)
    if state == "closed":
        await states.put(tx, view, row.number, "closed", "proposal.close")
        return
    await branches.revive(tx, view, row)
    row = await states.find(tx, view, number)
    same = await tx.value(rows.SAME, of_repo=view.repo.id, head_id=row.head_id, base_id=row.base_id)
    if same is not None:
        raise _proposal_exists(same, row.head, row.base)
    await states.put(tx, view, row.number, "open", "proposal.reopen")


async def _require_news(tx: Tx, view: View, body: ProposalCreate, other: ForeignBranch | None) -> None:
    """Raise NothingProposed if the base has all seals of the head already."""
    head_seal = (
        other.seal if other else (await _find_branch(tx, view, _local_branch_name(body.head), "/head"))[1]
    )
    _, base_seal = await _find_branch(tx, view, body.base, "/base")
    if other is None and _local_branch_name(body.head) == body.base:
        raise Invalid(_SAME, pointer="/base")
    if (await find_relation(tx, base_seal, head_seal)).ahead == 0:
        raise NothingProposed(
            f"{body.base} has every seal of {body.head}, so there is nothing to propose; "
            f"push to {body.head} first: svc push"
        )


async def _find_branch(tx: Tx, view: View, name: str, pointer: str) -> tuple[RefRow, str]:
    """Find a branch and its head. Returns (branch, seal id). Raises Invalid if the branch is missing or has
    no seal."""
    row = await tx.one(refs.ONE, repo_id=view.repo.id, type="branch", name=name)
    if row is None:
        raise Invalid(
            f"{view.repo.full_name} has no branch {name}",
            pointer=pointer,
            reason="unknown_branch",
            branch=name,
        )
    ref = refs.to_row(row)
    if ref.head is None:
        raise Invalid(
            f"branch {name} has no seal yet; push to it first: svc push", pointer=pointer, reason="no_seal"
        )
    return ref, ref.head


async def _require_first(tx: Tx, view: View, head_id: str, base: RefRow) -> None:
    same = await tx.one(rows.SAME, of_repo=view.repo.id, head_id=head_id, base_id=base.id)
    if same is not None:
        raise _proposal_exists(same[0], "this branch", base.name)


def _proposal_exists(number: int, head: str, base: str) -> Conflict:
    return ProposalExists(
        f"#{number} proposes {head} for {base} already; see: svc pr view {number}", number=number
    )
