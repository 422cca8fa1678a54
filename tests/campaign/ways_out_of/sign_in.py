"""Ways out of errors about who one is."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from localstore.core.encoding import b64u
from tests.campaign.conftest import Place
from tests.campaign.ways_out import SAID, first_push, refused, row, signed_in, wait_for_a_code
from tests.campaign.world import Machine, Running
from tests.patience import until


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
    first_push(place)
    link = place.ann.folder / ".svc" / "repo.json"
    theirs = link.read_text()
    link.write_text(theirs.replace(place.node.address, "http://127.0.0.1:9"))
    refused(place.ann, "login", says="login", before=_without_server)
    link.write_text(theirs)
    place.ann.ok("login", "--device-key", "--handle", place.handle, "--server", place.node.address)


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
    SAID.append(answer.json()["detail"])


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
    wait_for_a_code(place, login)
    place.node.rows("UPDATE device_code SET expires_at=0 WHERE state='pending'")
    ended = login.wait(30)
    assert (ended.code, "svc login" in ended.err) == (1, True), ended.err
    signed_in(place, bob)


@row("pairing_ended", "auth device pair")
def _a_pairing_code_that_is_too_old(place: Place) -> None:
    bob = Machine(place.base, "bob", place.node)
    drawing = place.ann.begin("auth", "device", "pair", "--yes")
    code = _drawn(place, drawing)
    place.node.rows("UPDATE pairing SET expires_at=0")
    refused(bob, "login", "--qr", code, "--yes", says="auth device pair")
    ended = drawing.wait()
    assert (ended.code, "svc auth device pair" in ended.err) == (1, True), ended.err
    drawing = place.ann.begin("auth", "device", "pair", "--yes")
    bob.ok("login", "--qr", _drawn(place, drawing), "--yes")
    assert drawing.wait().code == 0


@row("device_key_exists", "login")
def _a_machine_that_was_killed_after_its_pairing(place: Place) -> None:
    bob = Machine(place.base, "bob", place.node)
    drawing = place.ann.begin("auth", "device", "pair", "--yes")
    bob.ok("login", "--qr", _drawn(place, drawing), "--yes")
    assert drawing.wait().code == 0
    (session,) = (bob.home / "sessions").iterdir()
    session.unlink()  # it had not signed in yet
    drawing = place.ann.begin("auth", "device", "pair", "--yes")
    at = ("--server", place.node.address)
    says = f"login --server {place.node.address} --device-key --handle NAME"
    refused(bob, "login", "--qr", _drawn(place, drawing), "--yes", says=says)
    bob.ok("login", *at, "--device-key", "--handle", place.handle)
    place.node.rows("UPDATE pairing SET expires_at=0")
    assert drawing.wait().code == 1


def _drawn(place: Place, drawing: Running) -> str:
    """The text of the code, once the machine has printed it and waits."""

    def waits() -> bool:
        assert not drawing.over(), drawing.wait().err
        return "\nWaiting" in err.read_text()

    err = place.ann.output / "err"
    until(waits, "a code is drawn")
    return re.findall(r"svc login --qr (\S+)\n", err.read_text())[-1]


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
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
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


@row("already_collaborator", "repo collaborator role")
@row("already_collaborator", "repo collaborator list")
@row("invite_pending", "repo collaborator role")
@row("not_found", "repo collaborator list")
@row("transfer_pending", "repo transfer-list")
@row("name_taken", "repo rename")
@row("usage", "repo access request")
def _a_repository_that_is_shared_and_given_away(place: Place) -> None:
    bob = Machine(place.base, "bob", place.node)
    bob.ok("login", "--device-key", "--handle", "bob-shared", where=place.base)
    where = ("-R", place.repo)
    owner = ("repo", "collaborator", "add", place.handle, *where)
    refused(place.ann, *owner, says=f"repo collaborator list -R {place.repo}")
    place.ann.ok("repo", "collaborator", "list", *where)
    place.ann.ok("repo", "collaborator", "add", "bob-shared", *where)
    again = ("repo", "collaborator", "add", "bob-shared", "--role", "write", *where)
    refused(place.ann, *again, says="repo collaborator role bob-shared ROLE")
    place.ann.ok("repo", "collaborator", "role", "bob-shared", "write", *where)
    bob.ok("repo", "invite", "accept", place.repo, where=place.base)
    refused(place.ann, *again, says="repo collaborator role bob-shared ROLE")
    place.ann.ok("repo", "collaborator", "role", "bob-shared", "triage", *where)
    nobody = ("repo", "collaborator", "remove", "nobody-known", "--yes", *where)
    place.ann.run(*nobody)
    place.ann.ok("repo", "collaborator", "remove", "bob-shared", "--yes", *where)
    gone = ("repo", "collaborator", "remove", "bob-shared", "--yes", *where)
    refused(place.ann, *gone, says="repo collaborator list")
    place.ann.ok("repo", "collaborator", "list", *where)
    refused(bob, "repo", "access", "request", says="repo access request OWNER/NAME", where=place.base)
    bob.ok("repo", "access", "request", place.repo, where=place.base)
    place.ann.ok("repo", "transfer", "bob-shared", "--yes", *where)
    refused(place.ann, "repo", "transfer", "bob-shared", "--yes", *where, says="repo transfer-list")
    place.ann.ok("repo", "transfer-list")
    name = place.repo.partition("/")[2]
    bob.ok("repo", "create", name, where=place.base)
    taken = ("repo", "transfer-accept", "--yes")
    refused(bob, *taken, says="repo rename", where=place.base)
    bob.ok("repo", "rename", "other", "-R", f"bob-shared/{name}", where=place.base)
    place.ann.ok("repo", "transfer-cancel")


@row("document_archived", "doc unarchive")
def _an_archived_document(place: Place) -> None:
    place.ann.ok("doc", "create", "Plan", "--local")
    document = place.ann.ok("doc", "list", "--local", "--jq", ".[0].id").out.strip()
    place.ann.ok("doc", "archive", document)
    refused(place.ann, "doc", "edit", document, "--title", "Other", says="doc unarchive")
    place.ann.ok("doc", "unarchive", document)
    place.ann.ok("doc", "edit", document, "--title", "Other")


@row("not_found", "auth key list")
@row("api_key_ended", "auth key create")
@row("conflict", "auth key list")
def _an_api_key_that_is_gone(place: Place) -> None:
    refused(place.ann, "auth", "key", "revoke", "k1", "--yes", says="auth key list")
    place.ann.ok("auth", "key", "create", "printer")
    key = place.ann.ok("auth", "key", "list", "--jq", ".[0].id").out.strip()
    place.ann.ok("auth", "key", "revoke", key, "--yes")
    refused(place.ann, "auth", "key", "rotate", key, "--yes", says="auth key create NAME")
    place.ann.ok("auth", "key", "create", "printer")
