"""Browsers, terminals and devices, as the relay meets them."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from localstore.core.encoding import b64u, unb64u
from localstore.core.identity.bearer import authorization, from_text
from localstore.core.identity.device_grant import OpenedChallenge, Purpose
from localstore.core.identity.keys import DeviceKey, TransportKey, sign_registration
from localstore.core.identity.request_signature import SAFE_METHODS, ContentDigest, sign
from tests.patience import PATIENCE
from tests.relay.watching import documented

PASSWORD = "correct horse battery"
TRUST = (
    ssl.create_default_context()
)  # one for all clients: each would read the system's certificates for 20 ms

HELD: dict[str, list[Callable[..., Any]]] = {"response": [documented.check]}


class Browser(httpx.Client):
    """Keeps cookies and says where its requests come from, as browsers do."""

    def __init__(self, url: str) -> None:
        super().__init__(
            base_url=url,
            verify=TRUST,
            trust_env=False,
            timeout=PATIENCE,
            headers={"Origin": url},
            event_hooks=HELD,
        )

    def sign_up(self, handle: str, password: str = PASSWORD) -> Browser:
        answer = self.post("/auth/sign-up", data={"handle": handle, "password": password})
        assert answer.status_code == 303, answer.text
        return self

    def sign_in(self, handle: str, password: str = PASSWORD, **form: str) -> httpx.Response:
        return self.post("/auth/login", data={"handle": handle, "password": password, **form})


@dataclass
class Device:
    """A machine: its keys, and what it does with them."""

    url: str
    key: DeviceKey = field(default_factory=DeviceKey.generate)
    transport: TransportKey = field(default_factory=TransportKey.generate)

    def start(self, handle: str | None = None, name: str = "laptop") -> dict[str, Any]:
        return {
            "ed25519": b64u(self.key.public),
            "x25519": b64u(self.transport.public),
            "name": name,
            "handle": handle,
        }

    def answer(
        self, purpose: Purpose, account: str, challenge: dict[str, Any], **extra: Any
    ) -> dict[str, Any]:
        """The proof for a challenge, as this device would give it."""
        transcript = OpenedChallenge(
            purpose=purpose,
            origin=challenge["origin"],
            account=account,
            challenge_id=unb64u(challenge["challenge_id"]),
            ed25519=self.key.public,
            x25519=self.transport.public,
            secret=self.transport.unseal(unb64u(challenge["sealed_challenge"])),
        )
        return {
            "challenge_id": challenge["challenge_id"],
            "signature": b64u(transcript.prove(self.key)),
            "registration": b64u(sign_registration(self.key, challenge["origin"], challenge["account"])),
            **extra,
        }

    def sign_in(self, handle: str, **extra: Any) -> httpx.Response:
        with httpx.Client(
            base_url=self.url, verify=TRUST, trust_env=False, timeout=PATIENCE, event_hooks=HELD
        ) as http:
            challenge = http.post("/api/v1/auth/device-key/challenge", json=self.start(handle))
            if challenge.status_code != 201:
                return challenge
            proof = self.answer(Purpose.LOGIN, handle, challenge.json(), **extra)
            return http.post("/api/v1/auth/device-key/login", json=proof)

    def client(self, token: str | None) -> Terminal:
        return Terminal(self.url, self.key, from_text(token) if token else None)


@dataclass
class Terminal:
    """Signs requests with `key`; `token` None: by the key alone. `clock`: seconds this machine is ahead."""

    url: str
    key: DeviceKey
    token: bytes | None
    clock: int = 0

    def signed(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        nonce: str | None = None,
        said: dict[str, Any] | None = None,
    ) -> dict[str, str]:
        """The headers of a request. `said` replaces what the signature covers: method, path, authority…"""
        said = said or {}
        target, _, query = said.get("path", path).partition("?")
        bearer = {"Authorization": authorization(self.token)} if self.token else {}
        covered = said.get("method", method)
        headers = sign(
            self.key,
            covered,
            said.get("authority", self.url.removeprefix("http://")),
            target,
            query,
            body=None if covered in SAFE_METHODS else ContentDigest.of(said.get("body", body)),
            authorization=bearer.get("Authorization"),
            now=int(time.time()) + self.clock,
            nonce=nonce,
        )
        return headers | bearer | ({"Content-Type": "application/json"} if body else {})

    def send(self, method: str, path: str, body: Any = None, **said: Any) -> httpx.Response:
        raw = b"" if body is None else json.dumps(body).encode()
        return self.raw(method, path, raw, self.signed(method, path, raw, **said))

    def raw(self, method: str, path: str, body: bytes, headers: Any) -> httpx.Response:
        with httpx.Client(base_url=self.url, verify=TRUST, trust_env=False, timeout=PATIENCE) as http:
            return http.request(method, path, content=body, headers=headers)
