"""Makes the messages of webhooks about events. They contain only what every reader of the repository may see,
and no paths of files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from localstore.core.model.base import Actor
from localstore.core.model.limits import WEBHOOK_SEALS
from localstore.core.model.webhook import EventKind, Message
from localstore.core.tree.policy import Policy
from relay.base.actors import to_actor as actor_of
from relay.base.clock import rfc3339
from relay.db import repo as repos
from relay.db.collaboration import proposal as proposals
from relay.db.collaboration import review as reviews
from relay.db.engine.database import Tx
from relay.domain.checks.rows import run as runs
from relay.domain.checks.wire import to_wire as run_to_wire
from relay.domain.proposal.wire import to_review as review_to_wire
from relay.domain.release import release
from relay.domain.release.rows import release as releases
from relay.domain.webhook.rows import webhook as rows
from relay.events.log import Logged

MESSAGE_CHARS = 2000  # of a seal's message

# Kind of event in the log -> what a webhook calls it, and the action there.
TYPES: Final[dict[str, tuple[EventKind, str]]] = {
    "seal.create": ("push", "pushed"),
    "ref.create": ("push", "created"),
    "ref.update": ("push", "moved"),
    "ref.delete": ("push", "deleted"),
    "release.create": ("release", "created"),
    "release.edit": ("release", "edited"),
    "release.delete": ("release", "deleted"),
    "asset.upload": ("release", "asset_uploaded"),
    "asset.delete": ("release", "asset_deleted"),
    "issue.create": ("issue", "created"),
    "issue.edit": ("issue", "edited"),
    "issue.close": ("issue", "closed"),
    "issue.reopen": ("issue", "reopened"),
    "issue.assign": ("issue", "assigned"),
    "issue.unassign": ("issue", "unassigned"),
    "issue.label": ("issue", "labelled"),
    "issue.unlabel": ("issue", "unlabelled"),
    "comment.create": ("comment", "created"),
    "comment.edit": ("comment", "edited"),
    "comment.delete": ("comment", "deleted"),
    "thread.create": ("comment", "created"),
    "thread.comment": ("comment", "created"),
    "thread.edit": ("comment", "edited"),
    "thread.delete": ("comment", "deleted"),
    "thread.resolve": ("review", "resolved"),
    "thread.reopen": ("review", "reopened"),
    "proposal.create": ("proposal", "created"),
    "proposal.edit": ("proposal", "edited"),
    "proposal.draft": ("proposal", "drafted"),
    "proposal.ready": ("proposal", "ready"),
    "proposal.push": ("proposal", "pushed"),
    "proposal.retarget": ("proposal", "retargeted"),
    "proposal.close": ("proposal", "closed"),
    "proposal.reopen": ("proposal", "reopened"),
    "proposal.merge": ("proposal", "merged"),
    "proposal.assign": ("proposal", "assigned"),
    "proposal.unassign": ("proposal", "unassigned"),
    "proposal.label": ("proposal", "labelled"),
    "proposal.unlabel": ("proposal", "unlabelled"),
    "review.create": ("review", "submitted"),
    "review.dismiss": ("review", "dismissed"),
    "review.request": ("review", "requested"),
    "review.unrequest": ("review", "unrequested"),
    "run.create": ("run", "created"),
    "run.update": ("run", "updated"),
    "run.cancel": ("run", "cancelled"),
    "run.rerun": ("run", "rerun"),
}
Data = dict[str, Any]


async def of_event(tx: Tx, event: Logged, repo_id: str, full_name: str) -> bytes:
    """The body of the message about an event of a kind in TYPES. It describes the repository as it is now."""
    type_, action = TYPES[event.kind]
    more = await _TELL[type_](tx, repo_id, event.number, event.fields())
    return await encode(tx, type_, event.created_at, repo_id, full_name, event.actor, action, more)


async def encode(
    tx: Tx, type_: str, at: int, repo_id: str, full_name: str, actor: str, action: str, more: Data
) -> bytes:
    """Encode a message. Its bytes are then signed. `at`: time of the event in milliseconds. `actor`: an
    account id, or the name of another author. `more`: the fields that messages of this type have."""
    data = {
        "repo": {"id": repo_id, "full_name": full_name},
        "actor": await _find_actor(tx, actor),
        "action": action,
        **more,
    }
    return msgspec.json.encode(Message(type=type_, timestamp=rfc3339(at), data=data))


async def _describe_push(tx: Tx, repo_id: str, _: int | None, data: Data) -> Data:
    """The fields of a message about a moved branch or a new ref. `seals` has the newest of the seals that the
    branch did not have before, along first parents; they are sorted oldest first."""
    after, before = data.get("head"), data.get("before")
    message: Data = {
        "ref": data.get("branch") or data.get("name"),
        "ref_type": data.get("type", "branch"),
        "before": before,
        "after": after,
    }
    named = "branch" not in data and before is None  # a new ref, of seals that were there
    seals, more = ([], False) if after is None or named else await _newest_seals(tx, repo_id, before, after)
    return {**message, "seals": seals, "more": more}


async def _newest_seals(tx: Tx, repo_id: str, before: str | None, after: str) -> tuple[list[Data], bool]:
    """Read the newest seals after `before` up to `after`. Returns (seals, more): the seals, oldest first, and
    whether there are more."""
    base = await _read_seal(tx, repo_id, before)
    floor = base.generation if base is not None else 0
    listed: list[Data] = []
    at: str | None = after
    while at is not None and at != before:
        seal = await _read_seal(tx, repo_id, at)
        if seal is None or seal.generation <= floor:
            break
        if len(listed) == WEBHOOK_SEALS:
            return listed[::-1], True
        listed.append({"id": seal.id, "message": seal.message[:MESSAGE_CHARS]})
        at = seal.parent
    return listed[::-1], False


async def _read_seal(tx: Tx, repo_id: str, seal_id: str | None) -> rows.MessageSeal | None:
    row = None if seal_id is None else await tx.one(rows.SEAL, of_repo=repo_id, of_seal=seal_id)
    return None if row is None else rows.MessageSeal._make(row)


async def _describe_release(tx: Tx, repo_id: str, _: int | None, data: Data) -> Data:
    """The fields of a message about a release. If the release was deleted, they have only its version and
    seal. `asset`: the name of the asset that was added or removed."""
    asset: Data = {"asset": data["name"]} if "name" in data else {}
    row = await tx.one(releases.ONE, of_repo=repo_id, version=data["version"])
    if row is None:
        return {"release": {"version": data["version"], "seal_id": data.get("seal")}, **asset}
    (whole,) = await release.to_wire(tx, [releases.release_row(row)])
    return {"release": whole, **asset}


async def _run(tx: Tx, repo_id: str, _: int | None, data: Data) -> Data:
    row = await tx.one(runs.ONE, of_repo=repo_id, of_run=data["run"])
    return {"run": None if row is None else run_to_wire(runs.to_row(row))}


async def _describe_issue(tx: Tx, repo_id: str, number: int | None, data: Data) -> Data:
    return {"issue": await _describe_subject(tx, repo_id, number), **await _label_and_account(tx, data)}


async def _describe_proposal(tx: Tx, repo_id: str, number: int | None, data: Data) -> Data:
    subject = await _describe_subject(tx, repo_id, number)
    row = await tx.one(proposals.ONE, of_repo=repo_id, of_number=number)
    if subject is not None and row is not None:
        proposal = proposals.to_row(row)
        subject |= {
            "draft": bool(proposal.draft),
            "head": proposal.head,
            "base": proposal.base,
            "head_seal": proposal.head_seal,
            "version": proposal.version,
            "merged_seal": proposal.merged_seal,
        }
    return {"proposal": subject, **await _label_and_account(tx, data)}


async def _describe_review(tx: Tx, repo_id: str, number: int | None, data: Data) -> Data:
    message = await _describe_proposal(tx, repo_id, number, data)
    if "id" in data:
        row = await tx.one(reviews.ONE, of_repo=repo_id, of_number=number, review=data["id"])
        message["review"] = None if row is None else review_to_wire(reviews.to_row(row))
    if "thread" in data:
        message["thread"] = {"id": data["thread"]}
    return message


async def _describe_comment(tx: Tx, repo_id: str, number: int | None, data: Data) -> Data:
    """The fields of a message about a comment. If the comment was deleted, they have only its id. A comment
    in a thread whose path is now hidden counts as deleted."""
    row = await tx.one(rows.COMMENT, of_repo=repo_id, of_comment=data["id"])
    comment: Data = {"id": data["id"]}
    if "thread" in data and not await _open_to_readers(tx, repo_id, data["thread"]):
        row = None
    if row is not None:
        id_, author, handle, kind, body, created, updated = row
        comment = {
            "id": id_,
            "author": actor_of(author, handle, kind),
            "body": body,
            "created_at": rfc3339(created),
            "updated_at": rfc3339(updated),
        }
    subject = await _describe_subject(tx, repo_id, number)
    if subject is not None:
        subject = {name: subject[name] for name in ("number", "kind", "state", "title", "author")}
    thread = {"thread": {"id": data["thread"]}} if "thread" in data else {}
    return {"comment": comment, "subject": subject, **thread}


async def _open_to_readers(tx: Tx, repo_id: str, thread: str) -> bool:
    """Whether every reader of the repository may see the path of the thread."""
    paths = await tx.one(rows.THREAD_PATHS, of_repo=repo_id, of_thread=thread)
    policy = Policy(0, dict(map(tuple, await tx.all(repos.POLICY, repo_id=repo_id))))
    return paths is not None and all(policy.sees(path) for path in paths)


async def _describe_subject(tx: Tx, repo_id: str, number: int | None) -> Data | None:
    row = await tx.one(rows.SUBJECT, of_repo=repo_id, of_number=number)
    if row is None:
        return None
    n, kind, state, why, title, body, author, handle, author_kind, created, updated = row
    return {
        "number": n,
        "kind": kind,
        "state": state,
        "state_reason": why,
        "title": title,
        "body": body,
        "author": actor_of(author, handle, author_kind),
        "created_at": rfc3339(created),
        "updated_at": rfc3339(updated),
    }


async def _label_and_account(tx: Tx, data: Data) -> Data:
    """The fields `label` and `account` of a message: the label and account that were added or removed, if the
    event has them."""
    message: Data = {"label": data["name"]} if "name" in data else {}
    if data.get("account_id"):
        message["account"] = await _find_actor(tx, data["account_id"])
    return message


async def _find_actor(tx: Tx, account_id: str) -> Actor | None:
    row = await tx.one(rows.ACTOR, who=account_id)
    return None if row is None else actor_of(*row)


_TELL: Final[dict[EventKind, Callable[[Tx, str, int | None, Data], Awaitable[Data]]]] = {
    "push": _describe_push,
    "release": _describe_release,
    "run": _run,
    "issue": _describe_issue,
    "proposal": _describe_proposal,
    "review": _describe_review,
    "comment": _describe_comment,
}
