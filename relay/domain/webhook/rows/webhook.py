"""SQL statements on webhooks, their deliveries, and the rows from which messages are made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.engine.upsert import InsertNew
from relay.db.repo import ALIVE
from relay.db.schema.account import account
from relay.db.schema.collaboration.issue import comment, subject
from relay.db.schema.collaboration.proposal import thread
from relay.db.schema.collaboration.webhook import webhook, webhook_delivery, webhook_message
from relay.db.schema.repo import repo
from relay.db.schema.seal import seal, seal_parent

WAITING = "waiting"
_h, _d, _m = webhook.c, webhook_delivery.c, webhook_message.c
_REPO: Any = bindparam("of_repo")
_HOOK: Any = bindparam("of_hook")


@dataclass(slots=True, frozen=True)
class WebhookRow:
    """A webhook. `events`: the kinds of events that it receives, with spaces between and around them."""

    id: str
    url: str
    host: str
    events: Any
    active: bool
    disabled: Any
    created_at: int
    updated_at: int
    failing_since: int | None


@dataclass(slots=True, frozen=True)
class DeliveryRow:
    id: str
    event_id: int
    type: str
    redelivery: bool
    state: Any
    attempts: int
    status: int | None
    reason: str | None
    duration: int | None
    created_at: int
    attempted_at: int | None
    next_at: int | None
    sent_headers: str | None = None
    body: str = ""
    answer_headers: str | None = None
    answer_body: bytes | None = None


class FollowerHook(NamedTuple):
    """A webhook, as the follower of the event log needs it. `events`: as in `WebhookRow`. `owner`, `name`: of
    its repository."""

    id: str
    repo_id: str
    host: str
    events: str
    failing_since: int | None
    owner: str
    name: str


class MessageSeal(NamedTuple):
    """A seal in a message. `parent`: its first parent."""

    id: str
    generation: int
    message: str
    parent: str | None


class ToSend(NamedTuple):
    """The data of one attempt of a delivery. `alive`: id of the repository, or None if it is deleted or
    suspended."""

    state: str
    attempts: int
    event_id: int
    type: str
    body: str
    hook_id: str
    repo_id: str
    owner_id: str
    alive: str | None
    url: str
    host: str
    secret: bytes
    active: bool


# --- webhooks
_COLUMNS = (
    _h.id,
    _h.url,
    _h.host,
    _h.events,
    _h.active,
    _h.disabled,
    _h.created_at,
    _h.updated_at,
    _h.failing_since,
)
_OF_REPO = select(*_COLUMNS).where(_h.repo_id == _REPO)
PAGE = Keyset(_OF_REPO, "id")
ONE = _OF_REPO.where(_h.id == _HOOK)
COUNT = select(func.count()).where(_h.repo_id == _REPO)
MADE_SINCE = select(func.count()).where(_h.creator_id == bindparam("who"), _h.created_at > bindparam("since"))
INSERT = insert(webhook)
EDIT = (
    update(webhook)
    .where(_h.id == _HOOK)
    .values(
        events=bindparam("new_events"),
        active=bindparam("new_active"),
        disabled=bindparam("new_disabled"),
        failing_since=bindparam("new_failing_since"),
        updated_at=bindparam("now"),
    )
)
DELETE = delete(webhook).where(_h.id == _HOOK)
DROP_DELIVERIES = delete(webhook_delivery).where(_d.webhook_id == _HOOK)
SET_FAILING = update(webhook).where(_h.id == _HOOK).values(failing_since=bindparam("since"))
DISABLE = (
    update(webhook)
    .where(_h.id == _HOOK, _h.active)
    .values(active=False, disabled=bindparam("why"), updated_at=bindparam("now"))
)
DISABLE_ALL = (
    update(webhook)
    .where(_h.repo_id == _REPO, _h.active)
    .values(active=False, disabled=bindparam("why"), updated_at=bindparam("now"))
)
FAILING_SINCE = select(_h.failing_since).where(_h.id == _HOOK)

# --- deliveries
_SUMMARY = (
    _d.id,
    _d.event_id,
    _m.type,
    _d.redelivery,
    _d.state,
    _d.attempts,
    _d.status,
    _d.reason,
    _d.duration,
    _d.created_at,
    _d.attempted_at,
    _d.next_at,
)
_WITH_MESSAGE = webhook_delivery.join(webhook_message, _m.event_id == _d.event_id)
_OF_HOOK = select(*_SUMMARY).select_from(_WITH_MESSAGE).where(_d.webhook_id == _HOOK)


@cache
def deliveries(by_state: bool) -> Keyset:
    """SQL statements that read a page of a webhook's deliveries, newest first. `by_state`: only deliveries in
    the state `of_state`, an SQL parameter."""
    return Keyset(_OF_HOOK.where(_d.state == bindparam("of_state")) if by_state else _OF_HOOK, "-id")


DELIVERY = (
    select(*_SUMMARY, _d.sent_headers, _m.body, _d.answer_headers, _d.answer_body)
    .select_from(_WITH_MESSAGE)
    .where(_d.webhook_id == _HOOK, _d.id == bindparam("of_delivery"))
)
MESSAGE = InsertNew(webhook_message)
DELIVER = insert(webhook_delivery)
ASKED_SINCE = (
    select(func.count())
    .select_from(_WITH_MESSAGE)
    .where(_d.webhook_id == _HOOK, _d.created_at > bindparam("since"), or_(_d.redelivery, _m.type == "ping"))
)
COUNT_WAITING = select(func.count()).where(_d.webhook_id == _HOOK, _d.state == WAITING)
_alive = repo.alias("living")
TO_SEND = (
    select(
        _d.state,
        _d.attempts,
        _d.event_id,
        _m.type,
        _m.body,
        _h.id,
        _h.repo_id,
        repo.c.owner_id,
        _alive.c.id,
        _h.url,
        _h.host,
        _h.secret,
        _h.active,
    )
    .select_from(
        _WITH_MESSAGE.join(webhook, _h.id == _d.webhook_id)
        .join(repo, repo.c.id == _h.repo_id)
        .outerjoin(_alive, and_(_alive.c.id == repo.c.id, _alive.c.state.in_(("active", "archived"))))
    )
    .where(_d.id == bindparam("of_delivery"))
)
TRIED = (
    update(webhook_delivery)
    .where(_d.id == bindparam("of_delivery"), _d.state == WAITING, _d.attempts == bindparam("before"))
    .values(
        state=bindparam("new_state"),
        attempts=bindparam("new_attempts"),
        status=bindparam("new_status"),
        reason=bindparam("new_reason"),
        duration=bindparam("new_duration"),
        sent_headers=bindparam("new_sent"),
        answer_headers=bindparam("new_headers"),
        answer_body=bindparam("new_body"),
        attempted_at=bindparam("now"),
        next_at=bindparam("new_next_at"),
    )
)
GIVE_UP = (
    update(webhook_delivery)
    .where(_d.id == bindparam("of_delivery"), _d.state == WAITING)
    .values(state="failed", reason=bindparam("why"), next_at=None)
)

# --- for the follower: webhooks of these repositories that want to be told something
HOOKS = (
    select(_h.id, _h.repo_id, _h.host, _h.events, _h.failing_since, account.c.handle, repo.c.name)
    .select_from(webhook.join(repo, repo.c.id == _h.repo_id).join(account, account.c.id == repo.c.owner_id))
    .where(_h.repo_id.in_(bindparam("repos", expanding=True)), _h.active, ALIVE)
    .order_by(_h.id)
)
ACTOR = select(account.c.id, account.c.handle, account.c.kind).where(account.c.id == bindparam("who"))
SUBJECT = (
    select(
        subject.c.number,
        subject.c.kind,
        subject.c.state,
        subject.c.state_reason,
        subject.c.title,
        subject.c.body,
        account.c.id,
        account.c.handle,
        account.c.kind.label("author_kind"),
        subject.c.created_at,
        subject.c.updated_at,
    )
    .select_from(subject.join(account, account.c.id == subject.c.author_id))
    .where(subject.c.repo_id == _REPO, subject.c.number == bindparam("of_number"))
)
COMMENT = (
    select(
        comment.c.id,
        account.c.id.label("author"),
        account.c.handle,
        account.c.kind,
        comment.c.body,
        comment.c.created_at,
        comment.c.updated_at,
    )
    .select_from(comment.join(account, account.c.id == comment.c.author_id))
    .where(
        comment.c.repo_id == _REPO, comment.c.id == bindparam("of_comment"), comment.c.deleted_at.is_(None)
    )
)
# Where a thread began, and where its lines are now.
THREAD_PATHS = select(thread.c.path, thread.c.at_path).where(
    thread.c.repo_id == _REPO, thread.c.id == bindparam("of_thread")
)
# A seal with its first parent.
SEAL = (
    select(seal.c.id, seal.c.generation, seal.c.message, seal_parent.c.parent_id)
    .select_from(
        seal.outerjoin(seal_parent, and_(seal_parent.c.seal_id == seal.c.id, seal_parent.c.position == 0))
    )
    .where(seal.c.repo_id == _REPO, seal.c.id == bindparam("of_seal"))
)


def webhook_row(columns: Row) -> WebhookRow:
    return WebhookRow(*columns)


def delivery_row(columns: Row) -> DeliveryRow:
    return DeliveryRow(*columns)
