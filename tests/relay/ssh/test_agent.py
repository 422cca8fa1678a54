"""`ssh -A`: the forwarded agent signs merges and other changes; what happens where it does not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstore.core.identity.keys import DeviceKey
from localstore.core.identity.request_signature import ContentDigest, sign
from relay.ssh.agent import SignatureRefused, kind_of
from tests.depth import DEEP
from tests.patience import PATIENCE
from tests.relay.ssh.place import Relay, Screen
from tests.svc.conftest import clean_environment

DEMO = "alice/demo"


def _proposal(relay: Relay, name: str) -> str:
    """A new proposal of alice/demo with one file. Returns its number."""
    folder = relay.folder / f"work-{name}"
    environment = clean_environment(SVC_HOME=str(relay.folder / "alice"), SVC_SERVER=relay.url)

    def svc(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "svc", *words],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    folder.mkdir()
    svc("repo", "clone", DEMO, ".")
    if not (folder / "a.txt").exists():
        (folder / "a.txt").write_text("one\n")
        svc("push", "-m", "One")
    svc("repo", "branch", name)
    svc("switch", name)
    (folder / f"{name}.txt").write_text(f"{name}\n")
    svc("push", "-m", name)
    return svc(
        "pr", "create", "--head", name, "--base", "main", "-t", name, "-b", "x", "--jq", ".number"
    ).strip()


def _state(relay: Relay, number: str) -> str:
    return relay.svc("alice", "pr", "view", number, "-R", DEMO, "--jq", ".state").strip()


@pytest.fixture(scope="module")
def empty(relay: Relay) -> Iterator[Path]:
    """An agent that is asked to sign in, and holds nothing, so that the key file is used, which asks nobody.
    Without any agent ssh forwards none."""
    with relay.agent() as socket:
        yield socket


def _forwarding(agent: Path, empty: Path) -> tuple[str, ...]:
    return (f"-oIdentityAgent={empty}", f"-oForwardAgent={agent}")


def test_a_merge_is_signed_by_the_agent(relay: Relay, key: Path, empty: Path) -> None:
    number = _proposal(relay, "merged")
    done = relay.ssh(key, f"pr merge {number} -R {DEMO} --squash")
    assert done.returncode == 2
    assert "connect again with ssh -A" in done.stderr
    with relay.agent(key) as agent:
        done = relay.ssh(key, f"pr merge {number} -R {DEMO} --squash", options=_forwarding(agent, empty))
    assert done.returncode == 0, done.stderr
    assert f"Merged #{number}" in done.stdout + done.stderr
    shown = relay.svc("alice", "auth", "device", "list", "--json", "id,name")
    assert _state(relay, number) == "merged", shown


def test_other_changes_are_signed_by_the_agent(relay: Relay, key: Path, empty: Path) -> None:
    _proposal(relay, "tagged")
    with relay.agent(key) as agent:
        (relay.folder / "app.txt").write_text("app")
        for words in (
            f"issue create -R {DEMO} -t Second -b text",
            f"issue close 1 -R {DEMO}",
            f"issue reopen 1 -R {DEMO}",
            f"repo tag create v1 -R {DEMO} --from main",
            f"repo release create v1 -R {DEMO} --notes text",
            f"repo release sign v1 -R {DEMO}",
            f"repo tag delete v1 -R {DEMO}",
        ):
            done = relay.ssh(key, words, options=_forwarding(agent, empty))
            assert done.returncode == 0, (words, done.stderr)
            if "release create" in words:
                relay.svc("alice", "repo", "release", "upload", "v1", "app.txt", "-R", DEMO)
    assert (
        relay.svc("alice", "repo", "release", "view", "v1", "-R", DEMO, "--jq", ".publication.signed")
        == "true\n"
    )


def test_files_and_settings_stay_out(relay: Relay, key: Path, empty: Path) -> None:
    with relay.agent(key) as agent:
        for words in ("push -m x", f"repo delete {DEMO} --yes", "auth device add", "repo create more"):
            done = relay.ssh(key, words, options=_forwarding(agent, empty))
            assert done.returncode == 2, words
            assert "not available over SSH" in done.stderr
        for words in (
            f"issue create -R {DEMO} -t x -F {__file__}",
            f"repo release create v9 {__file__} -R {DEMO}",
            f"repo release create v9 --notes-file {__file__} -R {DEMO}",
            f"repo release sign v9 {__file__} -R {DEMO}",
        ):
            done = relay.ssh(key, words, options=_forwarding(agent, empty))
            assert (done.returncode, "no files are here over SSH" in done.stderr) == (2, True), (words, done)


def test_the_app_says_that_the_agent_signs(relay: Relay, key: Path, empty: Path) -> None:
    with relay.agent(key) as agent:
        app = Screen(relay.words(key, options=_forwarding(agent, empty)))
        try:
            app.until(DEMO)
            app.until("signed by your ssh-agent")
            app.send(f":issue create -R {DEMO} -t Inside -b text\r")
            end = time.monotonic() + PATIENCE
            while "Inside" not in relay.svc("alice", "issue", "list", "-R", DEMO):
                assert time.monotonic() < end, app.screen.display
        finally:
            app.close()


def test_an_agent_without_the_key(relay: Relay, key: Path, empty: Path) -> None:
    number = _proposal(relay, "keyless")
    with relay.agent(relay.key("another")) as agent:
        done = relay.ssh(key, f"pr merge {number} -R {DEMO} --squash", options=_forwarding(agent, empty))
    assert done.returncode == 1
    assert "does not hold the key that you connected with" in done.stderr
    assert _state(relay, number) == "open"


def test_an_agent_whose_person_says_no(relay: Relay, key: Path, empty: Path) -> None:
    """`ssh-add -c`: a program asks; here it answers no, then yes."""
    number = _proposal(relay, "asked")
    ask = relay.folder / "ask"
    for answer, code in (("false", 1), ("true", 0)):
        ask.write_text(f"#!/bin/sh\nexec {answer}\n")
        ask.chmod(0o755)
        environment = {"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
        with relay.agent(key, options=("-c",), environment=environment) as agent:
            done = relay.ssh(key, f"pr merge {number} -R {DEMO} --squash", options=_forwarding(agent, empty))
        assert done.returncode == code, done.stderr
        if code:
            assert "you did not confirm it" in done.stderr
            assert _state(relay, number) == "open"
    assert _state(relay, number) == "merged"


def test_an_agent_that_goes_away(relay: Relay, key: Path, empty: Path) -> None:
    with relay.agent(key) as agent:
        app = Screen(relay.words(key, options=_forwarding(agent, empty)))
        app.until(DEMO)
    try:
        app.send(f":issue create -R {DEMO} -t Gone -b text\r")
        app.until("ssh-agent")
        app.until("Nothing was")  # the sentence is wrapped in the frame
    finally:
        app.close()
    assert "Gone" not in relay.svc("alice", "issue", "list", "-R", DEMO)


@contextmanager
def _waiting(relay: Relay, key: Path) -> Iterator[tuple[Path, Path]]:
    """An agent whose person is asked and says nothing, and the file that is there once they are asked."""
    ask, asked = relay.folder / "wait", relay.folder / "asked"
    asked.unlink(missing_ok=True)
    ask.write_text(f"#!/bin/sh\ntouch {asked}\nexec sleep 100\n")
    ask.chmod(0o755)
    environment = {"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
    with relay.agent(key, options=("-c",), environment=environment) as agent:
        yield agent, asked


def test_who_leaves_while_the_agent_waits_changes_nothing(relay: Relay, key: Path, empty: Path) -> None:
    with _waiting(relay, key) as (agent, asked):
        words = relay.words(key, f"issue create -R {DEMO} -t Left -b x", options=_forwarding(agent, empty))
        client = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + PATIENCE
            while not asked.exists():
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            client.kill()
            client.wait()
        while [*relay.temporary.glob("svc-ssh-*")]:
            assert time.monotonic() < end
            time.sleep(0.1)
    assert "Left" not in relay.svc("alice", "issue", "list", "-R", DEMO)


@pytest.mark.skipif(not DEEP, reason="waits for as long as the relay does")
def test_an_agent_that_answers_nothing(relay: Relay, key: Path, empty: Path) -> None:
    with _waiting(relay, key) as (agent, _):
        done = relay.ssh(key, f"issue create -R {DEMO} -t Hung -b x", options=_forwarding(agent, empty))
    assert done.returncode == 1
    assert "did not answer in 60 s" in done.stderr
    assert "Hung" not in relay.svc("alice", "issue", "list", "-R", DEMO)


def _base(key: DeviceKey, method: str, path: str, authority: str = "node.example") -> bytes:
    """What `key` signs for a request."""
    said: list[bytes] = []

    class Hearing:
        id = key.id

        def sign(self, message: bytes) -> bytes:
            said.append(message)
            return key.sign(message)

    body = ContentDigest.of(b"")
    sign(Hearing(), method, authority, path, "", body=body, authorization=None, now=1_800_000_000)  # type: ignore[arg-type]
    return said[0]


REPO = "/api/v1/repos/" + "a" * 32


def test_requests_of_the_table_are_signed() -> None:
    key = DeviceKey.generate()
    for method, path in (("POST", f"{REPO}/proposals/1/merge-finalize"), ("DELETE", f"{REPO}/refs/tag/a/b")):
        base = _base(key, method, path)
        assert kind_of(base, "https://node.example", "account", key.id) == "request"


@pytest.mark.parametrize(
    ("method", "path", "authority"),
    [
        ("DELETE", REPO, "node.example"),
        ("POST", "/api/v1/device-keys", "node.example"),
        ("POST", f"{REPO}/invites", "node.example"),
        ("POST", f"{REPO}/proposals/1/x/merge-finalize", "node.example"),
        ("POST", f"{REPO}/proposals/1/merge-finalize", "other.example"),
    ],
)
def test_other_requests_are_not(method: str, path: str, authority: str) -> None:
    key = DeviceKey.generate()
    with pytest.raises(SignatureRefused):
        kind_of(_base(key, method, path, authority), "https://node.example", "account", key.id)


def test_what_is_not_of_svc_is_not_signed() -> None:
    """Such as a sign-in at another SSH server, a registration, and another key's request."""
    key = DeviceKey.generate()
    good = _base(key, "POST", f"{REPO}/issues")
    for message in (
        b"",
        b"\0\0\0\x20" + bytes(32) + b"\x32",
        b"svc-device-registration-v1\0x",
        b"svc-seal-v1\n{}",
        good + b"\n",
        b"\xff" + good,
        _base(DeviceKey.generate(), "POST", f"{REPO}/issues"),
    ):
        with pytest.raises(SignatureRefused):
            kind_of(message, "https://node.example", "account", key.id)
