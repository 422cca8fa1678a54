"""What a machine keeps: its keys, its sessions, and who can read them."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import keyring
import keyring.backend
import keyring.backends.null
import pytest

from localstore.core.errors import ClientError, Unauthorized, UsageError
from localstore.core.identity.bearer import format_script_token
from localstore.core.identity.keys import DeviceKey
from svc.http import identity
from svc.http.identity import find_identity, load_identity
from svc.http.origin import is_loopback, parse_origin, same_server
from svc.http.session import Session, Sessions

ORIGIN = "https://node.example"


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SVC_TOKEN", raising=False)
    monkeypatch.setattr(keyring.core, "_keyring_backend", keyring.backends.null.Keyring())


class Memory(keyring.backend.KeyringBackend):
    """A keyring that works."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


class Stuck(Memory):
    """A keyring that waits for a prompt nobody sees."""

    def set_password(self, service: str, username: str, password: str) -> None:
        threading.Event().wait()


def session(expires_at: str = "2999-01-01T00:00:00Z", origin: str = ORIGIN) -> Session:
    return Session(
        origin=origin, token="dG9rZW4", user_id="u", session_id="s", handle="alice", expires_at=expires_at
    )


def test_keys_are_made_once_and_kept_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert find_identity(home) is None
    made = load_identity(home)
    again = load_identity(home)
    assert again.device.seed == made.device.seed
    assert again.transport.secret == made.transport.secret
    assert made.kept == "file"
    assert (home / "device.json").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_keyring_that_answers_gets_the_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Memory()
    monkeypatch.setattr(keyring.core, "_keyring_backend", ring)
    made = load_identity(tmp_path)
    assert made.kept == "keyring"
    assert made.device.id in (tmp_path / "device.json").read_text()
    assert len(ring.kept) == 1
    assert load_identity(tmp_path).device.seed == made.device.seed
    ring.kept.clear()
    with pytest.raises(ClientError, match="keyring"):
        load_identity(tmp_path)


def test_a_keyring_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "KEYRING_PATIENCE", 0.05)
    monkeypatch.setattr(keyring.core, "_keyring_backend", Stuck())
    assert load_identity(tmp_path).kept == "file"


def test_two_commands_at_once_make_one_identity(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(load_identity(tmp_path).device.id)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"v":1,"id":"x","kept":"file","secrets":"AA.AA"}', b"\xff"]
)
def test_a_damaged_key_file_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "device.json").write_bytes(content)
    with pytest.raises(ClientError, match="move that file away"):
        load_identity(tmp_path)


def test_a_session_is_sealed_on_disk_and_bound_to_its_server(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    sessions.save(session())
    (file,) = (tmp_path / "sessions").iterdir()
    assert b"dG9rZW4" not in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    assert Sessions(tmp_path).find(ORIGIN) == session()
    assert Sessions(tmp_path).default_server() == ORIGIN
    assert Sessions(tmp_path).credential("https://other.example") is None
    file.rename(file.with_name("https%3A%2F%2Fother.example"))
    assert Sessions(tmp_path).find("https://other.example") is None, "a session never moves to another origin"
    sessions.forget(ORIGIN)


def test_an_ended_or_damaged_session_says_so(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    sessions.save(session("2020-01-01T00:00:00Z"))
    with pytest.raises(Unauthorized, match="ended at 2020"):
        sessions.credential(ORIGIN, datetime(2026, 1, 1, tzinfo=UTC))
    (file,) = (tmp_path / "sessions").iterdir()
    file.write_bytes(b"AAAA")
    with pytest.raises(ClientError, match="svc login"):
        sessions.find(ORIGIN)


def test_svc_token_stands_over_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(tmp_path)
    sessions.save(session())
    key = DeviceKey.generate()
    monkeypatch.setenv("SVC_TOKEN", format_script_token(ORIGIN, b"raw token", key))
    credential = sessions.credential(ORIGIN)
    assert credential is not None
    assert credential.key.id == key.id
    for other in ("https://other.example", f"{ORIGIN}:8443", ORIGIN.replace("https", "http")):
        with pytest.raises(Unauthorized, match=f"SVC_TOKEN is for {ORIGIN} and this command uses"):
            sessions.credential(other)
    monkeypatch.setenv("SVC_TOKEN", "svct2_broken")
    with pytest.raises(Unauthorized):
        sessions.credential(ORIGIN)


@pytest.mark.parametrize(
    ("typed", "origin"),
    [
        ("node.example", "https://node.example"),
        ("https://Node.Example:443/", "https://node.example"),
        ("localhost:8080", "http://localhost:8080"),
        ("127.0.0.1:1", "http://127.0.0.1:1"),
        ("http://node.example:80", "http://node.example"),
        ("[::1]:5", "http://[::1]:5"),
    ],
)
def test_addresses_as_people_type_them(typed: str, origin: str) -> None:
    assert parse_origin(typed) == origin


@pytest.mark.parametrize(
    "typed", ["", "ftp://x", "https://a@b", "https://a/b", "https://a?b", "a b", "x\x1b[2J", "//"]
)
def test_what_is_no_address(typed: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_origin(typed)
    assert "\x1b" not in raised.value.detail


def test_only_names_of_loopback_may_differ() -> None:
    assert same_server("http://127.0.0.1:80", "http://localhost:80")
    assert not same_server("http://127.0.0.1:80", "http://localhost:81")
    assert not same_server("https://a.example", "https://b.example")
    assert not same_server("http://127.0.0.1:80", "http://127.0.0.1.evil.example:80")
    assert not is_loopback("http://localhost.evil.example")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.255.0.9", "[::1]", "localhost", "a.localhost", "LOCALHOST"]
)
def test_what_is_this_machine(host: str) -> None:
    assert is_loopback(f"http://{host}:80")


@pytest.mark.parametrize(
    "host", ["", "10.0.0.1", "[::2]", "127.1", "127.0.0.1.", "1.2.3.4.5", "127", "127.0.0.1a", "１２７.0.0.1"]
)
def test_what_may_be_another_machine(host: str) -> None:
    assert not is_loopback(f"http://{host}:80")
