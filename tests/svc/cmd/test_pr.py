"""Proposals from the command line: which one is meant, gh's habits, refusals before anything is sent, hostile
texts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from localstore.core.model.limits import ISSUE_BODY_BYTES
from svc.flows.proposal import range_diff
from tests.svc.conftest import Answer, Svc

HOSTILE = "\x1b[2J\u202egnp.exe \x07[a](javascript:alert(1)) <script>"


@pytest.fixture
def linked(alice: Svc) -> Svc:
    """alice in a folder on branch `topic`, which has one seal more than `main`."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/app").code == 0
    Path("a.txt").write_text("one\n")
    assert alice("push", "-m", "First").code == 0
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    pushed(alice, "one\ntwo\n", "Count to two\n\nAs people do.")
    return alice


def pushed(svc: Svc, text: str, message: str) -> None:
    Path("a.txt").write_text(text)
    assert svc("push", "-m", message).code == 0


def opened(svc: Svc, *words: str) -> str:
    done = svc("pr", "create", *words)
    assert done.code == 0, done
    return done.out.strip()


def shown(svc: Svc, fields: str, *which: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(svc("pr", "view", *which, "--json", fields).out)
    return found


def on_terminal(monkeypatch: pytest.MonkeyPatch, svc: Svc, *words: str) -> Answer:
    """The same as people see it."""
    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout.__class__, "isatty", lambda _: True, raising=False)
        return svc(*words)


def test_what_is_open_or_closed_already_is_said_so(linked: Svc) -> None:
    opened(linked, "--fill")
    assert "Proposal #1 (Count to two) was open already" in linked("pr", "reopen", "1").err
    assert "Closed proposal #1" in linked("pr", "close", "1").err
    assert "Proposal #1 (Count to two) was closed already" in linked("pr", "close", "1").err
    assert "Reopened proposal #1" in linked("pr", "reopen", "1").err


def test_a_change_of_a_proposal_can_wait(linked: Svc) -> None:
    opened(linked, "--fill")
    for words in (
        ("comment", "1", "-b", "later"),
        ("react", "1", "heart"),
        ("edit", "#1", "-t", "Count"),
        ("ready", "1", "--undo"),
        ("close", "1"),
    ):
        queued = linked("pr", *words, "--queue")
        assert (queued.code, "Queued" in queued.err) == (0, True), queued
    assert shown(linked, "state,comments,title", "1") == {
        "state": "open",
        "comments": 0,
        "title": "Count to two",
    }
    for words in (
        ("comment", "1", "--edit-last", "-b", "x"),
        ("comment", "1", "--path", "a.txt", "--line", "1", "-b", "x"),
        ("comment", "1", "--discard", "all"),
        ("comment", "-b", "x"),
        ("comment", "topic", "-b", "x"),
        ("close", "1", "-c", "x"),
        ("edit", "1"),
        ("label", "add", "1", "a", "b", "--create"),
    ):
        assert linked("pr", *words, "--queue").code == 2, words
    assert linked("queue", "retry").code == 0
    assert shown(linked, "state,comments,title,draft", "1") == {
        "state": "closed",
        "comments": 1,
        "title": "Count",
        "draft": True,
    }


def test_comments_in_a_pipe_are_json(linked: Svc) -> None:
    opened(linked, "--fill")
    assert linked("pr", "comment", "1", "-b", "it's \u2028 here").code == 0
    told = dict(line.split("\t", 1) for line in linked("pr", "view", "1", "--comments").out.splitlines())
    assert json.loads(told["thread"])[0]["body"].startswith("it's ")
    assert "line_threads" in told


