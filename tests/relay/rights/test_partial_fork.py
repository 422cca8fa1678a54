"""A fork by somebody who does not see all paths: it has the digests of what is hidden, and nothing else of
it, whoever asks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from blake3 import blake3
from sqlalchemy import insert, select, update

from localstore.core import tree
from localstore.core.model import limits
from localstore.core.tree import TreeEntry
from relay import domain
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.domain.storage.collect import collect
from relay.domain.upkeep import upkeep
from relay.http.routing import TABLE
from tests.relay.conftest import Relay
from tests.relay.histories import Repository, compared, ok
from tests.relay.mutations import READS as ASKING
from tests.relay.proposing import code
from tests.relay.rights.hiding import tried
from tests.relay.rights.observing import audited, tree_key
from tests.relay.rights.parted import Fork

domain.load()
READS = [
    route
    for route in TABLE
    if route.about_repo
    and "socket" not in route.wants
    and (not route.changes or (route.method, route.path) in ASKING)
]
CALLERS = ["owner", "read", "stranger", "anonymous"]


@pytest.fixture(scope="module")
def fork(relay: Relay) -> Fork:
    return Fork(relay)


@pytest.fixture(scope="module")
def clients(relay: Relay, fork: Fork) -> Iterator[dict[str, httpx.Client]]:
    made = {"owner": relay.client(fork.maker), "anonymous": relay.client()}
    people = {one: relay.account(f"{one}parts") for one in ("read", "stranger")}
    fork.grant(people["read"], "read")  # in the fork
    made |= {one: relay.client(who) for one, who in people.items()}
    yield made
    for one in made.values():
        one.close()


@pytest.mark.parametrize("who", CALLERS)
def test_no_route_of_the_fork_tells_what_is_hidden(
    fork: Fork, clients: dict[str, httpx.Client], who: str
) -> None:
    """Also those that only its owner may ask."""
    answered = 0
    for route in READS:
        try:
            asked = fork.requests(route)
        except KeyError:
            continue
        for request in tried(asked, CALLERS.index(who)):
            raw = request[2] or b""
            said = request[0] + raw.decode("latin-1") + raw.hex()  # what is lacking is named again
            answer = fork.ask(clients[who], route.method, request)
            assert answer.status_code < 500, (said, answer.text)
            assert fork.told_by(answer, said) == [], (said, answer.status_code)
            answered += answer.is_success
    assert answered > 100


@pytest.mark.parametrize("who", ["owner", "stranger"])
def test_what_is_hidden_and_what_never_was_are_one_answer(
    fork: Fork, clients: dict[str, httpx.Client], who: str
) -> None:
    http = clients[who]
    shapes = ["/blob/{s}/{p}", "/raw/{s}/{p}", "/seals/{s}/blame/{p}", "/tree/{s}?path={p}"]
    shapes += ["/tree/{s}?path={p}&recursive=1", "/commits?sha={s}&path={p}"]
    shapes += ["/commits?sha={s}&path={p}&follow=1"]
    for shape, seal in itertools.product(shapes, fork.seals[-6:]):
        for path in ("vault", "vault/plan.txt", "secret/draft.txt", "mixed/hidden.txt"):
            there, missing = (
                http.get(fork.repo.url + shape.format(s=seal, p=one)) for one in (path, path[:-1] + "~")
            )
            assert compared(there) == compared(missing), (shape, path)


def test_digests_of_hidden_files_are_as_unknown_as_any(fork: Fork) -> None:
    """For the fork's owner, who asks by digest without naming a seal, and what it would have to upload."""
    hidden = [blake3(data).digest() for data in fork.private.values()]
    shown = blake3(fork.shown["open/readme.txt"]).digest()
    never = b"\1" * 32
    url = fork.repo.url
    for route in ("/payloads/{}", "/payloads/{}/manifest"):
        answers = {compared(fork.mine.get(url + route.format(one.hex())))[:2] for one in [*hidden, never]}
        assert len(answers) == 1, route
    asked = b"".join([*hidden, never, shown])
    found = fork.mine.post(f"{url}/have", content=asked, extensions={"blake3": blake3(asked).digest()})
    assert ok(found)["missing"] == list(range(len(hidden) + 1))


