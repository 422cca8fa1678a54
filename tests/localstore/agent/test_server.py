"""The agent's socket: who may speak, and what it survives."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from localstore.agent import place, server
from localstore.agent.place import socket_path
from localstore.agent.server import Follower, Server
from localstore.agent.talk import LINE_BYTES, AgentSilent, Conversation, FolderEvent, Reply, Request


class Desk:
    def __init__(self) -> None:
        self.followers: list[Follower] = []
        self.asked: list[Request] = []

    def answer(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(pid=1, version="x")

    def follows(self, request: Request, follower: Follower) -> None:
        self.followers.append(follower)

    def unfollow(self, request: Request, follower: Follower) -> None:
        self.followers.remove(follower)

    def conversing(self, count: int) -> None:
        pass


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk()
    serving = Server(tmp_path, desk)
    serving.start()
    yield desk
    serving.close()


def raw(root: Path) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(20)
    with socket_path(root) as path:
        peer.connect(path)
    return peer


def read_line(peer: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n") and (piece := peer.recv(1)):
        data += piece
    return data


def test_answers(tmp_path: Path, desk: Desk) -> None:
    with Conversation(tmp_path) as agent:
        assert agent.ask(Request("about")).version == "x"
        assert agent.ask(Request("stop", "/a")).pid == 1
    assert desk.asked == [Request("about"), Request("stop", "/a")]


def test_the_socket_is_its_owners_alone(tmp_path: Path, desk: Desk) -> None:
    assert stat.S_IMODE((tmp_path / place.SOCKET).stat().st_mode) == 0o600


def test_another_user_is_hung_up_on(tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.os, "getuid", lambda: 4711)
    with raw(tmp_path) as peer:
        assert peer.recv(1) == b""
    assert desk.asked == []


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"null", b'{"do":"dance"}', b'{"do":"about","x":1}', b"\xff\xfe", b"[" * 100_000]
)
def test_nonsense_is_refused_and_the_next_line_heard(tmp_path: Path, desk: Desk, line: bytes) -> None:
    with raw(tmp_path) as peer:
        peer.sendall(line + b"\n" + b'{"do":"about"}\n')
        assert msgspec.json.decode(read_line(peer), type=Reply).code == "invalid"
        assert msgspec.json.decode(read_line(peer), type=Reply).version == "x"


def test_a_line_of_64_mb_is_cut_off(tmp_path: Path, desk: Desk) -> None:
    with raw(tmp_path) as peer:
        sent = 0
        try:
            while sent < 64 << 20:
                sent += peer.send(b"x" * (1 << 16))
        except OSError:
            pass
        assert sent < 8 * LINE_BYTES
    with Conversation(tmp_path) as agent:
        assert agent.ask(Request("about")).pid == 1


def test_half_a_line_disturbs_nobody(tmp_path: Path, desk: Desk) -> None:
    halves = [raw(tmp_path) for _ in range(server.CONVERSATIONS - 2)]
    for peer in halves:
        peer.sendall(b'{"do":')
    with Conversation(tmp_path) as agent:
        assert agent.ask(Request("about")).pid == 1
    for peer in halves:
        peer.close()


def test_one_too_many_is_hung_up_on(tmp_path: Path, desk: Desk) -> None:
    held = [raw(tmp_path) for _ in range(server.CONVERSATIONS)]
    for peer in held:
        peer.sendall(b'{"do":"about"}\n')
        assert read_line(peer)
    with raw(tmp_path) as peer:
        assert peer.recv(1) == b""
    for peer in held:
        peer.close()


def test_a_follower_hears_and_one_that_does_not_read_is_hung_up_on(tmp_path: Path, desk: Desk) -> None:
    with Conversation(tmp_path) as agent:
        agent.ask(Request("follow", "/a"))
        events = agent.events()
        desk.followers[0].say(FolderEvent("sent", "/a", "now", path="x"))
        assert next(events).path == "x"
    with raw(tmp_path) as peer:
        peer.sendall(b'{"do":"follow","folder":"/b"}\n')
        read_line(peer)
        slow = desk.followers[-1]
        for _ in range(server.UNREAD + 2_000):
            slow.say(FolderEvent("sent", "/b", "now", path="x" * 500))
        while peer.recv(1 << 20):
            pass  # what was under way, then the end


def test_without_an_agent_it_is_silent(tmp_path: Path) -> None:
    with pytest.raises(AgentSilent):
        Conversation(tmp_path)
