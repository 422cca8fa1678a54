"""Somebody at work is removed: the socket falls silent, the upload that is running is not taken, and what was
prepared cannot be finished. Once as a collaborator, once as a member of the organisation."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection

import httpx
import pytest
from blake3 import blake3

from localstore.core.model.sync import Live, Refused
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok
from tests.relay.live.copies import Copy

MISSING = f"/api/v1/repos/{'0' * 20}"
HALF = b"half of it\n" * 10_000


def _join(owner: httpx.Client, member: httpx.Client, bob: Account, repo: Repository, how: str) -> str:
    """Make bob one who may write; returns the address whose DELETE ends it."""
    if how == "collaborator":
        below, invites, asked = repo.url, "/api/v1/invites", {"handle": bob.handle, "role": "write"}
        ends = f"{repo.url}/collaborators/{bob.handle}"
    else:
        below = f"/api/v1/orgs/{repo.body['owner']}"
        invites, asked = "/api/v1/org-invites", {"handle": bob.handle, "role": "admin"}
        ends = f"{below}/members/{bob.handle}"
    invite = ok(owner.post(f"{below}/invites", json=asked))["id"]
    ok(member.post(f"{invites}/{invite}/accept"))
    return ends


def _upload(http: httpx.Client, url: str, meanwhile: Callable[[], httpx.Response]) -> tuple[int, bytes]:
    """PUT two halves, between which something happens; the answer."""
    digest = blake3(HALF + HALF).digest()
    headers = {"Content-Type": "application/octet-stream"}
    asked = http.build_request(
        "PUT", url, content=HALF + HALF, headers=headers, extensions={"blake3": digest}
    )
    assert http.auth is not None
    signed = next(http.auth.sync_auth_flow(asked))
    line = HTTPConnection(asked.url.host, asked.url.port or 80, timeout=30)
    line.putrequest("PUT", url, skip_host=True, skip_accept_encoding=True)
    for name, value in signed.headers.items():
        line.putheader(name, value)
    line.endheaders(HALF)
    time.sleep(0.05)  # the first half has arrived, and is being received
    assert meanwhile().status_code == 204
    with contextlib.suppress(ConnectionError):
        line.send(HALF)
    answer = line.getresponse()
    try:
        return answer.status, answer.read()
    finally:
        line.close()


@pytest.mark.parametrize("how", ["collaborator", "organisation"])
def test_what_a_removed_member_was_at_ends(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client], how: str
) -> None:
    ann, bob = account(), account()
    owner, member = client(ann), client(bob)
    if how == "organisation":
        org = ok(owner.post("/api/v1/orgs", json={"handle": f"o{secrets.token_hex(5)}"}))["handle"]
        body = ok(owner.post("/api/v1/repos", json={"name": "shared", "owner": org}))
        repo = Repository(owner, ann, body)
    else:
        repo = create(owner, ann, "shared")
    ends = _join(owner, member, bob, repo, how)
    begun = {"device_key_id": bob.key.id, **Repository(member, bob, repo.body).prepare(bob.key)}
    mine, theirs = Copy(relay, ann, repo.id), Copy(relay, bob, repo.id)
    try:
        theirs.connect()
        before = mine.post(mine.create("before.txt", b"heard"))[0].seq
        theirs.reach(before)

        url = f"{repo.url}/payloads/{blake3(HALF + HALF).hexdigest()}"
        removed = partial(owner.delete, ends)
        status, answer = _upload(member, url, removed)
        assert (status, json.loads(answer)["code"]) == (404, "not_found")
        assert owner.get(url).status_code == 404
        after = [mine.post(mine.create(f"after{n}.txt", b"not heard"))[0].seq for n in range(3)]
        heard = theirs.heard_to_the_end()
        assert not [one for one in heard if isinstance(one, Live) and one.seq >= after[0]]
        assert [one.code for one in heard if isinstance(one, Refused)] == ["not_found"]
    finally:
        theirs.leave()
    for below, body in (
        ("seal/finalize", begun),
        ("live/bootstrap", {"device_key_id": bob.key.id}),
    ):
        there = member.post(f"{repo.url}/branches/main/{below}", json=body)
        nowhere = member.post(f"{MISSING}/branches/main/{below}", json=body)
        assert (there.status_code, there.content) == (404, nowhere.content)
    assert repo.head() is None
