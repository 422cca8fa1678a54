"""No message is a dead end: every command that an error names is run, and helps.

`docs/reference/errors.md` says which commands the sentences of each error name. Each pair has a row in
`WAYS_OUT`: a scenario that meets the error, runs the command, and does then what was refused.
"""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from localstore.core.encoding import b64u
from localstore.core.errors import ClockReused, Conflict, NotSealed, StaleHead, SvcError
from localstore.core.model.live import UpdateAnswers, UpdateBatch
from localstore.core.model.seal import Prepared, PrepareRequest
from localstore.sync.sealing import seal
from scripts.reference_remedies import remedies
from tests.campaign.conftest import Place
from tests.campaign.world import Machine, Ran, Running
from tests.localstore.model_relay import ModelRelay, ModelTransport
from tests.localstore.place import Place as ModelPlace

Scenario = Callable[[Place], None]
WAYS_OUT: dict[tuple[str, str], Scenario] = {}


def row(code: str, *commands: str) -> Callable[[Scenario], Scenario]:
    """The scenario shows that these commands help against this error."""

    def keep(scenario: Scenario) -> Scenario:
        WAYS_OUT.update({(code, command): scenario for command in commands})
        return scenario

    return keep


def refused(machine: Machine, *words: str, says: str, **how: Any) -> Ran:
    """The command fails with one sentence that names `svc SAYS`."""
    done = machine.run(*words, **how)
    assert done.code in (1, 2, 4), (words, done)
    assert f"svc {says}" in done.err, done.err
    return done


def signed_in(place: Place, machine: Machine) -> None:
    """What `svc login` is for somebody without a browser: by a code of a device that is signed in."""
    code = place.ann.ok("auth", "device", "add").out.split()[0]
    machine.ok("login", "--device-key", "--handle", place.handle, "--pair", code)


def first_push(place: Place) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.write(place.ann, "b.bin", b"\0one")
    place.ann.ok("push", "-m", "first")


# --- signing in


@row("sign_in_required", "login", "auth status")
def _nobody_is_signed_in(place: Place) -> None:
    place.ann.ok("logout")
    refused(place.ann, "logout", says="auth status")
    refused(place.ann, "auth", "status", says="login")
    refused(place.ann, "push", "-m", "first", says="login")
    place.ann.ok("login", "--device-key", "--handle", place.handle)
    first_push(place)


@row("client", "login")
def _a_session_that_cannot_be_opened(place: Place) -> None:
    (kept,) = (place.ann.home / "sessions").iterdir()
    kept.write_bytes(b"damaged")
    refused(place.ann, "push", "-m", "first", says="login")
    place.ann.ok("login", "--device-key", "--handle", place.handle)
    first_push(place)


@row("usage", "login")
def _no_server_is_known(place: Place) -> None:
    bob = Machine(place.base, "bob", place.node)
    refused(bob, "auth", "status", says="login", before=_without_server)
    code = place.ann.ok("auth", "device", "add").out.split()[0]
    login = (
        "login",
        "--server",
        place.node.address,
        "--device-key",
        "--handle",
        place.handle,
        "--pair",
        code,
    )
    bob.ok(*login, before=_without_server)
    bob.ok("auth", "status", before=_without_server)


def _without_server() -> None:
    import os

    os.environ.pop("SVC_SERVER")


@row("handle_taken", "auth device add", "login")
def _a_second_machine_takes_the_handle(place: Place) -> None:
    bob = Machine(place.base, "bob", place.node)
    refused(bob, "login", "--device-key", "--handle", place.handle, says="auth device add")
    signed_in(place, bob)


@row("forbidden", "login")
def _a_key_that_was_revoked(place: Place) -> None:
    first_push(place)
    bob = place.machine("bob")
    key = bob.ok("repo", "device", "status", "--json", "id").json()["id"]
    place.ann.ok("auth", "device", "revoke", key, "--yes")
    place.write(bob, "a.txt", "one\nbob\n")
    refused(bob, "push", "-m", "bob", says="login")
    code = place.ann.ok("auth", "device", "add").out.split()[0]
    bob.ok("login", "--device-key", "--handle", place.handle, "--pair", code, "--new-key", "--yes")
    bob.ok("pull", "--merge")
    bob.ok("push", "-m", "bob")


