"""Devices and their pairing: who may, in which order, one device for one code, and what ends it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, update

from localstore.core.encoding import b64u, unb64u
from localstore.core.identity import pairing as protocol
from localstore.core.identity.keys import sign_registration, verify_registration
from localstore.core.identity.pairing import PairingText, Transcript
from localstore.core.model.device import PairingComplete, PairingEnded
from localstore.core.model.limits import OPEN_PAIRINGS
from relay.base.clock import now_ms
from relay.caller import Caller
from relay.config import Config
from relay.db.engine.database import Tx
from relay.db.identity import device_key as device_keys
from relay.db.schema.account import pairing as pairings
from relay.db.schema.event import event
from relay.domain.device import pairing as rules
from relay.domain.upkeep import upkeep
from tests.databases import new_url
from tests.relay.auth.people import Device
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok

Client = Callable[..., httpx.Client]
Someone = Callable[..., Account]


@pytest.fixture
def new(relay: Relay) -> NewEnd:
    return NewEnd(Device(relay.url))


class AtPort(Relay):
    """A relay at the port of one that stopped."""

    port = 0

    def _config(self) -> Config:
        return super()._config().at(self.port)


def url_of(who: Account, step: str = "") -> str:
    return f"/api/v1/devices/{who.id}{step and f'/pair/{step}'}"


def generate(http: httpx.Client, owner: Account, **body: Any) -> dict[str, Any]:
    return dict(ok(http.post(url_of(owner, "generate"), json=body)))


@dataclass
class NewEnd:
    """The device that scans a code, and what it sends."""

    machine: Device
    nonce: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def scan(self, qr: str) -> dict[str, Any]:
        public, transport = b64u(self.machine.key.public), b64u(self.machine.transport.public)
        device = {"name": "tablet", "public_key": public, "x25519": transport, "nonce": b64u(self.nonce)}
        return {"qr": qr, "device": device}

    def confirmation(self, pairing_id: str, account: str) -> dict[str, Any]:
        statement = b64u(sign_registration(self.machine.key, self.machine.url, account))
        return {"pairing_id": pairing_id, "sas_confirmed": True, "signature": statement}


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json()["code"])


def test_two_ends_pair_with_a_commitment(
    relay: Relay, owner: Account, http: httpx.Client, client: Client, new: NewEnd
) -> None:
    opening, nobody = secrets.token_bytes(32), client()
    code = generate(http, owner, name="kitchen", commitment=b64u(protocol.commit(opening)))
    text = protocol.parse(code["qr"])
    assert (text.origin, text.account, text.pairing_id) == (relay.url, owner.id, code["pairing_id"])
    process, complete = url_of(owner, "process"), url_of(owner, "complete")
    assert ok(http.post(process, json={"qr": code["qr"]}))["status"] == "open"
    early = {"qr": code["qr"], "opening": b64u(opening)}
    assert code_of(http.post(process, json=early)) == (409, "out_of_order")

    scanned = ok(nobody.post(process, json=new.scan(code["qr"])))
    assert (scanned["status"], scanned["sas"], scanned["opening"]) == ("scanned", None, None)
    confirmation = new.confirmation(code["pairing_id"], owner.id)
    assert code_of(nobody.post(complete, json=confirmation)) == (409, "out_of_order")

    wrong = {"qr": code["qr"], "opening": b64u(bytes(32))}
    assert http.post(process, json=wrong).status_code == 422
    opened = ok(http.post(process, json=early))
    again = ok(nobody.post(process, json=new.scan(code["qr"])))
    assert opened == again
    seen = opened["device"]
    transcript = Transcript(
        text, unb64u(again["opening"]), *(unb64u(seen[part]) for part in ("public_key", "x25519", "nonce"))
    )
    assert (opened["status"], opened["sas"]) == ("opened", transcript.digits())
    assert (seen["id"], seen["name"]) == (new.machine.key.id, "kitchen")

    mine = {"pairing_id": code["pairing_id"], "sas_confirmed": True}
    assert code_of(http.post(complete, json=mine)) == (409, "out_of_order")
    waiting = nobody.post(complete, json=confirmation)
    assert (waiting.status_code, waiting.json()["paired_at"]) == (202, None)
    assert ok(http.post(process, json={"qr": code["qr"]}))["status"] == "confirmed"
    assert new.machine.key.id not in {one["id"] for one in ok(http.get(url_of(owner)))["items"]}
    done = http.post(complete, json=mine)
    assert done.status_code == 201
    assert done.json()["id"] == new.machine.key.id
    assert ok(nobody.post(process, json=new.scan(code["qr"])))["status"] == "done"
    assert code_of(http.post(complete, json=mine)) == (410, "pairing_ended")

    assert new.machine.sign_in(owner.handle or "").json()["user_id"] == owner.id

    async def stored() -> Any:
        async with relay.node.db.read() as tx:
            return device_keys.to_row(await tx.one(device_keys.ONE, id=new.machine.key.id))

    key = relay.run(stored())
    verify_registration(relay.url, owner.id, key.ed25519, key.registration)
    assert (key.x25519, key.caps) == (new.machine.transport.public, "admin read write")


def test_one_session_pairs_by_the_three_steps_alone(owner: Account, http: httpx.Client, new: NewEnd) -> None:
    """The shapes of the specification, without commitment, nonce and transport key."""
    code = generate(http, owner)
    device = {"name": "phone", "public_key": b64u(new.machine.key.public)}
    step = ok(http.post(url_of(owner, "process"), json={"qr": code["qr"], "device": device}))
    assert len(step["sas"]) == 6
    assert step["sas"].isdigit()
    confirmation = new.confirmation(step["pairing_id"], owner.id)
    answer = http.post(url_of(owner, "complete"), json=confirmation)
    assert (answer.status_code, answer.json()["name"]) == (201, "phone")
    assert answer.json() in ok(http.get(url_of(owner)))["items"]


@pytest.mark.parametrize("end", ["new", "old"])
def test_either_end_refuses_the_digits(
    end: str, owner: Account, http: httpx.Client, client: Client, new: NewEnd
) -> None:
    code, nobody = generate(http, owner), client()
    ok(nobody.post(url_of(owner, "process"), json=new.scan(code["qr"])))
    refusal = {"pairing_id": code["pairing_id"], "sas_confirmed": False}
    answer = (nobody if end == "new" else http).post(url_of(owner, "complete"), json=refusal)
    assert (answer.status_code, answer.json()["paired_at"]) == (202, None)
    for asked in (http, nobody):
        again = asked.post(url_of(owner, "process"), json=new.scan(code["qr"]))
        assert code_of(again) == (410, "pairing_ended")
        assert "refused" in again.json()["detail"]
    late = new.confirmation(code["pairing_id"], owner.id)
    assert http.post(url_of(owner, "complete"), json=late).status_code == 410


def test_a_refusal_that_comes_too_late_does_not_say_that_it_refused(
    relay: Relay, owner: Account, http: httpx.Client, client: Client, new: NewEnd
) -> None:
    """One end refuses, and while its request is on the way, the other end's adds the device."""
    code, complete = generate(http, owner), url_of(owner, "complete")
    ok(client().post(url_of(owner, "process"), json=new.scan(code["qr"])))
    confirmation = new.confirmation(code["pairing_id"], owner.id)

    class Late(Caller):
        @contextlib.asynccontextmanager
        async def write(self, *names: str, effect: bool = True) -> AsyncIterator[Tx]:
            added = await asyncio.to_thread(http.post, complete, json=confirmation)
            assert added.status_code == 201
            async with Caller.write(self, *names, effect=effect) as tx:
                yield tx

    async def refuse() -> None:
        late = Late(relay.node, None, "127.0.0.1")
        await rules.complete(late, owner.id, PairingComplete(code["pairing_id"], sas_confirmed=False))

    async def refusals() -> int:
        async with relay.node.db.read() as tx:
            of_pairing = event.c.kind == "pairing.refuse", event.c.account_id == owner.id
            return int(await tx.value(select(func.count()).select_from(event).where(*of_pairing)))

    with pytest.raises(PairingEnded, match="was used"):
        relay.run(refuse())
    assert relay.run(refusals()) == 0


