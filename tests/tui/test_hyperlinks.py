"""Links that a terminal opens by itself (OSC 8): who gets them, and no address steers a terminal."""

from __future__ import annotations

import pytest
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult

from tui.display.hyperlinks import ADDRESS_CHARS, opened_by_terminal, terminal_opens
from tui.display.looks import Looks
from tui.display.screen import Screen
from tui.widgets.lines import Item, Lines

LOOKS = Looks(ColorSystem.TRUECOLOR)


@pytest.mark.parametrize(
    ("env", "opens"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "dumb", "VTE_VERSION": "7200"}, False),
        ({"TERM": "linux", "TERM_PROGRAM": "WezTerm"}, False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4800"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM": "xterm-256color", "WT_SESSION": "1"}, True),
        ({"TERM": "screen-256color", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.4"}, True),
        ({"TERM": "screen-256color", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.2a"}, False),
        ({"TERM": "screen-256color", "VTE_VERSION": "7200"}, False),
        ({}, False),
    ],
)
def test_which_terminals_get_links(env: dict[str, str], opens: bool) -> None:
    assert terminal_opens(env) is opens


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://",
        "https://a.example/\x1b\\\x1b[2J",
        "https://a.example/\x07",
        "https://a.example/ b",
        "https://a.example/\n",
        "https://a.example/é",
        "https://a.example/\u202e",
        "https://a.example/" + "a" * ADDRESS_CHARS,
        "src/pool.py",
        "#2",
        "",
    ],
)
def test_other_addresses_are_never_written(address: str) -> None:
    assert not opened_by_terminal(address)
    (cell,) = LOOKS.cells([Segment("x", Style(link=address))])
    assert cell.look.on == ""


def test_a_link_begins_and_ends_around_its_words() -> None:
    screen = Screen(12, 1)
    style = Style(underline=True, link="https://a.example/")
    row = LOOKS.cells([Segment("see ", None), Segment("this", style), Segment("    ", None)])
    text = screen.update({0: [(0, row)]})
    assert text == "\x1b[Hsee \x1b]8;;https://a.example/\x1b\\\x1b[4mthis\x1b[0m\x1b]8;;\x1b\\"
    again = LOOKS.cells([Segment("see ", None), Segment("this", style.copy()), Segment("    ", None)])
    assert screen.update({0: [(0, again)]}) == "", "the same link is sent once"


class Linked(App[None]):
    """One row with three links."""

    opens_links = True

    def compose(self) -> ComposeResult:
        parts = (("docs", "link"), (" ", "text"), ("#2", "link"), (" ", "text"), ("bad", "link"))
        lines = Lines(marked=False, linked=True)
        lines.show([Item(0, parts, targets=("https://a.example/x", "#2", "https://a.example/\x1b[2J"))])
        yield lines


@pytest.mark.parametrize("opens", [True, False])
async def test_only_addresses_of_the_web_are_links_and_only_where_they_open(opens: bool) -> None:
    app = Linked()
    app.opens_links = opens
    async with app.run_test(size=(40, 3)) as pilot:
        strip = pilot.app.query_one(Lines).render_line(0)
        found = [segment.style.link for segment in strip if segment.style is not None and segment.style.link]
        assert found == (["https://a.example/x"] if opens else [])


async def test_a_link_in_which_a_search_has_found_something_stays_whole() -> None:
    """Its address is behind all its parts, and all of them look like the chosen link."""
    async with Linked().run_test(size=(40, 3)) as pilot:
        lines = pilot.app.query_one(Lines)
        lines.searches = True
        lines.filter("oc")
        row = [(segment.text, segment.style or Style()) for segment in lines.render_line(0)]
        assert [text for text, _ in row][:3] == ["d", "oc", "s"]
        assert "".join(text for text, style in row if style.link) == "docs"
        styles = lines.styles_of_theme
        own = (styles["link"], styles["found link"])
        assert "".join(text for text, style in row if style.update_link(None) in own) == "docs"
        assert lines.step_link()
        row = [(segment.text, segment.style or Style()) for segment in lines.render_line(0)]
        assert "".join(text for text, style in row if style.update_link(None) in own) == "#2"


async def test_what_was_found_in_a_hidden_list_is_revealed_once_it_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is tried again and again until then."""
    async with Linked().run_test(size=(40, 3)) as pilot:
        lines = pilot.app.query_one(Lines)
        lines.searches, lines.display = True, False
        await pilot.pause()
        later: list[object] = []
        monkeypatch.setattr(lines, "call_after_refresh", later.append)
        lines.show([Item(0, (("-" * 100 + "here", "text"),))])
        lines.filter("here")
        lines.reveal_found()
        assert not later and lines.shift == 0
        lines.display = True
        await pilot.pause()
        await pilot.pause()
        assert lines.shift > 60
