"""What tests of rights see of a relay beside its answers: a socket as an account opens it, keys, audits."""

from __future__ import annotations

import time

from sqlalchemy import select

from localstore.core.identity.bearer import authorization
from localstore.core.identity.request_signature import sign
from localstore.core.model.sync import SOCKET_PATH
from relay.db.schema import tables
from relay.domain.upkeep.verification import audit
from tests.relay.conftest import Account, Relay


def socket_of(relay: Relay, who: Account) -> tuple[str, dict[str, str]]:
    """The address of the socket, and the headers with which this account opens it."""
    headers = {"Authorization": authorization(who.token)}
    headers |= sign(
        who.key,
        "GET",
        relay.url.removeprefix("http://"),
        SOCKET_PATH,
        "",
        body=None,
        authorization=headers["Authorization"],
        now=int(time.time()),
    )
    return relay.url.replace("http", "ws") + SOCKET_PATH, headers


async def tree_key(relay: Relay, repo_id: str) -> bytes:
    """The key that salts the next trees of a repository."""
    c = tables["repo"].c
    async with relay.node.db.read() as tx:
        return bytes(await tx.value(select(c.tree_key).where(c.id == repo_id)))


async def audited(relay: Relay, repo_id: str) -> list[str]:
    """What the audit finds wrong in a repository."""
    return [line async for line in audit(relay.node.db, relay.node.objects) if repo_id in line]
