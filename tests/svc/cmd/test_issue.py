"""Issues from the command line: gh's habits, templates, hostile texts, an editor."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from localstore.core.model.limits import ISSUE_BODY_BYTES
from svc.cmd.frame.complete import answer
from svc.cmd.issue.words import number_of
from svc.console import Out
from svc.flows.templates import parse
from tests.svc.conftest import Answer, Svc

HOSTILE = "\x1b[2J\u202egnp.exe \x07[a](javascript:alert(1)) <script>"


@pytest.fixture
def linked(alice: Svc) -> Svc:
    """alice in a linked folder with one seal."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/app").code == 0
    Path("a.txt").write_text("one\n")
    assert alice("push", "-m", "First").code == 0
    return alice


def opened(svc: Svc, *words: str) -> str:
    done = svc("issue", "create", *words)
    assert done.code == 0, done
    return done.out.strip()


def shown(svc: Svc, number: str, fields: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(svc("issue", "view", number, "--json", fields).out)
    return found


def on_terminal(monkeypatch: pytest.MonkeyPatch, svc: Svc, *words: str) -> Answer:
    """The same as people see it."""
    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout.__class__, "isatty", lambda _: True, raising=False)
        return svc(*words)


@pytest.mark.parametrize("typed", ["12", "#12", "https://node.example/apps/a/b/issues/12", "http://n/x?n=12"])
def test_a_number_is_written_in_many_ways(typed: str) -> None:
    assert number_of(typed) == "12"


@pytest.mark.parametrize("typed", ["", "0", "-1", "x", "1.5", "١", "9" * 19, "#", "\x1b[2J"])
def test_what_is_no_number_is_a_usage_error(svc: Svc, typed: str) -> None:
    done = svc("issue", "view", "--", typed)
    assert (done.code, done.out) == (2, "")
    assert "\x1b" not in done.err