def test_a_code_is_for_the_first_device(
    relay: Relay, owner: Account, http: httpx.Client, client: Client
) -> None:
    """Also when eight ask at the same moment."""
    code = generate(http, owner)
    ends = [NewEnd(Device(relay.url)) for _ in range(8)]

    def scan(end: NewEnd) -> httpx.Response:
        with relay.client() as nobody:
            return nobody.post(url_of(owner, "process"), json=end.scan(code["qr"]))

    with ThreadPoolExecutor(len(ends)) as pool:
        answers = list(pool.map(scan, ends))
    assert sorted(answer.status_code for answer in answers) == [200] + [410] * 7
    first = next(end for end, answer in zip(ends, answers, strict=True) if answer.status_code == 200)
    step = ok(http.post(url_of(owner, "process"), json={"qr": code["qr"]}))
    assert step["device"]["id"] == first.machine.key.id
    confirmation = first.confirmation(code["pairing_id"], owner.id)

    def complete(_: int) -> httpx.Response:
        with relay.client(owner) as signed:
            return signed.post(url_of(owner, "complete"), json=confirmation)

    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(complete, range(4)))
    assert sorted(answer.status_code for answer in ended) == [201] + [410] * 3


def test_an_old_code_is_gone_and_swept(
    relay: Relay, owner: Account, http: httpx.Client, client: Client, new: NewEnd
) -> None:
    code = generate(http, owner)
    ok(client().post(url_of(owner, "process"), json=new.scan(code["qr"])))

    async def age() -> None:
        async with relay.node.db.write() as tx:
            await tx.run(update(pairings).values(expires_at=now_ms() - 1))

    async def count() -> int:
        async with relay.node.db.read() as tx:
            return int(await tx.value(select(func.count()).select_from(pairings)))

    relay.run(age())
    asked = [
        http.post(url_of(owner, "process"), json={"qr": code["qr"]}),
        client().post(url_of(owner, "process"), json=new.scan(code["qr"])),
        http.post(url_of(owner, "complete"), json=new.confirmation(code["pairing_id"], owner.id)),
    ]
    for answer in asked:
        assert code_of(answer) == (410, "pairing_ended")
        assert "ten minutes" in answer.json()["detail"]
    relay.run(upkeep.delete_expired(relay.node))
    assert relay.run(count()) == 0
    assert http.post(url_of(owner, "process"), json={"qr": code["qr"]}).status_code == 404


