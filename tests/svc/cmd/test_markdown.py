"""Markdown in the answers of commands: rows on a terminal, the text itself in a pipe."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.svc.conftest import Answer, Svc

BODY = "# Stalls\n\nIt **hangs**\nfor an hour, see #2.\n\n```python\ndef f():\n    return 1\n```\n\n"
BODY += (
    "- [x] tried\n\n<details><summary>More</summary>\n\n\x1b[31mred [docs](https://a.example)\n\n</details>\n"
)


@pytest.fixture
def linked(alice: Svc) -> Svc:
    """A folder of a new repository."""
    folder = Path.cwd() / "notes"
    folder.mkdir()
    os.chdir(folder)
    assert alice("repo", "create", "notes", "-d", "Notes").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/notes").code == 0
    return alice


def on_terminal(monkeypatch: pytest.MonkeyPatch, svc: Svc, *words: str, **environment: str) -> Answer:
    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout.__class__, "isatty", lambda _: True, raising=False)
        patch.setenv("COLUMNS", "60")
        patch.setenv("PAGER", "cat")
        patch.setenv("NO_COLOR", "1")
        for name, value in environment.items():
            patch.setenv(name, value)
        return svc(*words)


def test_issues_and_their_comments(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert linked("issue", "create", "-t", "Stalls", "-b", BODY).code == 0
    assert linked("issue", "comment", "1", "-b", "1. one\n2. *two*").code == 0
    shown = on_terminal(monkeypatch, linked, "issue", "view", "1", "--comments")
    rows = [row.rstrip() for row in shown.out.splitlines()]
    for row in (
        "Stalls",
        "──────",
        "It hangs",
        "for an hour, see #2.",
        "│ def f():",
        "│     return 1",
        "☑ tried",
    ):
        assert row in rows, shown.out
    assert "▾ More" in rows
    assert "\\x1b[31mred docs (https://a.example)" in rows
    assert rows[-2:] == ["1. one", "2. two"]
    assert "\x1b" not in shown.out
    piped = linked("issue", "view", "1")
    assert "# Stalls" in piped.out and "│" not in piped.out


def test_colours_where_the_terminal_has_some(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert linked("issue", "create", "-t", "Stalls", "-b", BODY).code == 0
    shown = on_terminal(monkeypatch, linked, "issue", "view", "1", NO_COLOR="", TERM="xterm")
    assert "\x1b[1;36mStalls\x1b[0m" in shown.out
    assert "\x1b[35mdef\x1b[0m" in shown.out
    assert "\x1b[31m" not in shown.out


def test_the_readme_of_a_repository(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "default_branch" not in on_terminal(monkeypatch, linked, "repo", "view").err
    Path("README.md").write_text("# Notes\n\nRead\n*me*.\n")
    assert linked("push", "-m", "First").code == 0
    shown = on_terminal(monkeypatch, linked, "repo", "view")
    assert shown.out.rstrip().endswith("Notes\n─────\n\nRead me."), shown.out
    assert "Read" not in linked("repo", "view").out
    Path("README.md").unlink()
    Path("README").write_text("*Plain* \x1b[31m\n")
    assert linked("push", "-m", "Second").code == 0
    assert on_terminal(monkeypatch, linked, "repo", "view").out.rstrip().endswith("*Plain* \\x1b[31m")


def test_a_proposal(linked: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a").write_text("1\n")
    assert linked("push", "-m", "First").code == 0
    assert linked("repo", "branch", "topic").code == 0
    assert linked("switch", "topic").code == 0
    Path("a").write_text("2\n")
    assert linked("push", "-m", "Second").code == 0
    assert linked("pr", "create", "-t", "Two", "-b", "> why\n\nbecause").code == 0
    assert linked("pr", "comment", "1", "-b", "- ok").code == 0
    shown = on_terminal(monkeypatch, linked, "pr", "view", "1", "--comments")
    assert "▎ why\n\nbecause\n" in shown.out
    assert "• ok" in shown.out
    piped = linked("pr", "view", "1", "--comments")
    assert "> why" in piped.out and "▎" not in piped.out