def test_texts_come_from_options_files_and_standard_input(
    linked: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("report.md").write_text("# What\n\nIt ends.\n")
    one = opened(linked, "-t", "one", "-F", "report.md")
    assert shown(linked, one, "body")["body"] == "# What\n\nIt ends.\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("ä\n".encode())))
    assert linked("issue", "comment", one, "-F", "-").code == 0
    assert linked("issue", "comment", one, "-b", "a", "-F", "report.md").code == 2
    for words in (("-b", "x" * (ISSUE_BODY_BYTES + 1)), ("-F", "missing.md"), ("-b", " \n")):
        assert linked("issue", "comment", one, *words).code == 2, words
    Path("large.md").write_bytes(b"x" * (ISSUE_BODY_BYTES + 1))
    Path("bytes.md").write_bytes(b"\xff")
    for name in ("large.md", "bytes.md"):
        assert linked("issue", "create", "-t", "x", "-F", name).code == 2
    thread = shown(linked, f"#{one}", "thread")
    assert thread["thread"] is None
    said = json.loads(linked("issue", "view", one, "--comments", "--json", "thread").out)["thread"]
    assert [item["body"] for item in said] == ["ä\n"]


def test_the_last_comment_is_edited_and_deleted(linked: Svc) -> None:
    one = opened(linked, "-t", "one")
    assert linked("issue", "comment", one, "--edit-last", "-b", "x").code == 1
    for text in ("first", "second"):
        assert linked("issue", "comment", one, "-b", text).code == 0
    assert linked("issue", "comment", one, "--edit-last", "-b", "changed").code == 0
    said = json.loads(linked("issue", "view", one, "-c", "--json", "thread").out)["thread"]
    assert [item["body"] for item in said] == ["first", "changed"]
    assert linked("issue", "comment", one, "--delete-last").code == 2
    assert linked("issue", "comment", one, "--delete-last", "--yes").code == 0
    assert linked("issue", "comment", one, "--delete-last", "-b", "x").code == 2
    assert shown(linked, one, "comments")["comments"] == 1


def test_hostile_texts_are_escaped_where_people_read_them(
    linked: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = opened(linked, "-t", "plain \u202etitle", "-b", HOSTILE)
    assert linked("issue", "comment", one, "-b", HOSTILE).code == 0
    for words in (("issue", "view", one, "--comments"), ("issue", "list"), ("issue", "status")):
        for done in (linked(*words), on_terminal(monkeypatch, linked, *words)):
            assert done.code == 0
            assert not {"\x1b", "\x07", "\u202e"} & set(done.out + done.err), words
    assert "javascript:alert(1)" in linked("issue", "view", one).out
    assert shown(linked, one, "body")["body"] == HOSTILE


def test_many_labels_and_people_in_one_word(linked: Svc) -> None:
    for name in ("bug", "ui"):
        assert linked("label", "create", name).code == 0
    one = opened(linked, "-t", "x", "-l", "Bug, ui", "-a", "@me")
    found = shown(linked, one, "labels,assignees")
    assert found == {"labels": ["bug", "ui"], "assignees": [os.environ["TEST_HANDLE"]]}
    assert linked("issue", "edit", one, "--remove-label", "bug,ui", "--remove-assignee", "@me").code == 0
    assert shown(linked, one, "labels,assignees") == {"labels": [], "assignees": []}
    assert linked("issue", "edit", one).code == 2
    assert linked("issue", "list", "--label", "bug,ui").code == 2
    assert linked("issue", "label", "add", one, "nosuch").code == 1
    refused = linked("issue", "label", "remove", one, "ui")
    assert refused.code == 1
    assert f"issue #{one} of" in refused.err and "has no label ui" in refused.err
    assert linked("issue", "list", "-A", "@me", "-s", "all", "-S", "X", "-L", "1").out.startswith(f"{one}\t")
    assert linked("issue", "react", one, "👍").out == "+1\n"
    assert linked("issue", "react", one, "-1").out == "-1\n"
    assert linked("issue", "react", one, "laugh").code == 2
    assert linked("issue", "close", one, "-r", "not planned").code == 0
    assert shown(linked, one, "state,state_reason") == {"state": "closed", "state_reason": "not_planned"}
    assert linked("issue", "list").out == ""


def test_completion_offers_what_was_listed(linked: Svc) -> None:
    assert linked("label", "create", "bug").code == 0
    one = opened(linked, "-t", "a title")
    home = {"SVC_HOME": os.environ["SVC_HOME"]}
    assert answer(["issue", "view", ""], home, Path.cwd()) == f"{one}\ta title\n"
    assert answer(["issue", "list", "--label", "b"], home, Path.cwd()) == "bug\t\n"
    assert linked("label", "delete", "bug", "--yes").code == 0
    assert answer(["issue", "create", "-l", ""], home, Path.cwd()) == ""


TEMPLATE = """---
name: Bug report
about: Something does not work
title: "[bug] "
labels: [bug]
assignees: ''
---

## What happened
"""


def test_a_template_begins_an_issue(linked: Svc, tmp_path: Path) -> None:
    folder = Path(".github/ISSUE_TEMPLATE")
    folder.mkdir(parents=True)
    (folder / "bug.md").write_text(TEMPLATE)
    (folder / "config.yml").write_text("blank_issues_enabled: false\n")
    assert linked("label", "create", "bug").code == 0
    one = opened(linked, "-t", "Crash", "-T", "bug report")
    assert shown(linked, one, "body,labels") == {"body": "## What happened\n", "labels": ["bug"]}
    done = linked("issue", "create", "-t", "x", "-T", "other")
    assert (done.code, "there are: Bug report" in done.err) == (1, True)
    # From elsewhere it is read from the newest seal.
    assert linked("push", "-m", "Templates").code == 0
    os.chdir(tmp_path)
    two = opened(linked, "-t", "Crash", "-T", "bug report", "-R", f"{os.environ['TEST_HANDLE']}/app")
    found = linked("issue", "view", two, "-R", f"{os.environ['TEST_HANDLE']}/app", "--json", "body")
    assert json.loads(found.out)["body"] == "## What happened\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("---\nname: &a [*a]\n---\nx", "aliases"),
        ("---\nname: [\n---\nx", "not valid YAML"),
        ("---\n- a\n---\nx", "no mapping"),
        ("---\nlabels: {a: b}\nname: [1]\n---\nx", ""),
        ("---\nname: " + "[" * 60_000 + "\n---\nx", "nested deeper"),  # ended the process
        ("---\n" + "- " * 20_000 + "\n---\nx", "nested deeper"),
        ("---\n" + "{" * 5000 + "\n---\nx", "nested deeper"),
        ("---\nname: \x01\n---\nx", "characters that YAML does not allow"),
        ("---\nno end", ""),
    ],
)
def test_a_hostile_template_says_why_it_cannot_be_read(text: str, fault: str) -> None:
    found = parse("a/b.md", text.encode())
    assert found is not None
    assert (found.name, found.labels) == ("b", ())
    assert (fault in found.fault) and bool(found.fault) == bool(fault)


