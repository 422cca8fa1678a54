"""Every role can be read in every theme with colours of its own, also in the cursor's line; NO_COLOR."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.color import Color
from rich.style import Style

from tui.app import SvcApp
from tui.theme import BACKGROUNDS, ROLES, THEMES, choose_selected, contrast, label_role
from tui.widgets.strips import strip

TEXT, LINES = 4.5, 3.0  # the least contrast, as WCAG 2 counts it


def readable(style: Style) -> float:
    assert style.color is not None and style.bgcolor is not None
    return contrast(style.color, style.bgcolor)


@pytest.mark.parametrize("theme", sorted(THEMES.keys() - {"terminal"}))
@pytest.mark.parametrize("role", ROLES)
def test_a_role_stands_out_from_its_background(theme: str, role: str) -> None:
    styles = THEMES[theme]
    ground = Style(bgcolor=BACKGROUNDS[theme]) + Style(color=styles["text"].color)
    assert readable(ground + styles[role]) >= (LINES if role == "line" else TEXT)
    for over in ("cursor", "selected"):
        (segment,) = strip([("x", role)], 1, styles, styles[over])
        assert segment.style is not None and readable(ground + segment.style) >= TEXT, over


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


def test_labels_have_their_colour_where_it_is_seen() -> None:
    red = Color.parse("#d73a4a")
    assert label_role("D73A4A") == "label d73a4a"
    assert label_role("red; rm") == label_role("") == "name"
    assert all(THEMES[theme]["label d73a4a"].color == red for theme in THEMES)
    assert THEMES["light"]["label fefefe"] == THEMES["light"]["dim"]
    assert THEMES["dark"]["label 101010"] == THEMES["dark"]["dim"]
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