def test_inherited_seals_verify_and_what_they_show_is_what_a_reader_of_the_origin_sees(
    relay: Relay, fork: Fork
) -> None:
    reader = relay.client(relay.account("compares"))
    for seal in fork.inherited:
        there = ok(reader.get(f"{fork.origin.url}/tree/{seal}?recursive=1"))
        here = fork.tree(seal)
        assert here["entries"] == there["entries"]
        assert (here["content_digest"], here["filtered"]) == (there["content_digest"], True)
        assert (here["tree_key"], here["tree_key_id"]) == (None, None)
        shown = fork.proof(seal)
        assert {path: one.digest.hex() for path, one in shown.files.items()} == {
            one["path"]: one["blake3"] for one in here["entries"]
        }
        one = ok(fork.mine.get(f"{fork.repo.url}/seals/{seal}"))
        assert (one["verified"], one["origin"]) == (True, fork.origin.id)
    sizes = {one["path"]: one["size"] for one in fork.tree(fork.inherited[1])["entries"]}
    top = ok(fork.mine.get(f"{fork.repo.url}/tree/{fork.inherited[1]}"))["entries"]
    assert {one["path"]: one["size"] for one in top}["mixed"] == sizes["mixed/seen.txt"]


def test_own_seals_carry_the_opaque_entries_under_the_forks_key(relay: Relay, fork: Fork) -> None:
    """Whoever may push computes the signed root from the files, the opaque entries and the fork's own key."""
    before, after = fork.proof(fork.inherited[-1]), fork.proof(fork.seals[-2])
    assert before.opaque and after.opaque == before.opaque
    assert set(after.files) - set(before.files) == {"open/mine.txt"}
    first, own = fork.proof(fork.inherited[1]), fork.proof(fork.seals[-1])
    assert own.opaque == first.opaque and "mixed" in own.opaque, "though no file of the folder is left"
    key = relay.run(tree_key(relay, fork.repo.id))
    entries = {path: TreeEntry(one.kind, one.digest, one.size) for path, one in own.files.items()}
    assert tree.root_digest(entries, key, own.opaque).hex() == fork.tree(fork.seals[-1])["content_digest"]


def test_the_live_frontier_has_no_hidden_name(fork: Fork) -> None:
    for branch in ("main", "own", "topic"):
        live = f"{fork.repo.url}/branches/{branch}/live"
        answer = fork.mine.post(f"{live}/bootstrap", json={"device_key_id": fork.maker.key.id})
        rows = {one[0] for one in ok(answer)["rows"]}
        assert "open/readme.txt" in rows
        assert fork.told_by(answer, "") == []
        lanes = [{"path": path, "gen": 1} for path in ("vault/plan.txt", "vault/never.txt")]
        states = [compared(fork.mine.post(f"{live}/lanes", json={"lanes": [one]})) for one in lanes]
        assert states[0][0] == states[1][0]
    merged = {"head": "topic", "base": "main"}
    answer = fork.mine.post(f"{fork.repo.url}/merge-preview", json=merged)
    assert fork.told_by(answer, "") == []
    sealed = fork.mine.post(
        f"{fork.repo.url}/branches/main/seal/prepare",
        json={
            "device_key_id": fork.maker.key.id,
            "message": "x",
            "expected_head": fork.repo.head(),
            "merged": [fork.inherited[1]],
        },
    )
    assert fork.told_by(sealed, "") == []


