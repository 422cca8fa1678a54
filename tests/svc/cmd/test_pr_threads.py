"""`svc pr apply` signs what was worked out here; `svc pr comment` refuses words before it sends any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localstore.core import seal as seals
from localstore.core.encoding import b64u, unb64u
from localstore.core.model import seal as sealing
from localstore.core.model import thread as threads
from localstore.core.model.seal import PreparedSeals
from svc.api import Api
from tests.svc.cmd.test_merge import PAGE, Folder
from tests.svc.conftest import Svc


@pytest.fixture
def folder(alice: Svc, tmp_path: Path) -> Folder:
    """On `topic`, which is proposed as #1; line 2 is suggested otherwise."""
    found = Folder(alice, tmp_path / "work")
    found.push({"page": PAGE})
    found.ok("repo", "branch", "topic")
    found.ok("switch", "topic")
    found.push({"page": PAGE + "more\n"}, "more")
    found.ok("pr", "create", "--fill")
    found.ok("pr", "comment", "--path", "page", "--line", "2", "--suggest", "TWO")
    return found


def thread(folder: Folder) -> str:
    return str(json.loads(folder.ok("pr", "threads", "1", "--json", "id").out)[0]["id"])


def _payload(prepared: PreparedSeals, **changes: Any) -> PreparedSeals:
    (one,) = prepared.seals
    payload = msgspec.structs.replace(seals.decode(unb64u(one.bytes)), **changes)
    raw = seals.encode(payload)
    told = msgspec.structs.replace(one, bytes=b64u(raw), digest=seals.seal_id(raw))
    return msgspec.structs.replace(prepared, seals=[told])


@pytest.mark.parametrize(
    ("lie", "changes"),
    [
        ("tree", {"content_digest": "0" * 64}),
        ("branch", {"branch": "main"}),
        ("parent", {"parents": ["0" * 64]}),
        ("message", {"message": "Take everything"}),
        ("repository", {"repo_id": "another"}),
    ],
)
def test_another_seal_is_not_signed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, lie: str, changes: dict[str, Any]
) -> None:
    name, true = thread(folder), Api.send

    def send(api: Api, endpoint: Any, body: Any = None, query: Any = None, **path: str) -> Any:
        assert endpoint is not sealing.FINALIZE_SEALS, "it was signed"
        answer = true(api, endpoint, body, query, **path)
        return _payload(answer, **changes) if endpoint is threads.PREPARE else answer

    monkeypatch.setattr(Api, "send", send)
    folder.refused("pr", "apply", "1", name, says=lie)


def test_lines_that_were_not_commented_on_are_not_replaced(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says that the lines are somewhere else."""
    name, true = thread(folder), Api.items

    def items(api: Api, endpoint: Any, *args: Any, **path: Any) -> Any:
        for one in true(api, endpoint, *args, **path):
            place = msgspec.structs.replace(one.place, start=3, end=3)
            yield msgspec.structs.replace(one, place=place)

    monkeypatch.setattr(Api, "items", items)
    folder.refused("pr", "apply", "1", name, says="place")


def test_words_that_do_not_go_together(folder: Folder) -> None:
    lines = ["--path", "page", "--line"]
    for words, says in (
        (["--path", "page"], "--line"),
        (["--line", "1"], "--path"),
        ([*lines, "x"], "not a line"),
        ([*lines, "3-2"], "before"),
        ([*lines, "1", "--side", "old", "--suggest", "x"], "--side"),
        ([*lines, "1", "--thread", "x"], "--thread"),
        ([*lines, "1", "--edit-last"], "--edit-last"),
        (["--draft"], "--path"),
        (["--discard", "all"], "alone"),
    ):
        text = [] if "--suggest" in words else ["-b", "text"]
        folder.refused("pr", "comment", "1", *words, *text, says=says, code=2)


def test_what_strangers_write_does_not_steer_the_terminal(folder: Folder) -> None:
    folder.ok("pr", "comment", "1", "--path", "page", "--line", "1", "-b", "\x1b[31mred\u202e")
    out = folder.ok("pr", "threads", "1").out
    assert "red" in out
    assert not {"\x1b", "\u202e"} & set(out)


def test_what_waits_is_discarded(folder: Folder) -> None:
    for line in ("1", "3"):
        folder.ok("pr", "comment", "1", "--path", "page", "--line", line, "-b", f"on {line}", "--draft")
    first, last = json.loads(folder.ok("pr", "threads", "1", "--draft", "--json", "id").out)
    folder.refused("pr", "comment", "1", "--discard", first["id"], says="--yes", code=2)
    folder.refused("pr", "comment", "1", "--discard", thread(folder), says="svc pr threads 1 --draft")
    folder.ok("pr", "comment", "1", "--discard", first["id"], "--yes")
    left = json.loads(folder.ok("pr", "threads", "1", "--draft", "--json", "id").out)
    assert left == [last]
    folder.ok("pr", "comment", "1", "--discard", "all", "--yes")
    folder.refused("pr", "comment", "1", "--discard", "all", "--yes", says="nothing of yours waits")


def test_comments_for_scripts_have_the_lines(folder: Folder) -> None:
    shown = json.loads(folder.ok("pr", "view", "1", "--comments", "--json", "number,line_threads").out)
    (one,) = shown["line_threads"]
    assert (one["path"], one["start"], one["suggestion"]["text"]) == ("page", 2, "TWO")
    bare = json.loads(folder.ok("pr", "view", "1", "--json", "number,line_threads").out)
    assert bare["line_threads"] is None
