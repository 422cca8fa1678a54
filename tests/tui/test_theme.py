"""Every role can be read in every theme with colours of its own, also in the cursor's line; NO_COLOR."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.color import Color
from rich.style import Style

from tui.app import SvcApp
from tui.theme import BACKGROUNDS, ROLES, THEMES

TEXT, LINES = 4.5, 3.0  # the least contrast, as WCAG 2 counts it


def luminance(colour: Color) -> float:
    parts = [value / 255 for value in colour.get_truecolor()]
    red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(style: Style) -> float:
    assert style.color is not None and style.bgcolor is not None
    dark, bright = sorted((luminance(style.color), luminance(style.bgcolor)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", sorted(THEMES.keys() - {"terminal"}))
@pytest.mark.parametrize("role", ROLES)
def test_a_role_stands_out_from_its_background(theme: str, role: str) -> None:
    styles = THEMES[theme]
    ground = Style(bgcolor=BACKGROUNDS[theme]) + Style(color=styles["text"].color)
    assert contrast(ground + styles[role]) >= (LINES if role == "line" else TEXT)
    assert contrast(ground + styles[role] + styles["cursor"]) >= TEXT


def test_an_empty_no_color_leaves_the_colours(
    open_app: Callable[..., SvcApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, coloured in (("", True), ("0", False), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        assert open_app().no_color is not coloured, value