def test_a_guess_of_a_hidden_path_and_its_text_is_confirmed_by_nothing(relay: Relay) -> None:
    """Who writes a file of the hidden name and the hidden bytes in the fork gets the answers for any other
    file."""
    fork = Fork(relay, "guesses", more=False)
    url, plan = fork.repo.url, fork.private["vault/plan.txt"]
    answers = []
    for path in ("vault/plan.txt", "vault/never.txt"):
        (made,) = fork.repo.seal({path: plan})
        blame = ok(fork.mine.get(f"{url}/seals/{made}/blame/{path}"))
        assert [one["seal_id"] for one in blame["ranges"]] == [made], "the lines are the fork's own"
        log = ok(fork.mine.get(f"{url}/commits", params={"path": path}))
        assert [one["id"] for one in log["items"]] == [made]
        follow = ok(fork.mine.get(f"{url}/commits", params={"path": path, "follow": 1}))
        assert [one["id"] for one in follow["items"]] == [made]
        diff = ok(fork.mine.get(f"{url}/compare", params={"head": made}))["files"]
        answers.append([(one["status"], one["path"] == path) for one in diff])
    assert answers[0] == answers[1] == [("added", True)]
    shown = fork.proof(fork.repo.head() or "")
    assert {"vault/plan.txt", "vault/never.txt"} < shown.files.keys()
    assert shown.opaque == fork.proof(fork.inherited[-1]).opaque
    assert not relay.run(audited(relay, fork.repo.id))


def test_what_the_origin_decides_later_changes_nothing(relay: Relay) -> None:
    fork = Fork(relay, "stays", more=False)
    before = [fork.tree(one)["entries"] for one in fork.inherited]
    for path in ("vault", "secret", "mixed/hidden.txt", "folded"):
        ok_or_empty(fork.http.delete(f"{fork.origin.url}/paths", params={"path": path}))
    ok(fork.http.put(f"{fork.origin.url}/paths", json={"path": "open", "visibility": "private"}))
    fork.repo, origin = fork.origin, fork.repo
    fork.grant(fork.maker, "write")  # in the origin
    fork.repo = origin
    assert [fork.tree(one)["entries"] for one in fork.inherited] == before
    assert fork.mine.get(f"{origin.url}/raw/{fork.inherited[1]}/vault/plan.txt").status_code == 404
    assert fork.mine.get(f"{origin.url}/raw/{fork.inherited[1]}/open/readme.txt").is_success


def test_a_fork_of_such_a_fork_has_no_more(relay: Relay, fork: Fork) -> None:
    """And one by whoever sees less of the first has less."""
    own = Fork(relay, "first", more=False)
    own.repo.seal({"open/mine.txt": b"1\n", "later/x.txt": b"x\n"})
    ok(own.mine.put(f"{own.repo.url}/paths", json={"path": "open", "visibility": "private"}))
    made: dict[str, Repository] = {}
    for name, http, who in (
        ("whole", own.mine, own.maker),
        ("less", relay.client(second := relay.account("second")), second),
    ):
        body = ok(http.post(f"{own.repo.url}/forks", json={"name": name}))
        assert body["partial"]
        made[name] = Repository(http, who, body)
    for name, repo in made.items():
        own.repo, own.mine = repo, repo.http
        head = repo.head()
        assert head is not None
        for seal in (*own.inherited, head):
            shown = own.proof(seal)
            assert [one["path"] for one in own.tree(seal)["entries"]] == sorted(shown.files)
            if seal != own.inherited[0]:
                assert any(path.startswith("open/") for path in shown.files) is (name == "whole")
            answer = repo.http.get(f"{repo.url}/tree/{seal}?recursive=1")
            assert own.told_by(answer, "") == []
        (mine,) = repo.seal({"later/y.txt": b"y\n"})
        assert own.proof(mine).opaque
        assert "later/y.txt" in own.proof(mine).files
    assert not relay.run(audited(relay, made["less"].id))


def test_its_owner_hides_paths_of_the_fork_as_anywhere(relay: Relay) -> None:
    fork = Fork(relay, "hides", more=False)
    (made,) = fork.repo.seal({"notes/a.txt": b"noted\n"})
    ok(fork.mine.put(f"{fork.repo.url}/paths", json={"path": "notes", "visibility": "private"}))
    reader = relay.client(relay.account("readsfork"))
    for seal in (*fork.inherited, made):
        shown = fork.proof(seal, reader)
        assert [one["path"] for one in fork.tree(seal, reader)["entries"]] == sorted(shown.files)
        assert "notes/a.txt" not in shown.files
    assert "notes/a.txt" in fork.proof(made).files


