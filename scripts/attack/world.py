"""An account with a repository and a text that is edited live, for `scripts.attack.fairness`. It sends the
same HTTP requests as the client."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import msgspec
from blake3 import blake3

from localstore.core.encoding import b64u, digest
from localstore.core.identity.device_grant import Purpose
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.model.live import Bootstrap
from scripts.fuzz.api import requests_of
from tests.relay.auth.people import Browser, Device
from tests.relay.conftest import Account
from tests.relay.histories import Repository, create

UNSIGNED = b64u(bytes(64))


class RepositoryOwner:
    """A new account with a device, and a repository whose branch main has one file. `source`: the address
    from which its requests come."""

    def __init__(self, url: str, source: str = "127.0.0.1", **repo: Any) -> None:
        self.url, self.handle, self._source = url, f"p{secrets.token_hex(6)}", source
        with Browser(url) as browser:
            browser.sign_up(self.handle)
            pair = browser.post("/api/v1/auth/pairing-codes").json()["code"]
        self.device = Device(url)
        granted = self.device.sign_in(self.handle, pair=pair).json()
        terminal = self.device.client(granted["token"])
        assert terminal.token is not None
        self.account = Account(
            granted["user_id"], self.handle, self.device.key, granted["session_id"], terminal.token
        )
        self.http = requests_of(self.account, url)
        self.repo: Repository = create(self.http, self.account, "thing", **repo)
        self.repo.seal({"a.txt": b"one\n"})
        self._sealed: Repository | None = None
        self._plain = httpx.Client(base_url=url, trust_env=False, timeout=60)

    def __enter__(self) -> RepositoryOwner:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self._plain.close()

    def sign_in_steps(self) -> Iterator[Callable[[], None]]:
        """Yields two functions, which send the first and the second request of a sign-in by device key."""
        found: list[httpx.Response] = []

        def challenge() -> None:
            start = self.device.start(self.handle)
            found.append(self._plain.post("/api/v1/auth/device-key/challenge", json=start))
            assert found[0].status_code == 201, found[0].text

        def login() -> None:
            proof = self.device.answer(Purpose.LOGIN, self.handle, found[0].json())
            answer = self._plain.post("/api/v1/auth/device-key/login", json=proof)
            assert answer.is_success, answer.text

        yield challenge
        if found:  # the challenge was answered
            yield login

    def view(self) -> None:
        answer = self.http.get(self.repo.url)
        assert answer.status_code == 200, answer.text

    def seal(self) -> None:
        """Seal a new file in a repository that nobody edits live, by four requests."""
        if self._sealed is None:
            self._sealed = create(self.http, self.account, "sealed")
        self._sealed.seal({"s.txt": secrets.token_bytes(8)})

    def text(self, data: bytes) -> LiveText:
        """Create a new text file on main, to be edited live."""
        return LiveText(self, data)


class LiveText:
    """A text file that a device edits live on main. `lane`: the device's copy of its CRDT text."""

    def __init__(self, person: RepositoryOwner, data: bytes) -> None:
        self._person, self._data, self._n = person, data, 0
        self._url = f"{person.repo.url}/branches/main/live"
        answer = person.http.post(f"{self._url}/bootstrap", json={"device_key_id": person.device.key.id})
        assert answer.status_code == 200, answer.text
        start = msgspec.json.decode(answer.content, type=Bootstrap)
        self._branch_id, self.replica = start.branch_id, start.replica
        url = f"{person.repo.url}/payloads/{blake3(data).hexdigest()}"
        signed = {"blake3": blake3(data).digest()}
        assert person.http.put(url, content=data, extensions=signed).is_success
        self.begin()

    def begin(self) -> None:
        """Begin a new file under another name."""
        self._path = f"f{secrets.token_hex(4)}.txt"
        blob = digest(self._data).hex()
        answer = self.send(
            self._make_update(kind="create_text", gen=0, base=0, blake3=blob, size=len(self._data))
        )
        assert answer["result"] == "ok", answer
        self._gen, self._seen = answer["gen"], answer["seq"]
        self.lane = Lane.genesis(self._branch_id, self._gen, 0, self._data)

    def edit_once(self) -> None:
        """Insert one character in the middle of the text. If the text is long, begin a new one instead."""
        text = self.lane.text()
        half = len(text) // 2
        answer = self.send(self.make_change(text[:half] + b"x" + text[half:]))
        assert answer["result"] == "ok", answer

    def make_change(self, text: bytes) -> LiveUpdate:
        """The update that changes the text of the file to `text`."""
        operation = self.lane.edit(self.replica, text)
        assert operation is not None  # it is another one
        return self.make_edit(operation)

    def make_edit(self, operation: bytes) -> LiveUpdate:
        return self._make_update(
            kind="edit_text", gen=self._gen, base=self._seen, epoch=0, ops=[b64u(operation)]
        )

    def send(self, update: LiveUpdate) -> dict[str, Any]:
        """Send one update as a batch. Returns the relay's answer to it."""
        answer = self.post(update)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["answers"][0]
        return found

    def post(self, *updates: LiveUpdate) -> httpx.Response:
        body = {
            "device_key_id": self._person.device.key.id,
            "replica": self.replica,
            "updates": [msgspec.to_builtins(one) for one in updates],
        }
        answer: httpx.Response = self._person.http.post(f"{self._url}/updates", json=body)
        return answer

    def _make_update(self, **members: Any) -> LiveUpdate:
        self._n += 1
        update = LiveUpdate(n=self._n, settled=self._n - 1, path=self._path, signature=UNSIGNED, **members)
        person = self._person
        raw = signing_bytes(person.repo.id, self._branch_id, self.replica, person.device.key.id, update)
        return msgspec.structs.replace(update, signature=b64u(person.device.key.sign(raw)))
