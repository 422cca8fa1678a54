"""SQL statements that delete expired rows, and everything of purged repositories."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Delete, Table, and_, bindparam, delete, or_, select, tuple_

from relay.db.schema import metadata
from relay.db.schema.account import (
    account,
    challenge,
    device_code,
    device_key,
    login_flow,
    nonce,
    pairing,
    pairing_code,
    refresh_token,
    session,
)
from relay.db.schema.collaboration.attention import star, watch
from relay.db.schema.collaboration.webhook import webhook_delivery, webhook_message
from relay.db.schema.document import document, document_update
from relay.db.schema.event import event
from relay.db.schema.idempotency import idempotency
from relay.db.schema.live import (
    checkpoint,
    lane,
    lane_dir,
    lane_final,
    lane_log,
    live_frame,
    replica,
    update_answer,
)
from relay.db.schema.ref import ref
from relay.db.schema.repo import collaborator, repo, repo_alias
from relay.db.schema.seal import prepare, seal
from relay.db.schema.usage import account_usage, address_usage, created

_EXPIRING = (
    nonce,
    idempotency,
    challenge,
    pairing,
    pairing_code,
    device_code,
    login_flow,
    refresh_token,
    prepare,
    repo_alias,
    address_usage,
    created,
)


def _delete_some(table: Table, over: Any) -> Delete:
    """A statement that deletes at most `limit` rows for which the condition `over` holds. The limit keeps
    each transaction short."""
    key = [*table.primary_key.columns]
    matching = select(*key).where(over).limit(bindparam("limit"))
    return delete(table).where((tuple_(*key) if len(key) > 1 else key[0]).in_(matching))


# Rows with an expiry.
EXPIRED = tuple(_delete_some(table, table.c.expires_at < bindparam("now")) for table in _EXPIRING)

# A session that ended a while ago, with no refresh token that still tells of its theft and no child session.
_child = session.alias("child")
SESSIONS = _delete_some(
    session,
    and_(
        or_(session.c.expires_at < bindparam("before"), session.c.revoked_at < bindparam("before")),
        ~select(refresh_token.c.hash).where(refresh_token.c.session_id == session.c.id).exists(),
        ~select(_child.c.id).where(_child.c.parent_id == session.c.id).exists(),
    ),
)
# Documents of guests without a session, which nobody can read again; first their operations.
_LEFT = (
    select(document.c.id)
    .join(account, account.c.id == document.c.account_id)
    .where(
        account.c.kind == "guest",
        account.c.created_at < bindparam("before"),
        ~select(session.c.id).where(session.c.account_id == account.c.id).exists(),
    )
)
GUEST_DOCUMENTS = (
    _delete_some(document_update, document_update.c.document_id.in_(_LEFT)),
    _delete_some(
        document,
        and_(
            document.c.id.in_(_LEFT),
            ~select(document_update.c.number).where(document_update.c.document_id == document.c.id).exists(),
        ),
    ),
)
# A guest without a session: nobody can be this guest again.
GUESTS = _delete_some(
    account,
    and_(
        account.c.kind == "guest",
        account.c.created_at < bindparam("before"),
        *(
            ~select(table.c.account_id).where(table.c.account_id == account.c.id).exists()
            for table in (
                session,
                device_key,
                pairing_code,
                collaborator,
                replica,
                seal,
                account_usage,
                document,
                star,
                watch,
            )
        ),
        ~select(repo.c.id).where(repo.c.owner_id == account.c.id).exists(),
    ),
)
# The frontier of a deleted branch: what nobody asks for any more. A new branch of its name is another one.
_DELETED = select(ref.c.id).where(ref.c.type == "branch", ref.c.deleted_at.is_not(None))
_REPLICAS = select(replica.c.id).where(replica.c.branch_id.in_(_DELETED))
FRONTIERS = (
    *(
        _delete_some(table, table.c.branch_id.in_(_DELETED))
        for table in (lane, lane_dir, lane_log, lane_final, live_frame, checkpoint, prepare)
    ),
    _delete_some(update_answer, update_answer.c.replica.in_(_REPLICAS)),
    _delete_some(replica, replica.c.branch_id.in_(_DELETED)),  # the last: answers refer to them
)
# Listeners that were away for longer read the frontier anew.
FRAMES = _delete_some(live_frame, live_frame.c.created_at < bindparam("before"))
# Deliveries that are over, then messages that no delivery tells of any more.
DELIVERIES = _delete_some(
    webhook_delivery,
    and_(webhook_delivery.c.state != "waiting", webhook_delivery.c.created_at < bindparam("before")),
)
MESSAGES = _delete_some(
    webhook_message,
    and_(
        webhook_message.c.created_at < bindparam("before"),
        ~select(webhook_delivery.c.id)
        .where(webhook_delivery.c.event_id == webhook_message.c.event_id)
        .exists(),
    ),
)
# What happened to accounts and the node; the rest stays as long as its repository.
OF_NO_REPO = _delete_some(event, and_(event.c.repo_id.is_(None), event.c.created_at < bindparam("before")))

_DUE = select(repo.c.id).where(repo.c.state == "deleted", repo.c.purge_at < bindparam("now"))
_NEXT = or_(
    repo.c.purge_at > bindparam("after_at"),
    and_(repo.c.purge_at == bindparam("after_at"), repo.c.id > bindparam("after_id")),
)
PURGEABLE = (
    _DUE.add_columns(repo.c.purge_at)
    .where(_NEXT)
    .order_by(repo.c.purge_at, repo.c.id)
    .limit(bindparam("limit"))
)
STILL_PURGEABLE = _DUE.where(repo.c.id == bindparam("repo_id"))


def rows_below_repositories() -> dict[Table, ColumnElement[bool]]:
    """Find every table whose rows depend on a repository by foreign keys, directly or indirectly. Returns,
    for each, the condition that selects the rows of the repository `repo_id` (an SQL parameter). Tables come
    after those that they depend on."""
    conditions: dict[Table, ColumnElement[bool]] = {repo: repo.c.id == bindparam("repo_id")}
    for table in metadata.sorted_tables:
        if table is repo:
            continue
        if ways := [_condition_by_key(key, conditions) for key in _keys_into(table, conditions)]:
            conditions[table] = or_(*ways)
    return conditions


def _keys_into(table: Table, conditions: dict[Table, ColumnElement[bool]]) -> list[Any]:
    return [key for key in table.foreign_key_constraints if key.referred_table in conditions]


def _condition_by_key(key: Any, conditions: dict[Table, ColumnElement[bool]]) -> ColumnElement[bool]:
    (element,) = key.elements  # a key of several columns into a repository's rows is not known here
    parent = element.column.table
    if parent is repo:
        return element.parent == bindparam("repo_id")  # type: ignore[no-any-return]
    return element.parent.in_(select(element.column).where(conditions[parent]))  # type: ignore[no-any-return]


# Everything of one repository, children first. Its bytes are left to the collector.
PURGE: tuple[Delete, ...] = tuple(
    delete(table).where(rows) for table, rows in reversed(rows_below_repositories().items())
)
