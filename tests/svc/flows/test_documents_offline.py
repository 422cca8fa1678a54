"""Documents without the server: two devices edit one while the relay is stopped, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import structs

from localstore import seen_documents
from localstore.core.document.document import YjsDocument as Operations
from localstore.core.model.document import Document
from localstore.core.model.limits import DOCUMENTS_BYTES
from localstore.outbox import Outbox
from localstore.seen_documents import SeenDocuments
from scripts.live.devices import Relay
from svc.http import client
from svc.http.outgoing import Outgoing
from tests.patience import PATIENCE
from tests.svc.conftest import ROOT, Answer, Svc

TEXT = "milk and bread and rice"


class Ann:
    """An account with two devices, each a home of its own, in this process."""

    def __init__(self, svc: Svc, relay: Relay, homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._svc, self.relay, self._homes, self._monkeypatch = svc, relay, homes, monkeypatch
        monkeypatch.setenv("SVC_SERVER", relay.server)
        monkeypatch.setattr(client, "BACKOFF", 0.001)

    def sign_in(self, handle: str) -> None:
        """Sign in on both devices."""
        self.ok("first", "login", "--device-key", "--handle", handle)
        code = self.ok("first", "auth", "device", "add").split()[0]
        self.ok("second", "login", "--device-key", "--handle", handle, "--pair", code)

    def home(self, device: str) -> Path:
        return self._homes / device

    def on(self, device: str, *words: str) -> Answer:
        """Run a command on one of the devices."""
        self._monkeypatch.setenv("SVC_HOME", str(self.home(device)))
        return self._svc(*words)

    def ok(self, device: str, *words: str) -> str:
        answer = self.on(device, *words)
        assert answer.code == 0, answer
        return answer.out

    def write(self, device: str, document: str, text: str) -> Answer:
        Path("text.md").write_text(text)
        return self.on(device, "doc", "edit", document, "-F", "text.md")

    def text(self, device: str, document: str) -> str:
        return self.ok(device, "doc", "view", document)

    def queued(self, device: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(
            self.ok(device, "queue", "list", "--json", "id,state,action,code,reason,attempts,value")
        )
        return rows

    def killed(self, device: str, where: str, *words: str) -> None:
        """Run a command that is killed before or after a step: `before Outbox.replace`."""
        done = subprocess.run(
            [sys.executable, "-c", KILLED, where, *words],
            env={**os.environ, "SVC_HOME": str(self.home(device)), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr

    def relay_database(self) -> sqlite3.Connection:
        (file,) = (self._homes.parent / "relay" / "data").glob("*.db")
        return sqlite3.connect(file)


KILLED = """
import os, sys
from localstore.outbox import Outbox
from localstore.seen_documents import SeenDocuments
from svc.http.client import Http
from svc.cmd.frame.app import run
when, _, step = sys.argv[1].partition(" ")
kind, _, name = step.partition(".")
kind = {"Outbox": Outbox, "SeenDocuments": SeenDocuments, "Http": Http}[kind]
real = getattr(kind, name)
def dies(*words, **named):
    if name == "send_under" and words[2].method != "PUT":
        return real(*words, **named)
    if when == "after":
        real(*words, **named)
    os.kill(os.getpid(), 9)
setattr(kind, name, dies)
run(sys.argv[2:])
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Relay]]:
    """A folder for homes, and a relay that tests stop and start."""
    folder = tmp_path_factory.mktemp("place")
    relay = Relay(folder / "relay")
    relay.start()
    yield folder / "homes", relay
    relay.kill()


@pytest.fixture
def ann(svc: Svc, place: tuple[Path, Relay], monkeypatch: pytest.MonkeyPatch) -> Iterator[Ann]:
    """The account of most tests here. Nothing waits before and after a test, and the relay answers."""
    homes, relay = place
    ann = Ann(svc, relay, homes, monkeypatch)
    if not ann.home("first").exists():
        ann.sign_in("ann")
    yield ann
    for device in ("first", "second"):
        ann.ok(device, "queue", "drop", "--all", "--yes")
    relay.kill()
    relay.start()


