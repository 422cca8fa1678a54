"""Finding a path by some of its letters."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.test_app import press, project, settle
from tui.app import SvcApp
from tui.screens.choose import Choose
from tui.widgets.fuzzy import Fuzzy, distance
from tui.widgets.lines import Item
from tui.widgets.made import LazyRows

__all__ = ["project"]
PATHS = (
    "docs/shapes.md",
    "lib/geometry/shape.py",
    "lib/ship/keep.py",
    "src/shape_tools.py",
    "src/reshape.py",
    "tests/lists/test_base.py",
    "tests/tail.py",
    "tui/app.py",
    "README.md",
)


def rows(paths: tuple[str, ...] | list[str]) -> LazyRows[str]:
    return LazyRows(paths, lambda path: Item(path, ((path, "text"),)), lambda path: path, str)


def found(typed: str) -> list[str]:
    lines = Fuzzy()
    lines._filter = typed
    lines._all = rows(PATHS)
    left = lines._filter_rows()
    return [str(left[at].key) for at in range(len(left))]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("shp", "docs/shapes.md"),
        ("shape", "lib/geometry/shape.py"),
        ("shape.py", "lib/geometry/shape.py"),
        ("tools", "src/shape_tools.py"),
        ("resh", "src/reshape.py"),
        ("tb", "tests/lists/test_base.py"),
        ("tui", "tui/app.py"),
        ("src/sh", "src/shape_tools.py"),
        ("geo sh", "lib/geometry/shape.py"),
        ("SHIP", "lib/ship/keep.py"),
        ("readme", "README.md"),
    ],
)
def test_what_is_nearest_comes_first(typed: str, first: str) -> None:
    assert found(typed)[0] == first


def test_what_lacks_a_letter_is_left_out() -> None:
    assert found("shpq") == []
    assert "README.md" not in found("shp")
    assert found("shp")[-1] == "lib/ship/keep.py"  # its name has none of them


@given(st.text("ab/_", max_size=12), st.text("ab/_", min_size=1, max_size=5))
def test_a_path_is_found_exactly_if_it_has_the_letters_in_order(path: str, word: str) -> None:
    rest = iter(path)
    assert (distance(path, word) is not None) == all(letter in rest for letter in word)


async def test_letters_with_others_between_find_a_file(
    project: str, alice: Svc, open_app: Callable[..., SvcApp]
) -> None:
    Path("src/shape.py").write_text("CIRCLE = 1\n")
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "t")
        await press(pilot, *"shp")
        lines = pilot.app.screen.query_one(Fuzzy)
        assert [lines.rows[at].key for at in range(len(lines.rows))] == ["src/shape.py"]
        assert "CIRCLE" in await press(pilot, "enter")


class ChooseFile(Choose):
    """A card that finds paths by some of their letters."""

    LINES = Fuzzy


async def test_a_hundred_thousand_paths_hold_no_key_for_long(
    open_app: Callable[..., SvcApp], alice: Svc
) -> None:
    paths = [f"package_{n % 97}/module_{n % 1009}/part_{n}.py" for n in range(100_000)]
    app, chosen = open_app(), list[str]()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.push_screen(ChooseFile("find file", rows(paths), chosen.append))
        await pilot.pause()
        lines, longest = app.screen.query_one(Fuzzy), 0.0
        lines.filter("p")  # what is searched in is made once
        lines.ready()
        for typed in ("pa", "par", "part", "part9", "part99", "x", "p77"):
            began = time.process_time()
            lines.filter(typed)
            longest = max(longest, time.process_time() - began)
        assert longest < 0.1
        await pilot.press(*"part99999", "enter")
        await pilot.pause()
        assert chosen == ["package_89/module_108/part_99999.py"]
        assert "find file" not in shown(app)