def test_a_terminal_shows_what_happened_among_the_comments(
    linked: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each event is one line with its sign, and no blank line stands between two of them. A pipe gets none of
    them."""
    opened(linked, "--fill")
    pushed(linked, "one\ntwo\nthree\n", "Count on")
    assert linked("pr", "close", "1").code == 0
    assert linked("pr", "reopen", "1").code == 0
    assert linked("pr", "comment", "1", "-b", "Better now").code == 0
    assert linked("pr", "ready", "1", "--undo").code == 0
    text = on_terminal(monkeypatch, linked, "pr", "view", "1", "--comments").out
    who = os.environ["TEST_HANDLE"]
    rows = text.split("As people do.")[1].strip().splitlines()
    assert rows[0].startswith(f"↑ {who} pushed ") and ", version 2, " in rows[0]
    assert rows[1].startswith(f"⊘ {who} closed it, ")
    assert rows[2].startswith(f"○ {who} opened it again, ")
    assert rows[3] == "" and rows[4].startswith(f"--- {who}, ") and rows[6] == "Better now"
    assert rows[8].startswith(f"◌ {who} made it a draft, ")
    assert "closed it" not in on_terminal(monkeypatch, linked, "pr", "view", "1").out
    assert "closed it" not in linked("pr", "view", "1", "--comments").out


def test_one_is_meant_by_number_address_branch_or_folder(linked: Svc) -> None:
    one = opened(linked, "--fill")
    assert one == "1"
    address = "https://node.example/apps/a/b/dev?tab=issues&n=1"
    for which in ((), ("1",), ("#1",), ("pr:1",), (address,), ("topic",)):
        assert shown(linked, "number,head,base", *which) == {"number": 1, "head": "topic", "base": "main"}
    for which in ("2", "#2", "none", "pr:2"):
        done = linked("pr", "view", which)
        assert (done.code, done.out) == (1, "")
    assert linked("switch", "main").code == 0
    assert linked("pr", "view").code == 1


def test_of_several_of_a_branch_the_open_one_is_meant(linked: Svc) -> None:
    opened(linked, "--fill")
    assert linked("pr", "close").code == 0
    assert shown(linked, "number,state") == {"number": 1, "state": "closed"}
    assert opened(linked, "--fill") == "2"
    assert shown(linked, "number") == {"number": 2}


def test_fill_takes_the_messages(linked: Svc) -> None:
    assert shown(linked, "title,body", opened(linked, "-f")) == {
        "title": "Count to two",
        "body": "As people do.",
    }
    assert linked("pr", "close", "1").code == 0
    pushed(linked, "one\ntwo\nthree\n", "Count to three")
    two = shown(linked, "title,body", opened(linked, "-f"))
    assert two == {"title": "Topic", "body": "- Count to two\n- Count to three"}
    assert linked("pr", "close", "2").code == 0
    three = shown(linked, "title,body", opened(linked, "-f", "-t", "Mine", "-b", "own"))
    assert three == {"title": "Mine", "body": "own"}


REFUSED: list[tuple[int, list[str]]] = [
    (2, ["pr", "create"]),
    (1, ["pr", "create", "-t", "t", "-B", "topic"]),
    (2, ["pr", "create", "-t", "t", "-b", "a", "-F", "a.txt"]),
    (2, ["pr", "create", "-t", "two\nlines"]),
    (2, ["pr", "create", "-t", "x" * 300]),
    (2, ["pr", "create", "-t", "t", "-b", "x" * (ISSUE_BODY_BYTES + 1)]),
    (1, ["pr", "create", "-t", "t", "-B", "none"]),
    (1, ["pr", "create", "-t", "t", "-r", "@me"]),
    (1, ["pr", "create", "-t", "t", "-l", "none"]),
    (2, ["pr", "list", "-l", "a,b"]),
    (2, ["pr", "list", "-s", "gone"]),
    (2, ["pr", "diff", "--stat", "--name-only"]),
    (2, ["pr", "review"]),
    (2, ["pr", "review", "--approve", "--request-changes", "-b", "x"]),
    (1, ["pr", "review", "--request-changes"]),  # there is none; comments may wait on one
    (1, ["pr", "review", "--comment", "-b", " "]),
    (2, ["pr", "review", "--approve", "--dismiss", "bob"]),
    (2, ["pr", "comment"]),
    (2, ["pr", "edit"]),
    (2, ["pr", "react", "1", "shrug"]),
]


def test_what_is_wrong_is_refused_and_changes_nothing(linked: Svc) -> None:
    for code, words in REFUSED:
        done = linked(*words)
        assert (done.code, done.out) == (code, ""), (words, done)
    assert json.loads(linked("pr", "list", "--state", "all", "--json", "number").out) == []


def test_refusals_of_the_server_keep_their_words(linked: Svc) -> None:
    opened(linked, "--fill", "--draft")
    for words, code, said in (
        (("pr", "review", "--approve"), 1, "#1 is yours"),
        (("pr", "review", "--request-changes"), 2, "say what is to change"),
        (("pr", "create", "--fill"), 1, "#1 proposes"),
        (("pr", "create", "--fill", "--head", "main", "--base", "main"), 1, "proposed for itself"),
        (("pr", "range-diff", "1"), 1, "one version"),
        (("pr", "range-diff", "1", "2"), 2, "names no two versions"),
        (("pr", "diff", "--since-review"), 1, "not reviewed"),
        (("pr", "label", "remove", "1", "none"), 1, "has no label none"),
    ):
        done = linked(*words)
        assert done.code == code, (words, done)
        assert said in done.err, (words, done)


def test_lists_are_filtered(linked: Svc) -> None:
    opened(linked, "--fill", "-d")
    for words, numbers in (
        ((), [1]),
        (("-A", "@me", "-L", "1"), [1]),
        (("--author", "@" + os.environ["TEST_HANDLE"]), [1]),
        (("-r", "@me"), []),
        (("-H", "topic", "-B", "main", "-d"), [1]),
        (("-S", "COUNT"), [1]),
        (("-s", "merged"), []),
    ):
        found = json.loads(linked("pr", "list", *words, "--json", "number").out)
        assert [one["number"] for one in found] == numbers, words
    assert linked("pr", "ready").code == 0
    assert json.loads(linked("pr", "list", "-d", "--json", "number").out) == []
    assert linked("pr", "ready", "--undo").code == 0
    (mine,) = json.loads(linked("pr", "status", "--json", "number,why").out)
    assert mine == {"number": 1, "why": ["branch", "author"]}


def test_what_a_version_changes(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(linked, "--fill")
    assert linked("pr", "diff", "--name-only").out == "a.txt\n"
    assert "+two\n" in linked("pr", "diff", "1").out
    (file,) = json.loads(linked("pr", "diff", "--json", "path,additions").out)
    assert file == {"path": "a.txt", "additions": 1}
    reviewed = linked("pr", "review", "-b", "looked", "--json", "verdict,body")
    assert json.loads(reviewed.out) == {"verdict": "comment", "body": "looked"}
    pushed(linked, "one\ntwo\nthree\n", "Count to three")
    since = linked("pr", "diff", "--since-review").out
    assert "+three\n" in since
    assert "+two\n" not in since
    pairs = json.loads(linked("pr", "range-diff", "1", "1..2", "--json", "mark,old,new").out)
    assert pairs == [{"mark": "=", "old": 1, "new": 1}, {"mark": ">", "old": None, "new": 2}]
    assert [one["n"] for one in json.loads(linked("pr", "versions", "--json", "n").out)] == [1, 2]
    for name in ("CHANGE_LINES", "CHANGE_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(range_diff, name, 3)
            told = linked("pr", "range-diff", "1")
            assert (told.code, "so much is not compared" in told.err) == (2, True), told


def test_a_deleted_branch_is_shown_by_its_newest_version(linked: Svc) -> None:
    opened(linked, "--fill")
    assert linked("switch", "main").code == 0
    assert linked("pr", "checkout", "1").code == 0
    assert linked("status", "--json", "branch").code == 0
    assert linked("switch", "main").code == 0
    assert linked("repo", "branch-delete", "topic", "--yes").code == 0
    assert linked("pr", "checkout", "1").code == 0
    assert Path("a.txt").read_text() == "one\ntwo\n"


def test_hostile_texts_are_escaped(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(linked, "-t", "\u202eexe.png", "-b", HOSTILE)
    assert linked("pr", "review", "-c", "-b", HOSTILE).code == 0
    assert linked("pr", "comment", "-b", HOSTILE).code == 0
    for words in (("view", "-c"), ("list",), ("status",)):
        done = on_terminal(monkeypatch, linked, "pr", *words)
        assert done.code == 0
        for bad in ("\x1b[2J", "\u202e", "\x07"):
            assert bad not in done.out + done.err, (words, done.out)
    assert shown(linked, "body")["body"] == HOSTILE


def test_the_newest_seal_of_a_proposal_is_named_wherever_a_seal_is(linked: Svc) -> None:
    opened(linked, "--fill")
    seal = shown(linked, "head_seal")["head_seal"]
    assert linked("repo", "branch", "again", "--from", "pr:1").code == 0
    assert linked("repo", "branch", "--jq", '.[] | select(.name == "again") | .head').out.strip() == seal
    assert linked("show", "pr:1", "--jq", ".id").out.strip() == seal
    assert "two" in linked("show", "pr:1:a.txt").out
    assert linked("log", "pr:1", "-n", "1", "--jq", ".[].id").out.strip() == seal
    assert linked("repo", "run", "create", "ci", "--seal", "pr:1", "--conclusion", "success").code == 0
    missing = linked("repo", "branch", "more", "--from", "pr:9")
    assert (missing.code, "no branch, tag or seal pr:9" in missing.err) == (1, True)


def test_a_diff_without_changes_says_so(linked: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(linked, "--fill")
    repo = f"{os.environ['TEST_HANDLE']}/app"
    assert linked("repo", "visibility", "public", "--yes").code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    assert linked("login", "--device-key", "--handle", f"{os.environ['TEST_HANDLE'][:30]}-bob").code == 0
    assert linked("pr", "review", "1", "--approve", "-R", repo).code == 0
    told = linked("pr", "diff", "1", "--since-review", "-R", repo)
    assert (told.code, told.out) == (0, "")
    assert "#1 changes nothing since your review" in told.err


def test_what_is_closed_has_no_merge_state(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(linked, "--fill")
    assert "merge_state\t" in linked("pr", "view", "1").out
    assert linked("pr", "close", "1").code == 0
    assert "merge_state" not in linked("pr", "view", "1").out
    assert "merge state" not in on_terminal(monkeypatch, linked, "pr", "view", "1").out
    assert "merge_state" in shown(linked, "merge_state", "1"), "a script gets the fields that it asks for"
