"""The follower that fills inboxes. An account gets one row for each issue, proposal or repository. The row
shows why the newest event concerns the account. The author of an event gets no row for it. Requests do not
wait for the follower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from localstore.core.model.limits import MENTIONS
from relay.db.engine.database import Tx
from relay.domain.attention.mentions import find_mentions
from relay.domain.attention.reasons import RULES, Rule
from relay.domain.attention.rows import inbox as rows
from relay.events.log import Logged

NAME = "inbox"
KINDS = tuple(sorted(RULES))
_POSTS = {"comment": rows.COMMENTS, "review": rows.REVIEWS}
BATCH_SIZE = 20  # events of one transaction: each may reach a thousand watchers, while writers wait


async def follow(tx: Tx, events: Sequence[Logged]) -> None:
    """Add rows to inboxes for these events. Watchers and participants of an issue, proposal or repository get
    one row for its newest event. An account that an event names gets a row with a reason of its own, which
    replaces its row as a watcher or participant."""
    bodies = await _read_texts(tx, events)
    for (repo_id, number), group in _group_by_subject(events).items():
        about = {"of_repo": repo_id, "of_number": number}
        await _notify_all(tx, rows.TO_WATCHERS, about, group, lambda rule: rule.watchers)
        await _notify_all(tx, rows.TO_PARTS, about, group, lambda rule: rule.parts)
        for event in group:
            rule, data = RULES[event.kind], event.fields()
            who = data.get("account_id") or data.get("account")
            if rule.to is not None and who:
                await _notify_account(tx, rule, about, event, str(who))
            if rule.asked and data.get("asked"):
                about_grant = {**about, **_event_values(event), "who": str(who)}
                await tx.run(rows.TO_ACCOUNT, **about_grant, reason="access_granted")
            if rule.tells is not None and data.get("told"):
                answer = {**about, **_event_values(event), "who": str(data["told"])}
                await tx.run(rows.TO_ACCOUNT, **answer, reason=rule.tells)
            if rule.answers is not None:
                await tx.run(rows.CLEAR, **about, who=event.actor, reason=rule.answers)
            if rule.check:
                await _notify_authors(tx, repo_id, event)
            await _notify_mentioned(tx, rule, about, event, bodies)


def _group_by_subject(events: Sequence[Logged]) -> dict[tuple[str, int], list[Logged]]:
    groups: dict[tuple[str, int], list[Logged]] = {}
    for event in events:
        if event.repo_id is not None:
            groups.setdefault((event.repo_id, event.number or 0), []).append(event)
    return groups


async def _read_texts(tx: Tx, events: Sequence[Logged]) -> dict[str, list[str]]:
    """Read the texts of posted comments and reviews, by their ids. Deleted ones are left out. The texts of a
    review include its comments on lines."""
    texts: dict[str, list[str]] = {}
    for kind, statement in _POSTS.items():
        ids = [str(event.fields().get("id")) for event in events if RULES[event.kind].text == kind]
        for name, body in await tx.all(statement, ids=ids) if ids else ():
            texts.setdefault(name, []).append(body)
        if ids and kind == "review":
            for name, body in await tx.all(rows.REVIEW_COMMENTS, ids=ids):
                texts.setdefault(name, []).append(body)
    return texts


async def _notify_all(
    tx: Tx, statement: Any, about: dict[str, Any], group: list[Logged], meant: Callable[[Rule], bool]
) -> None:
    relevant = [event for event in group if meant(RULES[event.kind])]
    groups = [
        [event for event in relevant if _is_for_readers(event) == everybody] for everybody in (True, False)
    ]
    for events in sorted(filter(None, groups), key=lambda events: events[-1].id):
        for event in _latest_for_everybody(events):
            await tx.run(statement, **about, **_event_values(event))


def _latest_for_everybody(loud: list[Logged]) -> list[Logged]:
    """Choose which events watchers and participants are notified of: the newest, for everybody but its
    author. The author is notified of the newest event by somebody else; if there is one, it comes first in
    the result. `loud`: events about one issue, proposal or repository, oldest first."""
    newest = loud[-1]
    others = [event for event in loud if event.actor != newest.actor]
    return [*others[-1:], newest]


async def _notify_account(tx: Tx, rule: Rule, about: dict[str, Any], event: Logged, who: str) -> None:
    if rule.clears:
        await tx.run(rows.CLEAR, **about, who=who, reason=rule.to)
        return
    statement = rows.TO_ACCOUNT_OUTSIDE if rule.outside else rows.TO_ACCOUNT
    await tx.run(statement, **about, **_event_values(event), reason=rule.to, who=who)


async def _notify_authors(tx: Tx, repo_id: str, event: Logged) -> None:
    """Notify the authors of open proposals whose head failed the check that this event reports. An author is
    notified once for each head and check."""
    data = event.fields()
    if data.get("conclusion") not in rows.FAILED:
        return
    for number, author in await tx.all(rows.FAILED_PROPOSALS, of_repo=repo_id, of_run=data["run"]):
        about = {"of_repo": repo_id, "of_number": number}
        await tx.run(rows.TO_ACCOUNT, **about, **_event_values(event), reason="check_failed", who=author)


async def _notify_mentioned(
    tx: Tx, rule: Rule, about: dict[str, Any], event: Logged, bodies: dict[str, list[str]]
) -> None:
    """Notify the accounts that a post mentions, at most MENTIONS of them. An account is notified once for
    each post, even if the post is edited repeatedly. `about`: the issue or proposal of the post. `bodies`:
    texts of comments and reviews, by id."""
    data = event.fields()
    post = str(data.get("id", ""))
    if rule.named:
        handles = [str(handle) for handle in data.get("mentions", ())]
    elif rule.text in _POSTS:
        handles = [handle for text in bodies.get(post, []) for handle in find_mentions(text)]
    elif rule.text is not None:
        handles = find_mentions(await tx.value(rows.BODY, **about) or "")
    else:
        return
    if not handles:
        return
    notified = {row[0] for row in await tx.all(rows.NOTIFIED, **about, post=post)}
    unnotified = [handle for handle in dict.fromkeys(handles) if handle not in notified]
    new = unnotified[: max(MENTIONS - len(notified), 0)]
    if new:
        of = {"repo_id": about["of_repo"], "number": about["of_number"], "post": post}
        await tx.many(rows.TELL, [{**of, "handle": handle} for handle in new])
        await tx.run(rows.TO_HANDLES, **about, **_event_values(event), reason="mention", handles=new)


def _event_values(event: Logged) -> dict[str, Any]:
    return {
        "actor": event.actor,
        "event": event.id,
        "now": event.created_at,
        "all_hear": _is_for_readers(event),
    }


def _is_for_readers(event: Logged) -> bool:
    """Whether the event is for everybody who sees the repository, not only for its writers."""
    return event.audience != "writer"
