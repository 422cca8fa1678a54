"""Chooses how a terminal shows pictures: with the graphics protocol that the terminal's name implies,
otherwise as half-blocks, which are ordinary characters. Inside tmux and screen it is always half-blocks,
because these do not pass any of the protocols on by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from tui.images.decode import DecodedImage

Way = Literal["kitty", "iterm2", "sixel", "blocks"]
WAYS: tuple[Way, ...] = get_args(Way)
PICTURE = 7311  # the id of the one picture that kitty holds of ours
PIECE = 4096  # characters of one piece that kitty takes
CELL = (10, 20)  # pixels that a cell is taken to have
PIXELS = (640, 480)  # of a picture at most, whatever the size of the terminal
DELETE_KITTY = f"\x1b_Ga=d,d=I,i={PICTURE},q=2\x1b\\"

_NAMES: tuple[tuple[str, str, Way], ...] = (
    ("TERM", "xterm-kitty", "kitty"),
    ("TERM", "xterm-ghostty", "kitty"),
    ("TERM_PROGRAM", "ghostty", "kitty"),
    ("TERM_PROGRAM", "WezTerm", "iterm2"),
    ("TERM_PROGRAM", "iTerm.app", "iterm2"),
    ("LC_TERMINAL", "iTerm2", "iterm2"),
    ("TERM", "foot", "sixel"),
    ("TERM", "mlterm", "sixel"),
    ("TERM", "contour", "sixel"),
    ("TERM", "yaft-256color", "sixel"),
)


def way_of(environment: Mapping[str, str]) -> Way:
    """Returns how the terminal that these environment variables describe shows pictures."""
    if environment.get("TMUX") or environment.get("STY"):
        return "blocks"
    if environment.get("TERM", "").startswith(("screen", "tmux")):
        return "blocks"
    if environment.get("KITTY_WINDOW_ID"):
        return "kitty"
    for variable, beginning, way in _NAMES:
        if environment.get(variable, "").startswith(beginning):
            return way
    return "blocks"


def decoder_output(way: Way) -> str:
    """Returns which output (blocks, png or sixel) the decoder has to make for this way of showing
    pictures."""
    return "png" if way in ("kitty", "iterm2") else way


def pixels(way: Way, columns: int, rows: int) -> tuple[int, int]:
    """Returns the largest (width, height) in pixels that a picture in this many cells can have."""
    if way == "blocks":
        return max(1, min(columns, PIXELS[0])), max(1, min(rows * 2, PIXELS[1]))
    return max(1, min(columns * CELL[0], PIXELS[0])), max(1, min(rows * CELL[1], PIXELS[1]))


def cells(way: Way, image: DecodedImage) -> tuple[int, int]:
    """Returns how many (columns, rows) of the terminal the picture covers."""
    if way == "blocks":
        return image.width, -(-image.height // 2)
    return -(-image.width // CELL[0]), -(-image.height // CELL[1])


def sequence(way: Way, image: DecodedImage) -> str:
    """Returns the escape sequence that draws the picture at the cursor. Returns "" for half-blocks."""
    columns, rows = cells(way, image)
    if way == "kitty":
        return "".join(_kitty(image.data, columns, rows))
    if way == "iterm2":
        size = f"width={columns};height={rows};preserveAspectRatio=1;doNotMoveCursor=1"
        return f"\x1b]1337;File=inline=1;{size}:{image.data}\x07"
    if way == "sixel":
        return f"\x1bP0;1q{image.data}\x1b\\"
    return ""


def _kitty(data: str, columns: int, rows: int) -> Iterator[str]:
    pieces = [data[at : at + PIECE] for at in range(0, len(data), PIECE)] or [""]
    for number, piece in enumerate(pieces):
        more = int(number < len(pieces) - 1)
        first = f"a=T,f=100,i={PICTURE},c={columns},r={rows},C=1,q=2," if number == 0 else "q=2,"
        yield f"\x1b_G{first}m={more};{piece}\x1b\\"
