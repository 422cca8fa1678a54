"""The committed reference is what the code says now."""

from __future__ import annotations

import ast
import re

import pytest

from scripts import reference, reference_environment
from scripts.reference_environment import Mismatch, Variable


@pytest.mark.parametrize("name", reference.PAGES)
def test_the_committed_page_is_current(name: str) -> None:
    written = (reference.FOLDER / name).read_text("utf-8")
    assert written == reference.MADE + reference.PAGES[name](), "run: python -m scripts.reference"


def test_the_guide_lists_each_of_its_pages_once() -> None:
    committed = (reference.GUIDE / "README.md").read_text("utf-8")
    assert committed == reference.guide(), "run: python -m scripts.reference"
    pages = {path.name for path in reference.GUIDE.glob("*.md")} - {"README.md"}
    assert sorted(re.findall(r"\]\(([\w-]+\.md)\)", committed)) == sorted(pages)


def test_a_variable_without_a_description_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    described = {k: v for k, v in reference_environment.RELAY.items() if k != "TR_PUBLIC_URL"}
    monkeypatch.setattr(reference_environment, "RELAY", described)
    with pytest.raises(Mismatch, match="TR_PUBLIC_URL"):
        reference_environment.environment()


def test_a_description_without_a_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    described = {**reference_environment.CLIENT, "SVC_NOBODY_READS": Variable("–", "nothing")}
    monkeypatch.setattr(reference_environment, "CLIENT", described)
    with pytest.raises(Mismatch, match="SVC_NOBODY_READS"):
        reference_environment.environment()


def test_every_route_and_every_limit_has_a_row() -> None:
    from localstore.core.model import limits
    from relay.http.routing import TABLE

    routes, numbers = reference.routes(), reference.limits()
    assert all(f"`{route.method} {route.path}`" in routes for route in TABLE)
    units = {"KIB", "MIB", "GIB"}
    named = [name for name, value in vars(limits).items() if name.isupper() and isinstance(value, int)]
    assert [name for name in named if f"`{name}`" not in numbers and name not in units] == []


def test_no_flag_of_a_route_is_called_missing() -> None:
    from relay.http.routing import TABLE

    reference.routes()  # fills the table
    flags = {route.flag for route in TABLE if route.flag}
    assert "TR_SOCIAL_ENABLED" in flags
    described = {name: reference_environment.RELAY[name].meaning for name in flags}
    assert [
        name for name, meaning in described.items() if "not built" in meaning or "no such" in meaning
    ] == []


def test_every_limit_of_tries_stands_in_the_reference() -> None:
    constructed = sum(
        isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Attempts"
        for path in (reference.ROOT / "relay").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    )
    page = reference.limits()
    from relay.capacity.limiter import Attempts

    guesses = [name for name in Attempts.ALL if name.endswith((".place", ".strangers"))]
    # The two of guesses are constructed for each thing that is guessed.
    assert len(Attempts.ALL) - len(guesses) == constructed - 2
    assert all(f"| {attempts.what} |" in page for attempts in Attempts.ALL.values())
    assert "| `POST /auth/guest-login` of a network | 60 | 60 |" in page
