"""`e` in the tab Code: a text written by two at once, with a real agent and relay."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.events import Paste
from textual.pilot import Pilot

from localstore.agent.talk import SheetEvent
from tests.patience import until
from tests.svc.conftest import Svc
from tests.tui.code.test_live import handle, open_code
from tests.tui.code.typist import Typist
from tests.tui.conftest import shown
from tests.tui.test_app import press, project, sees, settle, soon
from tui.app import SvcApp
from tui.listening.writing import AgentEvent
from tui.machine import Place
from tui.screens.code.edit import Edit
from tui.widgets.written import TextEditor

__all__ = ["project"]
Open = Callable[..., SvcApp]


@pytest.fixture
def other(project: str, alice: Svc, tmp_path: Path) -> Iterator[Typist]:
    """Somebody who writes in README.md of another folder of the repository."""
    assert alice("repo", "clone", project, str(tmp_path / "other")).code == 0
    assert alice("watch", "--detach").code == 0
    typist = Typist(Path(os.environ["SVC_HOME"]), tmp_path / "other", "README.md").opened()
    yield typist
    typist.writing.close()
    assert alice("watch", "stop", "--all").code == 0


def here() -> Place:
    return Place(Path.cwd()).read_again()


async def open_readme(pilot: Pilot[None]) -> None:
    await open_code(pilot)
    await press(pilot, "t")
    await press(pilot, *"README", "enter")
    await sees(pilot, "README.md")


async def edit(pilot: Pilot[None]) -> TextEditor:
    await open_readme(pilot)
    await pilot.press("e")
    await sees(pilot, "README.md · ✓ saved", "esc leave", "1:1 of ")
    assert isinstance(pilot.app.screen, Edit)
    return pilot.app.screen.query_one(TextEditor)


async def test_two_write_one_text_and_see_each_other(other: Typist, alice: Svc, open_app: Open) -> None:
    before = Path("README.md").read_text()
    async with open_app(place=here()).run_test(size=(100, 24)) as pilot:
        area = await edit(pilot)
        await pilot.press("home", *"hello ", "enter")
        await sees(pilot, "hello", "saved")
        await soon(pilot, lambda: Path("README.md").read_text() == "hello \n" + before)
        await soon(pilot, lambda: (other.hear(), other.shown.startswith(b"hello"))[1])
        other.type("hello", "OTHER ")
        other.writing.here(1, 3)
        await sees(pilot, "OTHER hello", f"◂ {handle()}", "1:3", "2:1 of ")
        assert area.cursor_location == (1, 0)
        await pilot.press("ctrl+z")
        text = await sees(pilot, "OTHER")
        assert "hello" not in text
        area.post_message(Paste("alpha\nbeta"))
        await sees(pilot, "alpha", "beta", "✓ saved")
        await soon(pilot, lambda: (other.hear(), other.shown.decode() == area.text)[1])
        await soon(pilot, lambda: Path("README.md").read_text() == area.text)
        screen = pilot.app.screen
        assert isinstance(screen, Edit)
        await soon(pilot, lambda: screen.state()[0] == "✓ saved")
        await pilot.press("escape")
        await sees(
            pilot, "✓ saved on the branch, not in this seal: L shows it live, :push -m MESSAGE seals it"
        )
        assert "alpha" not in await sees(pilot, "2 Code")
        await sees(pilot, "README.md · edits in no seal", "~ not sealed")
        await press(pilot, "escape")
        await press(pilot, "enter")
        await sees(pilot, "the branch has edits of it in no seal: L shows them, :push -m MESSAGE seals them")
        await press(pilot, "L")
        await sees(pilot, "alpha", "1 not sealed", "~ live ◂ @")  # who is there is named once
        await press(pilot, "e")
        await sees(pilot, "README.md · ✓ saved, in no seal yet")
        await press(pilot, "escape")
        await sees(pilot, "✓ saved on the branch, in no seal yet: run :push -m MESSAGE seals it")
        await press(pilot, "L")
        await sees(pilot, "edits in no seal", "~ not sealed")
        assert alice("push", "-m", "Both").code == 0
        await soon(pilot, lambda: "not sealed" not in shown(pilot.app))  # type: ignore[arg-type]
        assert "edits in no seal" not in await sees(pilot, "README.md", "alpha")


async def test_what_another_has_just_changed_is_marked_for_a_moment(
    other: Typist, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Own edits and an undo are not marked, and the marks move with their lines."""
    async with open_app(place=here()).run_test(size=(100, 24)) as pilot:
        area = await edit(pilot)
        await pilot.press("home", *"mine", "enter")
        await soon(pilot, lambda: (other.hear(), other.shown.startswith(b"mine\n"))[1])
        assert "▎" not in shown(pilot.app)  # type: ignore[arg-type]
        other.type("mine\n", "theirs\n")
        text = await sees(pilot, "▎theirs", "in no seal yet")
        assert text.count("▎") == 1 and "▎mine" not in text
        await pilot.press("ctrl+home", *"x", "enter")
        assert area.cursor_location == (1, 0)
        await soon(pilot, lambda: "▎" not in shown(pilot.app))  # type: ignore[arg-type]
        assert area._fades is None  # no timer runs without marks


