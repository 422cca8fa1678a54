"""SQL statements on signed publications."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import bindparam, delete, insert, select

from relay.db.engine.database import Row
from relay.db.schema.account import account, device_key
from relay.db.schema.catalog.publication import publication


class PublicationRow(msgspec.Struct, frozen=True):
    release_id: str
    signature: bytes
    key_id: str
    key_ed25519: bytes
    created_at: int
    account_id: str
    handle: str | None
    kind: str


_p = publication.c
_IDS: Any = bindparam("ids", expanding=True)
OF_RELEASES = (
    select(
        _p.release_id,
        _p.signature,
        device_key.c.id,
        device_key.c.ed25519,
        _p.created_at,
        account.c.id,
        account.c.handle,
        account.c.kind,
    )
    .select_from(
        publication.join(device_key, device_key.c.id == _p.device_key_id).join(
            account, account.c.id == device_key.c.account_id
        )
    )
    .where(_p.release_id.in_(_IDS))
)
INSERT = insert(publication)
DROP = delete(publication).where(_p.release_id == bindparam("of_release"))


def to_row(columns: Row) -> PublicationRow:
    return PublicationRow(*columns)