def _problem(answer: httpx.Response, code: str) -> None:
    assert answer.json()["code"] == code, answer.text
    assert "svc login" in answer.json()["detail"]


def _guest(place: Place) -> httpx.Client:
    made = httpx.post(place.node.address + "/auth/guest-login", trust_env=False).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    return httpx.Client(base_url=place.node.address, trust_env=False, headers=headers)


@row("request_not_bound", "login")
def _a_change_that_no_key_signs(place: Place) -> None:
    with _guest(place) as guest:
        _problem(guest.post("/api/v1/repos", json={"name": "x"}), "request_not_bound")
    place.ann.ok("repo", "create", "x")


@row("identity_level", "login")
def _a_guest_who_wants_more(place: Place) -> None:
    with _guest(place) as guest:
        _problem(guest.get("/api/v1/repos/device-keys"), "identity_level")
    place.ann.ok("auth", "device", "list")


@row("invalid_grant", "login")
def _a_device_code_nobody_knows(place: Place) -> None:
    claim = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": b64u(bytes(32))}
    with httpx.Client(base_url=place.node.address, trust_env=False) as client:
        _problem(client.post("/api/v1/auth/cli/token", json=claim), "invalid_grant")
    signed_in(place, Machine(place.base, "bob", place.node))


@row("expired_token", "login")
def _a_sign_in_nobody_approved_in_time(place: Place) -> None:
    bob = Machine(place.base, "bob", place.node)
    login = bob.begin("login")
    _wait_for_a_code(place, login)
    place.node.rows("UPDATE device_code SET expires_at=0 WHERE state='pending'")
    ended = login.wait(30)
    assert (ended.code, "svc login" in ended.err) == (1, True), ended.err
    signed_in(place, bob)


def _wait_for_a_code(place: Place, running: Running) -> None:
    """Until the relay has given a code to the sign-in, which now waits for a browser."""
    for _ in range(400):
        if place.node.rows("SELECT user_code FROM device_code WHERE state='pending' AND expires_at>0"):
            return
        assert not running.over(), running.wait().err
        time.sleep(0.025)
    raise AssertionError("the relay never gave a code")


