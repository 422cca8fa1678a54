"""Issues, releases and the queue, by keys alone, against a real relay."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from localstore.folder.lock import hold_lock
from localstore.outbox import Outbox
from svc.http.answer import remedy_of
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.outbox import _without_retry

__all__ = ["project"]
Open = Callable[..., SvcApp]
NOWHERE = "http://127.0.0.1:9"


def api(svc: Svc, path: str, *words: str) -> object:
    answer = svc("repo", "api", path, *words)
    assert answer.code == 0, answer
    return json.loads(answer.out or "null")


def waiting(svc: Svc) -> list[str]:
    return [one["action"] for one in json.loads(svc("queue", "list", "--json", "action").out)]


@pytest.fixture
def issue(project: str, alice: Svc) -> str:
    """The repository with an issue #1 and a label."""
    assert alice("label", "create", "bug").code == 0
    api(
        alice,
        "repos/{id}/issues",
        "-X",
        "POST",
        "-f",
        "title=Retry stalls",
        "-f",
        "body=It hangs\nfor an hour.",
    )
    return project


async def open_issue(pilot: Pilot[None]) -> str:
    """Open the first repository of Home, and its first issue."""
    await settle(pilot)
    await press(pilot, "enter")
    await press(pilot, "3")
    return await press(pilot, "enter")


async def test_issues_are_listed_opened_and_answered(issue: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "3")
        assert "Issues open · 1" in text
        assert "○ #1 " in text
        assert "Retry stalls" in text
        text = await press(pilot, "enter")
        assert "It hangs" in text
        assert "for an hour." in text
        await press(pilot, "c")
        text = await press(pilot, *"Seen", "ctrl+s")
        assert "Seen" in text
        assert "queued" not in text
        await press(pilot, "e")
        assert "heart ×1" in await press(pilot, *"heart", "enter")
        await press(pilot, "l")
        assert "bug" in await press(pilot, " ", "enter")
        assert f"@{os.environ['TEST_HANDLE']}" in (await press(pilot, "u")).split("→")[1]
        assert "✓ closed" in await press(pilot, "z")
        await press(pilot, "t")
        assert "Retry stalls!" in await press(pilot, "!", "enter")
        await press(pilot, "escape")
        assert "no open issues" in await settle(pilot)
        assert "Retry stalls!" in await press(pilot, "o")
    found = api(alice, "repos/{id}/issues/1")
    assert isinstance(found, dict)
    assert (found["state"], found["title"], found["comments"]) == ("closed", "Retry stalls!", 1)
    assert waiting(alice) == []


async def test_an_issue_is_opened(issue: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "a")
        text = await press(pilot, *"New", "enter", "escape")
        assert "title     New" in text and "text      none" in text
        text = await press(pilot, "S")
        assert "#2" in text
        assert "New" in text


async def test_the_form_of_an_issue_takes_a_template_a_text_labels_and_people(
    issue: str, alice: Svc, open_app: Open
) -> None:
    me = os.environ["TEST_HANDLE"]
    Path(".github/ISSUE_TEMPLATE").mkdir(parents=True)
    front = "---\nname: Bug\nabout: it fails\nlabels: bug\n---\n"
    Path(".github/ISSUE_TEMPLATE/bug.md").write_text(f"{front}## Steps\n")
    assert alice("push", "-m", "Template").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "a")
        await press(pilot, *"Stalls", "escape")
        await sees(pilot, "title     Stalls", "template  1 to begin with")
        await press(pilot, "g", "j", "enter", "enter")
        await sees(pilot, "● bug", "1 line", "Steps")
        await press(pilot, "g", "j", "j", "enter")
        await press(pilot, "one", "enter", *"two", "escape")
        text = await sees(pilot, "two", "text      ")
        assert "1 line" not in text
        await press(pilot, "g", "j", "enter", "enter")  # the template once more: what was written is not lost
        await sees(pilot, "Put the template in the place of the text?")
        await press(pilot, "n")
        await sees(pilot, "two")
        await press(pilot, "G", "g", "j", "j", "j", "j", "enter", " ", "enter")
        await sees(pilot, f"people    @{me[:20]}")
        await press(pilot, "g", "j", "enter", "enter", "y")  # a template leaves the people that were chosen
        await sees(pilot, "1 line", f"people    @{me[:20]}", "● bug")
        await press(pilot, "g", "j", "j", "enter", "one", "enter", *"two", "escape")
        await sees(pilot, "two", "text      ")
        await press(pilot, "escape")
        assert "Stalls" not in await settle(pilot)
    async with open_app().run_test(size=(120, 40)) as pilot:  # the draft is there again
        await settle(pilot)
        await press(pilot, "enter", "3", "a")
        await sees(pilot, "title     Stalls", "● bug", "two", f"people    @{me[:20]}", "S send")
        await press(pilot, "S")
        await sees(pilot, "#2 Stalls")
        await press(pilot, "a", "escape")
        text = await sees(pilot, "title     needed")
        assert "labels    none" in text and "text      none" in text
        assert "needs a title" in await press(pilot, "S")
        await press(pilot, "escape", "a", "enter")  # enter on an empty title
        await sees(pilot, "an issue needs a title", "title of the issue", "enter next")
        await press(pilot, *"Now", "enter")
        await sees(pilot, "text of the issue")
        await press(pilot, "escape")
        assert "needs a title" not in await sees(pilot, "title     Now")
    found = api(alice, "repos/{id}/issues/2")
    assert isinstance(found, dict)
    assert found["body"].startswith("## Steps") and "two" in found["body"]
    assert [one["name"] for one in found["labels"]] == ["bug"]
    assert [one["handle"] for one in found["assignees"]] == [me]


