"""Converts proposals and reviews to the form that answers have, with a fixed number of statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from localstore.core.model import limits
from localstore.core.model.proposal import AutoMerge, HeadRepo, Needs, Proposal, Reviewer
from localstore.core.model.protection import matching
from localstore.core.model.review import Review
from localstore.core.obstacles import count_approvals, count_verdicts, find_obstacles
from relay.base.actors import to_actor
from relay.base.clock import rfc3339, rfc3339_or_none
from relay.caller import View
from relay.db.collaboration import fork as forks
from relay.db.collaboration import proposal as rows
from relay.db.collaboration import review as reviews
from relay.db.collaboration.proposal import ProposalRow
from relay.db.collaboration.review import ReviewRow
from relay.db.engine.database import Row, Tx
from relay.domain.checks import check
from relay.domain.discussion import reaction_counts as reaction
from relay.domain.discussion import sight, subject
from relay.domain.proposal import verdict
from relay.domain.proposal.rows import auto_merge as autos
from relay.domain.proposal.rows import merge_trial as trials
from relay.domain.protection import protection


async def to_proposals(tx: Tx, view: View, proposal_rows: Sequence[ProposalRow]) -> list[Proposal]:
    numbers = [row.number for row in proposal_rows]
    if not numbers:
        return []
    of = {"of_repo": view.repo.id, "numbers": numbers}
    labels = await subject.labels_of(tx, view, numbers)
    assignees = await subject.assignees_of(tx, view, numbers)
    reactions = await reaction.on_issues(tx, view, numbers)
    standing: dict[int, list[Review]] = {}
    for n, *columns in await tx.all(reviews.STANDING, **of):
        standing.setdefault(n, []).append(to_review(reviews.to_row(columns)))
    reviewers = _find_reviewers(await tx.all(reviews.REVIEWERS, **of), standing)
    closes = _by_number(await tx.all(rows.CLOSES, **of))
    depends = _by_number(await tx.all(rows.DEPENDS, **of))
    head_repos = await _find_head_repos(tx, view, proposal_rows)
    heads = list({row.head_seal for row in proposal_rows})
    checked = await check.combine_states(tx, view.repo.id, heads)
    rules = await protection.of_repo(tx, view.repo.id)
    unmet = await check.find_unmet(tx, view.repo.id, heads)
    waiting = {columns[0]: columns[1:] for columns in await tx.all(autos.SHOWN, **of)}
    talk = await sight.count_threads(tx, view, numbers)
    tried = {n: columns for n, *columns in await tx.all(trials.SHOWN, **of)}
    items = []
    for row in proposal_rows:
        n, stand = row.number, standing.get(row.number, [])
        blocked: list[str] = []
        needs = Needs()
        if row.state == "open":
            verdicts = count_verdicts(stand, not unmet[row.head_seal], talk[n].open)
            of_base = matching(rules, row.base)
            blocked = find_obstacles(of_base, verdicts)
            needs = Needs(*count_approvals(of_base, verdicts), any(rule.require_checks for rule in of_base))
        base_now = row.base_now if row.state == "open" else None
        conflicts = _visible_conflicts(view, row, base_now, tried.get(n))
        items.append(
            Proposal(
                number=n,
                title=row.title,
                body=row.body,
                state=row.state,  # type: ignore[arg-type]  # the column holds nothing else
                draft=bool(row.draft),  # a number where the database has no such type
                author=to_actor(row.author_id, row.author_handle, row.author_kind),
                head=row.head,
                base=row.base,
                head_repo=head_repos.get(row.head_repo_id),
                head_seal=row.head_seal,
                base_seal=base_now or row.version_base,
                merge_base=row.merge_base,
                version=row.version,
                assignees=assignees.get(n, []),
                labels=labels.get(n, []),
                reactions=reactions[n],
                comments=row.comments,
                reviewers=reviewers.get(n, []),
                reviews=stand,
                checks=checked[row.head_seal],
                threads=talk[n],
                merge_state=verdict.merge_state(
                    row.state, row.draft, blocked, row.merge_base, base_now, conflicts
                ),
                blocked_by=blocked,
                depends_on=depends.get(n, []),
                closes=closes.get(n, []),
                created_at=rfc3339(row.created_at),
                updated_at=rfc3339(row.updated_at),
                closed_at=rfc3339_or_none(row.closed_at),
                merged_seal=row.merged_seal,
                auto_merge=_to_auto_merge(waiting.get(n)),
                cross_repository=row.head_repo_id is not None,
                conflicts=(conflicts or [])[: limits.CONFLICTS_SHOWN],
                mergeable=verdict.is_mergeable(row.merge_base, base_now, conflicts),
                needs=needs,
            )
        )
    return items


def _visible_conflicts(
    view: View, row: ProposalRow, base_now: str | None, tried: Sequence[str] | None
) -> list[str] | None:
    """The files with conflicts that the caller sees. None if the merge of the current head into the current
    base was not tried."""
    if tried is None or tried[:2] != [row.head_seal, base_now]:
        return None
    paths: list[str] = msgspec.json.decode(tried[2])
    return [path for path in paths if view.sees(path)]


def _to_auto_merge(columns: Sequence[Any] | None) -> AutoMerge | None:
    if columns is None:
        return None
    who, handle, kind, strategy, created_at = columns
    return AutoMerge(by=to_actor(who, handle, kind), strategy=strategy, created_at=rfc3339(created_at))


async def _find_head_repos(
    tx: Tx, view: View, proposal_rows: Sequence[ProposalRow]
) -> dict[str | None, HeadRepo]:
    """Find the repositories that have the head branches of these proposals, as far as the caller sees them.
    Returns them by `head_repo_id` of the proposals; None stands for this repository."""
    repositories: dict[str | None, HeadRepo] = {
        None: HeadRepo(id=view.repo.id, full_name=view.repo.full_name)
    }
    if ids := list({row.head_repo_id for row in proposal_rows if row.head_repo_id is not None}):
        me = view.principal.account_id if view.principal else ""
        for repo_id, owner, name in await tx.all(forks.NAMED, ids=ids, account=me):
            repositories[repo_id] = HeadRepo(id=repo_id, full_name=f"{owner}/{name}")
    return repositories


def to_review(row: ReviewRow) -> Review:
    return Review(
        id=row.id,
        reviewer=to_actor(row.account_id, row.handle, row.kind),
        verdict=row.verdict,
        body=row.body,
        seal_id=row.seal_id,
        version=row.version,
        created_at=rfc3339(row.created_at),
        stale=bool(row.stale),
        counts=bool(row.counts),
        dismissed_at=rfc3339_or_none(row.dismissed_at),
    )


def _find_reviewers(
    reviewer_rows: Iterable[Row], standing: dict[int, list[Review]]
) -> dict[int, list[Reviewer]]:
    """Find the reviewers of proposals. Returns them by proposal number. A reviewer whose review was requested
    again counts as requested, regardless of the last verdict."""
    by_id = {given.id: given for stand in standing.values() for given in stand}
    by_number: dict[int, list[Reviewer]] = {}
    for n, who, handle, kind, requested, review_id in reviewer_rows:
        person, latest = to_actor(who, handle, kind), by_id.get(review_id)
        if requested or latest is None:
            reviewer = Reviewer(who=person, state="requested")
        else:
            state = "approved" if latest.verdict == "approve" else "changes_requested"
            reviewer = Reviewer(who=person, state=state, seal_id=latest.seal_id, stale=latest.stale)  # type: ignore[arg-type]
        by_number.setdefault(n, []).append(reviewer)
    return by_number


def _by_number(pairs: Iterable[Row]) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {}
    for n, other in pairs:
        numbers.setdefault(n, []).append(other)
    return numbers
