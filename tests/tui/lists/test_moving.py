"""Files of a release on their way: progress, cancel and going on, by keys alone, against a real relay."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from svc.flows.assets import download, upload
from svc.flows.assets.local import LocalFile
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle, soon
from tui.app import SvcApp
from tui.machine import Place
from tui.screens.code.seal import SealScreen
from tui.screens.lists import moving
from tui.screens.lists.releases import ReleaseScreen

__all__ = ["project"]
Open = Callable[..., SvcApp]
MANY = 4 * 1024 * 1024


class Stopping:
    """Lets `pieces` pieces through, then waits until it is opened."""

    def __init__(self, pieces: int) -> None:
        self.left, self.open = pieces, threading.Event()
        self.waits = threading.Event()
        self.passed = 0

    def step(self) -> None:
        self.passed += 1
        self.left -= 1
        if self.left == 0:
            self.waits.set()
            assert self.open.wait(30)


@pytest.fixture
def large(project: str, alice: Svc) -> Path:
    """A file of 4 MiB, and a release with it."""
    Path("large.bin").write_bytes(os.urandom(MANY))
    assert alice("repo", "release", "create", "v1", "large.bin").code == 0
    return Path("large.bin").resolve()


async def open_release(pilot: Pilot[None]) -> str:
    await settle(pilot)
    await press(pilot, "enter", "5")
    await sees(pilot, "v1")
    await press(pilot, "enter")

    def is_read() -> bool:
        """Keys are for the rows of its list."""
        screen = pilot.app.screen
        return isinstance(screen, ReleaseScreen) and screen.lines is not None and screen.lines.key is not None

    await soon(pilot, is_read)
    return await settle(pilot)


async def test_a_download_shows_progress_is_cancelled_and_goes_on(
    large: Path, open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = large.read_bytes()
    folder = tmp_path / "down"
    folder.mkdir()
    monkeypatch.setattr(moving, "PAINT_EACH", 0.0)
    slow, write = Stopping(8), download._write

    def written(fd: int, piece: bytes) -> None:
        write(fd, piece)
        slow.step()

    monkeypatch.setattr(download, "_write", written)
    async with open_app(place=Place(folder)).run_test(size=(200, 24)) as pilot:
        assert "large.bin" in await open_release(pilot)
        await pilot.press("g", "enter")
        text = await sees(pilot, " % ", " of 4.0 MiB", "/s", "esc cancels")
        assert "↓ [" in text
        await pilot.press("escape")
        slow.open.set()
        await sees(pilot, "cancelled; large.bin: enter goes on where it stopped", "stopped at ")
        assert not (folder / "large.bin").exists()
        part = next(folder.glob(".svc-*.tmp")).stat().st_size
        assert 0 < part < MANY
        got: list[int] = []

        def counted(fd: int, piece: bytes) -> None:
            got.append(len(piece))
            write(fd, piece)

        monkeypatch.setattr(download, "_write", counted)
        await pilot.press("enter")
        await sees(pilot, "✓ in ")
        assert (folder / "large.bin").read_bytes() == whole
        assert sum(got) == MANY - part
        await pilot.press("enter")
        await sees(pilot, "has it already")
        assert "Releases 1" in await press(pilot, "escape")


async def test_an_upload_shows_progress_and_goes_on_with_what_is_missing(
    large: Path, open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "up"
    folder.mkdir()
    (folder / "first.bin").write_bytes(b"first")
    (folder / "second one.bin").write_bytes(os.urandom(MANY))
    monkeypatch.setattr(moving, "PAINT_EACH", 0.0)
    slow, pieces = Stopping(3), upload._pieces

    def sent(file: LocalFile, done: Callable[[int], None]) -> Iterator[bytes]:
        for piece in pieces(file, done):
            yield piece
            slow.step()

    monkeypatch.setattr(upload, "_pieces", sent)
    async with open_app(place=Place(folder)).run_test(size=(200, 24)) as pilot:
        await open_release(pilot)
        await press(pilot, "u")
        await pilot.press(*"first.bin 'second one.bin'", "enter")
        text = await sees(pilot, "second one.bin  ↑ [", " of 4.0 MiB", "↑ ✓ uploaded")
        assert "first.bin" in text
        await pilot.press("escape")
        slow.open.set()
        await sees(pilot, "cancelled; u goes on with the files that are missing", "stopped at ")
        await sees(pilot, "first.bin", "↑ ✓ uploaded")
        monkeypatch.setattr(upload, "_pieces", pieces)
        assert "second one.bin" in (await press(pilot, "u")).splitlines()[-1]
        await pilot.press("enter")
        text = await sees(pilot, "1 of 2 files uploaded", "↑ ✓ uploaded")
        assert re.search(r"second one\.bin .* ↑ ✓ uploaded", text)
        assert re.search(r"first\.bin .* ↑ ✓ was there already", text)


async def test_what_cannot_be_sent_or_written_is_named(
    large: Path, open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "large.bin").write_bytes(b"something else")
    async with open_app(place=Place(folder)).run_test(size=(120, 24)) as pilot:
        await open_release(pilot)
        await pilot.press("g", "enter")
        await sees(pilot, "is there with other")  # content; a long path parts the sentence into two lines
        assert (folder / "large.bin").read_bytes() == b"something else"
        await press(pilot, "u")
        await pilot.press(*"absent.bin", "enter")
        await sees(pilot, "there is no absent.bin; nothing was uploaded", "files to upload: absent.bin")
        await pilot.press(*(["backspace"] * 20), *"'open", "enter")
        await sees(pilot, "the paths cannot be read", "files to upload: 'open")
        await pilot.press(*(["backspace"] * 20), *"~nobody-of-this-name/x", "enter")
        await sees(pilot, "Could not determine home directory")


def test_a_path_is_completed_as_far_as_only_one_way_is_possible(tmp_path: Path) -> None:
    for name in ("notes.md", "notes.txt", "wheel 1.whl", ".hidden"):
        (tmp_path / name).write_text("")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/svc.whl").write_text("")
    for typed, completed in {
        "n": "notes.",
        "a d": "a dist/",
        "a dist/": "a dist/svc.whl",
        "w": "w",
        "absent/": "absent/",
    }.items():
        assert moving.complete_path(typed, tmp_path) == completed


async def test_a_release_shows_its_seals_and_an_absent_file_leaves_the_prompt(
    project: str, alice: Svc, open_app: Open
) -> None:
    """The seals since the release before are listed, and enter opens one."""
    first = json.loads(alice("log", "--json", "id").out)[-1]["id"]
    assert alice("repo", "release", "create", "v1", "--from", first).code == 0
    assert alice("repo", "release", "create", "v2").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "5")
        await sees(pilot, "v2", "v1")
        await press(pilot, "g", "enter")
        await sees(pilot, "no files; u uploads some", "Seals since v1 1", "enter open the seal")
        await sees(pilot, "svc repo release delete v2")
        await press(pilot, "u", *"absent", "enter")
        await sees(
            pilot, "there is no absent; nothing was uploaded", "files to upload: absent", "tab complete"
        )
        await press(pilot, "escape", "enter")
        await soon(pilot, lambda: isinstance(pilot.app.screen, SealScreen))
