"""git clones private repositories by the sign-in of svc, and asks nothing."""

from __future__ import annotations

import base64
import json
import os
import pty
import secrets
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import msgspec
import pytest

from localstore.core.identity import bearer
from localstore.core.identity.keys import DeviceKey
from svc.flows.git import settings
from svc.flows.git.credential import PasswordRequest, read_request
from svc.http.session import Sessions
from tests.patience import PATIENCE
from tests.svc.conftest import ROOT, Answer, clean_environment

PASSWORD = "correct horse battery"


class Machine:
    """A machine of somebody with git and svc, signed in to the node."""

    def __init__(self, folder: Path, node: str) -> None:
        self.folder, self.node = folder, node
        self.handle = f"g{secrets.token_hex(6)}"
        folder.mkdir()
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "svc").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m svc "$@"\n')
        (bin_folder / "svc").chmod(0o755)
        self.environment = clean_environment(
            HOME=str(folder),
            SVC_HOME=str(folder / "svc"),
            SVC_SERVER=node,
            GIT_TERMINAL_PROMPT="0",
            GIT_CONFIG_NOSYSTEM="1",
            PATH=f"{bin_folder}:{os.environ['PATH']}",
            LC_ALL="C",
        )

    def run(self, *words: str, at: str = "", told: str = "", **more: str) -> Answer:
        done = subprocess.run(
            list(words),
            cwd=self.folder / at,
            env={**self.environment, **more},
            input=told,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, at: str = "", **more: str) -> str:
        done = self.run(*words, at=at, **more)
        assert done.code == 0, (words, done)
        return done.out

    def login(self, *options: str) -> Answer:
        return self.run("svc", "login", "--device-key", "--handle", self.handle, *options)

    def publish(self, name: str, *options: str) -> str:
        """A private repository with one seal. Returns its address for git."""
        self.ok("svc", "repo", "create", name, *options)
        (self.folder / f"work-{name}").mkdir()
        (self.folder / f"work-{name}/a.txt").write_text(f"{name}\n")
        self.ok("svc", "repo", "init", f"{self.handle}/{name}", at=f"work-{name}")
        self.ok("svc", "push", "-m", "first", at=f"work-{name}")
        return f"{self.node}/{self.handle}/{name}.git"

    def get(self, path: str, **more: str) -> Answer:
        """What the helper answers for a path of the node."""
        scheme, _, host = self.node.partition("://")
        told = f"protocol={scheme}\nhost={host}\npath={path}\n\n"
        return self.run("svc", "auth", "git-credential", "get", told=told, **more)

    def settings(self) -> list[str]:
        return self.run("git", "config", "--global", "--list").out.splitlines()