async def test_without_the_server_changes_wait_and_are_sent_later(
    issue: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_issue(pilot)
    async with open_app(NOWHERE).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        assert "It hangs" in await press(pilot, "enter")
        await press(pilot, "c")
        text = await press(pilot, *"Later", "ctrl+s")
        assert "⋯ queued  comment on #1" in text
        assert "⋯ 1 queued" in text
        text = await sees(pilot, "comment on #1 waits here until the server answers")
        assert "again" not in text, "who does it again does it twice"
        keys = text.rstrip().splitlines()[-1]
        assert keys.startswith(" c comment") and keys.endswith("? keys here")
        text = await press(pilot, "s")
        assert "○ offline" in text
        assert "⋯ comment on #1" in text
    assert waiting(alice) == ["comment on #1"]
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        text = await press(pilot, "enter")
        assert "Later" in text
        assert "queued" not in text
    assert waiting(alice) == []


async def test_an_issue_that_was_never_read_says_so_without_the_server(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "Retry stalls")
    async with open_app(NOWHERE).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "Retry stalls")
        await press(pilot, "enter")
        text = await sees(pilot, "#1", "never read on this machine")
        assert "Retry stalls" in text and "○ open" in text and f"@{os.environ['TEST_HANDLE']}" in text
        await press(pilot, "c", *"I see it too", "ctrl+s")
        text = await sees(pilot, "⋯ queued  comment on #1", "I see it too")
        assert "Retry stalls" in text


async def test_a_preview_that_was_never_read_keeps_no_other_issue(
    issue: str, alice: Svc, open_app: Open
) -> None:
    assert alice("issue", "create", "-t", "Other", "-b", "Another text").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_issue(pilot)  # the first row: without a preview, only this one is read
        await sees(pilot, "Another text")
    async with open_app(NOWHERE).run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "─ #2 ", "Another text")
        await press(pilot, "j")
        text = await sees(pilot, "─ #1 ", "never read on this machine")
        assert "Another text" not in text


