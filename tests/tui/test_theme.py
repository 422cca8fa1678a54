"""Every role can be read in every theme with colours of its own, also in the cursor's line; NO_COLOR."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.color import Color, ColorSystem
from rich.style import Style

from tui.app import SvcApp
from tui.theme import (
    BACKGROUNDS,
    CHOSEN,
    COLOURLESS,
    ROLES,
    THEMES,
    choose_selected,
    choose_theme,
    contrast,
    css_colour,
    label_role,
)
from tui.tints import Kind, tints
from tui.widgets.strips import strip, widen

TEXT, LINES = 4.5, 3.0  # the least contrast, as WCAG 2 counts it


SYSTEMS = (ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT)
OF_CODE = ("text", "keyword", "string", "comment", "number", "name", "operator")


def readable(style: Style, system: ColorSystem = ColorSystem.TRUECOLOR) -> float:
    """The contrast of text and background in a terminal with these colours."""
    assert style.color is not None and style.bgcolor is not None
    return contrast(style.color.downgrade(system), style.bgcolor.downgrade(system))


def on_ground(theme: str, role: str) -> Style:
    """The style of a role on the background of the theme."""
    styles = THEMES[theme]
    return Style(bgcolor=BACKGROUNDS[theme]) + Style(color=styles["text"].color) + styles[role]


@pytest.mark.parametrize("theme", sorted(THEMES.keys() - {"terminal", COLOURLESS}))
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_role_stands_out_from_its_background(theme: str, role: str, system: ColorSystem) -> None:
    styles = THEMES[theme]
    ground = Style(bgcolor=BACKGROUNDS[theme]) + Style(color=styles["text"].color)
    assert readable(ground + styles[role], system) >= (LINES if role == "line" else TEXT)
    for over in ("cursor", "selected"):
        (segment,) = strip([("x", role)], 1, styles, styles[over])
        assert segment.style is not None and readable(ground + segment.style, system) >= TEXT, over


@pytest.mark.parametrize(
    ("theme", "light"),
    [("dark", None), ("light", None), ("terminal", False), ("terminal", True), ("terminal", None)],
)
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("kind", ["add", "delete"])
def test_changed_lines_can_be_read_on_their_tints(
    theme: str, light: bool | None, system: ColorSystem, kind: Kind
) -> None:
    name = "256" if system == ColorSystem.EIGHT_BIT else "truecolor"
    grounds = tints(theme, name, light, no_color=False)
    assert grounds is not None
    roles = [how(kind, role) for role in OF_CODE for how in (grounds.line, grounds.words)]
    roles += [grounds.mark(kind, role) for role in (kind, f"{kind}_mark")]
    low = {role: readable(THEMES[theme][role], system) for role in roles}
    assert {role: ratio for role, ratio in low.items() if ratio < TEXT} == {}
    seen = {THEMES[theme][how(kind, "text")].bgcolor for how in (grounds.line, grounds.words)}
    assert len(seen) == 2, "changed words differ from their line"


def test_tints_in_256_colours_are_green_and_red() -> None:
    for light in (True, False, None):
        grounds = tints("terminal", "256", light, no_color=False)
        assert grounds is not None
        for ground in (grounds.add, grounds.add_mark, grounds.add_words):
            red, green, _ = Color.parse(f"color({ground})").get_truecolor()
            assert green > red, ground
        for ground in (grounds.delete, grounds.delete_mark, grounds.delete_words):
            red, green, _ = Color.parse(f"color({ground})").get_truecolor()
            assert red > green, ground


def test_text_on_a_tint_has_the_colours_of_a_theme_that_knows_its_background() -> None:
    styles = THEMES["terminal"]
    assert styles["keyword"].color == Color.parse("magenta"), "which may not be seen on a tint"
    assert styles["on 1b2c21 keyword"].color == THEMES["dark"]["on 1b2c21 keyword"].color
    assert styles["on e2f5e5 text"].color == THEMES["light"]["text"].color
    assert styles["on 1b2c21 comment"].bgcolor == Color.parse("#1b2c21")


def test_the_background_of_a_row_goes_on_up_to_the_frame() -> None:
    styles = THEMES["terminal"]
    row = strip([(" 9 ", "on 52 delete"), ("x", "on 52 text")], 8, styles, rest="on 52 text")
    wide = widen(row, 1, 1)
    assert wide.text == "  9 x     "
    assert {segment.style.bgcolor for segment in wide if segment.style} == {Color.parse("color(52)")}
    assert widen(row, 0, 0) is row
    under = widen(strip([("word", "under add")], 4, styles), 1, 1)
    assert [bool(segment.style and segment.style.underline) for segment in under] == [False, True, False]


def test_without_colours_roles_differ_by_the_style_of_their_text() -> None:
    styles = THEMES[COLOURLESS]
    assert [role for role in ROLES if styles[role].color or styles[role].bgcolor] == []
    assert styles["label d73a4a"] == styles["text"]
    pairs = [("add", "delete"), ("title", "text"), ("accent", "dim"), ("tab", "text"), ("link", "text")]
    pairs += [("add_mark", "under add_mark"), ("delete", "under delete_mark"), ("text", "found text")]
    assert [pair for pair in pairs if styles[pair[0]] == styles[pair[1]]] == []
    assert COLOURLESS not in CHOSEN and css_colour(COLOURLESS, "accent") == "ansi_default"


def test_the_cursors_line_leaves_the_colours() -> None:
    styles = THEMES["dark"]
    row = strip([("✗", "bad"), ("#1", "accent"), ("now", "dim")], 8, styles, styles["selected"])
    colours = [segment.style.color for segment in row if segment.style is not None]
    assert colours == [styles[role].color for role in ("bad", "accent", "text", "text")]
    assert {segment.style.bgcolor for segment in row if segment.style is not None} == {
        styles["selected"].bgcolor
    }


@pytest.mark.parametrize(
    ("theme", "system", "no_color", "ground", "role"),
    [
        ("dark", "256", False, "", "selected"),
        ("dark", "standard", False, "", "reversed"),
        ("dark", "truecolor", True, "", "reversed"),
        ("light", "truecolor", False, "", "selected"),
        ("terminal", "256", False, "", "reversed"),
        ("terminal", "256", False, "15;0", "selected"),
        ("terminal", "256", False, "0;default;15", "selected_light"),
        ("terminal", "256", False, "0;default", "reversed"),
        ("terminal", "standard", False, "15;0", "reversed"),
        ("terminal", None, False, "15;0", "reversed"),
    ],
)
def test_where_the_cursors_line_is_tinted(
    theme: str, system: str | None, no_color: bool, ground: str, role: str
) -> None:
    assert choose_selected(theme, system, no_color, ground) == role


@pytest.mark.parametrize(
    ("chosen", "system", "no_color", "theme"),
    [
        ("dark", "truecolor", False, "dark"),
        ("light", "256", False, "light"),
        ("dark", "standard", False, "terminal"),
        ("light", "standard", False, "terminal"),
        ("contrast", "standard", False, "contrast"),
        ("light", "truecolor", True, COLOURLESS),
        ("terminal", None, False, COLOURLESS),
    ],
)
def test_a_theme_is_one_that_the_terminal_can_show(
    chosen: str, system: str | None, no_color: bool, theme: str
) -> None:
    assert choose_theme(chosen, system, no_color) == theme


async def test_the_next_theme_is_one_that_the_terminal_can_show(
    open_app: Callable[..., SvcApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORTERM", "")
    found = {}
    for term, no_color in (("xterm-256color", ""), ("xterm-16color", ""), ("xterm-256color", "1")):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("NO_COLOR", no_color)
        app = open_app()
        async with app.run_test(size=(80, 24)):
            found[term, no_color] = names = [app.colours]
            for _ in range(4):
                app.do_theme()
                names.append(app.colours)
    assert found == {
        ("xterm-256color", ""): ["terminal", "dark", "light", "contrast", "terminal"],
        ("xterm-16color", ""): ["terminal", "contrast", "terminal", "contrast", "terminal"],
        ("xterm-256color", "1"): [COLOURLESS] * 5,
    }


def test_labels_have_their_colour_where_it_is_seen() -> None:
    red = Color.parse("#d73a4a")
    assert label_role("D73A4A") == "label d73a4a"
    assert label_role("red; rm") == label_role("") == "name"
    assert all(THEMES[theme]["label d73a4a"].color == red for theme in ("terminal", "light", "contrast"))
    for theme, colours in (
        ("dark", ("101010", "0075ca", "d73a4a")),
        ("light", ("fefefe", "a2eeef", "fbca04")),
    ):
        for colour in colours:
            style = THEMES[theme][f"label {colour}"]
            assert readable(style) >= LINES and readable(style + THEMES[theme]["selected"]) >= LINES
    for colour in ("000000", "ffffff"):  # neither a dark nor a light terminal swallows it
        dot = THEMES["terminal"][f"label {colour}"].color
        assert dot is not None
        assert contrast(dot, Color.parse("#000000")) >= LINES and contrast(dot, Color.parse("#ffffff")) >= 1.6
    with pytest.raises(KeyError):
        THEMES["dark"]["label red"]
    for number in range(2000):
        THEMES["dark"][label_role(f"{number:06x}")]
    assert len(THEMES["dark"]) < 1000


def test_an_empty_no_color_leaves_the_colours(
    open_app: Callable[..., SvcApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, coloured in (("", True), ("0", False), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        assert open_app().no_color is not coloured, value
