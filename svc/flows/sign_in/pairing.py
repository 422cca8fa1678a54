"""Pairs two devices by QR code. A device that is signed in draws the code, and the new device scans it.

The code contains a commitment, which is the digest of a random number (the opening). The drawing device sends
the opening only after it has the new device's keys, and accepts no other keys after that. The scanning device
compares the opening with the commitment, which it read from a screen and not from the server. Each device
computes the six digits itself, from its own secrets and the data from the server. So if a server swaps keys,
the two devices show different digits."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Invalid, ServerMisbehaved, SvcError
from localstore.core.identity import pairing as protocol
from localstore.core.identity.keys import KEY_BYTES, sign_registration
from localstore.core.identity.pairing import PairingText, Transcript
from localstore.core.model import device as endpoints
from localstore.core.model.auth import DeviceKeyExists
from localstore.core.model.device import (
    Device,
    NewDevice,
    PairingComplete,
    PairingCreate,
    PairingEnded,
    PairingProcess,
    PairingStep,
    ScannedBy,
)
from localstore.core.model.limits import PAIRING_CODE
from svc.api import Api
from svc.flows.sign_in.login import by_device_key, machine_name
from svc.http.checked import argument
from svc.http.client import Http
from svc.http.origin import same_server
from svc.http.session import Session, Sessions

INTERVAL = 1.0  # seconds between questions how the pairing stands
Confirm = Callable[[str, str], bool]  # (digits, name of the other end) → whether a person saw them on both


def offer(
    api: Api,
    user_id: str,
    name: str,
    show: Callable[[str], None],
    confirm: Confirm,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Device:
    """Draw a code with `show`, wait for the device that scans it, and add that device to the account
    `user_id`. Both devices must confirm the digits first. Returns the device. Raises PairingEnded,
    ServerMisbehaved."""
    opening = secrets.token_bytes(protocol.OPENING_BYTES)
    commitment = protocol.commit(opening)
    create = PairingCreate(name=name, commitment=b64u(commitment))
    pairing = api.send(endpoints.GENERATE, create, user_id=user_id)
    text = _read_own_code(api.origin, pairing.qr, user_id, commitment)

    def ask(opened: bytes | None = None) -> PairingStep:
        body = PairingProcess(qr=str(text), opening=b64u(opened) if opened else None)
        return api.send(endpoints.PROCESS, body, user_id=user_id)

    with _ended_by_interrupt(api, text):
        show(str(text))  # from here on another device may wait
        scanned = _wait(ask, lambda step: step.device is not None, sleep).device
        if scanned is None:
            raise ServerMisbehaved(
                f"{api.origin} says that a device scanned the code, and not which; try again"
            )
        digits = _digits(api.origin, text, opening, scanned)
        ask(opening)
        if not confirm(digits, scanned.name):
            _refuse(api, text)
        _wait(ask, lambda step: step.status in ("confirmed", "done"), sleep)  # done: by another session
        complete = PairingComplete(pairing_id=text.pairing_id, sas_confirmed=True)
        device = api.send(endpoints.COMPLETE, complete, user_id=user_id)
    if device.public_key != scanned.public_key:
        raise ServerMisbehaved(
            f"{api.origin} added the key {device.id[:12]}, and not the one whose digits were compared; "
            "do not use this server"
        )
    return device


def join(
    text: PairingText,
    sessions: Sessions,
    name: str,
    confirm: Confirm,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Session:
    """Join the account of a scanned code with this machine's key, sign in, and store the session. Returns the
    session. Raises PairingEnded, DeviceKeyExists, ServerMisbehaved."""
    api, identity = Api(Http(text.origin)), sessions.identity
    nonce = secrets.token_bytes(protocol.NONCE_BYTES)
    device = NewDevice(
        public_key=b64u(identity.device.public),
        x25519=b64u(identity.transport.public),
        nonce=b64u(nonce),
        name=name or machine_name(),
    )

    def ask() -> PairingStep:
        return api.send(endpoints.PROCESS, PairingProcess(qr=str(text), device=device), user_id=text.account)

    with _ended_by_interrupt(api, text):
        try:
            step = _wait(ask, lambda step: step.opening is not None, sleep)
        except DeviceKeyExists:  # as after a pairing that was killed before its sign-in
            raise DeviceKeyExists(
                f"{text.origin} knows this machine's key already; sign in with it: "
                f"svc login --server {text.origin} --device-key --handle NAME"
            ) from None
        transcript = Transcript(
            text,
            _bytes(text.origin, step.opening or "", protocol.OPENING_BYTES),
            identity.device.public,
            identity.transport.public,
            nonce,
        )
        handle = step.handle or ""
        try:
            digits = transcript.digits()
        except Invalid:
            raise ServerMisbehaved(
                f"{text.origin} passed on an opening that the code does not commit to; do not pair through it"
            ) from None
        if not confirm(digits, handle):
            _refuse(api, text)
        statement = b64u(sign_registration(identity.device, text.origin, text.account))
        complete = PairingComplete(pairing_id=text.pairing_id, sas_confirmed=True, signature=statement)
        api.send(endpoints.COMPLETE, complete, user_id=text.account)
        _wait(ask, lambda step: step.status == "done", sleep)
    session = by_device_key(text.origin, sessions, handle)
    if session.user_id != text.account:
        sessions.forget(text.origin)
        raise ServerMisbehaved(f"{text.origin} signed in to another account than the code is of")
    return session


def read_code(text: str) -> PairingText:
    """Parse the text of a pairing code that a person typed. Raises UsageError if it is not a pairing code."""
    return argument(protocol.parse, text)


def draw(text: str) -> list[str]:
    """Draw the QR code of a text, as lines of half-block characters, light on dark, with an empty border."""
    import segno

    code = segno.make(text, error="l", micro=False, boost_error=False)
    rows = [bytes(row) for row in code.matrix_iter(border=2)]
    if len(rows) % 2:
        rows.append(bytes(len(rows[0])))
    blocks = {(0, 0): "█", (0, 1): "▀", (1, 0): "▄", (1, 1): " "}
    return [
        "".join(blocks[upper, lower] for upper, lower in zip(*pair, strict=True))
        for pair in zip(rows[::2], rows[1::2], strict=True)
    ]


def _read_own_code(origin: str, qr: str, user_id: str, commitment: bytes) -> PairingText:
    """Parse the code that the server made for this device. Raises ServerMisbehaved unless the code names this
    account on this server and contains this device's commitment."""
    try:
        text = protocol.parse(qr)
    except Invalid as error:
        raise ServerMisbehaved(f"{origin} made a code that cannot be read ({error.detail})") from None
    if not same_server(origin, text.origin) or (text.account, text.commitment) != (user_id, commitment):
        raise ServerMisbehaved(f"{origin} made a code that leads elsewhere; do not pair through it")
    return text


