"""Live edits count against the quota of the repository's owner; deleting works when it is used up."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import QuotaExceeded
from localstore.core.model.sync import Refused
from relay.db.storage import usage as rows
from relay.domain.history import live_updates
from relay.domain.upkeep.verification import usage
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, ok
from tests.relay.live.copies import Copies, Copy

BYTES = 30_000


@pytest.fixture(scope="module")
def relay_variables() -> dict[str, str]:
    return {"TR_RATE_LIMITS": "off", "RUST_LOG": "off", "TR_QUOTA_BYTES": str(BYTES)}


def used(relay: Relay, repo: Repository) -> int:
    """Bytes that are counted for the owner."""

    async def read() -> int:
        async with relay.node.db.read() as tx:
            return int(rows.to_row(await tx.one(rows.OF_OWNER, of_repo=repo.id)).bytes)

    return relay.run(read())


def wrong(relay: Relay) -> list[str]:
    """What is counted otherwise than it is there."""

    async def read() -> list[str]:
        return [line async for line in usage.check(relay.node.db, relay.node.objects)]

    return relay.run(read())


def sealed(repo: Repository) -> str:
    """Seal what is live."""
    key, url = repo.owner.key, f"{repo.url}/branches/main/seal"
    body = {"device_key_id": key.id, "message": "first", "expected_head": None}
    prepared = ok(repo.http.post(f"{url}/prepare", json=body))
    done = {
        "device_key_id": key.id,
        "prepare_id": prepared["prepare_id"],
        "signature": b64u(key.sign(unb64u(prepared["bytes"]))),
    }
    return str(ok(repo.http.post(f"{url}/finalize", json=done))["id"])


def typed(copy: Copy, path: str, text: bytes) -> object:
    update = copy.edit(path, text)
    assert update is not None
    return copy.post(update)


def test_edits_over_the_quota_are_refused_and_deletes_are_not(
    relay: Relay, repo: Repository, copies: Copies
) -> None:
    ann, bob = copies(repo.owner), copies()
    assert [one.result for one in ann.say(ann.create("a.txt", b"one\n"), ann.create("b.txt", b"b"))] == [
        "ok"
    ] * 2
    before = used(relay, repo)
    bob.reach(2)
    typed(bob, "a.txt", b"one two\n")
    assert used(relay, repo) > before, "the owner is charged, whoever edits"
    assert wrong(relay) == []
    ann.reach(3)
    bob.reach(3)
    ann.put(os.urandom(BYTES - used(relay, repo)))
    with pytest.raises(QuotaExceeded) as refused:
        typed(ann, "a.txt", b"one two three\n")
    assert refused.value.code == "quota_exceeded"
    update = bob.edit("a.txt", b"two\n")
    assert bob.socket is not None and update is not None
    bob.socket.send_updates(1, 9, bob.batch(update))
    told = bob.until(Refused)
    assert (told.code, told.id) == ("quota_exceeded", 9)
    assert ann.say(ann.delete("a.txt"))[0].result == "ok"
    bob.reach(4)
    assert bob.post(bob.delete("b.txt"))[0].result == "ok"
    assert wrong(relay) == []


def test_a_deleted_branch_gives_back_what_no_seal_took_in(
    relay: Relay, repo: Repository, copies: Copies, account: Callable[..., Account]
) -> None:
    (seal,) = repo.seal({"a.txt": b"one\n"})
    repo.branch("work", seal)
    ann = Copy(relay, repo.owner, repo.id, branch="work")
    before = used(relay, repo)
    typed(ann, "a.txt", b"one and much more\n")
    assert used(relay, repo) > before
    assert repo.http.delete(f"{repo.url}/refs/branch/work?discard_live=true").is_success
    assert (used(relay, repo), wrong(relay)) == (before, [])


def test_joined_rows_are_counted_as_they_are(relay: Relay, repo: Repository, copies: Copies) -> None:
    ann = copies(repo.owner)
    text = b"one\n"
    ann.say(ann.create("a.txt", text))
    for n in range(live_updates.MANY + 1):
        ann.reach(n + 1)
        text += b"x"
        typed(ann, "a.txt", text)
    seal = sealed(repo)
    before = used(relay, repo)
    relay.run(live_updates.join(relay.node, {"repo_id": repo.id, "seal_id": seal}))
    assert used(relay, repo) < before
    assert wrong(relay) == []