async def test_a_line_is_gone_to_and_the_text_sealed_without_leaving_it(
    other: Typist, open_app: Open
) -> None:
    async with open_app(place=here()).run_test(size=(80, 24)) as pilot:
        area = await edit(pilot)
        await pilot.press("ctrl+s")
        await sees(pilot, "all of this text is sealed")
        await pilot.press("home", *"one", "enter", *"two", "enter")
        await sees(pilot, "✓ saved, in no seal yet")
        await press(pilot, "ctrl+g")
        await press(pilot, "2", "enter")
        assert area.cursor_location == (1, 0)
        await press(pilot, "f9")
        await press(pilot, "x", "enter")
        await sees(pilot, "x is not the number of a line")
        assert isinstance(pilot.app.screen, Edit)
        pilot.app.screen._go_to_line("9" * 5000)
        await sees(pilot, "99… is not the number of a line")
        await press(pilot, "ctrl+s")
        await press(pilot, "enter")
        await sees(pilot, "not sealed, because it has no message")
        await press(pilot, "ctrl+s")
        await press(pilot, *"From here", "enter")
        assert re.search(r"✓ sealed [0-9a-f]{12}: 1 file", await sees(pilot, "✓ sealed "))
        assert "in no seal yet" not in await sees(pilot, "✓ saved ")
        await pilot.press("escape")
        assert "not in this seal" not in await sees(pilot, "2 Code", "✓ saved")


async def test_a_text_that_was_sealed_meanwhile_is_not_said_to_be_sealed_again(
    other: Typist, alice: Svc, open_app: Open
) -> None:
    async with open_app(place=here()).run_test(size=(100, 24)) as pilot:
        await edit(pilot)
        await pilot.press("home", *"one", "enter")
        await sees(pilot, "✓ saved, in no seal yet")
        assert alice("push", "-m", "From elsewhere").code == 0
        await press(pilot, "ctrl+s")
        await press(pilot, *"From here", "enter")
        text = await sees(pilot, "Nothing to seal")
        assert "✓ sealed" not in text and "in no seal yet" not in text


async def test_a_text_in_another_folder_is_pushed_from_there(other: Typist, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 24)) as pilot:
        await edit(pilot)
        await pilot.press("home", *"hello ")
        await soon(pilot, lambda: (other.hear(), other.shown.startswith(b"hello "))[1])
        await sees(pilot, "✓ saved")
        await pilot.press("escape")
        await sees(pilot, "not in this seal: L shows it live, a push in", "/other", " seals it")


async def test_places_are_those_of_the_bytes(other: Typist, open_app: Open) -> None:
    async with open_app(place=here()).run_test(size=(80, 24)) as pilot:
        area = await edit(pilot)
        area.select_all()
        await pilot.press("delete", *"aä", "enter", "tab", *"b")
        area.post_message(Paste("x\r\ny\x0cz\u2028\x00😀"))
        await pilot.press("left", "backspace", "up", "home", "delete", "ctrl+z", "ctrl+y")
        area.insert("middle", (1, 0))
        await soon(pilot, lambda: (other.hear(), other.shown.decode() == area.text)[1])
        other.type("middle", "ß\n")
        await sees(pilot, "ß")
        await soon(pilot, lambda: other.shown.decode() == area.text == Path("README.md").read_text())


