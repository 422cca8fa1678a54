"""The line mode: numbered choices, words and nothing that moves a cursor."""

from __future__ import annotations

import io
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localstore.agent.talk import ApiResponse
from localstore.core.errors import NotFound, ServerUnreachable
from localstore.core.model.history import ChangedFile
from tests.svc.cmd.test_commands import on_a_terminal
from tests.svc.conftest import Answer, Svc
from tests.tui.proposal.test_proposals import proposal
from tests.tui.test_app import project
from tui.client import Client
from tui.page import Choice, Page
from tui.page_acts import NOTE, Act, Missing
from tui.pages import changed_lines
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
    filtered = out.split("? help")[-2]
    assert filtered.count("\n   1 README.md") == 1
    assert "src/" not in filtered and filtered.endswith("1, / lists all, b back, ")


def test_nothing_moves_the_cursor(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "1", "b", "b", "nonsense").out
    assert "\x1b" not in out
    assert "nonsense is none of the choices" in out
    assert all(ord(character) < 0x2500 for character in out)


def test_a_comment_is_on_the_page_that_follows_it(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    menu = typed("1", "q").out
    issues = choice(menu, "issues")
    out = typed("1", issues, "1", "1", "Here too:", "", "always", ".", "q").out
    _, after = out.split("a line with only ! leaves it:")
    new = after.split("1 to")[0]
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
    assert out.split("  By command")[1].count("closed, written by") == 1
    assert "reopen" in out.split("closed, written by")[1]


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
    assert "  Yes" in out and "resolved, on line 2 of src/main.py" in out
    out = typed("1", proposals, "1", merge, "q").out
    out += typed("1", proposals, "1", merge, choice(out, "squash"), "q").out
    assert "\nMerged #1" in out, out
    assert "merged, proposed by" in out


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


def test_a_filter_without_hits_leaves_no_number_to_type(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    answer = typed("1", "issues", "/zzzz", "1", "A title", "q")
    assert "new issue" not in answer.out.split("zzzz", 1)[1]
    assert "1 is none of the choices" in answer.out and answer.code == 1


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
        ("proposals", ["#1 open  Return three", "1 check failed, 0 of 1 checks passed  @"]),
        ("workflows", ["lint fail  on topic"]),
        ("releases", ["v1  First  1 file"]),
        ("security", ["Security: 0 advisories, 1 rule", "rule for branches release/*"]),
        ("insights", ["0 dependencies, 0 dependents"]),
        ("settings", ["default branch: main", "visibility: private", "rule for branches release/*: "]),
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
        "thread on src/main.py:2, open, 1 comment, @",
        ": Four is better",
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


def test_what_is_typed_on_a_page_is_about_its_repository(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    menu = typed("1", "q").out
    for words in ("history", "workflows", "releases", "security", "insights", "settings"):
        out = typed("1", choice(menu, words), "?", "q").out
        assert f"; {busy} may be left out" in out, words
        if words in ("workflows", "releases"):
            assert f"; {busy} may be left out" in typed("1", choice(menu, words), "1", "?", "q").out, words


def test_what_is_typed_on_a_page_without_a_seal_is_about_it(  # type: ignore[no-untyped-def]
    project: str, alice: Svc, typed
) -> None:
    assert alice("repo", "create", "empty").code == 0
    empty = f"{project.partition('/')[0]}/empty"
    number = choice(typed("q").out, empty)
    out = typed(number, "?", ":issue create -t Here", choice(typed(number, "q").out, "issues"), "q").out
    assert "nothing is sealed yet" in out and f"; {empty} may be left out" in out
    assert "#1 open  Here" in out
    assert json.loads(alice("issue", "list", "-R", project, "--json", "number").out) == []


def _line_mode(source: str) -> tuple[LineMode, io.StringIO]:
    out = io.StringIO()
    return LineMode(_Speaking(), lambda: 0.0, io.StringIO(source, newline=""), out), out  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "run"),
    [
        ("", []),
        ("\n", [["pr", "review", "1", "--approve"]]),
        ("Good\r\n", [["pr", "review", "1", "--approve", "--body=Good"]]),
    ],
)
def test_the_end_of_the_input_approves_nothing(source: str, run: list[list[str]]) -> None:
    mode, out = _line_mode(source)
    ran: list[list[str]] = []

    def take(words: list[str]) -> bool:
        ran.append(words)
        return True

    mode._lines.run = take  # type: ignore[method-assign]
    assert mode._lines.do(Act(["pr", "review", "1", "--approve"], (NOTE,))) == bool(run)
    assert ran == run
    assert ("nothing was sent" in out.getvalue()) == (not run)


def test_a_choice_that_opens_nothing_says_so() -> None:
    mode, out = _line_mode("1\nq\n")
    page = Page("Inbox 1", (), [Choice("a row about nothing")])
    assert mode._visit(page, Visit(lambda: page)) is None
    assert "there is nothing to open" in out.getvalue()


def test_a_script_is_asked_before_something_is_deleted(project: str, alice: Svc, typed) -> None:  # type: ignore[no-untyped-def]
    """The line after the command is the answer, and what the command prints is for people."""
    assert alice("label", "create", "chore").code == 0
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    left = typed("1", ":label delete chore", "n", "q")
    assert "Deleting label chore" in left.out and "Go on? y or n:" in left.out
    assert "nothing was changed" in left.out and left.code == 0
    assert "chore" in alice("label", "list").out
    out = typed("1", ":label delete chore", "y", ":repo protect clear main", "yes", "q").out
    assert "Deleted label chore" in out
    assert "Removing the rule for main in" in out and "Removed the rule of main" in out
    assert "chore" not in alice("label", "list").out
    ended = typed("1", ":label delete bug")
    assert ended.code == 1


def test_the_exit_code_says_whether_every_line_was_carried_out(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    assert typed("1", "files", "b", "history", "q").code == 0
    for line in ("nonsense", "77", ":issue view 77", ":issue 'open", ":tui", "/nowhere"):
        assert typed("1", line, "q").code == 1, line


def test_a_script_ends_at_the_first_line_that_is_not_understood(project: str, alice: Svc, typed) -> None:  # type: ignore[no-untyped-def]
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    told = typed("1", "nonsense", ":repo protect clear main", "y", "q")
    assert (told.code, "the script ends here" in told.out) == (1, True)
    assert "main" in alice("repo", "protect", "list").out
    assert "the script ends here" not in typed("1", "nonsense").out  # nothing follows


def test_what_is_not_understood_says_what_can_be_chosen(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("b", "1", "is it", "b", "q").out
    assert "this is the first page" in out
    assert "is it is none of the choices: a number from 1 to 10, or words of a choice" in out
    assert "\n1 to 10, b back, ? help\n" in out
    assert out.count("? lists all that can be typed, q quits") == 1
    assert "b: back to Repositories 1\n" in typed("1", "?", "q").out
    assert ":issue list runs the command" in typed("1", "issue list").out
    begun = "s begins 3 choices; type more of one, or its number:\n   7 security\n"
    assert begun in typed("1", "s").out
    assert "svc llm serve keeps a terminal to itself" in typed("1", ":llm serve", "q").out


def test_a_choice_is_typed_by_its_first_words_and_an_issue_by_its_number(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "#2", "close", "reopen", "b", "#1", "b", "history", "q").out
    assert (
        "#2 Stalls" in out
        and "closed, written by" in out
        and "open, written by" in out.split("closed, written by")[1]
    )
    assert "topic into main" in out and "history, 2 seals" in out


def test_open_ones_come_first_and_are_counted(busy: str, alice: Svc, typed) -> None:  # type: ignore[no-untyped-def]
    for title in ("Solved", "New"):
        assert alice("issue", "create", "-t", title, "-b", "").code == 0
    assert alice("issue", "close", "3").code == 0
    out = typed("1", "issues", "q").out
    assert "2 open of 3" in out
    rows = [line for line in out.split("\n") if "#" in line]
    assert [row.split()[1] for row in rows if row.split()[0].isdigit()] == ["#4", "#2", "#3"]


def test_labels_people_and_rules_are_changed_by_choices(busy: str, alice: Svc, typed) -> None:  # type: ignore[no-untyped-def]
    assert alice("label", "create", "chore").code == 0
    assert "zzz is not one of them" in typed("1", "#2", "put a label", "zzz").out
    out = typed("1", "#2", "put a label", "chore", "assign me", "q").out
    assert "   1 " in out
    assert "labels: chore" in out and "assigned: @" in out
    out = typed(
        "1", "settings", "rule for branches", "approvals", "20", "from now on: merges need re", "q"
    ).out
    assert "how many approvals merges need, 0 to 20; an empty line leaves it:" in out
    assert "20 approvals, resolved threads, required checks" in out, out
    refused = typed("1", "settings", "rule for branches", "remove", "n", "from now on: nothing", "q")
    assert "nothing was changed" in refused.out and refused.code == 0
    assert "no longer: nothing is written" in refused.out, "the page of the rule stayed"
    out = typed("1", "settings", "rule for branches", "remove", "y", "q").out
    assert "Removed the rule of release/*" in out
    assert "rule for branches release" not in out.split("Removed the rule")[1]


def test_the_inbox_is_done_and_taken_back(  # type: ignore[no-untyped-def]
    project: str, alice: Svc, typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, handle = os.environ["SVC_HOME"], os.environ["TEST_HANDLE"]
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    other = f"{handle[:24]}-b"
    assert alice("login", "--device-key", "--handle", other).code == 0
    assert alice("repo", "create", "theirs").code == 0
    assert alice("repo", "collaborator", "add", handle, "-R", f"{other}/theirs").code == 0
    monkeypatch.setenv("SVC_HOME", mine)
    out = typed("inbox", "q").out
    assert "2 inbox, 1 row, 1 needs you" in out and "\nInbox, 1 row, 1 needs you\n" in out
    out = typed("inbox", "1", "done", "what is done", "1", "take it back", "b", "q").out
    assert "Inbox, nothing\n" in out and "Done, 1" in out
    assert out.split("Done, 1")[1].count("Inbox, 1 row, 1 needs you") == 1
    out = typed("inbox", "1", "accept", "b", "q").out
    assert f"{other}/theirs" in out.split("accept the invitation")[1].split("Repositories 2")[1], out


def test_ctrl_c_leaves_the_question_and_then_the_app() -> None:
    mode, out = _line_mode("")

    def interrupt() -> None:
        raise KeyboardInterrupt

    mode._speech.read = interrupt  # type: ignore[method-assign]
    assert mode._lines.ask(NOTE) is None
    mode.home = lambda: Page("Home")  # type: ignore[method-assign]
    assert mode.run() == 130
    assert "Traceback" not in out.getvalue()


def test_a_text_that_a_command_prints_has_no_drawn_lines(busy: str, alice: Svc, typed) -> None:  # type: ignore[no-untyped-def]
    body = "- [ ] one\n\n> said\n\n    code\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert alice("issue", "create", "-t", "Drawn", "-b", body).code == 0
    out = typed("1", ":issue view 3", "q").out
    assert "Drawn" in out and "> said" in out, out
    assert [character for character in out if ord(character) >= 0x2500] == []


def test_the_code_of_a_change_is_as_it_was_written() -> None:
    patch = "@@ -1 +1 @@\n-a − b\n+a - b\n"
    file = ChangedFile(path="−.py", status="modified", patch=patch, binary=False, additions=1, deletions=1)
    lines = changed_lines(SimpleNamespace(files=[file]))  # type: ignore[arg-type]
    assert "−.py" in lines[0] and "-1" in lines[0] and "−1" not in lines[0]
    assert any(line.endswith("a − b") for line in lines), lines


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


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_user_who_wants_lines_gets_the_line_mode(project: str) -> None:
    for words in (["tui"], []):
        command = [sys.executable, "-m", "svc", *words]
        seen, _ = on_a_terminal(command, {**os.environ, "TERM": "xterm", "SVC_PLAIN": "lines"}, b"q\n")
        assert b"1 to 3, ? help" in seen and b"\x1b" not in seen, seen


def _on_terminal(typed: str, page: Page, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "24")
    out = _Terminal()
    mode = LineMode(_Speaking(), lambda: 0.0, _Terminal(typed), out)  # type: ignore[arg-type]
    assert mode._visit(page, Visit(lambda: page)) is None
    return out.getvalue()


def test_a_terminal_shows_a_page_in_parts_and_wraps_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"line {number} has more words than forty columns take" for number in range(1, 16)]
    out = _on_terminal("\nq\n", Page("A page", lines, [Choice("comment")], text=True), monkeypatch)
    assert max(len(line) for line in out.split("\n")) <= 40
    assert "line 1 has more words than forty columns\ntake\nline 2 has" in out
    first, rest = out.split("lines 1 to 10 of 16, enter reads on, ?\nlists 1 choice\n")
    assert "line 10 has" in first and "line 11 has" not in first
    assert "line 11 has" in rest and "   1 comment\n1, ? help\n" in rest
    short = [f"line {number}" for number in range(1, 24)]
    assert "reads on" not in _on_terminal("q\n", Page("Short", short, text=True), monkeypatch)
    longer = _on_terminal("q\n", Page("Longer", [*short, "line 24"], text=True), monkeypatch)
    assert "line 20\ntype" in longer and "lines 1 to 20 of 24, enter reads on, ?\nhelp\n" in longer


def test_a_pipe_gets_a_page_whole_and_unwrapped(project: str, alice: Svc, typed) -> None:  # type: ignore[no-untyped-def]
    long = " ".join(["words"] * 60)
    body = "\n".join([*(f"line {number}" for number in range(50)), long])
    assert alice("issue", "create", "-t", "Long", "-b", body).code == 0
    out = typed("1", "#1", "q").out
    assert "  line 49\n" in out and f"  {long}\n" in out
    assert "reads on" not in out and "   1 comment\n" in out


def test_other_words_of_a_row_choose_it_if_nothing_is_done_at_once(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    assert "#2 Stalls\nopen, written by" in typed("1", "issues", "stalls", "q").out
    assert "Four is better" in typed("1", "#1", "main.py:2", "q").out
    refused = typed("1", "#2", "planned", "q")
    assert refused.code == 1 and "planned is none of the choices" in refused.out
    assert "branches is in 2 choices; type more of one" in typed("1", "settings", "branches").out
    assert "#2 open" in typed("1", "issues", "q").out, "nothing was closed"


def test_a_comment_on_several_lines_names_and_shows_them(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    told = typed("1", "#1", "changed lines", "comment", "1-2", "Both", ".", "b", "main.py:1-2", "q")
    assert told.code == 0, told.out
    assert "commented on src/main.py:1-2 just now: Both" in told.out
    page = told.out.split("thread by")[1]
    assert "open, on lines 1 to 2 of src/main.py\nline 1:  " in page and "\nline 2:      return 3\n" in page


def test_a_row_of_settings_is_opened_by_its_name_and_changes_it(  # type: ignore[no-untyped-def]
    busy: str, alice: Svc, typed
) -> None:
    assert alice("repo", "protect", "set", "main", "--require-review", "--fresh-approvals").code == 0
    told = typed("1", "settings", "main", "b", "description", "A client", "lint", "required from", "q")
    assert told.code == 0, told.out
    assert "a branch that matches it: 1 approval, fresh approvals\n" in told.out
    assert " description: A client\n" in told.out and " check lint: required\n" in told.out
    assert json.loads(alice("repo", "view", "--json", "description").out)["description"] == "A client"
    out = typed(
        "1", "settings", "visibility", "make it public", "n", "b", "archived", "archive it", "y", "q"
    ).out
    assert "whoever has a role reads it" in out and "Go on? y or n:\nnothing was changed" in out
    assert " archived: yes\n" in out
    refused = typed("1", "settings", "main", "q").out
    assert "it cannot be changed here: " in refused and "archived" in refused


def test_a_removed_rule_says_how_it_comes_back(busy: str, alice: Svc, typed) -> None:  # type: ignore[no-untyped-def]
    rule = ("release/*", "--required-approvals", "2", "--fresh-approvals")
    assert alice("repo", "protect", "set", *rule).code == 0
    before = alice("repo", "protect", "list", "--json").out
    out = typed("1", "settings", "release/*", "remove", "y", "q").out
    undo = out.split("to undo that, type ")[1].split("\n")[0]
    assert alice("repo", "protect", "list", "--json").out != before
    assert typed("1", undo, "q").code == 0
    assert alice("repo", "protect", "list", "--json").out == before


def test_rows_that_have_another_number_after_a_change_are_printed(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "settings", "release/*", "remove", "y", "q").out.split("Removed the rule")[1]
    assert "   6 new rule for branches\n" in out and "description" not in out


def test_a_search_lists_lines_that_open_the_file_there(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    told = typed("1", "search", "RETURN 2", "main.py", "b", "/nowhere at all", "q")
    assert "1 line with RETURN 2\n   1 src/main.py line 2: return 2\n" in told.out
    assert "line 2 of 2:\n    return 2\n" in told.out
    assert "0 lines with nowhere at all\nno line has it\n" in told.out
    left = typed("1", "search", "", "q")
    assert "an empty line leaves it:" in left.out and left.code == 0


def test_who_comes_back_to_a_text_hears_what_is_new_and_the_choices(busy: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "#1", "thread on", "answer", "Yes", ".", "b", "r", "q").out
    back = out.split("answered on src/main.py:2")[1]
    assert "   1 changed lines\n" in back.split("b back, r reads all, ? help")[0]
    assert out.count("  Because it is odd.\n") == 2, "when it is opened, and when r reads all"


def test_a_review_is_read_like_a_comment_and_a_removed_reason_is_news(  # type: ignore[no-untyped-def]
    busy: str, alice: Svc, typed
) -> None:
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    out = typed("1", "#1", "review without", "First", "", "second", ".", ":repo protect set main", "q").out
    assert "it cannot be merged yet: it needs an approval\n" in out
    assert " reviewed just now:\n  First\n  \n  second\n" in out
    assert "\nit can be merged\n" in out.split("Protected main")[1]


def test_a_command_of_a_script_says_what_it_waits_for_and_nothing_twice() -> None:
    """What the command has printed is there before it ends; nothing of it is cut."""
    mode, out = _line_mode("")
    seen = list[str]()

    class _Slow:
        first_words = frozenset[str]()

        def path_in(self, words: list[str]) -> str:
            return words[0]

        def run(
            self, words: list[str], folder: None, width: int, stopped: Any, on_output: Any
        ) -> ApiResponse[Any]:
            on_output("Open http://a.example\nWaiting")
            seen.append(out.getvalue())
            on_output("Open http://a.example\nWaiting …\n")
            text = "Open http://a.example\nWaiting …\n" + "x" * 300
            return ApiResponse(success=True, data={"text": text})

    mode._lines._commands = _Slow()  # type: ignore[assignment]
    assert mode._lines.run(["login"])
    assert seen == ["Open http://a.example\n"]
    assert out.getvalue() == "Open http://a.example\nWaiting …\n" + "x" * 300 + "\n"


def test_numbers_to_choose_from_are_named_if_some_are_missing() -> None:
    asked = Missing("number", "", names=lambda: ["9", "7", "2"])
    mode, out = _line_mode("7\n")
    assert mode._lines.ask(asked) == "7"
    assert "number, 9, 7, 2; an empty line leaves it:\n" in out.getvalue()


def test_offline_what_was_read_is_shown_and_an_action_waits(  # type: ignore[no-untyped-def]
    busy: str, alice: Svc, typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("1", "#1", "b", "#2", "q")

    def refuse(*_: Any, **__: Any) -> Any:
        raise ServerUnreachable("cannot reach http://a.example (Connection refused); check it")

    with monkeypatch.context() as patched:
        patched.setattr(Client, "fetch", refuse)
        out = typed("1", "#1", "b", "#2", "comment", "Later", "", "more", ".", "b", "releases", "q").out
    assert "#1 Return three\nopen, proposed by" in out, "an issue or a proposal: it was read"
    says = [line.startswith("offline, as of") for line in out.split("\n")]
    assert not any(map(all, pairwise(says))), "once for each page"
    (waits,) = json.loads(alice("queue", "list", "--json", "action,value").out)
    assert (waits["action"], waits["value"]["body"]) == ("comment on #2", "Later\n\nmore")
    assert "cannot reach a.example (connection refused); this page was never read here\n" in out