@pytest.fixture
def machine(node: str, tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine", node)


def test_after_a_sign_in_git_asks_nothing(machine: Machine, node: str) -> None:
    signed_in = machine.login("--git-credential")
    assert signed_in.code == 0
    section = f"credential.{node}"
    lines = [line.strip() for line in signed_in.err.splitlines() if line.strip().startswith("git config")]
    assert lines[0] == f"git config --global --replace-all {section}.helper ''"
    assert lines[1].startswith(f"git config --global --add {section}.helper '!")
    assert lines[1].endswith("svc auth git-credential'")
    assert lines[2] == f"git config --global --replace-all {section}.useHttpPath true"
    written = machine.settings()
    for line in lines:  # what is said is what would do it
        machine.ok("sh", "-c", line)
    assert sorted(machine.settings()) == sorted(written)
    helpers = machine.ok("git", "config", "--global", "--get-all", f"{section}.helper").split("\n")
    assert [one.rpartition("/")[2] for one in helpers] == ["", "svc auth git-credential", ""]
    assert {line.partition("=")[0] for line in written} == {
        f"{section.lower()}.helper",
        f"{section.lower()}.usehttppath",
    }

    address = machine.publish("one")
    machine.ok("git", "clone", "-q", address, "clone")
    assert (machine.folder / "clone/a.txt").read_text() == "one\n"
    (machine.folder / "work-one/a.txt").write_text("two\n")
    machine.ok("svc", "push", "-m", "second", at="work-one")
    machine.ok("git", "pull", "-q", at="clone")
    assert (machine.folder / "clone/a.txt").read_text() == "two\n"
    assert not (machine.folder / ".git-credentials").exists()

    missing = machine.run("git", "clone", f"{node}/{machine.handle}/none.git", "none")
    assert missing.code == 128
    assert f"svc: {machine.handle}/none on {node} does not exist or is hidden" in missing.err
    assert "could not read Username" not in missing.err, "nobody is asked for what cannot help"


def test_in_scripts_nothing_is_written_unless_said(machine: Machine) -> None:
    assert machine.login().code == 0
    assert machine.login("--no-git-credential").code == 0
    assert machine.settings() == []


def test_a_password_reads_one_repository_for_an_hour(machine: Machine, node: str) -> None:
    machine.login()
    one, other = machine.publish("one"), machine.publish("other")
    began = datetime.now(UTC)
    told = machine.get(f"{machine.handle}/one.git")
    assert (told.code, told.err) == (0, "")
    members = dict(line.split("=", 1) for line in told.out.splitlines())
    ends = datetime.fromtimestamp(int(members["password_expiry_utc"]), UTC)
    assert timedelta(minutes=59) < ends - began <= timedelta(minutes=61)
    sent = base64.b64encode(f"{members['username']}:{members['password']}".encode()).decode()
    headers = {"Authorization": f"Basic {sent}"}
    for address, status in ((one, 200), (other, 404)):
        url = f"{address}/info/refs?service=git-upload-pack"
        assert httpx.get(url, headers=headers, trust_env=False).status_code == status
    bearing = {"Authorization": f"Bearer {members['password']}"}
    assert httpx.get(f"{node}/api/v1/handles/me", headers=bearing, trust_env=False).status_code == 403
    for spelled in (
        f"/{machine.handle}/one",
        f"{machine.handle}/one.git/info/refs",
        f"{machine.handle}/one/",
    ):
        assert machine.get(spelled).out.startswith("username=svc\n"), spelled


def test_who_is_not_signed_in_is_told_and_git_may_ask_elsewhere(machine: Machine, node: str) -> None:
    told = machine.get("a/b.git")
    assert (told.code, told.out) == (0, "")
    assert told.err == f"svc: nobody is signed in to {node} here; run: svc login --server {node}\n"
    refused = machine.run("svc", "auth", "setup-git")
    assert (refused.code, machine.settings()) == (4, [])


def test_another_server_gets_nothing(machine: Machine) -> None:
    machine.login()
    for asked in (
        "protocol=https\nhost=evil.example\npath=a/b.git\n",
        "protocol=ftp\nhost=127.0.0.1\n",
        "protocol=https\n",
        "protocol=https\nhost=a b\npath=x\n",
        "",
        "host\n\0=\n",
        "protocol=https\nhost=[::1\npath=a/b\n",
    ):
        told = machine.run("svc", "auth", "git-credential", "get", told=asked)
        assert (told.code, told.out) == (0, ""), asked


def test_without_a_path_it_says_the_line_that_helps(machine: Machine, node: str) -> None:
    machine.login()
    scheme, _, host = node.partition("://")
    told = machine.run("svc", "auth", "git-credential", "get", told=f"protocol={scheme}\nhost={host}\n\n")
    assert (told.code, told.out) == (2, "quit=1\n")
    line = told.err.strip().partition("run: ")[2]
    assert line == f"git config --global credential.{node}.useHttpPath true"
    address = machine.publish("one")
    machine.ok("git", "config", "--global", f"credential.{node}.helper", "!svc auth git-credential")
    refused = machine.run("git", "clone", "-q", address, "clone")
    assert line in refused.err
    machine.ok("sh", "-c", line)
    machine.ok("git", "clone", "-q", address, "clone")


@pytest.mark.parametrize("action", ["store", "erase", "capability", "x"])
def test_nothing_is_kept(machine: Machine, action: str) -> None:
    before = sorted(machine.folder.rglob("*"))
    told = machine.run("svc", "auth", "git-credential", action, told="protocol=https\nhost=h\npassword=x\n\n")
    assert (told.code, told.out, told.err) == (0, "", "")
    assert [one for one in machine.folder.rglob("*") if one.is_file()] == [
        one for one in before if one.is_file()
    ]


def test_a_session_of_yesterday_says_so(machine: Machine, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.login("--git-credential")
    address = machine.publish("one")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", machine.environment["PYTHON_KEYRING_BACKEND"])
    sessions = Sessions(machine.folder / "svc")
    kept = sessions.find(node)
    assert kept is not None
    sessions.save(msgspec.structs.replace(kept, expires_at="2020-01-01T00:00:00Z"))
    refused = machine.run("git", "clone", address, "clone")
    assert refused.code == 128
    assert f"run: svc login --server {node}" in refused.err
    machine.login()
    machine.ok("git", "clone", "-q", address, "clone")


def test_a_session_that_ended_on_the_server(machine: Machine) -> None:
    machine.login("--git-credential")
    address = machine.publish("one")
    machine.ok("git", "clone", "-q", address, "clone")
    sessions = json.loads(machine.ok("svc", "auth", "token", "list", "--json", "id,current"))
    machine.ok("svc", "auth", "token", "revoke", next(one["id"] for one in sessions if one["current"]))
    refused = machine.run("git", "fetch", at="clone")
    assert refused.code == 128
    assert "svc: " in refused.err
    assert "svc login" in refused.err


def test_a_role_that_was_removed(machine: Machine, node: str, tmp_path: Path) -> None:
    machine.login()
    address = machine.publish("one")
    bob = Machine(tmp_path / "bob", node)
    bob.login("--git-credential")
    machine.ok("svc", "repo", "collaborator", "add", bob.handle, "--role", "read", at="work-one")
    (invite,) = json.loads(bob.ok("svc", "repo", "invite", "list", "--json", "id"))
    bob.ok("svc", "repo", "invite", "accept", invite["id"])
    bob.ok("git", "clone", "-q", address, "clone")
    machine.ok("svc", "repo", "collaborator", "remove", bob.handle, "--yes", at="work-one")
    refused = bob.run("git", "fetch", at="clone")
    assert refused.code == 128
    assert "does not exist or is hidden" in refused.err


def test_another_helper_for_this_server_stays(machine: Machine, node: str) -> None:
    own = f"credential.{node}.helper"
    machine.ok("git", "config", "--global", own, "cache")
    machine.ok("git", "config", "--global", "credential.helper", "store")
    refused = machine.login("--git-credential")
    assert refused.code == 2
    assert "git asks cache for passwords" in refused.err
    assert not (machine.folder / "svc/sessions").exists(), "refused before it acted"
    machine.ok("sh", "-c", refused.err.strip().partition("first run: ")[2])
    assert machine.login("--git-credential").code == 0
    assert "credential.helper=store" in machine.settings()


def test_without_git_it_says_so(machine: Machine) -> None:
    without = {"PATH": str(machine.folder / "bin")}
    (machine.folder / "bin/svc").write_text(f"#!/bin/sh\nexec '{sys.executable}' -m svc \"$@\"\n")
    told = machine.run(str(machine.folder / "bin/svc"), "login", "--device-key", "--handle", machine.handle,
                       "--git-credential", **without)  # fmt: skip
    assert told.code == 2
    assert "git is not installed here" in told.err


@pytest.mark.parametrize("said", ["y", "n"])
def test_a_person_is_asked_once(machine: Machine, node: str, said: str) -> None:
    near, far = pty.openpty()
    words = ["svc", "login", "--device-key", "--handle", machine.handle]
    process = subprocess.Popen(words, stdin=far, stdout=far, stderr=far, env=machine.environment, cwd=ROOT)
    os.close(far)
    told = b""
    try:
        while b"[y/N]" not in told:
            told += os.read(near, 4096)
        os.write(near, said.encode() + b"\n")
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(near)
    assert f"Let git read private repositories of {node} by this sign-in?".encode() in told
    assert bool(machine.settings()) is (said == "y")


def test_a_script_token_is_narrowed_alike(
    machine: Machine, node: str, owner: Callable[[str], tuple[httpx.Client, str]]
) -> None:
    """CI: svc and a read-only token in SVC_TOKEN, and nobody signed in."""
    http, handle = owner(node)
    writer = http.post("/api/v1/auth/tokens", json={"label": "w", "access": "write"}).json()["token"]
    reader = http.post("/api/v1/auth/tokens", json={"label": "ci", "access": "read"}).json()["token"]
    machine.handle = handle
    machine.environment["SVC_TOKEN"] = writer
    address = machine.publish("one")
    machine.environment["SVC_TOKEN"] = reader
    machine.ok("svc", "auth", "setup-git")
    machine.ok("git", "clone", "-q", address, "clone")
    assert (machine.folder / "clone/a.txt").read_text() == "one\n"
    told = machine.get(f"{handle}/one.git")
    token = bearer.parse_script_token(reader)
    assert bearer.to_text(token.raw) not in told.out
    refused = machine.get(f"{handle}/one.git", SVC_TOKEN=bearer.format_script_token(
        "https://other.example", token.raw, DeviceKey.generate()))  # fmt: skip
    assert (refused.code, refused.out) == (4, "quit=1\n")
    assert "SVC_TOKEN is for https://other.example" in refused.err


@pytest.fixture
def owner() -> Callable[[str], tuple[httpx.Client, str]]:
    """A person in a browser, who makes tokens for scripts."""

    def make(node: str) -> tuple[httpx.Client, str]:
        http = httpx.Client(base_url=node, trust_env=False, headers={"Origin": node})
        handle = f"ci-{secrets.token_hex(6)}"
        assert http.post("/auth/sign-up", data={"handle": handle, "password": PASSWORD}).status_code == 303
        return http, handle

    return make


def test_what_git_says_is_read_by_its_rules() -> None:
    assert read_request("protocol=https\nhost=h:1\npath=a/b.git\n\nhost=x\n") == PasswordRequest(
        "https://h:1", "a/b.git"
    )
    assert read_request("protocol=https\nhost=H\nusername=a=b\nwwwauth[]=Basic\n") == PasswordRequest(
        "https://h", None
    )


def test_a_path_of_the_program_with_a_blank_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "my programs/svc"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    settings.write("https://h.example")
    assert f"!'{program}' auth git-credential" in (tmp_path / "config").read_text()
