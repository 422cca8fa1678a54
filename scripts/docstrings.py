"""Prints docstrings drawn at random, to check that each is understood alone:
`python -m scripts.docstrings SEED [COUNT]`. The same seed draws the same ones from the same tree."""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("llm", "localstore", "relay", "svc", "tui")
COUNT = 150


def main(words: list[str]) -> None:
    if not words:
        raise SystemExit("usage: python -m scripts.docstrings SEED [COUNT]")
    count = int(words[1]) if len(words) > 1 else COUNT
    drawn = random.Random(words[0]).sample(list(documented()), count)
    for number, (place, signature, docstring) in enumerate(drawn, 1):
        print(f"{number:>3}  {place}\n     {signature}\n{docstring}\n")


def documented() -> Iterator[tuple[str, str, str]]:
    """Yields (file and line, signature, docstring) of everything in the rooms that has a docstring."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    docstring = ast.get_docstring(node)
                    if docstring:
                        line = getattr(node, "lineno", 1)
                        yield f"{path.relative_to(ROOT)}:{line}", _signature(node), docstring


def _signature(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if isinstance(node, ast.Module):
        return "module"
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}({', '.join(map(ast.unparse, node.bases))})"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"def {node.name}({ast.unparse(node.args)}){returns}"


if __name__ == "__main__":
    main(sys.argv[1:])
