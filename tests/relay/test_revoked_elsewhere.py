"""Two relays on one PostgreSQL: what is revoked at one ends the sockets at the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from localstore.core.identity.bearer import from_text, parse_script_token
from tests.patience import PATIENCE
from tests.relay.auth.people import Browser, Device, Terminal
from tests.relay.auth.test_device_key import register
from tests.relay.conftest import Relay, two_relays

PROTOCOL = "svc-sync.v1"


@pytest.fixture(scope="module")
def relays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Relay, Relay]]:
    with two_relays(tmp_path_factory.mktemp("two")) as found:
        yield found


def headers_of(terminal: Terminal, at: Relay) -> dict[str, str]:
    there = Terminal(at.url, terminal.key, terminal.token)
    return there.signed("GET", "/api/v1/sync/ws")


async def ends(at: Relay, headers: dict[str, str], revoke: httpx.Client, path: str) -> None:
    """Return once the revocation at one relay has ended the socket at the other."""
    url = at.url.replace("http", "ws") + "/api/v1/sync/ws"
    async with connect(url, subprotocols=[PROTOCOL], additional_headers=headers, proxy=None) as socket:
        await asyncio.sleep(0.1)
        answer = await asyncio.to_thread(revoke.delete, path)
        assert answer.status_code == 204, answer.text
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(PATIENCE):
                while True:
                    await socket.recv()


async def test_a_socket_ends_however_it_signed_in(relays: tuple[Relay, Relay]) -> None:
    here, there = relays
    here.run(here.node.signer.public_keys())
    person = await asyncio.to_thread(lambda: Browser(here.url).sign_up("mira"))
    other = Browser(here.url)
    other.sign_in("mira")
    cookie = {"Cookie": f"tr_session={other.cookies['tr_session']}", "Origin": there.url}
    sessions = person.get("/api/v1/auth/tokens").json()["items"]
    (its_id,) = [one["id"] for one in sessions if not one["current"]]

    def token() -> tuple[Terminal, str]:
        made = person.post("/api/v1/auth/tokens", json={"label": "job", "days": 1, "access": "write"}).json()
        _, raw, key = parse_script_token(made["token"])
        return Terminal(here.url, key, raw), made["id"]

    script, script_id = token()
    admin = person.post("/api/v1/auth/tokens", json={"label": "a", "days": 1, "access": "admin"}).json()
    _, raw, key = parse_script_token(admin["token"])
    registrar = Terminal(here.url, key, raw)
    alone, bound = Device(here.url), Device(here.url)
    for machine in (alone, bound):
        register(registrar, machine)
    session = bound.sign_in("mira").json()["token"]
    keys = "/api/v1/repos/device-keys/"
    await asyncio.gather(
        ends(there, cookie, person, f"/api/v1/auth/tokens/{its_id}"),
        ends(there, headers_of(script, there), person, f"/api/v1/auth/tokens/{script_id}"),
        ends(there, headers_of(alone.client(None), there), person, keys + alone.key.id),
        ends(
            there,
            headers_of(Terminal(here.url, bound.key, from_text(session)), there),
            person,
            keys + bound.key.id,
        ),
    )
    person.close()
    other.close()
