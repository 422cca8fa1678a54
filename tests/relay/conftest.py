"""A real relay for tests: in this process, on a thread and port of its own, over a fresh data folder.

def test_list(relay, account, client):
    mira = account("mira")                       # a user with a device key and a session
    assert client(mira).get("/api/v1/repos").status_code == 200
    relay.run(relay.node.db.schema_version())    # a coroutine on the relay's loop
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import uvloop
from argon2 import PasswordHasher
from sanic import Sanic
from sqlalchemy import insert

from localstore.core.identity.bearer import authorization
from localstore.core.identity.keys import DeviceKey, TransportKey
from localstore.core.identity.request_signature import SAFE_METHODS, ContentDigest, sign
from relay import config as configuration
from relay.base import logs
from relay.base.clock import now_ms
from relay.base.ids import new_account_id, new_id
from relay.db.schema.account import account as accounts
from relay.db.schema.account import device_key as device_keys
from relay.db.schema.account import session as sessions
from relay.node import Node
from relay.run import data_folder, server
from tests import buckets
from tests.databases import new_url, postgres_url
from tests.patience import PATIENCE
from tests.relay.auth.people import TRUST
from tests.relay.watching import documented

Sanic.test_mode = True  # it rewrites its own methods at start, which bears repeating in this mode only

T = TypeVar("T")
Sanic.test_mode = True  # several applications one after another in one process
CAPS = ("read", "write", "admin")
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)  # 150 ms less for each password


@dataclass(frozen=True)
class Account:
    """Somebody signed in: `token` is the raw capability token, bound to `key`."""

    id: str
    handle: str | None
    key: DeviceKey
    session_id: str
    token: bytes


class Signed(httpx.Auth):
    """The bearer token, and the request signature that binds every mutation to the device key.

    A streamed upload names what it signs instead of the whole body: `extensions={"blake3": digest}`.
    """

    requires_request_body = True

    def __init__(self, who: Account, authority: str) -> None:
        self._who, self._authority = who, authority

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = authorization(self._who.token)
        if request.method not in SAFE_METHODS:
            request.headers.update(self._signature(request))
        yield request

    def _signature(self, request: httpx.Request) -> dict[str, str]:
        streamed = request.extensions.get("blake3")
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        return sign(
            self._who.key,
            request.method,
            self._authority,
            path,
            query,
            body=ContentDigest.of_stream(streamed) if streamed else ContentDigest.of(request.content),
            authorization=request.headers["Authorization"],
            now=int(time.time()),
        )


class Relay:
    """A relay that serves in this process. `folder` is its data folder, `url` its origin."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        self._variables = variables
        self._started: list[BaseException | None] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="relay", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(PATIENCE):
            raise TimeoutError("the relay did not start")
        if self._started[0] is not None:
            raise self._started[0]

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine on the relay's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def account(self, handle: str | None, kind: str = "user") -> Account:
        """A new account with a device key and a session of a day, straight into the database."""
        return self.run(self._account(handle, kind))

    def client(self, who: Account | None = None, **options: Any) -> httpx.Client:
        authority = self.url.removeprefix("http://")
        signed = Signed(who, authority) if who else None
        options = {"verify": TRUST, "trust_env": False, "timeout": PATIENCE, **options}
        options.setdefault("event_hooks", {"response": [documented.check]})
        return httpx.Client(base_url=self.url, auth=signed, **options)

    def _serve(self) -> None:
        uvloop.run(self._main())

    async def _main(self) -> None:
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            config = await asyncio.to_thread(self._config)
            bound = server.bind(config.host, config.port)
            config = config.at(bound.getsockname()[1])
            async with server.serving(config, bound) as node:
                self.node: Node = node
                node.sign_in.passwords._hasher = CHEAP
                self.url = config.public_url
                self._started.append(None)
                self._ready.set()
                await self._stop.wait()
        except BaseException as error:
            self._started.append(error)
            self._ready.set()

    def _config(self) -> configuration.Config:
        logs.configure("critical")
        data_folder.make(self.folder)
        given = {**self._variables, **buckets.variables(self.folder)}
        variables = {"DATABASE_URL": new_url(self.folder), **data_folder.dev_secrets(self.folder, given)}
        return configuration.read(variables, dev=True, host="127.0.0.1", port=0, data=self.folder)

    async def _account(self, handle: str | None, kind: str) -> Account:
        now = now_ms()
        key, transport = DeviceKey.generate(), TransportKey.generate()
        made = Account(new_account_id(), handle, key, new_id(), b"")
        async with self.node.db.write() as tx:
            await tx.run(
                insert(accounts),
                id=made.id,
                kind=kind,
                handle=handle,
                email=None,
                name=None,
                password_hash=None,
                phase="ephemeral" if kind == "guest" else "multi_device",
                operator=False,
                created_at=now,
                disabled_at=None,
            )
            await tx.run(
                insert(device_keys),
                id=key.id,
                account_id=made.id,
                ed25519=key.public,
                x25519=transport.public,
                name="test device",
                registration=b"",
                caps=" ".join(CAPS),
                created_at=now,
                last_used_at=None,
                revoked_at=None,
            )
            await tx.run(
                insert(sessions),
                id=made.session_id,
                account_id=made.id,
                parent_id=None,
                kind="guest" if kind == "guest" else "device",
                label="test",
                device_key_id=key.id,
                caps=" ".join(CAPS),
                created_at=now,
                expires_at=now + 86_400_000,
                last_used_at=None,
                revoked_at=None,
                way=None,
            )
        token = await self.node.signer.mint(
            user=uuid.UUID(made.id).bytes,
            session=bytes.fromhex(made.session_id),
            bound_key=key.public,
            caps=CAPS,
            expires=datetime.now(UTC) + timedelta(hours=1),
        )
        return Account(made.id, handle, key, made.session_id, token)


