"""What a seal took in stays readable: who changed which path from which device, when; each edit as signed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import msgspec
import pytest
from blake3 import blake3

from localstore.core.encoding import b64u, unb64u
from localstore.core.identity.keys import DeviceKey, verify
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate, signing_bytes
from relay.domain.history import live_updates
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok


@dataclass
class Device:
    """One replica of `main` at work over HTTP."""

    repo: Repository
    key: DeviceKey
    branch_id: str = ""
    replica: int = 0
    n: int = 0

    def __post_init__(self) -> None:
        start = ok(self.post("/live/bootstrap", {}))
        self.branch_id, self.replica = start["branch_id"], start["replica"]

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        body = {"device_key_id": self.key.id, **body}
        return self.repo.http.post(f"{self.repo.url}/branches/main{path}", json=body)

    def send(self, *updates: dict[str, Any]) -> list[dict[str, Any]]:
        batch = []
        for members in updates:
            self.n += 1
            made = LiveUpdate(n=self.n, settled=0, signature="", **{"gen": 0, "base": 0} | members)
            raw = signing_bytes(self.repo.id, self.branch_id, self.replica, self.key.id, made)
            batch.append(
                msgspec.to_builtins(msgspec.structs.replace(made, signature=b64u(self.key.sign(raw))))
            )
        answers = ok(self.post("/live/updates", {"replica": self.replica, "updates": batch}))["answers"]
        return list(answers)

    def text(self, path: str, data: bytes) -> tuple[int, Lane]:
        name = blake3(data).hexdigest()
        ok(self.repo.http.put(f"{self.repo.url}/payloads/{name}", content=data))
        (answer,) = self.send({"kind": "create_text", "path": path, "blake3": name, "size": len(data)})
        assert answer["result"] == "ok"
        return answer["gen"], Lane.genesis(self.branch_id, answer["gen"], 0, data)

    def edit(self, path: str, gen: int, lane: Lane, new: bytes, epoch: int = 0) -> None:
        operation = lane.edit(self.replica, new)
        assert operation is not None
        (answer,) = self.send(
            {"kind": "edit_text", "path": path, "gen": gen, "epoch": epoch, "ops": [b64u(operation)]}
        )
        assert answer["result"] == "ok"

    def seal(self) -> str:
        asked = {"message": "m", "expected_head": self.repo.head()}
        prepared = ok(self.post("/seal/prepare", asked))
        signature = b64u(self.key.sign(unb64u(prepared["bytes"])))
        done = {"prepare_id": prepared["prepare_id"], "signature": signature}
        return str(ok(self.post("/seal/finalize", done))["id"])


def all_of(repo: Repository, seal: str, **query: Any) -> list[dict[str, Any]]:
    """Every item, page by page."""
    items: list[dict[str, Any]] = []
    while True:
        page = repo.get(f"/seals/{seal}/updates", **query)
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        assert page["items"], "a page before the last holds something"
        query["cursor"] = page["next_cursor"]


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("sealer")


@pytest.fixture
def repo(relay: Relay, owner: Account, request: pytest.FixtureRequest) -> Any:
    with relay.client(owner) as http:
        yield create(http, owner, f"r{blake3(request.node.name.encode()).hexdigest()[:10]}")


def test_who_changed_what_when_stays_with_the_seal(repo: Repository, owner: Account) -> None:
    one, other = Device(repo, owner.key), Device(repo, owner.key)
    gen, lane = one.text("a.txt", b"hello\n")
    for text in (b"hello you\n", b"hello you!\n", b"hello\n"):
        one.edit("a.txt", gen, lane, text)
    other.text("b.txt", b"b\n")
    refused = one.send({"kind": "delete", "path": "a.txt", "gen": 999})
    assert refused[0]["result"] == "stale"
    seal = one.seal()

    listed = all_of(repo, seal, limit=2)
    assert [(each["path"], each["kind"]) for each in listed] == [
        ("a.txt", "create_text"),
        *[("a.txt", "edit_text")] * 3,
        ("b.txt", "create_text"),
    ]
    assert [each["seq"] for each in listed] == [1, 2, 3, 4, 5], "what was refused took nothing in"
    assert {each["who"]["handle"] for each in listed} == {"sealer"}
    assert {each["device_key_id"] for each in listed} == {owner.key.id}
    assert listed[0]["replica"] != listed[-1]["replica"]
    times = [datetime.fromisoformat(each["at"]) for each in listed]
    assert times == sorted(times)

    (a, b) = all_of(repo, seal, by="path", limit=1)
    assert (a["path"], a["updates"], a["first_at"], a["last_at"]) == (
        "a.txt",
        4,
        listed[0]["at"],
        listed[3]["at"],
    )
    assert (b["path"], b["updates"], b["who"]["id"], b["device_key_id"]) == (
        "b.txt",
        1,
        owner.id,
        owner.key.id,
    )


def test_signed_edits_can_be_verified_and_replayed_after_many_seals(repo: Repository, owner: Account) -> None:
    """Epochs end with each seal and old logs go; what a seal took in does not."""
    one = Device(repo, owner.key)
    gen, lane = one.text("a.txt", b"0\n")
    seals = [one.seal()]
    for epoch in range(4):
        one.edit("a.txt", gen, lane, b"%d\nmore\n" % epoch, epoch)
        seals.append(one.seal())
        lane = Lane.genesis(one.branch_id, gen, epoch + 1, lane.text())
    for epoch, seal in enumerate(seals[1:]):
        (found,) = all_of(repo, seal)
        update = msgspec.convert(found["update"], LiveUpdate)
        raw = signing_bytes(repo.id, found["branch_id"], found["replica"], found["device_key_id"], update)
        assert verify(owner.key.public, raw, unb64u(update.signature))
        before = b"0\n" if epoch == 0 else b"%d\nmore\n" % (epoch - 1)
        again = Lane.genesis(found["branch_id"], update.gen, epoch, before)
        again.accept([unb64u(op) for op in update.ops or ()], found["replica"])
        assert again.text() == b"%d\nmore\n" % epoch


def test_many_rows_of_one_seal_become_few_and_say_the_same(
    relay: Relay, repo: Repository, owner: Account
) -> None:
    one, other = Device(repo, owner.key), Device(repo, owner.key)
    gen, lane = one.text("a.txt", b"")
    for number in range(live_updates.MANY):
        one.edit("a.txt", gen, lane, lane.text() + b"%d" % number)
    other.text("b.txt", b"b\n")
    seal = one.seal()
    before, paths = all_of(repo, seal), all_of(repo, seal, by="path")
    assert len(before) == live_updates.MANY + 2
    for _ in range(2):
        relay.run(live_updates.join(relay.node, {"repo_id": repo.id, "seal_id": seal}))
        assert all_of(repo, seal, limit=7) == before
        assert all_of(repo, seal, by="path") == paths


def test_writers_alone_see_what_was_typed_before_a_seal(
    relay: Relay, repo: Repository, owner: Account
) -> None:
    one = Device(repo, owner.key)
    one.text("a.txt", b"a\n")
    seal = one.seal()
    url = f"{repo.url}/seals/{seal}/updates"
    stranger = relay.account("onlooker")
    with relay.client() as nobody, relay.client(stranger) as http:
        assert nobody.get(url).status_code == 401
        assert http.get(url).status_code == 404
        ok(repo.http.patch(repo.url, json={"visibility": "public"}))
        assert http.get(f"{repo.url}/seals/{seal}").status_code == 200
        assert http.get(url).status_code == 403
        assert nobody.get(url).status_code == 401
    assert repo.http.get(f"{repo.url}/seals/{'0' * 64}/updates").status_code == 404
    assert repo.http.get(url, params={"by": "nothing"}).status_code == 422
    assert repo.http.get(url, params={"cursor": "x"}).status_code == 422


def test_a_seal_of_an_explicit_tree_took_nothing_in(repo: Repository) -> None:
    (seal,) = repo.seal({"f": b"1\n"})
    assert all_of(repo, seal) == all_of(repo, seal, by="path") == []
