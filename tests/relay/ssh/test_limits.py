"""Limits of the app over SSH: sessions, connections, silence, floods, variables, suspension."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.ssh import front
from relay.ssh.session import STOPPED, VARIABLE_BYTES, VARIABLES, Variables
from tests.patience import PATIENCE
from tests.relay.ssh.conftest import CONFINES, _root_is_whole
from tests.relay.ssh.place import UIDS, Relay, Screen, start

SESSIONS = 15
IDLE = 12


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    """A relay with its limits on, few sessions and little patience, and alice with a key."""
    if not CONFINES or not _root_is_whole():
        pytest.skip("needs OpenSSH, and root that may change users or a kernel with Landlock and its scopes")
    settings = {
        "TR_RATE_LIMITS": "on",
        "TR_SSH_SESSIONS": str(SESSIONS),
        "TR_SSH_IDLE": str(IDLE),
        "TR_SSH_HOST": "0.0.0.0",
        "TR_SSH_UIDS": str(UIDS + 150),
    }
    found = start(tmp_path_factory.mktemp("limits"), **settings)
    try:
        found.svc("alice", "login", "--device-key", "--handle", "alice")
        found.register("alice", found.key("alice"))
        yield found
    finally:
        found.stop()


def _silent(relay: Relay, source: str, count: int) -> list[socket.socket]:
    """Connections that say nothing."""
    return [
        socket.create_connection(("127.0.0.1", relay.port), timeout=PATIENCE, source_address=(source, 0))
        for _ in range(count)
    ]


def _greets(one: socket.socket) -> bool:
    """Whether the relay says its name before it hangs up."""
    try:
        return bool(one.recv(64))
    except ConnectionResetError:
        return False


def _close(held: list[socket.socket]) -> None:
    for one in held:
        one.close()


def test_an_address_has_twenty_connections(limited: Relay) -> None:
    held = _silent(limited, "127.0.0.9", front.OF_ADDRESS)
    try:
        assert all(map(_greets, held))
        more = _silent(limited, "127.0.0.9", 1)
        assert not _greets(more[0])
        _close(more)
        done = limited.ssh(limited.key("alice"), "auth status --jq .handle")
        assert done.stdout == "alice\n", done.stderr
    finally:
        _close(held)


def test_a_flood_that_never_signs_in_locks_nobody_out(limited: Relay) -> None:
    """Twice as many as may be unproven at once, from many addresses."""
    held = [one for n in range(20, 26) for one in _silent(limited, f"127.0.0.{n}", 10)]
    try:
        done = limited.ssh(limited.key("alice"), "auth status --jq .handle")
        assert done.stdout == "alice\n", done.stderr
        ended = 0
        for one in held:
            one.settimeout(1)
            try:
                while one.recv(4096):
                    pass
                ended += 1
            except ConnectionResetError:
                ended += 1
            except TimeoutError:
                break
        assert ended, "the oldest are let go"
    finally:
        _close(held)


def test_an_account_has_ten_sessions(limited: Relay) -> None:
    """Each runs the app, and an eleventh is told."""
    key = limited.key("alice")
    held = [
        subprocess.Popen(
            ["setsid", *limited.words(key, options=("-tt",))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(front.OF_ACCOUNT)
    ]
    try:
        end = time.monotonic() + PATIENCE
        while len([*limited.temporary.glob("svc-ssh-*")]) < front.OF_ACCOUNT:
            assert time.monotonic() < end
            time.sleep(0.1)
        done = limited.ssh(key, "repo list")
        assert done.returncode == 1
        assert "you have 10 sessions over SSH already" in done.stderr
    finally:
        for one in held:
            one.kill()
            one.wait()
    end = time.monotonic() + PATIENCE
    while limited.ssh(key, "repo list").returncode:
        assert time.monotonic() < end
        time.sleep(0.2)


def test_a_person_who_presses_no_key_is_let_go(limited: Relay) -> None:
    app = Screen(limited.words(limited.key("alice")))
    try:
        assert app.wait() == 1
        assert f"nobody pressed a key for {IDLE} s".encode() in app.raw
    finally:
        app.close()


def test_many_variables_are_not_kept(limited: Relay) -> None:
    many = " ".join(f"V{n}={'x' * 800}" for n in range(2000))
    done = limited.ssh(
        limited.key("alice"), "auth status --jq .handle", options=(f"-oSetEnv={many[:120000]}",)
    )
    assert done.stdout == "alice\n", done.stderr
    kept = Variables()
    for n in range(2000):
        kept[b"V%d" % n] = b"x"
    assert len(kept) == VARIABLES
    kept[b"V0"] = b"y" * VARIABLE_BYTES
    assert kept[b"V0"] == b"x"


def test_suspension_ends_open_sessions(limited: Relay) -> None:
    """Who is suspended keeps no session, and gets none."""
    app = Screen(limited.words(limited.key("alice")))
    try:
        app.until("Repositories")
        _suspend(limited, int(time.time() * 1000))
        assert app.wait() == 1
        assert b"this account is suspended" in app.raw
        done = limited.ssh(limited.key("alice"), "repo list")
        assert done.returncode == 1
        assert "this account is suspended" in done.stderr
    finally:
        app.close()
        _suspend(limited, None)
    assert limited.ssh(limited.key("alice"), "repo list").returncode == 0


def test_a_relay_that_stops_says_so_on_a_terminal_as_it_was(tmp_path: Path) -> None:
    if not CONFINES or not _root_is_whole():
        pytest.skip("needs OpenSSH, and root that may change users or a kernel with Landlock and its scopes")
    relay = start(tmp_path, TR_SSH_UIDS=str(UIDS + 300))
    relay.svc("alice", "login", "--device-key", "--handle", "alice")
    relay.register("alice", relay.key("alice"))
    app = Screen(relay.words(relay.key("alice")))
    try:
        app.until("Repositories")
        relay.stop()
        app.wait()
        left, _, after = app.raw.rpartition(b"\x1b[?1049l")
        assert b"\x1b[?1049h" in left
        assert b"\x1b[?25h" in after and b"\x1b[?1049h" not in after
        assert STOPPED.encode() in after
    finally:
        app.close()


def _suspend(relay: Relay, at: int | None) -> None:
    """As an operator does: in the database."""
    (path,) = relay.data.glob("*.db")
    with sqlite3.connect(path, timeout=PATIENCE) as db:
        db.execute("UPDATE account SET disabled_at = ? WHERE handle = 'alice'", (at,))
    db.close()
