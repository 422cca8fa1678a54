"""One door for paths: whoever may not see a path finds neither its name nor its bytes, digest or size, at any
route, at any seal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, cast

import httpx
import msgspec
import pytest
from blake3 import blake3
from websockets.asyncio.client import connect

from localstore.core.encoding import unb64u
from localstore.core.errors import DigestMismatch, Invalid, ServerMisbehaved
from localstore.core.model.history import Seal, Tree
from localstore.core.model.sync import PROTOCOL
from localstore.core.tree import TreeEntry, root_digest
from localstore.core.tree.proof import proven
from localstore.sync import verify
from relay import domain
from relay.http.routing import TABLE, Route
from tests.patience import PATIENCE, until
from tests.relay.conftest import Relay
from tests.relay.histories import compared, create, ok
from tests.relay.mutations import READS as ASKING
from tests.relay.rights.hiding import Hidden, tried
from tests.relay.rights.observing import audited, socket_of, tree_key

domain.load()
READS = [
    route
    for route in TABLE
    if route.about_repo
    and route.operation.allows("read")
    and "socket" not in route.wants
    and (not route.changes or (route.method, route.path) in ASKING)
]
CALLERS = ["triage", "read", "stranger", "guest", "anonymous"]


@pytest.fixture(scope="module")
def hidden(relay: Relay) -> Hidden:
    return Hidden(relay)


@pytest.fixture(scope="module")
def clients(relay: Relay, hidden: Hidden) -> Iterator[dict[str, httpx.Client]]:
    people = {one: relay.account(f"{one}hides") for one in ("write", "triage", "read", "stranger")}
    for role in ("write", "triage", "read"):
        hidden.grant(people[role], role)
    made = {one: relay.client(who) for one, who in people.items()}
    made |= {"guest": relay.client(relay.account(None, "guest")), "anonymous": relay.client()}
    yield made
    for one in made.values():
        one.close()


def crawl(
    hidden: Hidden, http: httpx.Client, listed: list[Route], number: int | None = None
) -> Iterator[tuple[str, httpx.Response]]:
    """All requests, or those that the caller of this number tries."""
    for route in listed:
        requests = hidden.requests(route)
        for request in requests if number is None else tried(requests, number):
            asked = request[0] + (request[2] or b"").decode("latin-1")
            yield asked, hidden.ask(http, route.method, request)


@pytest.mark.parametrize("who", CALLERS)
def test_no_route_tells_what_is_hidden(hidden: Hidden, clients: dict[str, httpx.Client], who: str) -> None:
    answered = 0
    for asked, answer in crawl(hidden, clients[who], READS, CALLERS.index(who)):
        assert answer.status_code < 500, (asked, answer.text)
        assert hidden.told_by(answer, asked) == [], (asked, answer.status_code)
        answered += answer.is_success
    assert answered > 100


def test_the_crawl_meets_all_of_it_where_a_writer_asks(
    hidden: Hidden, clients: dict[str, httpx.Client]
) -> None:
    met: set[str] = set()
    for asked, answer in crawl(hidden, clients["write"], READS):
        met.update(hidden.told_by(answer, asked))
    assert met == set(hidden.told)


@pytest.mark.parametrize("who", CALLERS)
def test_what_is_hidden_and_what_never_was_are_one_answer(
    hidden: Hidden, clients: dict[str, httpx.Client], who: str
) -> None:
    http, seal = clients[who], hidden.seals[1]
    shapes = ["/blob/{s}/{p}", "/raw/{s}/{p}", "/seals/{s}/blame/{p}", "/tree/{s}?path={p}"]
    shapes += ["/tree/{s}?path={p}&recursive=1", "/commits?sha={s}&path={p}"]
    shapes += ["/commits?sha={s}&path={p}&follow=1"]
    for shape in shapes:
        for path in ("vault", "vault/plan.txt", "secret/draft.txt", "mixed/hidden.txt"):
            never = path[:-1] + "~"
            there, missing = (
                http.get(hidden.repo.url + shape.format(s=seal, p=one)) for one in (path, never)
            )
            assert compared(there) == compared(missing), (shape, path)


@pytest.mark.parametrize("who", CALLERS)
def test_digests_of_files_are_refused_alike(
    hidden: Hidden, clients: dict[str, httpx.Client], who: str
) -> None:
    answers = {
        compared(clients[who].get(f"{hidden.repo.url}/payloads/{digest}"))[:2]
        for digest in [*(one.hex() for one in hidden.digests), "0" * 64]
    }
    assert len(answers) == 1
    ((status, _),) = answers
    assert status == (401 if who == "anonymous" else 403)


def test_what_is_hidden_by_digest_and_what_never_was_are_one_answer(
    hidden: Hidden, clients: dict[str, httpx.Client]
) -> None:
    """Also where a seal is named, at which it is hidden, or which does not have it."""
    shown = blake3(hidden.shown["mixed/seen.txt"]).digest()
    secret = blake3(hidden.private["mixed/hidden.txt"]).digest()
    http, url = clients["read"], hidden.repo.url
    for seal in (hidden.seals[1], "0" * 64):
        answers = []
        for one in (secret, b"\1" * 32):
            signed = {"blake3": blake3(one).digest()}
            pack = http.post(f"{url}/packs/fetch?at={seal}", content=one, extensions=signed)
            answers.append((compared(http.get(f"{url}/payloads/{one.hex()}?at={seal}")), compared(pack)))
        assert answers[0] == answers[1]
        assert [one[0] for one in answers[0]] == [404, 404]
    there = f"{url}/payloads/{shown.hex()}?at="
    assert http.get(there + hidden.seals[1]).content == hidden.shown["mixed/seen.txt"]
    assert http.get(there + hidden.seals[0]).status_code == 404, "that seal does not have it yet"


def test_a_filtered_tree_is_proven_and_a_flipped_bit_is_found(
    hidden: Hidden, clients: dict[str, httpx.Client]
) -> None:
    seal = hidden.seals[1]
    proof = clients["read"].get(f"{hidden.repo.url}/tree/{seal}/proof").content
    tree = ok(clients["read"].get(f"{hidden.repo.url}/tree/{seal}?recursive=1"))
    root = bytes.fromhex(tree["content_digest"])
    shown = {one["path"]: (one["kind"], one["blake3"], one["size"]) for one in tree["entries"]}
    found = {path: (one.kind, one.digest.hex(), one.size) for path, one in proven(proof, root).files.items()}
    assert found == shown
    for at in range(len(proof)):
        flipped = proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :]
        with pytest.raises((Invalid, DigestMismatch)):
            proven(flipped, root)
    for wrong in (proof[:-1], proof + proof, proof + b"\0\0\0\1x", b""):
        with pytest.raises((Invalid, DigestMismatch)):
            proven(wrong + (b"x" if wrong == proof + proof else b""), root)
    whole = clients["write"].get(f"{hidden.repo.url}/tree/{seal}/proof").content
    assert len(proven(whole, root).files) == 10


def test_what_is_seen_in_part_says_so(hidden: Hidden, clients: dict[str, httpx.Client]) -> None:
    http, seal = clients["read"], hidden.seals[1]
    tree = ok(http.get(f"{hidden.repo.url}/tree/{seal}?recursive=1"))
    assert (tree["filtered"], tree["tree_key"], tree["tree_key_id"]) == (True, None, None)
    assert [one["path"] for one in tree["entries"]] == [
        "mixed/seen.txt",
        "open/gone.txt",
        "open/readme.txt",
        "secret/except/shown.txt",
    ]
    top = ok(http.get(f"{hidden.repo.url}/tree/{seal}"))["entries"]
    sizes = {one["path"]: one["size"] for one in tree["entries"]}
    assert {one["path"]: one["size"] for one in top} == {
        "mixed": sizes["mixed/seen.txt"],
        "open": sizes["open/gone.txt"] + sizes["open/readme.txt"],
        "secret": sizes["secret/except/shown.txt"],
    }
    whole = ok(clients["write"].get(f"{hidden.repo.url}/tree/{seal}?recursive=1"))
    assert (whole["filtered"], len(whole["entries"])) == (False, 10)


def test_what_depends_on_the_viewer_is_cached_by_nobody_else(
    hidden: Hidden, clients: dict[str, httpx.Client]
) -> None:
    seal = hidden.seals[1]
    for url in (f"/raw/{seal}/open/readme.txt", f"/archive/{seal}.tar.gz"):
        answers = {who: clients[who].get(hidden.repo.url + url) for who in ("write", "read", "anonymous")}
        assert {one.headers["cache-control"] for one in answers.values()} == {"private, no-cache"}
    tags = {who: one.headers["etag"] for who, one in answers.items()}  # of the archive
    assert tags["read"] == tags["anonymous"] != tags["write"]
    again = clients["read"].get(
        f"{hidden.repo.url}/archive/{seal}.tar.gz", headers={"If-None-Match": tags["write"]}
    )
    assert again.status_code == 200


def test_lines_found_by_one_viewer_are_not_shown_to_another(
    hidden: Hidden, clients: dict[str, httpx.Client]
) -> None:
    """Whoever sees the draft finds its lines there; a reader's ends where the file came into sight, whoever
    asked first."""
    url = f"{hidden.repo.url}/seals/{hidden.seals[2]}/blame/open/published.txt"
    for who in ("read", "write", "read"):
        owners = {one["seal_id"] for one in ok(clients[who].get(url))["ranges"]}
        assert owners == ({hidden.seals[1], hidden.seals[2]} if who == "write" else {hidden.seals[2]}), who


def test_events_name_no_path(relay: Relay, hidden: Hidden, clients: dict[str, httpx.Client]) -> None:
    for who in ("read", "stranger", "guest"):
        answer = clients[who].post("/api/v1/sync/poll", json={"repos": [hidden.repo.id], "since": 0})
        assert len(ok(answer)["events"]) > 3
        assert hidden.told_by(answer, "") == []


async def test_sockets_tell_readers_nothing_of_it(hidden: Hidden, relay: Relay) -> None:
    """Neither events nor channels, while a writer types what is hidden and seals it."""
    reader = relay.account("listens")
    secret = b"typed out of sight\n"

    def work() -> None:
        for body in ({"vault/typed.txt": secret}, {"vault/typed.txt": None}):
            hidden.repo.seal(body)

    url, headers = socket_of(relay, reader)
    said: list[str] = []
    async with connect(url, subprotocols=[PROTOCOL], additional_headers=headers, proxy=None) as socket:
        opened = {"channel": 1, "repo_id": hidden.repo.id, "branch": "main", "replica": 1, "since": 0}
        await socket.send(json.dumps({"type": "subscribe", "repo_id": hidden.repo.id}))
        await socket.send(json.dumps({"type": "open", **opened, "device_key_id": reader.key.id}))
        while not {"subscribed", "refused"} <= {json.loads(one)["type"] for one in said}:
            said.append(str(await asyncio.wait_for(socket.recv(), PATIENCE)))
        await asyncio.to_thread(work)
        while sum('"seal.create"' in one for one in said) < 2:
            said.append(str(await asyncio.wait_for(socket.recv(), PATIENCE)))
    answer = httpx.Response(200, content="\n".join(said).encode())
    assert hidden.told_by(answer, "") == []
    assert b"typed" not in answer.content
    assert blake3(secret).hexdigest().encode() not in answer.content


def test_inboxes_tell_nothing_of_it(hidden: Hidden, relay: Relay, clients: dict[str, httpx.Client]) -> None:
    url, http = hidden.repo.url, clients["read"]
    ok_or_empty(http.put(f"{url}/watch"))
    ok(http.post(f"{url}/issues/1/comments", json={"body": "when?"}))
    ok(hidden.http.post(f"{url}/issues/1/comments", json={"body": "@readhides soon"}))
    until(lambda: ok(http.get("/api/v1/inbox"))["items"], "it is told")
    assert hidden.told_by(http.get("/api/v1/inbox"), "") == []


def ok_or_empty(answer: httpx.Response) -> None:
    assert answer.is_success, answer.text


class Reading:
    """The reader's transport, as far as it verifies; `flip`: the place of a byte that arrives otherwise."""

    def __init__(self, hidden: Hidden, http: httpx.Client, flip: int | None) -> None:
        self._url, self._http, self._flip = hidden.repo.url, http, flip

    def tree(self, seal: str) -> Tree:
        answer = self._http.get(f"{self._url}/tree/{seal}?recursive=1")
        return msgspec.json.decode(answer.content, type=Tree)

    def proof(self, seal: str) -> bytes:
        found = self._http.get(f"{self._url}/tree/{seal}/proof").content
        if self._flip is None:
            return found
        return found[: self._flip] + bytes([found[self._flip] ^ 4]) + found[self._flip + 1 :]