async def test_a_refused_change_is_said_and_can_be_dropped(issue: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_issue(pilot)
        await press(pilot, "l")
        assert alice("repo", "archive", "--yes").code == 0
        assert "refused" in await press(pilot, " ", "enter")
        assert "✗ 1 refused  ● live" in await press(pilot, "escape", "escape"), "as long as it stands"
        text = await press(pilot, "s")
        assert "✗ refused" in text
        assert "archived" in text
        await press(pilot, "G", "x")
        text = await press(pilot, "y")
        assert "nothing waits" in text and "✗ 1 refused" not in text
    assert waiting(alice) == []


async def test_a_comment_is_written_in_the_editor(
    issue: str, alice: Svc, open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draft stays where the editor failed."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\necho one >> $1; echo two >> $1; exit $(cat {tmp_path}/code)\n")
    editor.chmod(0o755)
    (tmp_path / "code").write_text("3")
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    drafts = Path(os.environ["SVC_HOME"]) / "drafts"
    async with open_app().run_test(size=(80, 24)) as pilot:
        monkeypatch.setattr(type(pilot.app), "suspend", lambda self: _Nothing())
        await open_issue(pilot)
        assert "draft is kept" in await press(pilot, "E")
        assert [file.read_text() for file in drafts.iterdir()] == ["one\ntwo\n"]
        (tmp_path / "code").write_text("0")
        text = await press(pilot, "E")
        assert "two" in text
        assert list(drafts.iterdir()) == []


async def test_the_text_of_a_new_issue_from_the_editor_leaves_no_draft(
    issue: str, alice: Svc, open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\necho by night >> $1; exit $(cat {tmp_path}/code)\n")
    editor.chmod(0o755)
    (tmp_path / "code").write_text("3")
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    drafts = Path(os.environ["SVC_HOME"]) / "drafts"
    async with open_app().run_test(size=(80, 24)) as pilot:
        monkeypatch.setattr(type(pilot.app), "suspend", lambda self: _Nothing())
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "a")
        await press(pilot, *"Hangs", "enter", "escape")
        assert "draft is kept" in await press(pilot, "E")
        (tmp_path / "code").write_text("0")
        assert (await press(pilot, "E")).count("by night") == 2, "the editor began with what it had written"
        await press(pilot, "S")
        await sees(pilot, "#2 Hangs")
        await settle(pilot)
        assert list(drafts.iterdir()) == []


async def test_a_release_is_written_in_a_form(project: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "5", "a")
        await sees(pilot, "version of the release")
        await press(pilot, *"v2", "enter")
        await press(pilot, *"**Good**", "escape")
        await sees(pilot, "─ New release · ", "as others will see it", "Good", "of        main")
        await press(pilot, "j", "enter")
        await press(pilot, *"data.bin", "enter", "S")
        await sees(pilot, "Created release v2")
        await press(pilot, "a")  # the list is in front already
        await sees(pilot, "version   version of the release")
    release = json.loads(alice("repo", "release", "view", "v2", "--json", "notes,assets").out)
    assert release["notes"] == "**Good**"
    assert [asset["name"] for asset in release["assets"]] == ["data.bin"]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (f"https://a.example did not answer; {remedy_of(True)}", "https://a.example did not answer"),
        (f"https://a.example did not answer; {remedy_of(False)}", "https://a.example did not answer"),
        ("sign in first; run: svc login", "sign in first; run: svc login"),
    ],
)
def test_why_something_waits_is_said_without_the_advice_to_do_it_again(reason: str, words: str) -> None:
    assert _without_retry(reason) == words


async def test_what_a_release_lacks_is_under_the_cursor(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "5", "a")
        await sees(pilot, "version of the release")
        await press(pilot, *"v2", "enter", "escape", "G", "enter")
        await sees(pilot, "signed    ✓ yes")
        await press(pilot, "S")
        await sees(pilot, "only files are signed", "▌files")


async def test_notes_of_a_release_come_from_the_seals_since_the_last_one(
    project: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "release", "create", "v1").code == 0
    Path("src/main.py").write_text("def main():\n    return 7\n")
    assert alice("push", "-m", "Return seven\n\nBecause.").code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "5", "a")
        await press(pilot, *"v2", "enter", "escape")
        await press(pilot, "f")
        await sees(pilot, "notes     1 line", "• Return seven")
        await press(pilot, "S")
        await sees(pilot, "Created release v2")
    notes = json.loads(alice("repo", "release", "view", "v2", "--json", "notes").out)["notes"]
    assert notes == "- Return seven"


async def test_the_draft_of_a_release_that_another_one_made_is_kept(
    project: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "release", "create", "v1", "--notes", "Theirs").code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "5", "a")
        await press(pilot, *"v1", "enter")
        await press(pilot, *"Mine", "escape", "escape", "a")
        await sees(pilot, "─ New release · ", "Mine", "v1")


async def test_what_another_program_sent_waits_no_more_on_the_screen_of_the_queue(
    issue: str, alice: Svc, open_app: Open
) -> None:
    async with open_app(NOWHERE).run_test(size=(80, 24)) as pilot:
        app = pilot.app
        assert isinstance(app, SvcApp)
        assert alice("issue", "comment", "1", "-b", "Later", "--queue").code == 0
        await press(pilot, "s")
        await sees(pilot, "⋯ comment on #1")
        assert alice("queue", "retry").code == 0
        await sees(pilot, "nothing waits")
    assert waiting(alice) == []


