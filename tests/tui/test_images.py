"""Pictures: each protocol, half-blocks, and bytes that are meant to harm."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from textual.pilot import Pilot
from textual.strip import Strip

from localstore.core.errors import Invalid
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.display.looks import BLANK, Cell
from tui.display.screen import Overlay, Screen
from tui.images.protocol import PIXELS, WAYS, Way, cells, pixels, sequence, way_of
from tui.images.read import decode_picture
from tui.widgets.picture import Picture, over

__all__ = ["project"]
Open = Callable[..., SvcApp]


def png(width: int = 40, height: int = 20, colour: Any = (200, 30, 30), kind: str = "PNG") -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(made, kind)
    return made.getvalue()


def bomb() -> bytes:
    """A small file that says it has 40,000 × 40,000 pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(bytes(1_000_000)))
    return b"\x89PNG\r\n\x1a\n" + head + data + chunk(b"IEND", b"")


def animated() -> bytes:
    made = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), (50 * n, 0, 0)) for n in range(5)]
    frames[0].save(made, "GIF", save_all=True, append_images=frames[1:])
    return made.getvalue()


@pytest.mark.parametrize(
    ("environment", "way"),
    [
        ({"TERM": "xterm-256color"}, "blocks"),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "iterm2"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/x,1,0"}, "blocks"),
        ({"TERM": "screen-256color", "TERM_PROGRAM": "iTerm.app"}, "blocks"),
        ({}, "blocks"),
    ],
)
def test_the_terminal_is_known_by_its_name(environment: dict[str, str], way: str) -> None:
    assert way_of(environment) == way


@pytest.mark.parametrize("way", WAYS)
def test_a_picture_keeps_its_shape_and_its_bounds(way: Any) -> None:
    width, height = pixels(way, 500, 500)
    assert width <= PIXELS[0] and height <= PIXELS[1]
    kind = {"blocks": "blocks", "sixel": "sixel"}.get(way, "png")
    image = decode_picture("a.png", png(4000, 2000), kind, width, height)
    assert (image.full_width, image.full_height) == (4000, 2000)
    assert image.width <= width and abs(image.width - 2 * image.height) <= 2
    columns, rows = cells(way, image)
    assert columns <= 500 and rows <= 500
    said = sequence(way, image)
    assert len(said) < 40_000
    assert said.count("\x1b") == 0 or said.startswith("\x1b")


def test_each_protocol_carries_the_picture_and_nothing_of_its_bytes() -> None:
    small = decode_picture("a.png", png(), "png", 100, 100)
    assert Image.open(io.BytesIO(base64.b64decode(small.data))).size == (40, 20)
    kitty = sequence("kitty", small)
    assert kitty.startswith("\x1b_Ga=T,f=100") and kitty.endswith("\x1b\\")
    assert sequence("iterm2", small).startswith("\x1b]1337;File=inline=1;width=4;height=1")
    six = decode_picture("a.png", png(9, 7), "sixel", 100, 100)
    text = sequence("sixel", six)
    assert text.startswith('\x1bP0;1q"1;1;9;7') and text.endswith("\x1b\\")
    assert "!9~" in text and set(six.data) <= set('"#;!$-0123456789' + "".join(map(chr, range(63, 127))))


@pytest.mark.parametrize(
    "raw",
    [b"", b"no image", png()[:40], b"\x89PNG\r\n\x1a\n" + bytes(1000), bomb(), b"GIF89a" + b"\xff" * 50],
    ids=["empty", "words", "cut", "zeros", "bomb", "gif"],
)
def test_what_is_no_picture_is_refused_in_a_sentence(raw: bytes) -> None:
    with pytest.raises(Invalid, match="not an image that can be shown"):
        decode_picture("a.png", raw, "png", 100, 100)


def test_no_file_of_the_current_folder_takes_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "it-ran"
    for name in ("base64.py", "msgspec.py", "tui/__init__.py", "svc/__init__.py"):
        file = tmp_path / "clone" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(marker)!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path / "clone")
    with suppress(Invalid):
        decode_picture("a.png", png(), "blocks", 80, 40)
    assert not marker.exists()


def test_one_pixel_and_an_animation_are_shown() -> None:
    one = decode_picture("a.png", png(1, 1), "blocks", 80, 40)
    assert (one.width, one.height, one.frames) == (1, 1, 1)
    many = decode_picture("a.gif", animated(), "blocks", 80, 40)
    assert (many.kind, many.frames, many.width) == ("gif", 5, 8)


