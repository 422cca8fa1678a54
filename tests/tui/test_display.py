"""The display layer against a terminal emulator: what is sent shows what was meant, and little is sent."""

from __future__ import annotations

import random

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style

from tui.display.looks import BLANK, Cell, Looks, Row, switch_look
from tui.display.screen import Screen
from tui.text import ago

WIDTH, HEIGHT = 24, 10
LOOKS = Looks(ColorSystem.TRUECOLOR)
STYLES = [
    None,
    Style(bold=True),
    Style(color="red"),
    Style(color="green", bgcolor="blue"),
    Style(reverse=True),
    Style(color="default", reverse=True),
    Style(color="red", bold=True, underline=True),
    Style(color="#6cb6ff", bgcolor="color(39)", blink=True),
    Style(color="red", italic=True, strike=True),
]
TEXTS = ["", "abc", "    ", "a longer line of words", "日本語", "x日", "e\u0301te\u0301", "ab  cd", "👍 ok"]


def line(*parts: tuple[str, Style | None]) -> Row:
    cells = LOOKS.cells(Segment(text, style) for text, style in parts)[:WIDTH]
    if cells and cells[-1].text and len(cells[-1].text) == 1 and ord(cells[-1].text) > 0x1100:
        cells[-1] = BLANK  # the half of a wide character at the edge
    return cells + [BLANK] * (WIDTH - len(cells))


class Terminal:
    def __init__(self) -> None:
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self.stream = pyte.Stream(self.screen)

    def rows(self) -> list[list[pyte.screens.Char]]:
        return [
            list(map(row.__getitem__, range(WIDTH)))
            for row in map(self.screen.buffer.__getitem__, range(HEIGHT))
        ]


def drawn_whole(rows: list[Row]) -> list[list[pyte.screens.Char]]:
    """What a terminal shows to which every cell is sent."""
    terminal = Terminal()
    for y, row in enumerate(rows):
        terminal.stream.feed(f"\x1b[{y + 1};1H")
        for cell in row:
            terminal.stream.feed(f"{cell.look.on}{cell.text}{cell.look.off}")
    return terminal.rows()


lines = st.lists(st.tuples(st.sampled_from(TEXTS), st.sampled_from(STYLES)), max_size=4).map(
    lambda parts: line(*parts)
)
steps = st.one_of(
    st.dictionaries(st.integers(0, HEIGHT - 1), lines, max_size=HEIGHT),  # lines
    st.integers(-4, 4),  # a scroll
)


@settings(deadline=None, max_examples=300)
@given(st.lists(steps, max_size=8), st.integers())
def test_the_terminal_shows_what_was_painted(moves: list[dict[int, Row] | int], seed: int) -> None:
    screen, terminal, rng = Screen(WIDTH, HEIGHT), Terminal(), random.Random(seed)
    rows = [line() for _ in range(HEIGHT)]
    for move in moves:
        if isinstance(move, int):
            fresh = [line((rng.choice(TEXTS), rng.choice(STYLES))) for _ in range(abs(move))]
            rows = [*rows[move:], *fresh] if move > 0 else [*fresh, *rows][:HEIGHT] if move else rows
            wanted = dict(enumerate(rows))
        else:
            wanted = move
            rows = [wanted.get(y, row) for y, row in enumerate(rows)]
        terminal.stream.feed(screen.update({y: [(0, row)] for y, row in wanted.items()}))
        assert terminal.rows() == drawn_whole(screen.rows())
        assert screen.rows() == rows


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(st.integers(0, HEIGHT - 1), st.integers(0, WIDTH - 1), st.sampled_from(TEXTS)), max_size=12
    )
)
def test_a_run_that_covers_half_of_a_wide_character_leaves_no_half(runs: list[tuple[int, int, str]]) -> None:
    screen, terminal = Screen(WIDTH, HEIGHT), Terminal()
    for y, x, text in runs:
        if "\u0301" in text:
            x = min(x, WIDTH - 4)  # the emulator wraps before it combines
        terminal.stream.feed(screen.update({y: [(x, LOOKS.cells([Segment(text)]))]}))
        assert terminal.rows() == drawn_whole(screen.rows())


def test_nothing_is_sent_for_what_is_there() -> None:
    screen = Screen(WIDTH, HEIGHT)
    rows = {y: [(0, line((f"line {y}", None)))] for y in range(HEIGHT)}
    assert screen.update(rows)
    assert screen.update(rows) == ""