@contextmanager
def _moved_server(to: str) -> Iterator[str]:
    class Moved(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(301)
            self.send_header("Location", to + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Moved)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@row("server_misbehaved", "login")
def _the_server_moved(place: Place) -> None:
    bob = Machine(place.base, "bob", place.node)
    with _moved_server(place.node.address) as old:
        refused(bob, "repo", "view", place.repo, "--server", old, says="login --server")
    code = place.ann.ok("auth", "device", "add").out.split()[0]
    at = ("--server", place.node.address)
    bob.ok("login", *at, "--device-key", "--handle", place.handle, "--pair", code)
    bob.ok("repo", "view", "-R", place.repo)


# --- links and folders


@row("not_linked", "repo init")
def _a_folder_without_a_link(place: Place) -> None:
    first_push(place)
    bob = place.machine("bob", clone=False)
    refused(bob, "pull", says="repo init")
    bob.ok("repo", "init", place.repo)
    bob.ok("pull")
    assert bob.files() == place.ann.files()


@row("link_damaged", "repo init")
def _a_link_that_cannot_be_read(place: Place) -> None:
    first_push(place)
    (place.ann.folder / ".svc/repo.json").write_bytes(b"{")
    refused(place.ann, "pull", says="repo init")
    (place.ann.folder / ".svc").rename(place.base / "away")
    place.ann.ok("repo", "init", place.repo)
    place.ann.ok("pull")


@row("folder_not_empty", "repo init")
def _a_clone_over_files(place: Place) -> None:
    first_push(place)
    bob = place.machine("bob", clone=False)
    place.write(bob, "mine.txt", "mine\n")
    refused(bob, "repo", "clone", place.repo, str(bob.folder), says="repo init", where=place.base)
    bob.ok("repo", "init", place.repo)
    bob.ok("pull", "--merge")
    assert bob.files() == place.ann.files() | {"mine.txt": b"mine\n"}


@row("usage", "repo init", "repo clone", "repo branch")
def _which_repository(place: Place) -> None:
    first_push(place)
    bob = place.machine("bob", clone=False)
    refused(bob, "log", says="repo init")
    refused(bob, "repo", "init", says="repo init")
    refused(bob, "repo", "clone", says="repo clone")
    refused(place.ann, "repo", "branch", "--from", "main", says="repo branch NAME --from")
    place.ann.ok("repo", "branch", "side", "--from", "main")
    bob.ok("repo", "clone", place.repo, "copy")
    bob.ok("repo", "init", place.repo)
    bob.ok("log")


# --- pull and push


@row("unpulled_seal", "pull")
def _a_push_over_a_seal(place: Place) -> None:
    first_push(place)
    bob = place.machine("bob")
    place.write(place.ann, "a.txt", "one\nann\n")
    place.ann.ok("push", "-m", "second")
    place.write(bob, "c.txt", "bob\n")
    refused(bob, "push", "-m", "bob", says="pull")
    bob.ok("pull", "--merge")
    bob.ok("push", "-m", "bob")


@row("local_edits", "pull", "switch")
def _edits_in_the_way(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "branch", "side")
    place.write(place.ann, "a.txt", "one\nann\n")
    refused(place.ann, "pull", says="pull --merge")
    place.ann.ok("pull", "--merge")
    refused(place.ann, "switch", "side", says="switch side --merge")
    place.ann.ok("switch", "side", "--merge")
    assert place.ann.files()["a.txt"] == b"one\nann\n"


def _models(place: Place) -> tuple[ModelPlace, ModelPlace]:
    relay = ModelRelay()
    ann, bob = ModelPlace(place.base, relay, "model-ann"), ModelPlace(place.base, relay, "model-bob")
    ann.write("b.bin", b"\0one")
    ann.push()
    bob.pull()
    return ann, bob


def _named(error: SvcError, command: str) -> None:
    assert f"svc {command}" in error.detail


@row("not_sealed", "pull")
def _somebody_seals_in_between(place: Place) -> None:
    ann, bob = _models(place)

    class Late(ModelTransport):
        def prepare(self, request: PrepareRequest) -> Prepared:
            bob.write("c.txt", "bob\n")
            bob.push()
            return super().prepare(request)

    ann.wrap = lambda _: Late(ann.relay, "main")
    ann.write("a.txt", "ann\n")
    with pytest.raises(NotSealed) as raised:
        ann.push()
    _named(raised.value, "pull")
    ann.wrap = lambda transport: transport
    ann.pull()
    ann.push()
    assert ann.relay.sealed_tree(ann.relay.branches["main"].head) == ann.files()


@row("stale_head", "pull")
def _the_head_moved(place: Place) -> None:
    ann, bob = _models(place)
    bob.write("c.txt", "bob\n")
    bob.push()
    with ann.device() as device, pytest.raises(StaleHead) as raised:
        seal(device, "late")
    _named(raised.value, "pull")
    ann.pull()
    with ann.device() as device:
        seal(device, "in time")


@row("conflict", "pull")
def _others_keep_winning(place: Place) -> None:
    ann, bob = _models(place)

    class Slow(ModelTransport):
        count = 0

        def updates(self, batch: UpdateBatch) -> UpdateAnswers:
            Slow.count += 1
            bob.pull("merge")
            bob.write("b.bin", b"\0bob %d" % Slow.count)
            bob.push()
            return super().updates(batch)

    ann.wrap = lambda _: Slow(ann.relay, "main")
    ann.write("b.bin", b"\0ann")
    try:
        ann.push()
    except (Conflict, NotSealed) as error:
        _named(error, "pull")
    ann.wrap = lambda transport: transport
    ann.pull("merge")
    ann.push()
    assert b"\0ann" in ann.relay.tree("main").values()


@row("clock_reused", "pull")
def _a_number_given_twice(place: Place) -> None:
    ann, _ = _models(place)
    branch = ann.relay.branches["main"]
    with ann.device() as device:
        replica = device.replica
    branch.settled[replica] = 9
    ann.write("a.txt", "two\n")
    with pytest.raises(ClockReused) as raised:
        ann.push()
    _named(raised.value, "pull --merge")
    ann.pull("merge")
    ann.push()
    assert b"two\n" in ann.relay.tree("main").values()


@row("repository_archived", "repo unarchive")
def _an_archived_repository(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "archive", "-R", place.repo, "--yes")
    place.write(place.ann, "a.txt", "two\n")
    refused(place.ann, "push", "-m", "second", says="repo unarchive -R")
    place.ann.ok("repo", "unarchive", "-R", place.repo)
    place.ann.ok("push", "-m", "second")


# --- not found


@row("not_found", "repo branch", "repo tag list", "log", "push")
def _a_name_nobody_knows(place: Place) -> None:
    refused(place.ann, "blame", "a.txt", "--ref", "main", says="push")
    first_push(place)
    place.ann.ok("repo", "branch", "side")
    place.ann.ok("repo", "tag", "create", "v1")
    wrong = refused(place.ann, "blame", "a.txt", "--ref", "nothing", says="repo tag list")
    assert "svc repo branch" in wrong.err
    assert "svc log" in wrong.err
    seal_id = place.ann.ok("log", "--json", "id").json()[0]["id"]
    for name in (*_names(place.ann, "repo", "branch"), *_names(place.ann, "repo", "tag", "list"), seal_id):
        place.ann.ok("blame", "a.txt", "--ref", name)


def _names(machine: Machine, *words: str) -> list[str]:
    return [one["name"] for one in machine.ok(*words, "--json", "name").json()]


@row("not_found", "status", "repo status")
def _a_file_nobody_knows(place: Place) -> None:
    first_push(place)
    place.write(place.ann, "new.txt", "new\n")
    refused(place.ann, "blame", "new.txt", says="log --path")
    refused(place.ann, "diff", "nothing.txt", says="status")
    refused(place.ann, "restore", "new.txt", says="repo status")
    assert place.ann.ok("repo", "status", "--json", "new").json()["new"] == ["new.txt"]
    place.ann.ok("diff", "new.txt")
    place.ann.ok("push", "-m", "second")
    place.ann.ok("blame", "new.txt")


@row("not_found", "auth device list", "auth token list")
def _an_id_nobody_knows(place: Place) -> None:
    for noun, words in (("device", ()), ("token", ())):
        refused(place.ann, "auth", noun, "revoke", "zzzz", "--yes", *words, says=f"auth {noun} list")
        known = place.ann.ok("auth", noun, "list", "--json", "id").json()
        place.ann.ok("auth", noun, "revoke", known[-1]["id"], "--yes")
        place.ann.ok("login", "--new-key", "--yes", "--device-key", "--handle", f"{place.handle}-{noun}")


@row("not_found", "repo list")
def _a_deleted_repository(place: Place) -> None:
    place.ann.ok("repo", "delete", "-R", place.repo, "--yes")
    refused(place.ann, "repo", "restore", "zzzz", says="repo list --deleted")
    (gone,) = place.ann.ok("repo", "list", "--deleted", "--json", "id").json()
    place.ann.ok("repo", "restore", gone["id"])


@row("not_found", "login")
def _a_node_without_device_keys(place: Place) -> None:
    """Only the browser is left there, as `svc login` by itself."""
    bob = Machine(place.base, "bob", place.node)
    started = bob.begin("login")
    _wait_for_a_code(place, started)
    started.kill()
    started.wait()
    place.node.rows("UPDATE device_code SET expires_at=0 WHERE state='pending'")


# --- the watcher


@row("not_watchable", "status", "watcher stop")
def _a_second_watcher(place: Place) -> None:
    first_push(place)
    place.ann.ok("watcher", "start")
    place.ann.ok("status")
    place.ann.ok("watcher", "stop")
    place.ann.ok("watcher", "start")
    place.ann.ok("watcher", "stop")


PAIRS = [(code, command) for code, commands in remedies().items() for command in commands]


@pytest.mark.parametrize(("code", "command"), PAIRS)
def test_every_command_that_an_error_names_has_a_scenario(code: str, command: str) -> None:
    assert (code, command) in WAYS_OUT, (
        f"the error {code} tells people to run svc {command}: show that it helps"
    )


@pytest.mark.parametrize(
    "scenario", dict.fromkeys(WAYS_OUT.values()), ids=lambda one: one.__name__.strip("_")
)
def test_the_command_that_an_error_names_helps(scenario: Scenario, place: Place) -> None:
    scenario(place)


def test_the_reference_names_the_same_commands() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/reference/errors.md").read_text("utf-8")
    for code, command in PAIRS:
        (line,) = [one for one in page.splitlines() if one.startswith(f"| `{code}` |")]
        assert f"`svc {command}`" in line