async def test_a_picture_is_drawn_in_cells(
    project: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR")
    Path("red.png").write_bytes(png())
    Path("bad.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    assert alice("push", "-m", "Pictures").code == 0
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "t")
        text = await press(pilot, *"red", "enter")
        for _ in range(50):
            text = await settle(pilot)
            if "png 40×20" in text:
                break
        assert "png 40×20" in text
        colours = {
            segment.style.bgcolor.triplet
            for strip in rendered(app)
            for segment in strip
            if segment.style and segment.style.bgcolor and segment.style.bgcolor.triplet
        }
        assert (200, 30, 30) in colours
        await press(pilot, "t")
        await press(pilot, *"bad", "enter")
        text = await sees(
            pilot, "✗ this picture cannot be drawn: it is damaged", "to have it here", "89 50 4e"
        )
        assert "10 B · not text · PNG picture" in text and "is not an image" not in text
        await press(pilot, "escape", "t")
        assert "Read me." in await press(pilot, *"read", "enter")
        assert not app.screen.query_one(Picture).display


async def pixels_of(pilot: Pilot[None], way: Way) -> Overlay | None:
    """The pixels over the cells, once they are there."""
    for _ in range(50):
        await settle(pilot)
        found = over(pilot.app.screen, way)
        if found is not None:
            return found
        await pilot.pause(0.1)
    return None


def rendered(app: SvcApp) -> list[Strip]:
    picture = app.screen.query_one(Picture)
    return [picture.render_line(y) for y in range(picture.size.height)]


async def test_pixels_are_drawn_once_and_taken_away(project: str, alice: Svc, open_app: Open) -> None:
    Path("red.png").write_bytes(png())
    assert alice("push", "-m", "Picture").code == 0
    ways: tuple[Way, ...] = ("kitty", "iterm2", "sixel")
    for way in ways:
        app = open_app()
        app.images = way
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            await press(pilot, "enter", "t")
            await press(pilot, *"red", "enter")
            drawn = await pixels_of(pilot, way)
            assert drawn is not None and (drawn.width, drawn.height) == (4, 1)
            await press(pilot, "question_mark")
            assert over(app.screen, way) is None
            await press(pilot, "escape")
            assert await pixels_of(pilot, way) == drawn
            await press(pilot, "escape")
            assert over(app.screen, way) is None


def test_cells_below_pixels_are_written_again() -> None:
    screen = Screen(10, 2)
    assert screen.update({0: [(0, [BLANK] * 10)]}) == ""
    screen.forget(Overlay(2, 0, 3, 1, "", ""))
    text = screen.update({0: [(0, [BLANK] * 10)]})
    assert "\x1b[K" in text
    assert screen.rows()[0] == [BLANK] * 10
    assert screen.update({0: [(0, [Cell("x", BLANK.look)] + [BLANK] * 9)]}).count("x") == 1


@pytest.mark.parametrize("width", [80, 120])
async def test_pictures_of_a_seal(
    project: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.delenv("NO_COLOR")
    Path("red.png").write_bytes(png())
    assert alice("push", "-m", "Small").code == 0
    Path("red.png").write_bytes(png(60, 30))
    Path("data.bin").write_bytes(bytes(range(256)) * 12)
    Path("src/main.py").write_text("def main():\n    return 9\n")
    Path("zz.png").write_bytes(png()[:40])
    assert alice("push", "-m", "Large").code == 0
    app = open_app()
    async with app.run_test(size=(width, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2", "h")
        await sees(pilot, "Large")
        await press(pilot, "enter")
        await sees(pilot, "return 9")
        await press(pilot, "right_curly_bracket")
        await sees(pilot, "binary file: 256 B → 3.0 KiB")
        assert not app.screen.query_one(Picture).display
        await press(pilot, "right_curly_bracket")
        await sees(pilot, "picture: png 40×20, ", " → png 60×30, ")
        for _ in range(50):
            await settle(pilot)
            if app.screen.query_one(Picture).image is not None:
                break
        image = app.screen.query_one(Picture).image
        assert image is not None and (image.full_width, image.full_height) == (60, 30)
        await press(pilot, "right_curly_bracket")
        await sees(pilot, "picture: 40 B; it cannot be drawn: it is damaged")
        assert not app.screen.query_one(Picture).display
        await press(pilot, "left_curly_bracket", "left_curly_bracket", "left_curly_bracket")
        await sees(pilot, "return 9")
        assert not app.screen.query_one(Picture).display