def test_an_account_has_few_open_codes(owner: Account, http: httpx.Client, new: NewEnd) -> None:
    codes = [generate(http, owner) for _ in range(OPEN_PAIRINGS)]
    refused = http.post(url_of(owner, "generate"), json={})
    assert code_of(refused) == (409, "conflict")
    step = ok(http.post(url_of(owner, "process"), json=new.scan(codes[0]["qr"])))
    ok(http.post(url_of(owner, "complete"), json=new.confirmation(step["pairing_id"], owner.id)))
    generate(http, owner)


def test_others_are_answered_as_if_there_were_none(
    owner: Account, http: httpx.Client, account: Someone, client: Client, new: NewEnd
) -> None:
    code = generate(http, owner)
    scan, confirmation = new.scan(code["qr"]), new.confirmation(code["pairing_id"], owner.id)
    stranger, nobody, guest = client(account()), client(), client(account(kind="guest"))
    missing = stranger.get("/api/v1/devices/" + "0" * 36).content
    asked = [
        ("GET", url_of(owner), None),
        ("DELETE", f"{url_of(owner)}/{owner.key.id}", None),
        ("POST", url_of(owner, "generate"), {}),
        ("POST", url_of(owner, "process"), scan),
        ("POST", url_of(owner, "process"), {"qr": "x"}),
        ("POST", url_of(owner, "complete"), confirmation),
    ]
    for method, url, body in asked:
        answer = stranger.request(method, url, json=body)
        assert (answer.status_code, answer.content) == (404, missing), url
        assert guest.request(method, url, json=body).status_code == 403
    for method, url, body in asked[:3]:
        assert nobody.request(method, url, json=body).status_code == 401
    assert ok(http.post(url_of(owner, "process"), json={"qr": code["qr"]}))["status"] == "open"


def test_without_a_session_the_code_is_the_credential(
    owner: Account, http: httpx.Client, account: Someone, client: Client, new: NewEnd
) -> None:
    code, nobody, other = generate(http, owner), client(), account()
    text = protocol.parse(code["qr"])
    made_up = PairingText(text.origin, text.account, secrets.token_bytes(16), text.commitment)
    recommitted = PairingText(text.origin, text.account, text.secret, bytes(32))
    process, complete = url_of(owner, "process"), url_of(owner, "complete")
    for url, body in [
        (process, {}),
        (process, {"qr": "svc-pair:1:AAAA:https://node.example"}),
        (process, new.scan(str(made_up))),
        (process, new.scan(str(recommitted))),
        (url_of(other, "process"), new.scan(code["qr"])),
        (complete, {}),
        (complete, {"pairing_id": made_up.pairing_id, "sas_confirmed": True, "signature": "A" * 86}),
        (url_of(other, "complete"), {"pairing_id": code["pairing_id"], "sas_confirmed": True}),
    ]:
        answer = nobody.post(url, json=body)
        assert (answer.status_code, answer.json()["code"]) == (401, "sign_in_required"), body
    ok(nobody.post(process, json=new.scan(code["qr"])))
    forged = new.confirmation(code["pairing_id"], owner.id) | {"signature": b64u(bytes(64))}
    assert nobody.post(complete, json=forged).status_code == 422
    elsewhere = new.confirmation(code["pairing_id"], other.id)
    assert nobody.post(complete, json=elsewhere).status_code == 422, "its statement is for another account"
    opening = {"qr": code["qr"], "device": new.scan("")["device"], "opening": b64u(bytes(32))}
    assert nobody.post(process, json=opening).status_code == 401