def test_a_flipped_bit_fails_a_filtered_clone(hidden: Hidden, clients: dict[str, httpx.Client]) -> None:
    seal, http = hidden.seals[1], clients["read"]
    answer = http.get(f"{hidden.repo.url}/seals/{seal}")
    payload = verify.seal(msgspec.json.decode(answer.content, type=Seal), seal, hidden.repo.id)
    shown: Any = Reading(hidden, http, None)
    assert sorted(verify.files(shown, seal, payload)) == sorted(set(hidden.shown))
    for place in (0, 40, 200, -1):
        with pytest.raises(ServerMisbehaved):
            verify.files(cast(Any, Reading(hidden, http, place)), seal, payload)


def test_a_path_that_turns_private_starts_a_newtree_key(relay: Relay) -> None:
    """Whoever read the key before cannot test guesses about what is hidden from then on."""
    owner = relay.account("rotates")
    repo = create(relay.client(owner), owner, "keys", visibility="public")
    (first,) = repo.seal({"plan/a.txt": b"1\n", "b.txt": b"2\n"})
    was = repo.get(f"/tree/{first}")
    ok(repo.http.put(f"{repo.url}/paths", json={"path": "plan", "visibility": "private"}))
    (second,) = repo.seal({"plan/a.txt": b"3\n"})
    now = repo.get(f"/tree/{second}", recursive=1)
    assert now["tree_key"] != was["tree_key"]
    files = {
        one["path"]: TreeEntry(one["kind"], bytes.fromhex(one["blake3"]), one["size"])
        for one in now["entries"]
    }
    assert root_digest(files, unb64u(now["tree_key"])).hex() == now["content_digest"]
    assert repo.get(f"/tree/{first}") == was, "older seals keep theirs"
    assert repo.get("/compare", base=first, head=second)["files"][0]["path"] == "plan/a.txt"
    with relay.client() as anyone:
        for seal in (first, second):
            assert ok(anyone.get(f"{repo.url}/tree/{seal}"))["tree_key"] is None
    for path, kind, changes in (
        ("plan/a.txt", "open", False),
        ("plan", "private", False),
        ("b", "private", True),
    ):
        before = relay.run(tree_key(relay, repo.id))
        ok(repo.http.put(f"{repo.url}/paths", json={"path": path, "visibility": kind}))
        assert (relay.run(tree_key(relay, repo.id)) != before) is changes, (path, kind)
    before = relay.run(tree_key(relay, repo.id))
    assert repo.http.delete(f"{repo.url}/paths", params={"path": "plan/a.txt"}).is_success
    assert relay.run(tree_key(relay, repo.id)) != before, "without its rule it is hidden again"
    assert not relay.run(audited(relay, repo.id))


def test_what_was_prepared_under_the_old_key_does_not_land(relay: Relay) -> None:
    owner = relay.account("prepares")
    repo = create(relay.client(owner), owner, "keys", visibility="public")
    prepared = repo.prepare(owner.key)
    ok(repo.http.put(f"{repo.url}/paths", json={"path": "plan", "visibility": "private"}))
    late = repo.http.post(
        f"{repo.url}/branches/main/seal/finalize", json={"device_key_id": owner.key.id, **prepared}
    )
    assert late.json()["code"] == "prepare_expired", late.text