def test_a_cursor_that_moves_by_a_line_costs_two_lines_at_most() -> None:
    screen = Screen(80, 24)
    plain, marked = Style(), Style(reverse=True)
    names = [f"src/module_{n}.py" for n in range(24)]

    def rows(cursor: int) -> dict[int, list[tuple[int, Row]]]:
        return {
            y: [(0, LOOKS.cells([Segment(name.ljust(80), marked if y == cursor else plain)]))]
            for y, name in enumerate(names)
        }

    screen.update(rows(3))
    assert len(screen.update(rows(4))) < 200


@pytest.mark.parametrize("distance", [1, 5, -1, -5])
def test_a_scroll_sends_the_new_lines_only(distance: int) -> None:
    screen = Screen(80, 24)
    text = [f"{n:5} def function_{n}(argument, other): return {n * 7919}" for n in range(60)]

    def rows(top: int) -> dict[int, list[tuple[int, Row]]]:
        return {y: [(0, LOOKS.cells([Segment(text[top + y].ljust(80))]))] for y in range(24)}

    screen.update(rows(20))
    assert len(screen.update(rows(20 + distance))) < 40 + abs(distance) * 75


def test_a_resize_starts_from_an_empty_terminal() -> None:
    screen = Screen(WIDTH, HEIGHT)
    screen.update({0: [(0, line(("word", None)))]})
    terminal = Terminal()
    terminal.stream.feed("rubbish")
    terminal.stream.feed(screen.clear() + screen.update({0: [(0, line(("word", None)))]}))
    assert terminal.rows() == drawn_whole(screen.rows())


def test_combining_characters_stay_with_their_letter() -> None:
    assert LOOKS.cells([Segment("e\u0301x")]) == [Cell("e\u0301", LOOKS.of(None)), Cell("x", LOOKS.of(None))]


def test_what_a_screen_forgot_to_make_safe_does_not_steer_the_terminal() -> None:
    row = Looks(ColorSystem.STANDARD).cells([Segment("a\x1b[2J\x07\u202eb\x9b1m"), Segment("née\u200d")])
    assert "".join(cell.text for cell in row) == "a[2Jb1mnée\u200d"


def test_a_time_that_is_none_is_made_safe() -> None:
    assert ago("\x1b]0;owned\x07", 0.0) == "\\x1b]0;owned\\x07"


def test_a_column_of_times_that_move_on_costs_four_bytes_a_row() -> None:
    screen = Screen(WIDTH, HEIGHT)
    cursor, dim = Style(color="default", reverse=True), Style(color="bright_black")

    def rows(time: str) -> dict[int, list[tuple[int, Row]]]:
        styles = [cursor] + [dim] * (HEIGHT - 1)
        return {y: [(0, line((f"row {y}".ljust(14) + time, style)))] for y, style in enumerate(styles)}

    screen.update(rows("5 min ago"))
    assert screen.update(rows("6 min ago")) == (
        "\x1b[1;15H\x1b[7m6" + "\x1bD\b\x1b[0;90m6" + "\x1bD\b6" * (HEIGHT - 2) + "\x1b[m"
    )
    assert len(screen.update(rows("7 h ago  "))) <= 20 + HEIGHT * len("\x1bD\x1b[15G7 h ago  ")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("none", "bold", "\x1b[1m"),
        ("bold red", "none", "\x1b[m"),
        ("red", "bold red", "\x1b[1m"),
        ("red", "green", "\x1b[32m"),
        ("red on blue", "green on blue", "\x1b[32m"),
        ("reverse red on color(200)", "red on color(200)", "\x1b[27m"),
        ("bold #010203 on #040506", "#010203 on #040506", "\x1b[22m"),
        ("default reverse", "reverse", ""),
        ("bold dim red on color(200)", "dim red on color(200)", "\x1b[0;2;31;48;5;200m"),
        ("underline underline2", "underline2", "\x1b[0;21m"),
    ],
)
def test_a_look_changes_by_what_differs(before: str, after: str, text: str) -> None:
    assert switch_look(LOOKS.of(Style.parse(before)), LOOKS.of(Style.parse(after))) == text


def test_a_link_is_ended_before_the_next_look() -> None:
    link, bold = LOOKS.of(Style.parse("link https://x.example")), LOOKS.of(Style(bold=True))
    assert switch_look(link, bold) == "\x1b]8;;\x1b\\\x1b[1m"


def test_equal_cells_between_two_changes_are_sent_again_only_in_the_same_look() -> None:
    screen = Screen(WIDTH, HEIGHT)
    red = Style(color="red")
    screen.update({0: [(0, line(("a--b", None), ("--", red), ("c", None)))]})
    assert screen.update({0: [(0, line(("x--y", None), ("--", red), ("z", None)))]}) == ("\x1b[Hx--y\x1b[2Cz")
