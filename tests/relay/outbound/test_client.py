"""The guarded client against servers that want to lead it elsewhere, or to keep it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from relay.outbound import client
from relay.outbound.client import Outbound, OutboundAnswer, OutboundFailed, OutboundForbidden
from relay.outbound.reach import Reach
from tests.relay.receiver import Receiver, receiving

LOOPBACK = Reach.of([], dev=True)


@pytest.fixture(scope="module")
def target() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@contextlib.asynccontextmanager
async def outbound(reach: Reach = LOOPBACK) -> AsyncIterator[Outbound]:
    made = Outbound(reach, "svc-relay/test")
    try:
        yield made
    finally:
        made.close()


def send(url: str, reach: Reach = LOOPBACK, **how: Any) -> OutboundAnswer:
    async def act() -> OutboundAnswer:
        async with outbound(reach) as one:
            return await one.send("POST", url, {"x-test": "1"}, b"body", **how)

    return asyncio.run(act())


def test_a_request_arrives_as_it_is(target: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    answer = send(f"{target.url}/ok/plain?a=b")
    assert (answer.status, answer.body, answer.whole) == (204, b"", True)
    (got,) = target.of("/ok/plain")
    assert (got.path, got.body) == ("/ok/plain?a=b", b"body")
    assert got.headers["host"] == target.url.removeprefix("http://")
    assert got.headers["user-agent"] == "svc-relay/test"
    assert got.headers.keys() == {"host", "user-agent", "accept", "x-test", "content-length"}


def test_a_redirect_is_an_answer(target: Receiver) -> None:
    answer = send(f"{target.url}/to/ok/redirected")
    assert (answer.status, answer.headers["location"]) == (302, "/ok/redirected")
    assert target.of("/ok/redirected") == []


def test_of_an_answer_so_much_is_read(target: Receiver) -> None:
    answer = send(f"{target.url}/giant/x", keep=1000)
    assert (answer.status, len(answer.body), answer.whole) == (200, 1000, False)
    with pytest.raises(OutboundFailed):
        send(f"{target.url}/head/x")


@pytest.mark.parametrize("how", ["hang", "drip"])
def test_who_answers_too_slowly_has_not_answered(target: Receiver, how: str) -> None:
    with pytest.raises(OutboundFailed, match=r"no answer within 0\.3 s"):
        send(f"{target.url}/{how}/x", seconds=0.3)


def test_nothing_inside_is_reached(target: Receiver) -> None:
    before = len(target.received)
    port = target.server_address[1]
    for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0.0.0.0"):
        with pytest.raises(OutboundForbidden):
            send(f"http://{host}:{port}/ok/inside", Reach())
    for url in ("file:///etc/passwd", "gopher://127.0.0.1/", "http:///x"):
        with pytest.raises(OutboundForbidden):
            send(url)
    assert len(target.received) == before


def _resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Have names resolve to these addresses, one list after the other. Returns what is asked for."""
    asked: list[str] = []
    left = iter(answers)

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in next(left)]

    monkeypatch.setattr(client.socket, "getaddrinfo", resolve)
    return asked


def test_a_name_is_looked_up_once_and_all_its_addresses_count(
    target: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = target.server_address[1]
    # Bound anew between look-up and connection, a name would lead elsewhere: it is not looked up again.
    asked = _resolving(monkeypatch, ["127.0.0.1"])
    assert send(f"http://rebinding.example:{port}/ok/once").status == 204
    assert asked == ["rebinding.example"]
    assert target.of("/ok/once")[0].headers["host"] == f"rebinding.example:{port}"
    _resolving(monkeypatch, ["93.184.216.34", "10.0.0.1"])
    with pytest.raises(OutboundForbidden, match=r"mixed\.example leads to 10\.0\.0\.1"):
        send(f"http://mixed.example:{port}/", Reach())


def test_of_several_addresses_the_next_is_tried(target: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    _resolving(monkeypatch, ["127.0.0.9", "127.0.0.1"])
    reach = Reach.of([ipaddress.ip_network("127.0.0.0/8")], dev=False)
    assert send(f"http://two.example:{target.server_address[1]}/ok/second", reach).status == 204


def test_what_cannot_be_had_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutboundFailed, match="refused or cut"):
        send("http://127.0.0.1:9/")

    def none(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(8, "no")

    monkeypatch.setattr(client.socket, "getaddrinfo", none)
    with pytest.raises(OutboundFailed, match=r"the name missing\.example has no address"):
        send("http://missing.example/")
