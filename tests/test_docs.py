"""The hand-written pages lead somewhere: links and files exist, commands are commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from svc.cmd.frame.table import COMMANDS, GROUPS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s#]+)[^)]*\)")
SOURCE = re.compile(r"`((?:localstore|relay|svc|tui|llm|scripts|tests)/[\w/.-]+\.\w+)`")
TYPED = re.compile(r"(?:^\$ |`)svc ([a-z][a-z-]*(?: [a-z][a-z-]*)*)", re.MULTILINE)


def pages() -> list[str]:
    return [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("name", pages())
def test_links_lead_to_files(name: str) -> None:
    page = ROOT / name
    targets = [t for t in LINK.findall(page.read_text("utf-8")) if "://" not in t]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("name", pages())
def test_files_that_are_named_exist(name: str) -> None:
    named = SOURCE.findall((ROOT / name).read_text("utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", pages())
def test_commands_that_are_shown_exist(name: str) -> None:
    """A shown command begins with the name of one; words after it are its arguments."""
    shown = [typed.split() for typed in TYPED.findall((ROOT / name).read_text("utf-8"))]
    known = {*COMMANDS, *GROUPS}
    assert [words for words in shown if not known & {" ".join(words[:n]) for n in range(1, 4)}] == []
