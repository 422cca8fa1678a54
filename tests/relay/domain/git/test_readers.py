"""Readers are counted, bounded, and end with the process that served them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from localstore.core.errors import Unavailable
from localstore.core.model.limits import MIB
from relay.base import git as machine
from relay.domain.git import process
from relay.memory.readers import Readers
from tests.patience import until
from tests.relay.conftest import Account, Relay
from tests.relay.domain.git.conftest import Git, files
from tests.relay.histories import Repository, own

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]


def children(word: str) -> list[int]:
    """Processes of this one, and of those, that were started with this word."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()[1:]]
    ours, grown = {os.getpid()}, True
    while grown:
        more = {int(pid) for pid, parent, _ in rows if int(parent) in ours} - ours
        ours, grown = ours | more, bool(more)
    return [int(pid) for pid, _, words in rows if int(pid) in ours and word in words]


@pytest.fixture
def large(account: Maker, client: Client) -> Repository:
    """A repository whose pack no buffer takes whole."""
    made = own(account, client, visibility="public")
    made.seal({f"random/{n}": os.urandom(12 * MIB) for n in range(3)})
    return made


def test_a_reader_who_leaves_ends_its_process(relay: Relay, git: Git, large: Repository) -> None:
    git.clone(large, "work")
    want = git.head("work")
    command = b"0012command=fetch\n0001" + b"0032want %s\n" % want.encode() + b"0009done\n0000"
    host, port = relay.url.removeprefix("http://").split(":")
    head = (
        f"POST /{large.body['full_name']}.git/git-upload-pack HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Git-Protocol: version=2\r\nContent-Length: {len(command)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + command)
        assert b"200 OK" in connection.recv(4096)
        assert relay.node.git_packs.count == 1
        assert children("upload-pack")
    until(lambda: relay.node.git_packs.count == 0, "the place is free")
    until(lambda: not children("upload-pack") and not children("pack-objects"), "the processes have ended")


def test_more_readers_than_places_are_all_served(
    relay: Relay, git: Git, large: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait in their order."""
    monkeypatch.setattr(relay.node, "git_packs", Readers(2, 2, 100, 100.0))
    git.clone(large, "first")
    address = git.address(large)
    words = ["git", "clone", "-q", "--depth", "1", address]
    running = [subprocess.Popen([*words, git.folder / f"c{number}"]) for number in range(6)]
    assert [one.wait() for one in running] == [0] * 6
    assert all(files(git.folder / f"c{n}") == files(git.folder / "first") for n in range(6))
    until(lambda: relay.node.git_packs.count == 0, "the last one has left")


def test_many_readers_at_once_take_nothing_from_each_other(
    relay: Relay, git: Git, account: Maker, client: Client
) -> None:
    """Processes come and go on several threads, and a number of a descriptor is soon another's."""
    mine = own(account, client, visibility="public")
    mine.seal({f"f{n}": os.urandom(20_000) for n in range(20)})
    git.clone(mine, "first")
    words = ["git", "clone", "-q", "--bare", git.address(mine)]
    running = [subprocess.Popen([*words, git.folder / f"m{number}"]) for number in range(30)]
    number = 0
    while any(one.poll() is None for one in running):
        mine.seal({"x": b"%d" % number})
        number += 1
    assert [one.returncode for one in running] == [0] * 30
    assert relay.node.git_packs.count == relay.node.git_refs.count == 0


def test_who_finds_no_place_is_told(
    relay: Relay, git: Git, large: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    git.clone(large, "first")
    monkeypatch.setattr(relay.node, "git_packs", Readers(0, 0, 100, 0.01))
    refused = git.tried("clone", git.address(large), "second")
    assert refused.returncode == 128
    assert "remote error: too many readers of git at once; try again in a moment" in refused.stderr


def test_a_server_without_git_says_so(
    relay: Relay, git: Git, large: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "find_program", lambda: None)
    refused = git.tried("clone", git.address(large), "work")
    assert "remote: this server has no git; clone with svc" in refused.stderr


def test_nothing_of_the_machine_reaches_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its configuration, nor what its environment says."""
    (tmp_path / "hook").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "hook").chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[uploadpack]\n\tpackObjectsHook = {tmp_path}/hook\n")
    for name, value in (
        ("HOME", tmp_path),
        ("GIT_CONFIG_GLOBAL", tmp_path / ".gitconfig"),
        ("GIT_TRACE", tmp_path / "trace"),
    ):
        monkeypatch.setenv(name, str(value))
    asked = process.start("config", "--list", "--show-scope", stdout=subprocess.PIPE)
    listed, _ = asked.communicate()
    assert {line.split(b"\t")[0] for line in listed.splitlines()} == {b"command"}
    assert not (tmp_path / "trace").exists()
    assert not (tmp_path / "ran").exists()


async def test_places_are_given_in_order_and_shared_between_addresses() -> None:
    readers = Readers(most=3, each=2, waiting=2, patience=100.0)
    await readers.enter("a")
    await readers.enter("a")
    third = asyncio.create_task(readers.enter("a"))
    await asyncio.sleep(0)
    other = asyncio.create_task(readers.enter("b"))
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await readers.enter("c")
    readers.leave("a")
    await third
    await other
    assert readers.count == 3
    for address in ("a", "a", "b"):
        readers.leave(address)
    assert readers.count == 0


async def test_who_stops_waiting_takes_no_place() -> None:
    readers = Readers(most=1, each=1, waiting=2, patience=100.0)
    await readers.enter("a")
    gone, next_one = asyncio.create_task(readers.enter("b")), asyncio.create_task(readers.enter("c"))
    await asyncio.sleep(0)
    gone.cancel()
    readers.leave("a")
    await next_one
    assert readers.count == 1
    late = asyncio.create_task(readers.enter("d"))
    await asyncio.sleep(0)
    readers.leave("c")
    late.cancel()  # the place was given to it already
    with pytest.raises(asyncio.CancelledError):
        await late
    assert readers.count == 0


async def test_patience_ends() -> None:
    readers = Readers(most=0, each=1, waiting=1, patience=0.0)
    with pytest.raises(Unavailable):
        await readers.enter("a")
