"""The live state of a branch in the tab Code: what is not sealed, who is where, following; by keys alone,
with a real agent and relay."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.svc.conftest import Svc
from tests.tui.code.held import Held
from tests.tui.conftest import shown
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp

__all__ = ["project"]
Open = Callable[..., SvcApp]


def handle() -> str:
    return f"@{os.environ['TEST_HANDLE']}"


@pytest.fixture
def watched(project: str, alice: Svc) -> Iterator[Path]:
    """The folder of the repository, watched by an agent that an agent's turn names."""
    assert alice("watch", "--detach").code == 0
    yield Path.cwd()
    assert alice("watch", "stop", "--all").code == 0


async def open_code(pilot: Pilot[None]) -> None:
    await settle(pilot)
    await press(pilot, "enter", "2")


async def test_the_live_state_comes_by_push(watched: Path, open_app: Open) -> None:
    async with open_app().run_test(size=(160, 24)) as pilot:
        await open_code(pilot)
        await pilot.press("L")
        await sees(pilot, "● live", "0 not sealed", "nobody else is here")
        (watched / "src/main.py").write_text("def main():\n    return 3\n")
        (watched / "new.md").write_text("# New\n")
        text = await sees(pilot, "2 not sealed", "+ new", "~ live", "People 1", handle())
        assert any("src/" in line and "~ live" in line for line in text.splitlines())
        await press(pilot, "t")
        await press(pilot, *"main", "enter")
        text = await sees(pilot, "return 3", "live, 2 lines")
        (watched / "src/main.py").write_text("def main():\n    return 4\n")
        await sees(pilot, "return 4")
        (watched / "src/main.py").write_text("def main():\n    return 2\n")
        text = await sees(pilot, "return 2", "1 not sealed")
        assert "live, 2 lines" not in text
        await press(pilot, "L")
        text = await settle(pilot)
        assert "not sealed" not in text and "new.md" not in text


async def test_a_sealed_text_that_comes_late_hides_no_live_one(
    watched: Path, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_code(pilot)
        await pilot.press("L")
        await sees(pilot, "0 not sealed")
        held.word = "/file/"
        await press(pilot, "t")
        await press(pilot, *"main", "enter")
        (watched / "src/main.py").write_text("def main():\n    return 3\n")
        await sees(pilot, "return 3", "live, 1 of 2 lines")
        text = await held.let_go(pilot)
        assert "return 3" in text and "return 2" not in text


async def test_a_removed_file_and_bytes_say_so(watched: Path, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 24)) as pilot:
        await open_code(pilot)
        await pilot.press("L")
        await sees(pilot, "0 not sealed")
        (watched / "README.md").unlink()
        (watched / "data.bin").write_bytes(bytes(range(255)))
        await sees(pilot, "− removed", "2 not sealed")
        await press(pilot, "G", "enter")
        await sees(pilot, "255 bytes, not text")
        await press(pilot, "escape", "k", "enter")
        await sees(pilot, "live, removed", "removed by @")


async def test_a_seal_moves_the_live_state_on(watched: Path, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 24)) as pilot:
        await open_code(pilot)
        await pilot.press("L")
        await sees(pilot, "0 not sealed")
        (watched / "new.md").write_text("# New\n")
        await sees(pilot, "1 not sealed", "+ new")
        assert alice("push", "-m", "Third").code == 0
        text = await sees(pilot, "0 not sealed", "new.md")
        while "+ new" in text:  # until the tree of the new seal is read
            await pilot.pause(0.05)
            text = await sees(pilot, "0 not sealed", "new.md")


async def test_somebody_is_followed_until_a_key(watched: Path, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_code(pilot)
        await pilot.press("L")
        await sees(pilot, "0 not sealed")
        (watched / "src/main.py").write_text("def main():\n    return 3\n")
        await sees(pilot, "src/main.py:2")
        await pilot.press("f")
        text = await sees(pilot, "return 3", "following @", "◂ @")
        assert any("return 3" in line and "◂ @" in line for line in text.splitlines())
        (watched / "README.md").write_text("# Project\n\nRead me.\n\nNow.\n")
        await sees(pilot, "Now.", "following @")
        await press(pilot, "k")
        assert "following" not in shown(pilot.app)  # type: ignore[arg-type]
        (watched / "src/main.py").write_text("def main():\n    return 4\n")
        await sees(pilot, "src/main.py:2")
        assert "Now." in shown(pilot.app)  # type: ignore[arg-type]
        await pilot.press("f")
        await sees(pilot, "return 4", "following @")
        await press(pilot, "escape")
        assert "following" not in shown(pilot.app)  # type: ignore[arg-type]


async def test_an_agents_turn_is_named(
    project: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_TURN", "refactor")
    assert alice("watch", "--detach").code == 0
    try:
        async with open_app().run_test(size=(200, 50)) as pilot:
            await open_code(pilot)
            await pilot.press("f")
            Path("src/main.py").write_text("def main():\n    return 5\n")
            await sees(pilot, "(agent)", "return 5", "following @")
    finally:
        assert alice("watch", "stop", "--all").code == 0


async def test_without_the_role_it_says_why(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_code(pilot)
        screen = pilot.app.screen
        viewer = screen.repo.viewer  # type: ignore[attr-defined]
        import msgspec

        low = msgspec.structs.replace(viewer, role="read")
        screen.repo = msgspec.structs.replace(screen.repo, viewer=low)  # type: ignore[attr-defined]
        assert "this needs the role write" in await press(pilot, "L")
