"""SQL statements on the events of a repository, which its owner may read."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from relay.db.engine.keyset import Keyset
from relay.db.live.event import LIVE
from relay.db.schema.account import account
from relay.db.schema.event import event

PAGE = Keyset(
    select(
        event.c.id,
        event.c.created_at,
        event.c.actor,
        account.c.handle,
        account.c.kind.label("actor_kind"),
        event.c.kind,
        event.c.number,
        event.c.device_key_id,
        event.c.data,
    )
    .select_from(event.outerjoin(account, account.c.id == event.c.actor))
    .where(event.c.repo_id == bindparam("of_repo"), event.c.kind != LIVE),
    "-id",
)