async def test_what_others_queued_is_not_told_as_ones_own(
    issue: str, alice: Svc, open_app: Open, tmp_path: Path
) -> None:
    """What commands, other apps and other accounts put into the outbox goes on waiting without a message, and
    says nothing about this account's connection; Sync says whose it is."""
    outbox = Outbox(Path(os.environ["SVC_HOME"]) / "outbox.db")
    outbox.add(
        "http://127.0.0.1:9", "u1", "zoe", "zoe/notes", "/repos/r1/issues/1/comments/+", {"body": "Hi"}
    )
    async with open_app().run_test(size=(100, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, SvcApp)
        await sees(pilot, "⋯ 1 queued", "● live")
        await press(pilot, "enter", "3", "enter")
        await sees(pilot, "It hangs", "● live")
        app.outbox.send(by_user=False)
        text = await settle(pilot)
        assert "○ offline" not in text and "127.0.0.1:9" not in text and "⋯ queued  comment" not in text
        await press(pilot, "s")
        await sees(pilot, "@zoe at 127.0.0.1:9")
        await press(pilot, "u")
        await sees(pilot, "of another account, at 127.0.0.1:9: ", "? keys here")
    outbox.close()


async def test_that_another_process_sends_the_queue_is_no_fault(
    issue: str, alice: Svc, open_app: Open
) -> None:
    """Two apps of one account are nothing to worry about: what they queue is sent by one of them."""
    async with open_app().run_test(size=(100, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, SvcApp)
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "#1 ")
        with hold_lock(Path(os.environ["SVC_HOME"]) / "outbox.lock", "svc queue"):
            await press(pilot, "u")
            await sees(pilot, "sends what waits here at this moment")
            assert app.screen._said[1] == "dim"  # type: ignore[attr-defined]
        await press(pilot, "s", "u")
        await sees(pilot, "nothing waits")
    assert waiting(alice) == []


class _Nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


async def test_releases_show_notes_and_files(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "release", "create", "v1", "data.bin", "--notes", "First one\n\nGood.").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "5")
        assert "v1" in text
        assert "First one" in text
        assert "1 file" in text
        text = await press(pilot, "enter")
        assert "data.bin" in text
        assert "Good." in text
        assert "not signed" in text
        assert alice("repo", "release", "sign", "v1", "data.bin").code == 0
        handle = os.environ["TEST_HANDLE"]
        assert f"✓ signed  by @{handle}" in await press(pilot, "r")
        assert "✓ signed  1 file" in await press(pilot, "escape", "r")


async def test_who_is_not_signed_in_is_told_so(issue: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "visibility", "public", "--yes").code == 0
    app = open_app()
    app.outbox.sending = None
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        assert "sign in for this" in await press(pilot, "a")


async def test_texts_are_shown_as_markdown_and_links_are_walked(
    project: str, alice: Svc, open_app: Open
) -> None:
    body = "# What\n\n```python\ndef f():\n    return 1\n```\n\nSee #1 and @bob.\n\n"
    body += "<details><summary>More</summary>\n\nhidden words\n\n</details>\n"
    assert alice("issue", "create", "-t", "First of them", "-b", "Nothing here").code == 0
    assert alice("issue", "create", "-t", "Second", "-b", body).code == 0
    async with open_app().run_test(size=(80, 30)) as pilot:
        text = await open_issue(pilot)
        assert "Second" in text
        assert "# What" not in text and "────" in text
        assert "│     return 1" in text
        assert "hidden words" not in text
        await press(pilot, "tab", "tab", "tab")
        text = await press(pilot, "enter")
        assert "▾ More" in text and "hidden words" in text
        assert "hidden words" not in await press(pilot, "enter")
        await press(pilot, "g", "tab")
        text = await press(pilot, "enter")
        assert "Nothing here" in text and "#1  First of them" in text
        await press(pilot, "escape", "tab")
        assert "copied: @bob" in await press(pilot, "enter")


async def test_a_text_that_takes_too_long_is_shown_as_it_was_written(
    project: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.markdown.page.SECONDS", 1e-6)
    assert alice("issue", "create", "-t", "Second", "-b", "# What\n\n" + "word " * 3000).code == 0
    async with open_app().run_test(size=(80, 30)) as pilot:
        assert "# What" in await open_issue(pilot)


async def test_what_another_process_queues_is_shown_soon(issue: str, alice: Svc, open_app: Open) -> None:
    """Also if a server that does not answer keeps all threads of the app busy."""
    app, released = open_app(), threading.Event()
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await sees(pilot, issue[-30:], "● live")
        for number in range(40):
            app.run_worker(released.wait, thread=True, group=f"hung {number}", exit_on_error=False)
        try:
            assert alice("issue", "comment", "1", "-b", "Seen", "--queue").code == 0
            await sees(pilot, "⋯ 1 queued")
            await pilot.press("s")
            await sees(pilot, "⋯ comment on #1")
            assert alice("queue", "drop", "--all", "--yes").code == 0
            await sees(pilot, "nothing waits ✓")
        finally:
            released.set()
