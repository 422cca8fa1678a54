"""The follower that fills inboxes: one row for each account and subject, with its newest reason, never for
the author of the event. Requests do not wait for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from localstore.core.limits import MENTIONS
from relay.db.engine.database import Tx
from relay.domain.attention.mentions import mentioned
from relay.domain.attention.reasons import RULES, Rule
from relay.domain.attention.rows import inbox as rows
from relay.events.log import Logged

NAME = "inbox"
KINDS = tuple(sorted(RULES))
_POSTS = {"comment": rows.COMMENTS, "review": rows.REVIEWS}
TURN = 20  # events of one transaction: each may reach a thousand watchers, while writers wait


async def follow(tx: Tx, events: Sequence[Logged]) -> None:
    """Events of one subject reach its watchers and those who take part in it once, as the newest of them;
    then, since a later reason stands, those who are named."""
    bodies = await _comments(tx, events)
    for (repo_id, number), group in _by_subject(events).items():
        about = {"of_repo": repo_id, "of_number": number}
        await _to_all(tx, rows.TO_WATCHERS, about, group, lambda rule: rule.watchers)
        await _to_all(tx, rows.TO_PARTS, about, group, lambda rule: rule.parts)
        for event in group:
            rule, data = RULES[event.kind], event.fields()
            who = data.get("account_id") or data.get("account")
            if rule.to is not None and who:
                await _to_one(tx, rule, about, event, str(who))
            if rule.asked and data.get("asked"):
                about_grant = {**about, **_of(event), "who": str(who)}
                await tx.run(rows.TO_ACCOUNT, **about_grant, reason="access_granted")
            if rule.tells is not None and data.get("told"):
                answer = {**about, **_of(event), "who": str(data["told"])}
                await tx.run(rows.TO_ACCOUNT, **answer, reason=rule.tells)
            if rule.check:
                await _to_authors(tx, repo_id, event)
            await _to_mentioned(tx, rule, about, event, bodies)


def _by_subject(events: Sequence[Logged]) -> dict[tuple[str, int], list[Logged]]:
    groups: dict[tuple[str, int], list[Logged]] = {}
    for event in events:
        if event.repo_id is not None:
            groups.setdefault((event.repo_id, event.number or 0), []).append(event)
    return groups


async def _comments(tx: Tx, events: Sequence[Logged]) -> dict[str, list[str]]:
    """The texts of the comments and reviews that were posted, of a review those on lines too; none of
    comments that are deleted by now."""
    found: dict[str, list[str]] = {}
    for kind, statement in _POSTS.items():
        ids = [str(one.fields().get("id")) for one in events if RULES[one.kind].text == kind]
        for name, body in await tx.all(statement, ids=ids) if ids else ():
            found.setdefault(name, []).append(body)
        if ids and kind == "review":
            for name, body in await tx.all(rows.REVIEW_COMMENTS, ids=ids):
                found.setdefault(name, []).append(body)
    return found


async def _to_all(
    tx: Tx, statement: Any, about: dict[str, Any], group: list[Logged], meant: Callable[[Rule], bool]
) -> None:
    loud = [one for one in group if meant(RULES[one.kind])]
    among = [[one for one in loud if _all_hear(one) == everybody] for everybody in (True, False)]
    for some in sorted(filter(None, among), key=lambda one: one[-1].id):
        for event in _latest_for_everybody(some):
            await tx.run(statement, **about, **_of(event))


def _latest_for_everybody(loud: list[Logged]) -> list[Logged]:
    """The newest event, preceded by the newest of another author, for the inbox of the first one's author."""
    newest = loud[-1]
    others = [one for one in loud if one.actor != newest.actor]
    return [*others[-1:], newest]


async def _to_one(tx: Tx, rule: Rule, about: dict[str, Any], event: Logged, who: str) -> None:
    if rule.clears:
        await tx.run(rows.CLEAR, **about, who=who, reason=rule.to)
        return
    statement = rows.TO_ACCOUNT_OUTSIDE if rule.outside else rows.TO_ACCOUNT
    await tx.run(statement, **about, **_of(event), reason=rule.to, who=who)


async def _to_authors(tx: Tx, repo_id: str, event: Logged) -> None:
    """Of open proposals whose head failed the check of this run: once for each head and check."""
    data = event.fields()
    if data.get("conclusion") not in rows.FAILED:
        return
    for number, author in await tx.all(rows.FAILED_PROPOSALS, of_repo=repo_id, of_run=data["run"]):
        about = {"of_repo": repo_id, "of_number": number}
        await tx.run(rows.TO_ACCOUNT, **about, **_of(event), reason="check_failed", who=author)


async def _to_mentioned(
    tx: Tx, rule: Rule, about: dict[str, Any], event: Logged, bodies: dict[str, list[str]]
) -> None:
    """Each once for each post, however often it is edited, and MENTIONS of them at most."""
    data = event.fields()
    post = str(data.get("id", ""))
    if rule.named:
        handles = [str(one) for one in data.get("mentions", ())]
    elif rule.text in _POSTS:
        handles = [handle for text in bodies.get(post, []) for handle in mentioned(text)]
    elif rule.text is not None:
        handles = mentioned(await tx.value(rows.BODY, **about) or "")
    else:
        return
    if not handles:
        return
    told = {row[0] for row in await tx.all(rows.TOLD, **about, post=post)}
    new = [one for one in dict.fromkeys(handles) if one not in told][: max(MENTIONS - len(told), 0)]
    if new:
        of = {"repo_id": about["of_repo"], "number": about["of_number"], "post": post}
        await tx.many(rows.TELL, [{**of, "handle": one} for one in new])
        await tx.run(rows.TO_HANDLES, **about, **_of(event), reason="mention", handles=new)


def _of(event: Logged) -> dict[str, Any]:
    return {
        "actor": event.actor,
        "event": event.id,
        "now": event.created_at,
        "all_hear": _all_hear(event),
    }


def _all_hear(event: Logged) -> bool:
    """Whether whoever sees the repository may hear of it; else its writers."""
    return event.audience != "writer"
