"""Finds, in the code, the commands that the messages of each error name."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from localstore.core.errors import SvcError
from scripts.error_tree import classes
from svc.cmd.frame.table import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"(?<![./])\bsvc ((?:[a-z]+(?:-[a-z]+)*)(?: [a-z]+(?:-[a-z]+)*)*)")
WORD = re.compile(r"svc[ \"']")
ASKED_FOR = ("pull", "switch")  # what `svc …` stands for in LocalEdits: the command that was asked for
PROSE = re.compile(r"\bsvc (?:reads|itself|can|what|\(|… is)")  # the program as the subject of a sentence


def remedies() -> dict[str, list[str]]:
    """Error code → the commands that the messages of this error name, sorted. Raises LookupError if a command
    does not exist."""
    found: dict[str, set[str]] = {}
    for code, command, _ in sentences():
        found.setdefault(code, set()).add(command)
    return {code: sorted(commands) for code, commands in sorted(found.items())}


@functools.cache
def sentences() -> set[tuple[str, str, str]]:
    """Every error message that names a command. Returns (error code, command, message with `…` in place of
    values)."""
    known = {kind.__name__: kind for kind in classes()}
    return {
        (code, command, sentence)
        for folder in ("localstore", "relay", "svc")
        for file in sorted((ROOT / folder).rglob("*.py"))
        if WORD.search(source := file.read_text("utf-8"))  # parsing the others would take seconds
        for code, sentence in _sentences(ast.parse(source), known)
        for command in _commands(sentence, file)
    }


def _sentences(module: ast.Module, known: dict[str, type[SvcError]]) -> Iterator[tuple[str, str]]:
    """Yields (error code, text) for each text inside an error class, and for each text that is passed to an
    error when it is raised. `known`: error classes by name."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            kind = known.get(getattr(node.func, "id", getattr(node.func, "attr", "")))
            said: list[ast.AST] = [*node.args, *(word.value for word in node.keywords)]
        elif isinstance(node, ast.ClassDef):
            kind = known.get(node.name)
            said = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        else:
            continue
        if kind is not None:
            for part in said:
                yield from ((kind.code, text) for text in _texts(part))


def _texts(node: ast.AST) -> Iterator[str]:
    """Yields the texts of the string literals below a node. An f-string is one text, with `…` in place of
    values."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values)
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for below in ast.iter_child_nodes(node):
        yield from _texts(below)


def _commands(sentence: str, file: Path) -> Iterator[str]:
    advice = PROSE.sub("", sentence)
    for match in NAMED.finditer(advice):
        words = match[1].split()
        known = next(
            (" ".join(words[:n]) for n in range(len(words), 0, -1) if " ".join(words[:n]) in COMMANDS), None
        )
        if known is None:
            raise LookupError(
                f"{file.relative_to(ROOT)} tells people to run svc {match[1]}, which is not a command"
            )
        yield known
    if "svc …" in advice:
        yield from ASKED_FOR