@pytest.fixture(scope="module")
def relay_variables() -> dict[str, str]:
    """Environment of the relay; a module overrides this fixture to serve with other variables."""
    return {
        "TR_RATE_LIMITS": "off",
        "RUST_LOG": "off",
        "TR_REPO_MERGE_ENABLED": "on",
        "TR_SOCIAL_ENABLED": "on",
    }


@pytest.fixture
def rate_limits(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """The relay limits what an account does over time, as it does by default."""
    monkeypatch.setattr(relay.node.limiter, "enabled", True)


@contextlib.contextmanager
def two_relays(folder: Path) -> Iterator[tuple[Relay, Relay]]:
    """Two relays on one data folder and one PostgreSQL database."""
    variables = {"TR_RATE_LIMITS": "off", "RUST_LOG": "off", "DATABASE_URL": postgres_url()}
    with contextlib.ExitStack() as stack:
        found = [Relay(folder, variables) for _ in range(2)]
        for one in found:
            one.start()
            stack.callback(one.stop)
        yield found[0], found[1]


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory, relay_variables: dict[str, str]) -> Iterator[Relay]:
    running = Relay(tmp_path_factory.mktemp("relay"), relay_variables)
    running.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def account(relay: Relay) -> Callable[..., Account]:
    """`account("mira")`, or `account()` for a handle nobody has."""

    def make(handle: str | None = None, kind: str = "user") -> Account:
        chosen = handle or f"u{secrets.token_hex(6)}"
        return relay.account(None if kind == "guest" else chosen, kind)

    return make


@pytest.fixture
def client(relay: Relay) -> Iterator[Callable[..., httpx.Client]]:
    """`client(account)` signs as that account, `client()` is anonymous. Closed after the test."""
    made: list[httpx.Client] = []

    def make(who: Account | None = None, **options: Any) -> httpx.Client:
        made.append(relay.client(who, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