@pytest.mark.usefixtures("rate_limits")
def test_a_code_cannot_be_guessed_for_long(owner: Account, client: Client, new: NewEnd) -> None:
    nobody, statuses = client(), set()
    for _ in range(40):
        text = PairingText(new.machine.url, owner.id, secrets.token_bytes(16), bytes(32))
        statuses.add(nobody.post(url_of(owner, "process"), json=new.scan(str(text))).status_code)
    assert statuses == {401, 429}


@pytest.mark.parametrize("part", ["public_key", "x25519"])
def test_unusable_keys_are_refused(
    part: str, owner: Account, http: httpx.Client, client: Client, new: NewEnd
) -> None:
    scan = new.scan(generate(http, owner)["qr"])
    scan["device"][part] = b64u(bytes(32))
    assert client().post(url_of(owner, "process"), json=scan).status_code == 422


def test_a_device_that_is_registered_is_not_paired_again(
    relay: Relay, owner: Account, http: httpx.Client, client: Client, new: NewEnd
) -> None:
    codes = [generate(http, owner) for _ in range(3)]
    for code in codes[:2]:
        ok(client().post(url_of(owner, "process"), json=new.scan(code["qr"])))
    answers = [
        http.post(url_of(owner, "complete"), json=new.confirmation(code["pairing_id"], owner.id))
        for code in codes[:2]
    ]
    assert [answer.status_code for answer in answers] == [201, 409]
    late = client().post(url_of(owner, "process"), json=new.scan(codes[2]["qr"]))
    assert [code_of(answers[1]), code_of(late)] == [(409, "device_key_exists")] * 2


def test_a_revoked_device_loses_access_and_leaves_the_list(
    relay: Relay, owner: Account, http: httpx.Client, client: Client, new: NewEnd
) -> None:
    code = generate(http, owner)
    ok(client().post(url_of(owner, "process"), json=new.scan(code["qr"])))
    ok(http.post(url_of(owner, "complete"), json=new.confirmation(code["pairing_id"], owner.id)))

    async def join() -> Any:
        return relay.node.hub.join(new.machine.key.id)

    socket = relay.run(join())
    by_itself = new.machine.client(None)
    assert by_itself.send("GET", "/auth/userinfo").json()["user_id"] == owner.id
    (device,) = [one for one in ok(http.get(url_of(owner)))["items"] if one["id"] == new.machine.key.id]
    assert device["last_seen_at"] is not None
    url = f"{url_of(owner)}/{new.machine.key.id}"
    assert not socket.closed
    assert http.delete(url).status_code == 204
    assert socket.closed
    assert http.delete(url).status_code == 404
    assert by_itself.send("GET", "/auth/userinfo").status_code == 401
    assert new.machine.key.id not in {one["id"] for one in ok(http.get(url_of(owner)))["items"]}
    listed = ok(http.get("/api/v1/repos/device-keys"))["items"]
    assert [one["revoked_at"] is not None for one in listed if one["id"] == new.machine.key.id] == [True]


def test_steps_survive_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever was answered is in the database; a relay that died between two steps goes on."""
    folder = tmp_path_factory.mktemp("restarted")
    variables = {"DATABASE_URL": new_url(folder)}
    first = Relay(folder, variables)
    first.start()
    try:
        owner = first.account("mira")
        code = generate(first.client(owner), owner)
        url, new = first.url, NewEnd(Device(first.url))
        ok(first.client().post(url_of(owner, "process"), json=new.scan(code["qr"])))
    finally:
        first.stop()
    second = AtPort(folder, variables)
    second.port = int(url.rpartition(":")[2])
    second.start()
    try:
        step = ok(second.client().post(url_of(owner, "process"), json=new.scan(code["qr"])))
        assert step["status"] == "opened"
        confirmation = new.confirmation(code["pairing_id"], owner.id)
        assert second.client().post(url_of(owner, "complete"), json=confirmation).status_code == 202
        mine = {"pairing_id": code["pairing_id"], "sas_confirmed": True}
        assert second.client(owner).post(url_of(owner, "complete"), json=mine).status_code == 201
    finally:
        second.stop()
