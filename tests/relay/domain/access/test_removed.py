"""What a member had begun ends with the role, and what it looks at is not there any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest
from sqlalchemy import bindparam, func, select

from relay.db.schema import tables
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok

MISSING = f"/api/v1/repos/{'0' * 20}"


async def _prepared_ends(relay: Relay, prepare_id: str) -> bool:
    """Whether the row goes: a follower takes it away."""
    rows = tables["prepare"]
    count = select(func.count()).select_from(rows).where(rows.c.id == bindparam("one"))
    async with asyncio.timeout(PATIENCE):
        while True:
            async with relay.node.db.read() as tx:
                if not await tx.value(count, one=prepare_id):
                    return True
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("how", ["removed", "demoted"])
def test_what_a_member_had_begun_ends(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client], how: str
) -> None:
    ann, bob = account(), account()
    owner, member = client(ann), client(bob)
    repo = create(owner, ann, "shared")
    invite = ok(owner.post(f"{repo.url}/invites", json={"handle": bob.handle, "role": "write"}))
    ok(member.post(f"/api/v1/invites/{invite['id']}/accept"))
    theirs = Repository(member, bob, repo.body)
    begun = {"device_key_id": bob.key.id, **theirs.prepare(bob.key)}
    late = theirs.edit(bob.key, "late.txt")
    person = f"{repo.url}/collaborators/{bob.handle}"
    if how == "removed":
        assert owner.delete(person).status_code == 204
    else:
        ok(owner.patch(person, json={"role": "read"}))
    for below, body in (("seal/finalize", begun), ("live/updates", late)):
        refused = member.post(f"{repo.url}/branches/main/{below}", json=body)
        missing = member.post(f"{MISSING}/branches/main/{below}", json=body)
        assert refused.status_code == (404 if how == "removed" else 403), refused.text
        assert (refused.content == missing.content) == (how == "removed")
    upload = member.put(f"{repo.url}/payloads/{'0' * 64}", content=b"abc")
    assert upload.status_code == (404 if how == "removed" else 403)
    poll = ok(member.post("/api/v1/sync/poll", json={"repos": [repo.id], "since": 0}))
    assert poll["hidden"] == ([repo.id] if how == "removed" else [])
    assert relay.run(_prepared_ends(relay, begun["prepare_id"]))
    again = {"role": "write"}  # the role comes back, what was begun does not
    if how == "removed":
        invite = ok(owner.post(f"{repo.url}/invites", json={"handle": bob.handle, **again}))
        ok(member.post(f"/api/v1/invites/{invite['id']}/accept"))
    else:
        ok(owner.patch(person, json=again))
    assert not member.post(f"{repo.url}/branches/main/seal/finalize", json=begun).is_success
    assert theirs.head() is None
