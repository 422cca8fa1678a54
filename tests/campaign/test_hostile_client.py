"""What a hostile client can do to a branch: nothing. Each attempt is refused by name and leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from localstore.core.encoding import b64u, hex_digest
from localstore.core.errors import Conflict, SignatureInvalid, SvcError
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.model.live import UpdateAnswer, UpdateBatch
from localstore.core.model.ref import StaleHead
from localstore.core.model.seal import FinalizeRequest, PrepareRequest
from localstore.home import Home
from localstore.sync.owning import open_copy
from localstore.sync.working_copy import WorkingCopy
from svc.api import connect
from svc.api.sync_transport import BranchTransport
from svc.http.session import Sessions
from tests.campaign.conftest import Place
from tests.campaign.liar import Liar


@contextmanager
def attacker(place: Place) -> Iterator[WorkingCopy]:
    """Ann's own machine, key and session, ready to send anything."""
    sessions = Sessions(place.ann.home)
    api = connect(place.node.address, sessions)
    from localstore.folder.link import read_repo

    link = read_repo(place.ann.folder)
    transport = BranchTransport(api, link.repo_id, link.branch)
    with open_copy(place.ann.folder, Home(place.ann.home), transport, sessions.identity.device) as device:
        yield device
    api.close()


def send(device: WorkingCopy, signed: bool = True, **members: Any) -> UpdateAnswer:
    """One update, signed or with a signature that fits nothing; its number is used up."""
    assert device.key is not None
    n = device.db.number("n") + 1
    device.db.put("n", n)
    update = LiveUpdate(n=n, settled=n - 1, signature="", **{"gen": 0, "base": 0, **members})
    raw = signing_bytes(device.repo.repo_id, device.branch_id, device.replica, device.key.id, update)
    signature = device.key.sign(raw) if signed else bytes(64)
    batch = UpdateBatch(
        device_key_id=device.key.id,
        replica=device.replica,
        updates=[msgspec.structs.replace(update, signature=b64u(signature))],
    )
    return device.transport.updates(batch).answers[0]


def text(data: bytes) -> dict[str, Any]:
    return {"kind": "create_text", "blake3": hex_digest(data), "size": len(data)}


@pytest.fixture
def ready(place: Place) -> Place:
    place.write(place.ann, "a.txt", "one\n")
    place.write(place.ann, "b.txt", "two\n")
    place.ann.ok("push", "-m", "first")
    return place


def rows(place: Place) -> list[Any]:
    return place.node.rows(
        "SELECT lane.path, lane.gen, lane.ver, lane.digest, ref.head FROM lane, ref, repo, account "
        "WHERE lane.branch_id = ref.id AND ref.repo_id = repo.id AND repo.owner_id = account.id "
        "AND handle = ? ORDER BY 1",
        place.handle,
    )


PATHS = [
    "../x",
    "/x",
    "a/../x",
    "a//b",
    "a\0b",
    ".svc/repo.json",
    ".GIT/config",
    "d\\x",
    "a\nb",
    ".git\u200c/x",
    "x" * 5000,
    "",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_hostile_path_is_refused(path: str, ready: Place) -> None:
    before = rows(ready)
    with attacker(ready) as device:
        try:
            assert send(device, path=path, **text(b"one\n")).result == "refused"
        except SvcError as error:
            assert error.status in (400, 413, 422)
    assert rows(ready) == before
    ready.ann.ok("pull")


def test_tampering_wrong_digests_and_foreign_lanes_are_refused(ready: Place) -> None:
    before = rows(ready)
    gens = {path: gen for path, gen, *_ in before}
    with attacker(ready) as device:
        operation = device.lane_with_pending(device.entries["b.txt"]).edit(device.replica, b"two\nmore\n")
        assert operation is not None
        edit: dict[str, Any] = {"kind": "edit_text", "ops": [b64u(operation)]}
        entry = device.entries["a.txt"]
        attempts = [
            send(device, path="c.txt", **text(b"never uploaded\n")),
            send(device, path="c.txt", **{**text(b"one\n"), "size": 400}),
            send(device, path="a.txt", gen=gens["a.txt"], base=entry.seen, epoch=entry.epoch, **edit),
            send(device, path="a.txt", gen=gens["b.txt"], base=entry.seen, epoch=entry.epoch, **edit),
            send(device, path="a.txt", gen=99, base=99, kind="delete"),
        ]
        with pytest.raises(SignatureInvalid):
            send(device, signed=False, path="c.txt", **text(b"one\n"))
        assert [answer.result for answer in attempts if answer.result == "ok"] == []
    assert rows(ready) == before
    ready.write(ready.ann, "a.txt", "one\nmore\n")
    ready.ann.ok("push", "-m", "second")
    assert ready.machine("bob").files() == ready.ann.files()


def test_a_stale_head_and_a_wrong_signature_seal_nothing(ready: Place) -> None:
    first = ready.ann.ok("pull", "--json", "seal").json()["seal"]
    ready.write(ready.ann, "a.txt", "two\n")
    second = ready.ann.ok("push", "-m", "second", "--json").json()["seal"]
    with attacker(ready) as device:
        assert device.key is not None
        sent = PrepareRequest(message="late", device_key_id=device.key.id, expected_head=first)
        with pytest.raises(Conflict) as raised:
            device.transport.prepare(sent)
        assert (raised.value.status, isinstance(raised.value, StaleHead)) == (409, True)
        assert send(device, path="c.txt", **text(b"one\n")).result == "ok"
        prepared = device.transport.prepare(msgspec.structs.replace(sent, expected_head=second))
        with pytest.raises(SvcError) as refused:
            device.transport.finalize(
                FinalizeRequest(
                    prepare_id=prepared.prepare_id, device_key_id=device.key.id, signature=b64u(bytes(64))
                )
            )
        assert 400 <= refused.value.status < 500
        assert device.transport.head() == second


def test_a_recorded_push_cannot_be_played_again(lying: Place, liar: Liar) -> None:
    lying.write(lying.ann, "a.txt", "one\n")
    lying.ann.ok("push", "-m", "first")
    liar.asked.clear()
    lying.write(lying.ann, "a.txt", "two\n")
    lying.ann.ok("push", "-m", "second")
    recorded = [one for one in liar.asked if one[0] != "GET"]
    assert len(recorded) > 3
    before = rows(lying)
    for method, path, headers, body in recorded:
        status, _, answer = liar.ask(method, path, headers, body)
        assert status in (401, 409), (path, answer)
        changed = body[:-1] + bytes([body[-1] ^ 1]) if body else b"x"
        assert liar.ask(method, path, {**headers, "Content-Length": str(len(changed))}, changed)[0] == 401
    assert rows(lying) == before
