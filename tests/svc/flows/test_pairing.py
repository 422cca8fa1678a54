"""Pairing by QR code between two machines, through a relay that is honest and through hostile ones."""

from __future__ import annotations

import dataclasses
import re
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec
import pytest

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import ServerMisbehaved
from localstore.core.identity import pairing as protocol
from localstore.core.identity.bearer import to_text
from localstore.core.identity.keys import DeviceKey, TransportKey, sign_registration
from localstore.core.model import device as endpoints
from localstore.core.model.auth import DeviceKeyExists
from localstore.core.model.device import Device, NewDevice, PairingEnded, PairingStep
from relay.domain.device import pairing as rules
from svc.api import Api
from svc.flows.sign_in import pairing
from svc.flows.sign_in.login import by_device_key
from svc.http.client import Http
from svc.http.credential import Credential
from svc.http.session import Session, Sessions
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    running = Relay(tmp_path_factory.mktemp("relay"), {"TR_RATE_LIMITS": "off", "RUST_LOG": "off"})
    running.start()
    yield running
    running.stop()


@pytest.fixture
def owner(relay: Relay) -> Account:
    return relay.account(f"u{secrets.token_hex(6)}")


class Pair:
    """Two machines that pair, each on a thread. `agree`: what the persons say who see (own digits, digits of
    the other machine)."""

    def __init__(self, relay: Relay, owner: Account, home: Path, agree: Callable[[str, str], bool]) -> None:
        self.api = Api(Http(relay.url, Credential(to_text(owner.token), owner.key)))
        self.sessions = Sessions(home)
        self._owner, self._agree = owner, agree
        self._codes: SimpleQueue[str] = SimpleQueue()
        self._pool = ThreadPoolExecutor(2)
        self._seen: dict[str, Future[str]] = {"old": Future(), "new": Future()}

    def run(self) -> tuple[Future[Device], Future[Session]]:
        """(what the machine that drew the code got, what the one that scanned it got)."""
        with self._pool as pool:
            old = pool.submit(
                pairing.offer, self.api, self._owner.id, "", self._codes.put, self._person("old"), sleep=_nap
            )
            new = pool.submit(self._join)
            old.add_done_callback(lambda _: self._codes.put(""))  # no code was drawn
        return old, new

    def digits(self, end: str) -> str:
        return self._seen[end].result(PATIENCE)

    def devices(self) -> set[str]:
        return {device.id for device in self.api.items(endpoints.LIST, user_id=self._owner.id)}

    def _join(self) -> Session:
        text = self._codes.get(timeout=PATIENCE)
        return pairing.join(pairing.read_code(text), self.sessions, "tablet", self._person("new"), sleep=_nap)

    def _person(self, end: str) -> pairing.Confirm:
        other = "new" if end == "old" else "old"

        def confirm(digits: str, _: str) -> bool:
            self._seen[end].set_result(digits)
            return self._agree(digits, self.digits(other))

        return confirm


def _nap(seconds: float) -> None:
    time.sleep(seconds / 20)


def _yes(*_: str) -> bool:
    return True


def _same(own: str, other: str) -> bool:
    return own == other


def test_two_machines_pair_and_the_new_one_is_signed_in(relay: Relay, owner: Account, tmp_path: Path) -> None:
    pair = Pair(relay, owner, tmp_path, _same)
    old, new = pair.run()
    device, session = old.result(), new.result()
    assert device.id == pair.sessions.identity.device.id
    assert (device.name, session.user_id, session.handle) == ("tablet", owner.id, owner.handle)
    assert pair.sessions.find(relay.url) == session
    assert device.id in pair.devices()


def test_a_pairing_that_another_session_completed_is_not_waited_for(relay: Relay, owner: Account) -> None:
    api, key = Api(Http(relay.url, Credential(to_text(owner.token), owner.key))), DeviceKey.generate()
    codes: list[protocol.PairingText] = []

    def scan(text: str) -> None:
        codes.append(protocol.parse(text))
        body = endpoints.PairingProcess(qr=text, device=NewDevice(public_key=b64u(key.public)))
        Api(Http(relay.url)).send(endpoints.PROCESS, body, user_id=owner.id)

    def complete_elsewhere(*_: str) -> bool:
        statement = b64u(sign_registration(key, relay.url, owner.id))
        body = endpoints.PairingComplete(codes[0].pairing_id, sas_confirmed=True, signature=statement)
        assert api.send(endpoints.COMPLETE, body, user_id=owner.id).id == key.id
        return True

    def wait(_: float) -> None:
        pytest.fail("it waits for what has happened")

    with pytest.raises(PairingEnded, match="was used"):
        pairing.offer(api, owner.id, "", scan, complete_elsewhere, sleep=wait)


def test_an_interrupt_as_soon_as_the_code_is_drawn_ends_the_pairing(
    relay: Relay, owner: Account, tmp_path: Path
) -> None:
    api, codes = Api(Http(relay.url, Credential(to_text(owner.token), owner.key))), list[str]()

    def interrupt(text: str) -> None:
        codes.append(text)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pairing.offer(api, owner.id, "", interrupt, _yes)
    with pytest.raises(PairingEnded, match="refused"):
        pairing.join(pairing.read_code(codes[0]), Sessions(tmp_path), "tablet", _yes, sleep=_nap)


