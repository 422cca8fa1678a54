"""SQL statements on accounts that connect over SSH."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from relay.db.schema.account import account, device_key, session

# A key by its id, also a revoked one and that of a suspended account.
KEY = (
    select(
        account.c.id,
        account.c.kind,
        account.c.handle,
        device_key.c.caps,
        device_key.c.revoked_at,
        account.c.disabled_at,
    )
    .select_from(device_key.join(account, account.c.id == device_key.c.account_id))
    .where(device_key.c.id == bindparam("id"))
)
# When the session and the key were revoked and the account was suspended; no row after the session's end.
STATE = (
    select(session.c.revoked_at, device_key.c.revoked_at.label("key_revoked_at"), account.c.disabled_at)
    .select_from(
        session.join(account, account.c.id == session.c.account_id).join(
            device_key, device_key.c.account_id == account.c.id
        )
    )
    .where(
        session.c.id == bindparam("session_id"),
        device_key.c.id == bindparam("key_id"),
        session.c.expires_at > bindparam("now"),
    )
)
