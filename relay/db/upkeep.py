"""Statements that take away what has expired, and what was purged."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Delete, Table, and_, bindparam, delete, or_, select, tuple_

from relay.db.schema import (
    account,
    account_usage,
    address_usage,
    audit,
    blame_cache,
    challenge,
    checkpoint,
    chunked_file,
    collaborator,
    device_code,
    device_key,
    event,
    idempotency,
    lane,
    lane_final,
    lane_log,
    live_batch,
    nonce,
    pairing_code,
    prepare,
    ref,
    refresh_token,
    replica,
    repo,
    repo_alias,
    repo_object,
    repo_usage,
    seal,
    seal_change,
    seal_live,
    seal_parent,
    session,
    update_answer,
)

_EXPIRING = (
    nonce,
    idempotency,
    challenge,
    pairing_code,
    device_code,
    refresh_token,
    prepare,
    repo_alias,
    address_usage,
)


def _some(table: Table, over: Any) -> Delete:
    """Delete rows that are `over`, at most `limit` of them: each transaction is short."""
    key = [*table.primary_key.columns]
    found = select(*key).where(over).limit(bindparam("limit"))
    return delete(table).where((tuple_(*key) if len(key) > 1 else key[0]).in_(found))


# What has an end is gone after it.
EXPIRED = tuple(_some(table, table.c.expires_at < bindparam("now")) for table in _EXPIRING)

# A session that ended a while ago, with no refresh token that still tells of its theft and no child session.
_child = session.alias("child")
SESSIONS = _some(
    session,
    and_(
        or_(session.c.expires_at < bindparam("before"), session.c.revoked_at < bindparam("before")),
        ~select(refresh_token.c.hash).where(refresh_token.c.session_id == session.c.id).exists(),
        ~select(_child.c.id).where(_child.c.parent_id == session.c.id).exists(),
    ),
)
# A guest without a session: nobody can be this guest again.
GUESTS = _some(
    account,
    and_(
        account.c.kind == "guest",
        account.c.created_at < bindparam("before"),
        *(
            ~select(table.c.account_id).where(table.c.account_id == account.c.id).exists()
            for table in (session, device_key, pairing_code, collaborator, replica, seal, account_usage)
        ),
        ~select(repo.c.id).where(repo.c.owner_id == account.c.id).exists(),
    ),
)
AUDIT = _some(audit, audit.c.at < bindparam("before"))

_fork = repo.alias("fork")
# A fork reads its older seals out of the repository it came from, which therefore stays while it lives.
_DUE = select(repo.c.id).where(
    repo.c.state == "deleted",
    repo.c.purge_at < bindparam("now"),
    ~select(_fork.c.id).where(_fork.c.parent_id == repo.c.id).exists(),
)
PURGEABLE = _DUE.order_by(repo.c.purge_at).limit(bindparam("limit"))
STILL_PURGEABLE = _DUE.where(repo.c.id == bindparam("repo_id"))

_ID: Any = bindparam("repo_id")
_BRANCHES = select(ref.c.id).where(ref.c.repo_id == _ID)
_SEALS = select(seal.c.id).where(seal.c.repo_id == _ID)
_REPLICAS = select(replica.c.id).where(replica.c.branch_id.in_(_BRANCHES))


def _of_branches(table: Table) -> Delete:
    return delete(table).where(table.c.branch_id.in_(_BRANCHES))


# Everything of one repository, children first. Its bytes are left to the collector.
PURGE: tuple[Delete, ...] = (
    delete(update_answer).where(update_answer.c.replica.in_(_REPLICAS)),
    delete(seal_live).where(seal_live.c.seal_id.in_(_SEALS)),
    *map(_of_branches, (replica, lane, lane_log, lane_final, live_batch, checkpoint, prepare)),
    delete(seal_change).where(seal_change.c.seal_id.in_(_SEALS)),
    delete(seal_parent).where(seal_parent.c.seal_id.in_(_SEALS)),
    *(
        delete(table).where(table.c.repo_id == _ID)
        for table in (
            seal,
            blame_cache,
            collaborator,
            repo_alias,
            ref,
            repo_object,
            repo_usage,
            chunked_file,
            event,
        )
    ),
    delete(repo).where(repo.c.id == _ID),
)
