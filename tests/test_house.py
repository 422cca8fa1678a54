"""The house stays as docs/design/001-the-house.md says: floors, one word for one thing."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from localstore.core.diff.text_merge import has_markers

ROOT = Path(__file__).resolve().parent.parent

# A noun has one file name in every layer. What stands here has its reason: (layer, file) → whose part it is.
PARTS = {
    ("svc/api", "sync_transport"): "the relay as localstore.sync sees it",
    ("localstore/core/model", "auth"): "sessions and sign-in",
    ("localstore/core/model", "base"): "what every resource is made of",
    ("localstore/core/model", "limits"): "the numbers of all nouns",
    ("localstore/core/model", "rights"): "who may do what with all nouns",
}
_WORDS = (
    "TO" + "DO",
    "FIX" + "ME",
    "XX" + "X",
    "HA" + "CK",
    "TB" + "D",
    "WI" + "P",
)  # so that this file has none
MARKS = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")
TEXT = {".py", ".md", ".toml", ".html", ".css", ".mako", ""}


def tracked() -> Iterator[Path]:
    """Text files of the project: those of git, or in a copy without git all that are not hidden."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0") if listed.returncode == 0 else _walked()):
        path = ROOT / name
        if path.is_file() and path.suffix in TEXT and path.name != "LICENSE":
            yield path


def _walked() -> list[str]:
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
    return [str(path) for path in found if not any(part.startswith(".") for part in path.parts)]


def modules(folder: str) -> set[str]:
    """Names of the modules in the folder and below it."""
    return {path.stem for path in (ROOT / folder).rglob("*.py")} - {"__init__"}


def test_imports_keep_to_the_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True, no_logo=True) == EXIT_STATUS_SUCCESS


def test_the_relay_knows_the_kernel_only() -> None:
    """The import contract names what it forbids; here everything of ours but the kernel is forbidden."""
    ours = ("svc", "tui", "llm", "localstore")
    found = []
    for path in sorted((ROOT / "relay").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module == "localstore":
                names = [f"localstore.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found += [
                f"{path.relative_to(ROOT)}: {name}"
                for name in names
                if name.partition(".")[0] in ours and not f"{name}.".startswith("localstore.core.")
            ]
    assert found == []


@pytest.mark.parametrize("layer", ["svc/api", "localstore/core/model"])
def test_a_noun_has_one_name_in_every_layer(layer: str) -> None:
    domain = ROOT / "relay" / "domain"
    rules = {path.stem for path in domain.rglob("*.py")}
    subjects = {path.name for path in domain.iterdir()}
    strangers = modules(layer) - rules - subjects
    assert strangers == {file for where, file in PARTS if where == layer}


def test_no_file_has_our_conflict_markers() -> None:
    """svc would not push it."""
    assert [str(path) for path in tracked() if has_markers(path.read_bytes())] == []


def test_nothing_is_left_unfinished() -> None:
    marked = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if MARKS.search(line)
    ]
    assert marked == []


def _pins(lock: str) -> dict[str, str]:
    lines = (ROOT / lock).read_text("utf-8").splitlines()
    found = (re.match(r"([A-Za-z0-9_.-]+)==([^ ;\\]+)", line) for line in lines)
    return {canonicalize_name(match[1]): match[2] for match in found if match}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-test.lock"])
def test_the_lock_is_what_the_project_asks_for(lock: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = ("relay", "test", "web") if "test" in lock else ("relay",)
    optional = project["optional-dependencies"]
    asked = project["dependencies"] + [line for extra in extras for line in optional[extra]]
    pins = _pins(lock)
    wrong = [
        f"{line}: {pins.get(canonicalize_name(need.name))}"
        for line in asked
        if not (need := Requirement(line)).specifier.contains(pins.get(canonicalize_name(need.name)) or "0")
    ]
    assert wrong == [], "run: ./scripts/lock"


VAGUE = {"found", "one", "made", "said", "kept", "shown", "left", "known", "wanted", "asked", "told", "here"}
"""`left` beside `right` is a side, and is not counted."""
BOUND = {"llm": 0, "localstore": 0, "relay": 0, "svc": 0, "tui": 0}
"""How many functions of each room bind one of VAGUE. Numbers may only shrink."""


@pytest.mark.parametrize("room", sorted(BOUND))
def test_locals_are_named_for_what_they_are(room: str) -> None:
    vague = []
    for path in sorted((ROOT / room).rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                names = {
                    node.arg if isinstance(node, ast.arg) else node.id
                    for node in ast.walk(function)
                    if isinstance(node, ast.arg)
                    or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
                }
                counted = names & VAGUE - ({"left"} if "right" in names else set())
                if counted:
                    vague.append(f"{path.relative_to(ROOT)}:{function.lineno} {', '.join(sorted(counted))}")
    assert len(vague) <= BOUND[room], "\n".join(vague)
    assert len(vague) == BOUND[room], f"write {len(vague)} for {room}: it became smaller"


IRREGULAR = {
    "begun",
    "built",
    "given",
    "gone",
    "held",
    "kept",
    "known",
    "made",
    "sent",
    "shown",
    "spent",
    "taken",
}
VERBS = {"embed"}
"""Verbs that end as participles do."""
PARTICIPLES = {"llm": 0, "localstore": 0, "relay": 0, "scripts": 0, "svc": 0, "tui": 0}
"""At most so many functions of each room, apart from properties, are named by a participle alone."""
TWICE = {"llm": 0, "localstore": 0, "relay": 0, "scripts": 0, "svc": 0, "tui": 0}
"""At most so many names of classes of each room stand for several classes. Numbers may only shrink."""


def _functions(room: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


@pytest.mark.parametrize("room", sorted(PARTICIPLES))
def test_a_function_is_a_verb(room: str) -> None:
    bare = []
    for place, function in _functions(room):
        is_property = any(ast.unparse(name).endswith("property") for name in function.decorator_list)
        word = function.name.strip("_")
        is_participle = word in IRREGULAR or re.fullmatch(r"[a-z]+[^e]ed", word)
        if not is_property and word not in VERBS and is_participle:
            bare.append(f"{place} {function.name}")
    assert len(bare) <= PARTICIPLES[room], "\n".join(bare)


@pytest.mark.parametrize("room", sorted(TWICE))
def test_a_class_name_stands_for_one_class(room: str) -> None:
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    twice = [f"{name}: {', '.join(where)}" for name, where in places.items() if len(where) > 1]
    assert len(twice) <= TWICE[room], "\n".join(twice)