def _digits(origin: str, text: PairingText, opening: bytes, scanned: ScannedBy) -> str:
    return Transcript(
        text,
        opening,
        _bytes(origin, scanned.public_key, KEY_BYTES),
        _bytes(origin, scanned.x25519, KEY_BYTES),
        _bytes(origin, scanned.nonce, protocol.NONCE_BYTES),
    ).digits()


def _bytes(origin: str, text: str, size: int) -> bytes:
    try:
        return unb64u(text, size)
    except Invalid as error:
        raise ServerMisbehaved(f"{origin} passed on something that cannot be read ({error.detail})") from None


def _wait(
    ask: Callable[[], PairingStep], reached: Callable[[PairingStep], bool], sleep: Callable[[float], None]
) -> PairingStep:
    """Call `ask` again and again until `reached` returns True for its result, and return that result. Raises
    PairingEnded if the pairing is ended, or if the code expires."""
    for _ in range(int(PAIRING_CODE / INTERVAL) + 60):
        step = ask()
        if reached(step):
            return step
        sleep(INTERVAL)
    raise PairingEnded("the other device did not answer in time; start again: svc auth device pair")


@contextmanager
def _ended_by_interrupt(api: Api, text: PairingText) -> Iterator[None]:
    """A context in which Ctrl-C also ends the pairing on the server. Otherwise the other device would go on
    waiting."""
    try:
        yield
    except KeyboardInterrupt:
        with suppress(SvcError, KeyboardInterrupt):
            _send_refusal(api, text)
        raise


def _refuse(api: Api, text: PairingText) -> NoReturn:
    """End the pairing on the server, and raise PairingEnded."""
    _send_refusal(api, text)
    raise PairingEnded(
        "the pairing was refused and no device was added; if the digits differed, somebody stands "
        "between the two devices: try another network"
    )


def _send_refusal(api: Api, text: PairingText) -> None:
    api.send(endpoints.COMPLETE, PairingComplete(pairing_id=text.pairing_id), user_id=text.account)
