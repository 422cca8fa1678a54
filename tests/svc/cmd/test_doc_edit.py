"""`svc doc edit`: what was written in the editor stays when the change cannot be kept."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.svc.conftest import Svc

EDITOR = """
import pathlib, sqlite3, sys
what, home, file = sys.argv[1:]
pathlib.Path(file).write_text("what I wrote")
if what == "delete":
    with sqlite3.connect(home + "/documents.db") as database:
        database.execute("DELETE FROM document")
if what == "drop":
    with sqlite3.connect(home + "/documents.db") as database:
        database.execute("DROP TABLE document_update")
sys.exit(3 if what == "fail" else 0)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def document(svc: Svc) -> str:
    """The id of a document of this device."""
    Path("list.md").write_text("as it was")
    answer = svc("doc", "create", "List", "--local", "-F", "list.md", "--json", "id")
    return str(json.loads(answer.out)["id"])


def set_editor(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    script = Path("editor.py")
    script.write_text(EDITOR)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script.absolute()} {what} {os.environ['SVC_HOME']}")


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("fail", "ended with 3"),
        ("delete", "you have no document"),
        ("drop", "no such table"),
    ],
)
def test_what_was_written_stays_and_the_error_says_where(
    svc: Svc, document: str, temporary: Path, monkeypatch: pytest.MonkeyPatch, what: str, says: str
) -> None:
    set_editor(monkeypatch, what)
    answer = svc("doc", "edit", document)
    assert answer.code != 0
    assert says in answer.err and "something broke" not in answer.err
    (draft,) = temporary.glob("*/DOCUMENT.md")
    assert draft.read_text() == "what I wrote"
    assert f"what you wrote is in {draft}" in answer.err


def test_a_draft_is_removed_once_it_is_kept_and_if_nothing_was_written(
    svc: Svc, document: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_editor(monkeypatch, "write")
    assert svc("doc", "edit", document).code == 0
    assert svc("doc", "view", document).out == "what I wrote"
    monkeypatch.setenv("EDITOR", "false")
    answer = svc("doc", "edit", document)
    assert answer.code == 1 and "what you wrote" not in answer.err
    assert not list(temporary.iterdir())


def test_a_damaged_file_of_documents_is_one_error(svc: Svc, document: str) -> None:
    home = Path(os.environ["SVC_HOME"])
    for file in home.glob("documents.db*"):
        file.unlink()
    (home / "documents.db").write_bytes(b"no database at all, but some other file" * 40)
    answer = svc("doc", "view", document)
    assert answer.code == 1
    assert "put back a copy of it" in answer.err and "something broke" not in answer.err


def test_a_file_without_json_in_its_name_keeps_a_document_json(svc: Svc) -> None:
    """Else it would become one text, and what others change meanwhile would go with the former content."""
    Path("plan.json").write_text('{"tasks": ["one", "two"]}')
    made = json.loads(svc("doc", "create", "Plan", "--local", "-F", "plan.json", "--json", "id").out)["id"]
    Path("edited").write_text('{"tasks": ["one", "two", "three"]}')
    assert svc("doc", "edit", made, "-F", "edited").code == 0
    content = json.loads(svc("doc", "view", made, "--json", "content").out)["content"]
    assert content == {"tasks": ["one", "two", "three"]}
    Path("edited").write_text("no JSON")
    told = svc("doc", "edit", made, "-F", "edited")
    assert (told.code, "the document Plan is JSON: write an object" in told.err) == (2, True)
    assert json.loads(svc("doc", "view", made, "--json", "content").out)["content"] == content
    Path("word.json").write_text('"one word"')
    Path("word").write_text('"one word"')
    for file in ("word.json", "word"):
        told = svc("doc", "edit", made, "-F", file)
        assert (told.code, "a JSON string, which would make a text of it" in told.err) == (2, True)
