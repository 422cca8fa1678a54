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


RECORD = re.compile(r"docs/design/([\w-]+)|docs/([\w-]+\.md)")
MODULES = sorted(
    path
    for room in ("localstore", "relay", "svc", "tui", "llm", "scripts")
    for path in (ROOT / room).rglob("*.py")
)


def broken(text: str) -> list[str]:
    """The pages of `docs/` that the text names and that do not exist; a record may be named by its number."""
    records = {path.stem for path in (ROOT / "docs/design").glob("*.md")}
    known = records | {name.partition("-")[0] for name in records}
    return [
        record or page
        for record, page in RECORD.findall(text)
        if (record and record not in known) or (page and not (ROOT / "docs" / page).exists())
    ]


def test_docstrings_cite_pages_that_exist() -> None:
    assert broken("docs/design/004, docs/design/001-the-house.md, docs/benchmarks.md") == []
    assert broken("docs/design/999, docs/nowhere.md") == ["999", "nowhere.md"]
    cited = {str(path.relative_to(ROOT)): broken(path.read_text("utf-8")) for path in MODULES}
    assert {name: pages for name, pages in cited.items() if pages} == {}
