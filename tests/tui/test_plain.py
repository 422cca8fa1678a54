"""The line mode: numbered choices, words and nothing that moves a cursor."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from localstore.core.errors import NotFound
from tests.svc.conftest import Answer, Svc
from tests.tui.proposal.test_proposals import proposal
from tests.tui.test_app import project
from tui.pages import Page
from tui.plain import LineMode, Visit
from tui.reads import Read

__all__ = ["project", "proposal"]


@pytest.fixture
def typed(alice: Svc, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def run(*lines: str) -> Answer:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return alice("tui", "--plain")

    return run


def test_a_file_by_numbers(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    answer = typed("1", "1", "1", "1", "q")
    assert answer.code == 0
    assert project in answer.out
    assert "    return 2" in answer.out


def test_history_and_what_a_seal_changed(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "2", "1", "b", "b", "q").out
    assert "Second" in out
    assert "+    return 2" in out


def test_a_filter_leaves_what_matches(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "1", "/readme", "q").out
    assert out.split("/word filter")[-2].count("\n   1 README.md") == 1
    assert "src/" not in out.split("/word filter")[-2]


def test_nothing_moves_the_cursor(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "1", "1", "9", "nonsense", "b", "b", "b").out
    assert "\x1b" not in out
    assert "nonsense is none of the choices" in out
    assert all(ord(character) < 0x2500 for character in out)


def test_a_comment_is_on_the_page_that_follows_it(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    menu = typed("1", "q").out
    issues = choice(menu, "issues")
    out = typed("1", issues, "1", "1", "Here too:", "", "always", ".", "q").out
    _, after = out.split("a line with only ! leaves it:")
    new = after.split("/word")[0]
    assert new.split("\n")[-4:-1] == ["  Here too:", "  ", "  always"], new
    assert "  hangs" not in new  # the whole page is not read again
    left = typed("1", issues, "1", "1", "Never", "!", "q").out
    assert "nothing was sent" in left
    assert "Never" not in typed("1", issues, "1", "q").out


def test_what_a_typed_command_changes_is_read_and_it_is_about_the_page(  # type: ignore[no-untyped-def]
    busy: str, typed
) -> None:
    issues = choice(typed("1", "q").out, "issues")
    out = typed("1", issues, "1", ":issue comment -b 'By command'", ":issue close", "q").out
    assert "comment by" in out.split("By command")[0] and "  By command" in out
    assert out.split("  By command")[1].count("closed, by") == 1
    assert "reopen" in out.split("closed, by")[1]


def test_a_question_mark_lists_what_can_be_typed(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    menu = typed("1", "q").out
    out = typed("1", choice(menu, "issues"), "?", "1", "?", "q").out
    first, second = out.split("what can be typed here:")[1:]
    assert "label:" in first and "alone: all" in first
    assert "the next line with that word" in second and "#2 and" in second
    assert "\n   1 comment\n   2 close\n" in second
    assert "such as :issue edit --add-label NAME" in second


def test_a_review_and_a_merge_by_numbers(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    proposals = choice(typed("1", "q").out, "proposals")
    page = typed("1", proposals, "1", "q").out
    thread, merge = choice(page, "thread on"), choice(page, "merge")
    out = typed("1", proposals, "1", thread, "1", "Yes", ".", "2", "q").out
    assert "  Yes" in out and "resolved, on src/main.py" in out
    out = typed("1", proposals, "1", merge, "q").out
    out += typed("1", proposals, "1", merge, choice(out, "squash"), "b", "q").out
    assert "is merged" in out, out
    assert "merged, by" in out


def test_a_text_is_read_from_a_line_and_from_a_word(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "1", "/main", "1", "2", "/def", "/nowhere", "", "q").out
    assert "files with main, 1" in out and "   1 src/main.py" in out
    assert "line 2 of" in out
    assert "from the beginning again" in out
    assert "no line has nowhere" in out
    assert "that was all of it" in out


def test_a_filtered_list_stays_when_one_comes_back_to_it(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    issues = choice(typed("1", "q").out, "issues")
    out = typed("1", issues, "/state:open", "1", "b", "q").out
    assert out.count("filter: state:open") == 2


def test_the_end_of_the_input_ends_it(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    assert typed("1").code == 0


@pytest.fixture
def busy(proposal: str, alice: Svc) -> str:
    """A repository with something on every page."""
    seal = json.loads(alice("log", "topic", "--json", "id").out)[0]["id"]
    words = ["repo", "run", "create", "lint", "--seal", seal, "--conclusion", "failure"]
    assert alice(*words, "--summary", "Two lines").code == 0
    assert alice("issue", "create", "-t", "Stalls", "-b", "It\nhangs").code == 0
    assert alice("pr", "comment", "1", "-b", "Why\x1b[2J?").code == 0
    thread: dict[str, object] = {
        "path": "src/main.py",
        "start": 2,
        "end": 2,
        "seal_id": seal,
        "body": "Four is better",
    }
    thread["suggestion"] = "    return 4"
    made = alice("repo", "api", "repos/{id}/proposals/1/threads", "-X", "POST", "-d", json.dumps(thread))
    assert made.code == 0, made
    assert alice("switch", "main").code == 0
    words = ("data.bin", "--notes", "First\n\nGood.", "--sign")
    assert alice("repo", "release", "create", "v1", *words).code == 0
    assert alice("repo", "protect", "set", "release/*", "--require-checks").code == 0
    return proposal


def choice(out: str, words: str) -> str:
    """The number of the choice that begins with these words."""
    line = next(line for line in reversed(out.split("\n")) if line.strip()[2:].strip().startswith(words))
    return line.split()[0]


def test_each_newer_page_is_readable_lines(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    menu = typed("1", "q").out
    said = []
    for name, words in (
        ("issues", ["#2 open  Stalls"]),
        ("proposals", ["#1 open  Return three", "1 failed"]),
        ("workflows", ["lint fail  on topic"]),
        ("releases", ["v1  First  1 file"]),
        ("security", ["Security: 0 advisories, 1 rule", "rule for branches release/*"]),
        ("insights", ["0 dependencies, 0 dependents"]),
        ("settings", ["  default branch: main", "  visibility: private", "General", "Lifecycle"]),
    ):
        out = typed("1", choice(menu, name), "q").out
        assert [one for one in words if one not in out] == [], out
        said.append(out)
    number = choice(menu, "proposals")
    out = typed("1", number, "1", "q").out
    for one in (
        "topic into main",
        "check lint: fail",
        "Because it is odd.",
        "thread on src/main.py:2, open",
    ):
        assert one in out, out
    assert "Why\\x1b[2J?" in out or "Why" in out
    out += typed("1", number, "1", choice(out, "thread on"), "q").out
    assert "Four is better" in out and "    return 4" in out
    out += typed("1", number, "1", choice(out, "changed lines"), "q").out
    assert "+    return 3" in out
    out += typed("1", choice(menu, "issues"), choice(said[0], "#2"), "q").out
    assert "  hangs" in out
    out += typed("1", choice(menu, "workflows"), "1", "q").out
    assert "  Two lines" in out
    out += typed("1", choice(menu, "releases"), "1", "q").out
    assert "file data.bin, 256 bytes" in out and "\nsigned\n" in out
    out += typed(choice(typed("q").out, "inbox"), "q").out
    assert "Inbox" in out
    everything = "".join(said) + out
    assert "\x1b" not in everything
    assert [character for character in everything if ord(character) >= 0x2500] == []


class _Speaking:
    """A server whose answers carry escape sequences where nobody expects any."""

    account, origin = "", "http://127.0.0.1:1"

    def read_cached(self, read: Read[Any]) -> None:
        return None

    def fetch(self, read: Read[Any]) -> Any:
        raise NotFound("\x1b[2Jgone\x1b]0;owned\x07")


def test_an_error_of_a_server_does_not_steer_the_terminal() -> None:
    out = io.StringIO()
    LineMode(_Speaking(), lambda: 0.0, io.StringIO(), out).run()  # type: ignore[arg-type]
    assert out.getvalue() == "\\x1b[2Jgone\\x1b]0;owned\\x07\n"


def test_a_command_runs_at_the_server_that_is_shown_and_nothing_of_the_folder(
    project: str, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("svc").mkdir()
    Path("svc/__init__.py").write_text("print('the code of the folder runs')\n")
    monkeypatch.setenv("SVC_SERVER", "http://127.0.0.1:9")
    client = _Speaking()
    client.origin = node
    kept = os.dup(1)
    with (tmp_path / "said").open("w+") as said:
        os.dup2(said.fileno(), 1)  # the command writes there, not to `out`
        lines = LineMode(client, lambda: 0.0, io.StringIO(":repo list\nq\n"), io.StringIO())  # type: ignore[arg-type]
        lines._visit(Page("Home"), Visit(lambda: Page("Home")))
        os.dup2(kept, 1)
        said.seek(0)
        text = said.read()
    os.close(kept)
    assert project in text
    assert "the code of the folder" not in text
