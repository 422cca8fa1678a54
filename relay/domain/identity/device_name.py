"""Names of devices."""

from __future__ import annotations

from localstore.core.errors import Invalid, NotFound
from localstore.core.model.auth import RegisteredKey
from relay.caller import Caller
from relay.db.identity import device_key as rows
from relay.db.identity import session as sessions
from relay.domain.identity import audit, device_key


async def rename(caller: Caller, id: str, name: str) -> RegisteredKey:
    """Rename one of the caller's keys, and the sessions of its machine. Raises NotFound for an unknown
    key."""
    me, chosen = caller.me, device_key.check_label(name)
    if not chosen:
        raise Invalid("a name has at least one character", pointer="/name")
    async with caller.write() as tx:
        if not await tx.run(rows.RENAME, key_id=id, account=me.account_id, new_name=chosen):
            raise NotFound
        await tx.run(sessions.RENAME_OF_KEY, of_key=id, of_account=me.account_id, new_label=chosen)
        await audit.record(tx, me.account_id, "device_key.rename", id, name=chosen, address=caller.address)
        row = await tx.one(rows.ONE, id=id)
        if row is None:
            raise NotFound
        return device_key.to_wire(rows.to_row(row))
