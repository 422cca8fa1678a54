"""The house stays as docs/design/001-the-house.md says: floors, one word for one thing, files of a size."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).resolve().parent.parent

LAYERS = {
    "model": "localstore/core/model",
    "routes": "relay/routes",
    "service": "relay/service",
    "db": "relay/db",
    "api": "svc/api",
}

# noun → the layers where it has a file of its own. A noun lacks a layer where another noun carries it there,
# or where it has nothing to do.
NOUNS: dict[str, set[str]] = {}

# Files of a layer that are no noun but the layer's own tools.
TOOLS: dict[str, set[str]] = {}

LONGEST = 400
LONGER = {
    "relay/db/schema.py": "the one picture of all tables; parts of it would refer to each other",
    "tests/localstore/core/test_capability.py": "one catalogue of hostile tokens",
    "tests/localstore/core/tree/test_tree.py": "one plain model and everything held against it",
}

MARKS = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "TB" + "D", "WI" + "P")) + r")\b")
TEXT = {".py", ".md", ".toml", ".sh", ".html", ".css", ".txt", ".mako", ""}


def tracked() -> Iterator[Path]:
    """Files of the project: what git tracks, or in a copy without git everything that is not hidden."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split("\0") if listed.returncode == 0 else _walked()
    for name in filter(None, names):
        path = ROOT / name
        if path.is_file() and path.suffix in TEXT and path.name != "LICENSE":
            yield path


def _walked() -> list[str]:
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
    return [str(path) for path in found if not any(part.startswith(".") for part in path.parts)]


def test_imports_keep_to_the_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True, no_logo=True) == EXIT_STATUS_SUCCESS


@pytest.mark.parametrize("layer", LAYERS)
def test_a_noun_has_one_name_in_every_layer(layer: str) -> None:
    files = {path.stem for path in (ROOT / LAYERS[layer]).glob("*.py")} - {"__init__"}
    assert files == {noun for noun, layers in NOUNS.items() if layer in layers} | TOOLS[layer]


def test_files_stay_short() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines())
        for path in tracked()
        if path.suffix == ".py" and "migrations/versions" not in str(path)
    }
    assert {name for name, lines in lengths.items() if lines > LONGEST} == set(LONGER)


def test_nothing_is_left_unfinished() -> None:
    marked = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if MARKS.search(line)
    ]
    assert marked == []
