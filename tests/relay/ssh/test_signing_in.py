"""Who gets in over SSH, by which key, and what is refused before anything runs."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.relay.ssh.place import Relay, Screen, start


def test_a_registered_key_runs_words_of_svc(relay: Relay, key: Path) -> None:
    assert "alice/demo" in relay.ssh(key, "repo", "list").stdout
    assert "alice/demo" in relay.ssh(key, "svc", "repo", "list", user="alice").stdout


def test_the_status_says_that_it_is_a_session_over_ssh(relay: Relay, key: Path) -> None:
    done = relay.ssh(key, "auth", "status", "--json", "handle,source,device_key_id,keys_in")
    assert json.loads(done.stdout) == {
        "handle": "alice",
        "source": "ssh",
        "device_key_id": None,
        "keys_in": None,
    }


def test_an_unknown_key_is_refused_and_told_why(relay: Relay, key: Path) -> None:
    done = relay.ssh(relay.key("nobody"), "repo", "list")
    assert done.returncode == 255
    assert "Permission denied" in done.stderr
    assert "svc auth device ssh" in relay.ssh(relay.key("nobody"), options=("-oLogLevel=INFO",)).stderr


def test_other_kinds_of_keys_and_passwords_are_refused(relay: Relay, key: Path) -> None:
    assert relay.ssh(relay.key("ecdsa", "ecdsa"), "repo", "list").returncode == 255
    methods = ("-oPreferredAuthentications=password,keyboard-interactive", "-oBatchMode=no")
    done = relay.ssh(key, "repo", "list", options=methods)
    assert done.returncode == 255
    assert "(publickey)" in done.stderr


def test_asking_for_somebody_elses_key_does_not_make_one_them(relay: Relay, key: Path) -> None:
    """A client may ask whether a public key is known here; the signature says who it is."""
    mallory = relay.key("mallory")
    relay.svc("mallory", "login", "--device-key", "--handle", "mallory")
    relay.register("mallory", mallory)
    only_public = relay.folder / "asked"
    only_public.with_suffix(".pub").write_bytes(key.with_suffix(".pub").read_bytes())
    done = relay.ssh(mallory, "auth", "status", "--jq", ".handle", options=("-i", str(only_public)))
    assert done.stdout.strip() == "mallory"


def test_a_key_of_another_account_is_named_as_one_of_the_agent(relay: Relay, key: Path) -> None:
    relay.svc("carol", "login", "--device-key", "--handle", "carol")
    with relay.agent(key) as socket:
        refused = relay.run("carol", "auth", "device", "ssh", agent=socket)
    assert refused.returncode == 1
    assert re.search(r"the key SHA256:\S+ of your ssh-agent belongs to another account here", refused.stderr)


def test_the_name_of_somebody_else_is_refused(relay: Relay, key: Path) -> None:
    relay.svc("bob", "login", "--device-key", "--handle", "bob")
    done = relay.ssh(key, "repo", "list", user="bob")
    assert done.returncode == 1
    assert "this key is alice's and you connected as bob" in done.stderr


def test_a_revoked_key_gets_its_sentence(relay: Relay, key: Path) -> None:
    old = relay.key("old")
    relay.svc("alice", "auth", "device", "revoke", relay.register("alice", old), "--yes")
    done = relay.ssh(old, "repo", "list")
    assert done.returncode == 1
    assert "was revoked" in done.stderr


def test_there_is_no_shell_and_no_other_program(relay: Relay, key: Path) -> None:
    done = relay.ssh(key, "sh", "-c", "id")
    assert done.returncode == 2
    assert "there is no command 'sh'" in done.stderr
    done = relay.ssh(key)
    assert done.returncode == 2
    assert "there is no shell" in done.stderr
    assert "no command ';id'" in relay.ssh(key, ";id").stderr
    assert "open quote" in relay.ssh(key, "repo 'list").stderr


def test_a_repository_that_is_not_named_is_asked_for_without_folders(relay: Relay, key: Path) -> None:
    done = relay.ssh(key, "issue list")
    assert done.returncode == 2
    assert done.stderr.strip() == "svc: which repository? Name it with -R OWNER/NAME"


def test_commands_with_files_are_refused_by_name(relay: Relay, key: Path) -> None:
    for words in (
        "push -m x",
        "repo clone alice/demo",
        "watch",
        "logout",
        "upgrade",
        "repo create x",
        "invoke",
    ):
        done = relay.ssh(key, words)
        assert done.returncode == 2, words
        assert (
            f"{words.split(' -')[0].split(' alice')[0].split(' x')[0]} is not available over SSH"
            in done.stderr
        )
    assert "omit --server" in relay.ssh(key, "repo list --server http://169.254.169.254").stderr


def test_files_of_the_relays_machine_are_not_read(relay: Relay, key: Path) -> None:
    """What a confined process may read, the sources of Python say, is not the visitor's to publish."""
    before = relay.svc("alice", "issue", "view", "1", "-R", "alice/demo", "--jq", ".comments")
    for words in ("issue comment 1", "pr comment 1", "pr review 1 --comment"):
        done = relay.ssh(key, f"{words} -R alice/demo -F {os.__file__}")
        assert (done.returncode, done.stdout) == (2, ""), done
        assert "no files are here over SSH; pipe it: -F - < FILE" in done.stderr
    assert relay.svc("alice", "issue", "view", "1", "-R", "alice/demo", "--jq", ".comments") == before
    piped = subprocess.run(
        relay.words(key, "issue comment 1 -R alice/demo -F -"),
        input="From standard input",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert piped.returncode == 0, piped.stderr
    assert "From standard input" in relay.svc("alice", "issue", "view", "1", "-R", "alice/demo", "--comments")


def test_the_app_is_not_begun_without_a_terminal(relay: Relay, key: Path) -> None:
    """It read lines from an input that nobody ends."""
    waiting, unused = os.pipe()
    try:
        done = subprocess.run(
            relay.words(key, "tui"), stdin=waiting, capture_output=True, text=True, timeout=PATIENCE
        )
    finally:
        os.close(waiting)
        os.close(unused)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "ssh -t HOST" in done.stderr


def test_nothing_is_forwarded_and_there_is_no_sftp(relay: Relay, key: Path) -> None:
    assert relay.ssh(key, "sftp", options=("-s",)).returncode != 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    back = ("-oExitOnForwardFailure=yes", "-R", f"{port}:127.0.0.1:1")
    assert "remote port forwarding failed" in relay.ssh(key, "repo", "list", options=back).stderr
    to_relay = relay.url.rsplit(":", 1)[1]
    assert relay.ssh(key, options=("-W", f"127.0.0.1:{to_relay}")).returncode == 255


def test_a_half_open_connection_takes_nothing_from_others(relay: Relay, key: Path) -> None:
    silent = [socket.create_connection(("127.0.0.1", relay.port)) for _ in range(30)]
    try:
        assert "alice/demo" in relay.ssh(key, "repo", "list").stdout
        end = time.monotonic() + PATIENCE
        silent[0].settimeout(PATIENCE)
        while silent[0].recv(1024):  # the relay's name, and its end after 20 s
            assert time.monotonic() < end
    finally:
        for one in silent:
            one.close()


def test_a_revoked_key_ends_the_connection(relay: Relay, key: Path) -> None:
    lost = relay.key("lost")
    made = relay.register("alice", lost)
    app = Screen(relay.words(lost))
    try:
        app.until("alice/demo")
        relay.svc("alice", "auth", "device", "revoke", made, "--yes")
        assert app.wait() == 1
        assert b"this device key was revoked" in app.raw
        assert b"\x1b[?7h" in app.raw, "or the end of a long line is not seen"
    finally:
        app.close()


def test_a_session_is_listed_and_revoking_it_ends_the_connection(relay: Relay, key: Path) -> None:
    app = Screen(relay.words(key))
    try:
        app.until("alice/demo")
        listed = relay.svc(
            "alice", "auth", "token", "list", "--jq", '.[] | select(.kind == "ssh") | .id'
        ).split()
        assert len(listed) == 1
        relay.svc("alice", "auth", "token", "revoke", listed[0])
        assert app.wait() == 1
        assert b"this session was revoked" in app.raw
    finally:
        app.close()


def test_a_session_ends_with_its_connection(relay: Relay, key: Path) -> None:
    app = Screen(relay.words(key))
    app.until("alice/demo")
    app.close()
    end = time.monotonic() + PATIENCE
    while '"ssh"' in relay.svc("alice", "auth", "token", "list", "--json", "kind"):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert not [*relay.temporary.glob("svc-ssh-*")]


def test_the_host_key_is_private_and_stays(relay: Relay, key: Path) -> None:
    path = relay.data / "ssh_host_key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert "ED25519" in shown


@pytest.mark.skipif(os.geteuid() != 0, reason="without root sessions have no uids of their own")
def test_a_second_relay_does_not_take_the_same_uids(relay: Relay, tmp_path: Path) -> None:
    """The end of a session ends every process of its uid."""
    with pytest.raises(AssertionError, match="another relay on this machine gives"):
        start(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="without root sessions have no uids of their own")
def test_a_folder_that_others_do_not_reach_is_named(relay: Relay, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    with pytest.raises(AssertionError, match="is closed to them; install"):
        start(tmp_path, TMPDIR=str(closed))