def created(ann: Ann) -> str:
    """The id of a new document that both devices have seen."""
    Path("text.md").write_text(TEXT)
    document = json.loads(ann.ok("first", "doc", "create", "List", "-F", "text.md", "--json", "id"))["id"]
    for device in ("first", "second"):
        assert ann.text(device, document) == TEXT
    return str(document)


@pytest.fixture
def document(ann: Ann) -> str:
    return created(ann)


def test_two_devices_that_edit_while_the_relay_is_stopped_both_keep_what_they_changed(
    ann: Ann, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.relay.kill()
    monkeypatch.setenv("EDITOR", "sed -i s/rice/rice,salt/")
    edited = ann.on("second", "doc", "edit", document)
    assert (edited.code, ann.queued("second")[0]["id"]) == (0, edited.out.strip())
    edited = ann.write("first", document, "oat " + TEXT)
    assert edited.code == 0
    (waiting,) = ann.queued("first")
    assert (waiting["state"], waiting["action"]) == ("waiting", f"change document List ({document})")
    for device, text in (("first", "oat " + TEXT), ("second", TEXT.replace("rice", "rice,salt"))):
        shown = ann.on(device, "doc", "view", document)
        assert (shown.code, shown.out) == (0, text)
        assert "cannot reach" in shown.err and "with your edits that wait" in shown.err
        assert document in ann.ok(device, "doc", "list")
    ann.relay.start()
    assert ann.ok("second", "queue", "retry") == "Sent 1 action\n"
    shown = ann.on("first", "doc", "view", document)
    both = "oat " + TEXT.replace("rice", "rice,salt")
    assert (shown.out, "sent: what you changed here" in shown.err) == (both, True)
    assert ann.text("second", document) == both
    assert ann.queued("first") == ann.queued("second") == []
    bases = json.loads(ann.ok("first", "doc", "history", document, "--json", "number,base"))
    assert bases == [{"number": 3, "base": 1}, {"number": 2, "base": 1}, {"number": 1, "base": 0}]


def test_edits_in_a_row_are_one_action_and_can_be_dropped(ann: Ann, document: str) -> None:
    ann.relay.kill()
    assert ann.write("first", document, TEXT + " a").code == 0
    assert ann.on("first", "doc", "edit", document, "--title", "Other").code == 0
    assert ann.write("first", document, TEXT + " a b").code == 0
    (waiting,) = ann.queued("first")
    assert waiting["action"] == f"change document Other ({document})"
    assert ann.ok("first", "doc", "view", document, "--json", "title,content,frontier") == (
        ann.ok("first", "doc", "view", document, "--queued", "--json", "title,content,frontier")
    )
    assert ann.text("first", document) == TEXT + " a b"
    ann.ok("first", "queue", "drop", waiting["id"], "--yes")
    assert ann.text("first", document) == TEXT
    assert ann.write("first", document, "new " + TEXT).code == 0
    ann.relay.start()
    assert ann.text("first", document) == "new " + TEXT
    assert json.loads(ann.ok("first", "doc", "view", document, "--json", "title,frontier")) == {
        "title": "List",
        "frontier": "2",
    }


def test_an_edit_after_a_lost_answer_follows_what_was_sent(ann: Ann, document: str) -> None:
    """The first edit was carried out and its answer lost; another device changed the document since."""
    ann.relay.kill()
    ann.write("first", document, "one " + TEXT)
    ann.relay.start()
    ann.killed("first", "before Outbox.replace", "queue", "retry")
    assert ann.queued("first")[0]["attempts"] == 1
    assert ann.text("second", document) == "one " + TEXT
    assert ann.write("second", document, f"one {TEXT} end").code == 0
    ann.relay.kill()
    assert ann.text("first", document) == "one " + TEXT
    ann.write("first", document, "one two " + TEXT)
    ann.write("first", document, "one two three " + TEXT)
    assert ann.text("first", document) == "one two three " + TEXT
    assert len(ann.queued("first")) == 1
    ann.relay.start()
    assert ann.text("first", document) == f"one two three {TEXT} end"
    assert ann.queued("first") == []


def test_an_edit_that_arrived_while_the_connection_broke_is_made_once(
    ann: Ann, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay takes the edit; nobody hears its answer, and the repeats are refused."""
    real = client.Http._transmit

    def broken(http: client.Http, outgoing: Outgoing, target: str) -> httpx.Response:
        response = real(http, outgoing, target)
        if outgoing.method != "PUT":
            return response
        response.close()
        ann.relay.kill()
        raise httpx.ReadError("broke off")

    with monkeypatch.context() as patch:
        patch.setattr(client.Http, "_transmit", broken)
        assert ann.write("first", document, "once " + TEXT).code == 0
    assert ann.queued("first")[0]["attempts"] == 1
    ann.write("first", document, "once more " + TEXT)
    ann.relay.start()
    assert ann.text("first", document) == "once more " + TEXT
    history = json.loads(ann.ok("first", "doc", "history", document, "--json", "number,base"))
    assert [(row["number"], row["base"]) for row in history] == [(3, 2), (2, 1), (1, 0)]


def test_an_editor_that_was_open_while_the_edits_before_were_sent_repeats_none_of_them(
    ann: Ann, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.relay.kill()
    ann.write("first", document, "one " + TEXT)
    script = Path("editor.py").absolute()
    script.write_text(
        "import pathlib, sys, time\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "file.write_text('two ' + file.read_text())\n"
        "pathlib.Path('began').touch()\n"
        "while not pathlib.Path('sent').exists(): time.sleep(0.01)\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    editing = subprocess.Popen(
        [sys.executable, "-m", "svc", "doc", "edit", document],
        env={**os.environ, "SVC_HOME": str(ann.home("first")), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )
    while not Path("began").exists():
        assert editing.poll() is None
        time.sleep(0.01)
    ann.relay.start()
    assert ann.write("second", document, TEXT + " end").code == 0
    assert ann.on("first", "queue", "retry").code == 0
    Path("sent").touch()
    assert editing.wait(PATIENCE) == 0
    assert ann.text("first", document) == f"two one {TEXT} end"


def test_killed_while_an_edit_is_sent_it_is_carried_out_once(ann: Ann, document: str) -> None:
    steps = [
        "before Outbox.count_attempt",
        "after Outbox.count_attempt",
        "after Http.send_under",
        "after SeenDocuments.put",
        "before Outbox.replace",
        "after Outbox.replace",
    ]
    documents = [document, *(created(ann) for _ in steps[1:])]
    ann.relay.kill()
    for each in documents:
        ann.write("first", each, "once " + TEXT)
    ann.relay.start()
    for each, where in zip(documents, steps, strict=True):
        ann.killed("first", where, "doc", "view", each)
        assert ann.write("second", each, TEXT + " end").code == 0
        assert ann.write("first", each, f"once more {TEXT} end").code == 0
        assert (where, ann.text("first", each)) == (where, f"once more {TEXT} end")
    assert ann.queued("first") == []


@pytest.mark.parametrize("where", ["after Http.send_under", "after Outbox.revise"])
def test_killed_while_an_edit_is_made_nothing_is_lost_or_done_twice(
    ann: Ann, document: str, where: str
) -> None:
    if "Outbox" in where:
        ann.relay.kill()
    Path("text.md").write_text("once " + TEXT)
    ann.killed("first", where, "doc", "edit", document, "-F", "text.md")
    if "Outbox" in where:
        assert ann.text("first", document) == "once " + TEXT
        ann.relay.start()
    assert ann.text("first", document) == "once " + TEXT


def _join_updates(ann: Ann, document: str) -> None:
    """What 1000 more edits do to the first ones: they become a snapshot."""
    updates = "document_update WHERE document_id = ?"
    with ann.relay_database() as database:
        rows = database.execute(f"SELECT operations FROM {updates} ORDER BY number", (document,)).fetchall()
        database.execute(f"DELETE FROM {updates} AND number < ?", (document, len(rows)))
        database.execute(
            "UPDATE document_update SET first = 1, base = 0, operations = ? WHERE document_id = ?",
            (Operations(1, [row[0] for row in rows]).state(), document),
        )


def _archive(ann: Ann, document: str) -> None:
    ann.ok("second", "doc", "archive", document)


def _delete(ann: Ann, document: str) -> None:
    ann.ok("second", "doc", "delete", document, "--yes")


def _leave_its_base_behind(ann: Ann, document: str) -> None:
    ann.write("second", document, TEXT + " end")
    ann.relay.kill()
    _join_updates(ann, document)
    ann.relay.start()


def _use_the_quota_up(ann: Ann, document: str) -> None:
    ann.relay.kill()
    with ann.relay_database() as database:
        database.execute(
            "INSERT INTO document SELECT 'other', account_id, title, content, head, ?, created_at, "
            "updated_at, archived_at FROM document WHERE id = ?",
            (DOCUMENTS_BYTES, document),
        )
    ann.relay.start()


REFUSALS = [
    (_archive, "document_archived", "svc doc unarchive"),
    (_delete, "not_found", "there is no document"),
    (_leave_its_base_behind, "document_base_gone", "version 1 is too old"),
    (_use_the_quota_up, "quota_exceeded", "delete what is not needed"),
]


def test_an_edit_that_cannot_be_made_any_more_is_set_aside_and_said(ann: Ann, document: str) -> None:
    documents = [document, *(created(ann) for _ in REFUSALS[1:])]
    ann.relay.kill()
    for each in documents:
        ann.write("first", each, "mine " + TEXT)
    ann.relay.start()
    for each, (happens, _, _) in zip(documents, REFUSALS, strict=True):
        happens(ann, each)
    answer = ann.on("first", "queue", "retry")
    assert answer.code == 1
    for each, row, (_, code, says) in zip(documents, ann.queued("first"), REFUSALS, strict=True):
        assert (row["state"], row["code"]) == ("refused", code)
        assert says in answer.err and says in row["reason"]
        assert ann.ok("first", "doc", "view", each, "--queued") == "mine " + TEXT
        looked = ann.on("first", "doc", "view", each)
        assert ("see: svc queue list" in looked.err) == (code != "not_found")
        if code != "document_archived":
            assert f"svc doc view {each} --queued" in row["reason"]
    with ann.relay_database() as database:
        database.execute("DELETE FROM document WHERE id = 'other'")
    ann.ok("first", "doc", "unarchive", document)
    ann.ok("first", "queue", "retry", ann.queued("first")[0]["id"])
    assert ann.text("first", document) == "mine " + TEXT


def test_what_was_edited_after_a_refused_edit_is_kept_with_it(ann: Ann, document: str) -> None:
    ann.relay.kill()
    ann.write("first", document, "one " + TEXT)
    ann.relay.start()
    ann.killed("first", "after Outbox.count_attempt", "queue", "retry")
    ann.relay.kill()
    ann.write("first", document, "one two " + TEXT)
    ann.relay.start()
    _archive(ann, document)
    assert ann.on("first", "queue", "retry").code == 1
    (row,) = ann.queued("first")
    assert ann.ok("first", "doc", "view", document, "--queued") == "one two " + TEXT
    ann.ok("second", "doc", "unarchive", document)
    ann.ok("first", "queue", "retry", row["id"])
    assert ann.text("second", document) == "one two " + TEXT


def test_a_document_that_this_device_has_not_seen_needs_the_server(ann: Ann, document: str) -> None:
    ann.relay.kill()
    answer = ann.write("third", document, "x")
    assert (answer.code, "svc login" in answer.err) == (4, True)
    answer = ann.on("first", "doc", "view", "d1")
    assert (answer.code, "cannot reach" in answer.err) == (1, True)
    answer = ann.on("first", "doc", "view", document, "--queued")
    assert (answer.code, "waits or was refused" in answer.err) == (1, True)
    assert not ann.queued("first")


def test_documents_are_made_and_archived_later(ann: Ann, document: str) -> None:
    ann.relay.kill()
    answer = ann.on("first", "doc", "create", "New")
    assert (answer.code, "with --queue" in answer.err) == (1, True)
    Path("list.json").write_text("[]")
    ann.ok("first", "doc", "create", "New", "-F", "list.json", "--queue")
    ann.ok("first", "doc", "archive", document, "--queue")
    assert [row["action"] for row in ann.queued("first")] == [
        "create document New",
        f"archive document {document}",
    ]
    ann.relay.start()
    ann.ok("first", "queue", "retry")
    listed = json.loads(ann.ok("second", "doc", "list", "--json", "id,title,archived"))[:2]
    assert [(row["title"], row["archived"]) for row in listed] == [("New", False), ("List", True)]
    assert ann.text("second", listed[0]["id"]) == "[]\n"
    answer = ann.on("first", "doc", "create", "New", "--local", "--queue")
    assert (answer.code, "waits for no server" in answer.err) == (2, True)


def test_what_was_seen_is_forgotten_with_the_sign_in_and_waits_are_not(
    svc: Svc, place: tuple[Path, Relay], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = Ann(svc, place[1], tmp_path / "homes", monkeypatch)
    ann.sign_in("leaves")
    document = created(ann)
    ann.relay.kill()
    ann.write("first", document, "mine " + TEXT)
    ann.on("first", "logout")
    with sqlite3.connect(ann.home("first") / seen_documents.FILE) as database:
        assert database.execute("SELECT count(*) FROM seen").fetchone() == (0,)
    assert len(ann.queued("first")) == 1
    ann.relay.start()


def test_a_damaged_file_of_documents_stops_no_work_with_the_server(ann: Ann, document: str) -> None:
    ann.relay.kill()
    ann.write("first", document, "mine " + TEXT)
    ann.relay.start()
    for file in ann.home("first").glob(f"{seen_documents.FILE}*"):
        file.unlink()
    file = ann.home("first") / seen_documents.FILE
    file.write_bytes(b"no database at all, but some other file" * 40)
    ann.ok("first", "queue", "retry")
    looked = ann.on("first", "doc", "view", document)
    assert (looked.code, looked.out) == (0, "mine " + TEXT)
    assert "not kept for times without the server" in looked.err
    assert ann.write("first", document, TEXT).code == 0
    file.unlink()


def _document(number: int, size: int = 10) -> Document:
    return Document(
        id=f"d{number}",
        title="T",
        mode=2,
        owner="ann",
        archived=False,
        frontier="7",
        at_head=True,
        checkpoint_id=None,
        created_at=f"2026-01-01T00:00:00.{number:03d}Z",
        updated_at="",
        content="x" * size,
    )


def test_documents_seen_are_bounded_in_count_and_bytes_and_the_owners_alone(tmp_path: Path) -> None:
    now = [0.0]
    seen = SeenDocuments(tmp_path / seen_documents.FILE, lambda: now[0])
    assert (tmp_path / seen_documents.FILE).stat().st_mode & 0o777 == 0o600
    for number in range(seen_documents.KEPT + 5):
        now[0] += 1
        seen.put("ann@node", _document(number))
    assert len(seen.items("ann@node")) == seen_documents.KEPT
    assert (seen.get("ann@node", "d4"), seen.get("ben@node", "d9")) == (None, None)
    for number in range(20):
        now[0] += 1
        seen.put("ann@node", _document(number, 1 << 20))
    assert len(seen.items("ann@node")) == seen_documents.KEPT_BYTES // (1 << 20) - 1
    assert seen.get("ann@node", "d19") == _document(19, 1 << 20)
    seen.close()


def test_an_older_answer_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    seen = SeenDocuments(tmp_path / seen_documents.FILE)
    newer = _document(1, 5)
    seen.put("ann@node", newer)
    seen.put("ann@node", structs.replace(newer, frontier="6"))
    assert seen.get("ann@node", "d1") == newer
    seen.close()


def test_an_action_that_was_joined_with_a_later_one_is_not_sent(tmp_path: Path) -> None:
    """Whoever read it before must look again."""
    outbox = Outbox(tmp_path / "outbox.db")
    first = outbox.revise("https://node", "u", "ann", "/documents/d1", lambda last: {"content": 1})
    second = outbox.revise("https://node", "u", "ann", "/documents/d1", lambda last: {"content": 2})
    assert not outbox.count_attempt(first.id)
    assert outbox.count_attempt(second.id)
    outbox.close()