async def test_lines_that_end_as_on_windows_keep_their_ends(other: Typist, open_app: Open) -> None:
    Path("README.md").write_bytes(b"one\r\ntwo\r\n")
    until(lambda: (other.hear(), other.shown == b"one\r\ntwo\r\n")[1])
    async with open_app(place=here()).run_test(size=(80, 24)) as pilot:
        area = await edit(pilot)
        await pilot.press("end", *"!", "enter", *"new", "down", "home", "backspace")
        await soon(pilot, lambda: (other.hear(), other.shown.decode() == area.text)[1])
        assert area.text == "one!\r\nnewtwo\r\n"


async def test_another_branch_and_no_folder_say_what_to_do(
    project: str, alice: Svc, open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alice("repo", "branch", "side").code == 0
    assert alice("switch", "side").code == 0
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await open_code(pilot)
        await press(pilot, "e")
        await sees(pilot, "open a file first")
        await press(pilot, "t")
        await press(pilot, *"README", "enter")
        await sees(pilot, "README.md")
        pilot.app.screen.go_to("main", pilot.app.screen.seal)  # type: ignore[attr-defined]
        await settle(pilot)
        await press(pilot, "e")
        await sees(pilot, "edit README.md on main", "enter switch and edit")
        await press(pilot, "n")
        await sees(pilot, f"your folder {here().folder.name} stays on side, and nothing was edited")  # type: ignore[union-attr]
        Path("README.md").write_text("Typed meanwhile\n")
        assert alice("status").code == 0
        await press(pilot, "e")
        await sees(pilot, "is on side, with edits that the server does not have (README.md): :push")
        assert here().branch == "side"
        screen = pilot.app.screen
        await press(pilot, "t")
        await soon(pilot, lambda: pilot.app.screen is not screen)  # no key waits for a text to open
    monkeypatch.chdir(tmp_path)
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await open_readme(pilot)
        await press(pilot, "e")
        await sees(pilot, ":repo clone")


async def test_the_folder_is_switched_to_the_branch_that_is_shown(
    other: Typist, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "branch", "side").code == 0
    assert alice("switch", "side").code == 0
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await open_readme(pilot)
        pilot.app.screen.go_to("main", pilot.app.screen.seal)  # type: ignore[attr-defined]
        await settle(pilot)
        await press(pilot, "e")
        await sees(pilot, "enter switch and edit", "esc leave")
        await press(pilot, "enter")
        await sees(
            pilot, "  main  edited live", "README.md · ✓ saved", "is on main now; :switch - takes it back"
        )
        await pilot.press("home", *"mine ")
        await soon(pilot, lambda: (other.hear(), other.shown.startswith(b"mine "))[1])
    assert here().branch == "main"


async def test_keys_typed_ahead_find_and_keys_here(other: Typist, open_app: Open) -> None:
    before = Path("README.md").read_text()
    async with open_app(place=here()).run_test(size=(80, 24)) as pilot:
        await open_readme(pilot)
        await pilot.press("e", "x", "y", "z")
        await sees(pilot, "xyz", "saved")
        await soon(pilot, lambda: Path("README.md").read_text() == f"xyz{before}")
        await pilot.press("f1")
        await sees(pilot, "Keys", "undo yours", "go to line")
        await pilot.press("escape", "f2")
        await press(pilot, *"Read", "enter")
        area = pilot.app.screen.query_one(TextEditor)
        assert area.selected_text == "Read"
        await press(pilot, "f2")
        await press(pilot, *"nowhere", "enter")
        await sees(pilot, "is not in the text")
        assert Path("README.md").read_text() == f"xyz{before}"


async def test_a_watched_folder_is_found_and_an_old_seal_refused(
    other: Typist, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await edit(pilot)
        await pilot.press("escape")
        assert "not in this seal" not in await sees(pilot, "✓ saved", "2 Code")  # nothing was typed
        screen = pilot.app.screen
        screen.seal = "0" * 64  # type: ignore[attr-defined]
        await press(pilot, "e")
        await sees(pilot, "this is an old seal")


async def test_a_text_that_goes_while_it_is_open_says_so(other: Typist, alice: Svc, open_app: Open) -> None:
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await edit(pilot)
        await pilot.press("home", *"kept ")
        await soon(pilot, lambda: Path("README.md").read_text().startswith("kept "))
        await sees(pilot, "saved")
        await soon(pilot, lambda: (other.hear(), other.shown.startswith(b"kept "))[1])
        Path("README.md").unlink()
        await sees(pilot, "not written any more", "removed or renamed meanwhile", "esc leave  ")
        await pilot.press(*"lost")
        await sees(pilot, "nothing is written here any more: f7 f8 copy the text, esc leaves")
        await pilot.press("escape")
        await sees(pilot, "1 Over", "README.md was removed or renamed meanwhile")
        assert not Path("README.md").exists()
        assert alice("restore", "README.md").code == 0
        text = Path("README.md").read_text()
        assert "lost" not in text


async def test_a_switch_of_the_folder_ends_the_edit(other: Typist, alice: Svc, open_app: Open) -> None:
    before = Path("README.md").read_text()
    assert alice("repo", "branch", "side").code == 0
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await edit(pilot)
        await pilot.press("home", *"kept ")
        await soon(pilot, lambda: (other.hear(), other.shown.startswith(b"kept "))[1])
        assert alice("switch", "side").code == 0
        await sees(pilot, "not written any more", "the folder is on the branch side now")
        await pilot.press(*"lost")
        await pilot.press("escape")
    assert Path("README.md").read_text() == before
    other.hear()
    assert other.shown.decode() == "kept " + before


async def test_a_line_that_goes_on_says_so_and_the_light_stands_once(other: Typist, open_app: Open) -> None:
    """In a frame from 100 columns; the line with the cursor scrolls instead."""
    Path("README.md").write_text("short\n" + "x" * 300 + "\n" + "y" * 40 + "\n")
    until(lambda: (other.hear(), other.shown.startswith(b"short"))[1])
    app = open_app(place=here())
    async with app.run_test(size=(100, 24)) as pilot:
        area = await edit(pilot)
        text = await sees(pilot, "╭─ README.md · ✓ saved, in no seal yet ─", "› │")
        assert text.count("› │") == 1 and "y" * 40 in text
        await soon(pilot, lambda: shown(app).count("● live") == 1)
        await pilot.press("down")
        await soon(pilot, lambda: "›" not in shown(app))
        assert area.cursor_location[0] == 1
        await pilot.press("escape")
        await sees(pilot, "2 Code")


async def test_a_protected_branch_is_said_before_anything_is_typed(
    other: Typist, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await open_readme(pilot)
        await pilot.press("e")
        await sees(pilot, "main takes edits by proposals only (rule main); a branch", "/README")
        name = Path.cwd().name
        assert f"your folder {name} goes to it" in " ".join(shown(pilot.app).split())
        assert not isinstance(pilot.app.screen, Edit)
        await pilot.press("escape")
        await sees(pilot, "main takes edits by proposals only (rule main)", "B blame")
        assert alice("repo", "protect", "clear", "main", "--yes").code == 0
        await pilot.press("e")
        await sees(pilot, "README.md · ✓ saved")


async def test_edits_of_a_protected_branch_begin_on_a_branch_of_their_own(
    other: Typist, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await open_readme(pilot)
        await press(pilot, "e", "ctrl+u", "enter")
        await sees(pilot, "a new branch needs a name")
        await press(pilot, "e", "ctrl+u", *"main", "enter")
        await sees(pilot, "main is protected by the rule main and is not created")
        await press(pilot, "e", "ctrl+u", *"own/words", "enter")
        await sees(pilot, "own/words  edited live", "README.md · ✓ saved")
        await pilot.press("home", *"mine ")
        await sees(pilot, "✓ saved, in no seal yet")
        await pilot.press("escape")
        text = await sees(pilot, "✓ saved on own/words, not in this seal: L shows it live, ")
        flat = " ".join(text.split())
        assert ":push -m MESSAGE seals it, :pr create proposes it" in flat
        await sees(pilot, "  own/words @ ", "edits in no seal")
        await press(pilot, "e")
        await sees(pilot, "README.md · ✓ saved, in no seal yet")
        await press(pilot, "ctrl+s")
        await press(pilot, *"Mine", "enter")
        flat = " ".join((await sees(pilot, "✓ sealed ", "after esc")).split())
        assert "after esc, :pr create proposes it" in flat
        await pilot.press("escape")
        await sees(pilot, "✓ sealed on own/words; :pr create proposes it")
    assert here().branch == "own/words" and Path("README.md").read_text().startswith("mine ")


@pytest.mark.parametrize("width", [80, 120])
async def test_a_refused_edit_moves_to_a_branch(
    other: Typist, alice: Svc, open_app: Open, width: int
) -> None:
    async with open_app(place=here()).run_test(size=(width, 24)) as pilot:
        await edit(pilot)
        assert alice("repo", "protect", "set", "main", "--require-review").code == 0
        await pilot.press("home", *"kept ")
        text = await sees(pilot, "README.md · ✗ saved here, refused by the server", "f10 take it to a new")
        flat = " ".join(text.split())
        assert "✗ main is protected by the rule main" in flat and "a branch of its own." in flat
        assert "sending" not in text and "…" not in text
        await press(pilot, "ctrl+s")
        await sees(pilot, "refused by the server")
        await press(pilot, "f10", "escape")
        await sees(pilot, "nothing was done")
        await press(pilot, "f10", "ctrl+u", *"own", "enter")
        await sees(pilot, "own  edited live", "README.md · ✓ saved", "kept ")
    assert Path("README.md").read_text().startswith("kept ")


async def test_a_branch_that_is_made_while_the_user_looks_at_the_keys_replaces_no_screen(
    other: Typist, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "branch", "own").code == 0
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await edit(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, Edit)
        await press(pilot, "f1")
        keys = pilot.app.screen
        assert keys is not screen
        screen._go_on_at("own")
        await settle(pilot)
        assert pilot.app.screen is keys


async def test_an_edit_that_was_refused_is_said_again_when_it_is_left(
    other: Typist, alice: Svc, open_app: Open
) -> None:
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await edit(pilot)
        assert alice("repo", "protect", "set", "main", "--require-review").code == 0
        await pilot.press("home", *"kept ")
        await sees(pilot, "refused by the server")
        await pilot.press("escape")
        await sees(pilot, "main: main is protected by the rule main", "The text is in")
    assert alice("repo", "protect", "clear", "main", "--yes").code == 0
    until(lambda: (other.hear(), other.shown.startswith(b"kept "))[1], "what was refused is sent")


async def test_a_server_that_does_not_answer_an_edit_is_said_to_be_slow(
    other: Typist, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.screens.code.edit.SLOW", 0.5)
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        await edit(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, Edit) and screen._writing is not None
        monkeypatch.setattr(screen._writing, "queued", True)
        await sees(pilot, "README.md · ◐ saved here, the server does not answer yet")
        monkeypatch.setattr(screen._writing, "queued", False)
        await sees(pilot, "README.md · ✓ saved")


async def test_what_the_folder_lacks_of_an_edit_that_ends_is_kept_apart(
    other: Typist, open_app: Open
) -> None:
    async with open_app(place=here()).run_test(size=(120, 24)) as pilot:
        area = await edit(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, Edit) and screen._writing is not None
        screen._writing.made += 1  # what was typed last did not get to the folder
        screen._take(AgentEvent(SheetEvent("ended", detail="you may only read it"), screen._writing._talk))
        text = await sees(pilot, "not written any more, the text is kept apart", "you may only read it;")
        apart = Path(screen._apart)
        assert apart.read_text() == area.text and "is lost" not in text
        await pilot.press("escape")
        await sees(pilot, "you may only read it; the text is in")