def test_a_template_that_cannot_be_read_is_said_to_be(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(".github/ISSUE_TEMPLATE")
    folder.mkdir(parents=True)
    (folder / "bug.md").write_text("---\nname: " + "[" * 60_000 + "\n---\nbody")
    told = linked("issue", "create", "-t", "x", "--from-template", "bug")
    assert (told.code, told.out) == (1, "")
    assert "the front matter of the template bug is nested deeper than 32 levels" in told.err
    assert "-t TITLE" in told.err
    assert linked("issue", "list").out == ""


def test_what_is_no_template_is_none() -> None:
    assert parse("a.md", b"\xff") is None
    assert parse("a.md", b"x" * (ISSUE_BODY_BYTES + 1)) is None


def test_an_editor_writes_title_and_text(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line with # is text here; what stands below the cut is not. A refused text stays in its file."""
    script = Path("editor.sh")
    script.write_text(
        '#!/bin/sh\nprintf "The title\\n\\n# Head\\ntext\\n" > "$1.new"\n'
        'cat "$1" >> "$1.new"\nmv "$1.new" "$1"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(script.resolve()))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(Out, "interactive", True)
    one = opened(linked)
    assert shown(linked, one, "title,body") == {"title": "The title", "body": "# Head\ntext"}
    assert linked("issue", "edit", one).code == 0
    assert shown(linked, one, "body")["body"] == "# Head\ntext\nThe title\n\n# Head\ntext"
    assert linked("issue", "comment", one).code == 0
    script.write_text(f'#!/bin/sh\nprintf "{"t" * 300}\\n" > "$1"\n')
    done = linked("issue", "create")
    assert done.code == 2
    kept = Path(done.err.split("your text is in ")[1].splitlines()[0])
    assert kept.read_text().startswith("ttt")
    script.write_text('#!/bin/sh\n: > "$1"\n')
    assert linked("issue", "create").code == 1


def test_one_change_can_wait(linked: Svc) -> None:
    one = opened(linked, "-t", "one")
    for words in (("comment", one, "-b", "later"), ("react", one, "+1"), ("close", one)):
        done = linked("issue", *words, "--queue")
        assert (done.code, "Queued" in done.err) == (0, True), done
    assert linked("issue", "create", "-t", "two", "--queue").code == 0
    for words in (("comment", one, "--edit-last", "-b", "x"), ("close", one, "-c", "x"), ("edit", one)):
        assert linked("issue", *words, "--queue").code == 2, words
    assert shown(linked, one, "state,comments") == {"state": "open", "comments": 0}
    assert linked("queue", "retry").code == 0
    assert shown(linked, one, "state,comments") == {"state": "closed", "comments": 1}
    assert "two" in linked("issue", "list").out


def test_a_template_goes_by_its_name_and_by_its_file(linked: Svc) -> None:
    for file, name in (("bug.md", "Bug report"), ("other.md", "Idea"), ("late.md", "Other")):
        path = Path(".github/ISSUE_TEMPLATE", file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {name}\n---\n{file}\n")
    for typed, begun in (("bug", "bug.md"), ("bug report", "bug.md"), ("Other", "late.md")):
        made = linked("issue", "create", "-t", "x", "--from-template", typed, "--jq", ".body")
        assert (made.code, made.out.strip()) == (0, begun), made
    assert "there are: Bug report, Other, Idea" in linked("issue", "create", "--from-template", "nope").err


def test_a_label_with_a_comma_is_quoted(linked: Svc) -> None:
    """As a field of CSV, like gh's own flags take it."""
    name = "area: db,cache"
    assert linked("label", "create", name, "-c", "112233").code == 0
    assert linked("label", "create", "ui", "-c", "445566").code == 0
    one = opened(linked, "-t", "one", "-l", f'ui,"{name}"')
    assert sorted(shown(linked, one, "labels")["labels"]) == [name, "ui"]
    for words in (("edit", one, "--remove-label"), ("edit", one, "--add-label"), ("label", "remove", one)):
        assert linked("issue", *words, f'"{name}"').code == 0, words
    assert shown(linked, one, "labels")["labels"] == ["ui"]
    assert linked("issue", "label", "add", one, f'"{name}"').code == 0
    assert linked("issue", "list", "--label", f'"{name}"', "--jq", ".[].number").out == f"{one}\n"
    told = linked("issue", "list", "--label", name)
    assert (told.code, f"""'"{name}"'""" in told.err) == (2, True), told
    assert linked("pr", "list", "--label", name).code == 2


def test_a_terminal_shows_what_happened_to_an_issue(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who assigned whom, labels, and that it was closed stand among the comments. A pipe gets none of it."""
    assert linked("issue", "create", "-t", "An end", "-b", "Some text").code == 0
    assert linked("issue", "label", "add", "1", "bug", "--create").code == 0
    assert linked("issue", "edit", "1", "--add-assignee", "@me").code == 0
    assert linked("issue", "comment", "1", "-b", "Better now").code == 0
    assert linked("issue", "edit", "1", "--remove-assignee", "@me").code == 0
    assert linked("issue", "close", "1").code == 0
    text = on_terminal(monkeypatch, linked, "issue", "view", "1", "--comments").out
    who = os.environ["TEST_HANDLE"]
    rows = text.split("Some text")[1].strip().splitlines()
    assert rows[0].startswith(f"● {who} added the label bug, ")
    assert rows[1].startswith(f"→ {who} assigned @{who}, ")
    assert rows[2] == "" and rows[3].startswith(f"--- {who}, ") and rows[5] == "Better now"
    assert rows[7].startswith(f"→ {who} unassigned @{who}, ")
    assert rows[8].startswith(f"✓ {who} closed it, ")
    assert "closed it" not in on_terminal(monkeypatch, linked, "issue", "view", "1").out
    assert "closed it" not in linked("issue", "view", "1", "--comments").out