def test_a_machine_whose_key_was_added_before_is_told_how_it_signs_in(
    relay: Relay, owner: Account, tmp_path: Path
) -> None:
    pair = Pair(relay, owner, tmp_path, _same)
    pair.run()
    pair.sessions.forget(relay.url)  # as if it had been killed before it signed in
    create = endpoints.PairingCreate(commitment=b64u(protocol.commit(bytes(protocol.OPENING_BYTES))))
    text = protocol.parse(pair.api.send(endpoints.GENERATE, create, user_id=owner.id).qr)
    told = f"sign in with it: svc login --server {relay.url} --device-key --handle NAME"
    with pytest.raises(DeviceKeyExists, match=re.escape(told)):
        pairing.join(text, pair.sessions, "tablet", lambda *_: True)
    assert by_device_key(relay.url, pair.sessions, owner.handle).user_id == owner.id


@pytest.mark.parametrize("end", ["old", "new"])
def test_nobody_is_added_if_one_person_says_no(
    end: str, relay: Relay, owner: Account, tmp_path: Path
) -> None:
    pair = Pair(relay, owner, tmp_path, _same)
    honest = pair._person
    pair._person = lambda asked: (  # type: ignore[method-assign]
        (lambda digits, name: honest(asked)(digits, name) and False) if asked == end else honest(asked)
    )
    for future in pair.run():
        assert isinstance(future.exception(), PairingEnded)
        assert "refused" in str(future.exception())
    assert pair.devices() == {owner.key.id}
    assert pair.sessions.find(relay.url) is None


def test_a_relay_that_swaps_the_keys_is_seen_in_the_digits(
    relay: Relay, owner: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells the old machine of a key of its own, and the new machine that all is well."""
    mallory, honest = DeviceKey.generate(), rules._scan

    async def swap(caller: Any, row: Any, scanned: NewDevice) -> Any:
        theirs = NewDevice(
            public_key=b64u(mallory.public),
            x25519=b64u(TransportKey.generate(mallory.seed).public),
            nonce=b64u(mallory.seed),
            name=scanned.name,
        )
        stored = await honest(caller, row, theirs)
        told = {part: unb64u(getattr(scanned, part)) for part in ("x25519", "nonce")}
        return dataclasses.replace(stored, ed25519=unb64u(scanned.public_key), **told)

    monkeypatch.setattr(rules, "_scan", swap)
    pair = Pair(relay, owner, tmp_path, _same)
    old, new = pair.run()
    assert pair.digits("old") != pair.digits("new")
    assert isinstance(old.exception(), PairingEnded)
    assert isinstance(new.exception(), PairingEnded)
    assert pair.devices() == {owner.key.id}


def test_a_relay_cannot_open_a_commitment_to_another_number(
    relay: Relay, owner: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a number of its choice it could make the digits of the two ends equal."""
    honest = rules._to_step

    def replace(*given: Any) -> PairingStep:
        step = honest(*given)
        other = b64u(secrets.token_bytes(32))
        return msgspec.structs.replace(step, opening=other) if step.opening else step

    monkeypatch.setattr(rules, "_to_step", replace)
    api = Api(Http(relay.url, Credential(to_text(owner.token), owner.key)))

    def join(text: str) -> None:
        """The new machine scans, sees the forgery, and its person says so at the old one."""
        thread.submit(
            pairing.join, pairing.read_code(text), Sessions(tmp_path), "", _yes, sleep=_nap
        ).add_done_callback(joined.set_result)

    def refuse(*_: str) -> bool:
        assert isinstance(joined.result(PATIENCE).exception(), ServerMisbehaved)
        return False

    joined: Future[Future[Session]] = Future()
    with ThreadPoolExecutor(1) as thread, pytest.raises(PairingEnded):
        pairing.offer(api, owner.id, "", join, refuse, sleep=_nap)
    assert "does not commit" in str(joined.result().exception())
    assert [device.id for device in api.items(endpoints.LIST, user_id=owner.id)] == [owner.key.id]


@pytest.mark.parametrize("part", ["commitment", "account", "origin"])
def test_a_relay_that_makes_another_code_is_seen_before_it_is_drawn(
    part: str, relay: Relay, owner: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = rules.PairingText
    other = {
        "commitment": bytes(32),
        "account": "0" * 8 + "-0000-4000-8000-" + "0" * 12,
        "origin": "https://m.example",
    }

    def forge(**fields: Any) -> Any:
        return honest(**{**fields, part: other[part]})

    monkeypatch.setattr(rules, "PairingText", forge)
    api = Api(Http(relay.url, Credential(to_text(owner.token), owner.key)))
    drawn: list[str] = []
    with pytest.raises(ServerMisbehaved, match="leads elsewhere"):
        pairing.offer(api, owner.id, "", drawn.append, lambda *_: True)
    assert drawn == []


def test_the_drawn_code_has_a_quiet_zone_and_fits_a_terminal() -> None:
    text = str(
        protocol.PairingText(
            "https://node.example", "0" * 8 + "-0000-4000-8000-" + "0" * 12, b"s" * 16, b"c" * 32
        )
    )
    lines = pairing.draw(text)
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 60
    assert len(lines) <= 30
    assert set(lines[0]) == {"█"}
    assert all(line.startswith("██") and line.endswith("██") for line in lines)
    assert set("".join(lines)) <= set("█▀▄ ")