def test_nothing_is_proposed_between_it_and_others(relay: Relay, fork: Fork) -> None:
    for base, head, http in (
        (fork.origin, f"{fork.maker.handle}/part:own", fork.mine),
        (fork.origin, f"{fork.maker.handle}/part:own", fork.http),
    ):
        sent = {"head": head, "base": "main", "title": "Back"}
        refused = http.post(f"{base.url}/proposals", json=sent)
        assert code(refused) == (403, "filtered_view")
        assert "svc diff" in refused.json()["detail"]
        assert fork.told_by(refused, "") == []


def test_the_origin_goes_with_what_it_hid(relay: Relay) -> None:
    """Its bytes are nowhere afterwards; the fork reads and seals on, and its seals verify."""
    fork = Fork(relay, "survives", more=False)
    digests = {blake3(data).digest() for data in fork.private.values()}
    fork.private["secret/draft.txt"] = fork.draft

    async def stored() -> set[bytes]:
        c = tables["object"].c
        async with relay.node.db.read() as tx:
            return {bytes(row[0]) for row in await tx.all(select(c.digest).where(c.digest.in_(digests)))}

    async def purge() -> None:
        c = tables["repo"].c
        async with relay.node.db.write() as tx:
            await tx.run(update(tables["repo"]).where(c.id == fork.origin.id).values(purge_at=now_ms() - 1))
        await upkeep.purge_deleted(relay.node)
        grace = -limits.GC_GRACE
        await collect(relay.node.db, relay.node.objects, lambda _: None, grace=grace, quiet=grace)

    shown = {seal: fork.tree(seal)["entries"] for seal in fork.inherited}
    assert relay.run(stored()) == digests
    ok(fork.http.delete(fork.origin.url))
    relay.run(purge())
    assert relay.run(stored()) == set()
    for seal in fork.inherited:
        assert fork.tree(seal)["entries"] == shown[seal]
        assert fork.proof(seal).files.keys() == {one["path"] for one in shown[seal]}
    (made,) = fork.repo.seal({"open/after.txt": b"after\n"})
    assert fork.proof(made).opaque == fork.proof(fork.inherited[-1]).opaque
    seen = fork.mine.get(f"{fork.repo.url}/raw/{fork.inherited[1]}/open/readme.txt")
    assert seen.content == fork.shown["open/readme.txt"]
    assert [one["verified"] for one in fork.repo.get("/log")["items"]] == [True] * 7
    assert not relay.run(audited(relay, fork.repo.id))


def test_the_audit_finds_a_part_that_is_of_another_tree(relay: Relay) -> None:
    fork = Fork(relay, "audited", more=False)
    assert not relay.run(audited(relay, fork.repo.id))

    async def swap() -> None:
        c = tables["repo_seal"].c
        here = c.repo_id == fork.repo.id
        async with relay.node.db.write() as tx:
            other = await tx.value(select(c.root).where(here, c.seal_id == fork.inherited[1]))
            await tx.run(
                update(tables["repo_seal"]).where(here, c.seal_id == fork.inherited[2]).values(root=other)
            )

    relay.run(swap())
    assert any("is not a part of the tree" in line for line in relay.run(audited(relay, fork.repo.id)))


def test_a_path_that_turns_private_while_it_is_forked_is_not_taken_along(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    from relay.domain.forking import holding

    fork = Fork(relay, "races", more=False)
    gather: Callable[..., Any] = holding.gather

    async def slowly(*asked: Any) -> Any:
        taken = await gather(*asked)
        async with relay.node.db.write() as tx:
            rule = {"repo_id": fork.origin.id, "path": "open", "visibility": "private"}
            await tx.run(insert(tables["path_policy"]), **rule)
            c = tables["repo"].c
            await tx.run(update(tables["repo"]).where(c.id == fork.origin.id).values(policy=1000))
        return taken

    monkeypatch.setattr(holding, "gather", slowly)
    refused = fork.mine.post(f"{fork.origin.url}/forks", json={"name": "late"})
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    monkeypatch.undo()
    made = ok(fork.mine.post(f"{fork.origin.url}/forks", json={"name": "late"}))
    http, url = fork.mine, f"/api/v1/repos/{made['id']}"
    assert http.get(f"{url}/raw/{fork.inherited[1]}/open/readme.txt").status_code == 404


def ok_or_empty(answer: httpx.Response) -> None:
    assert answer.is_success, answer.text
