"""Prints docstrings drawn at random, to check that each is understood alone: `python -m scripts.docstrings
SEED [COUNT]`. The same seed draws the same docstrings from the same tree."""

from __future__ import annotations

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("llm", "localstore", "relay", "scripts", "svc", "tui")
COUNT = 150


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.docstrings",
        description="Prints docstrings drawn at random, to check that each is understood alone.",
    )
    parser.add_argument("seed", help="any word; the same one draws the same docstrings from the same tree")
    parser.add_argument("count", nargs="?", type=int, default=COUNT, help=f"how many; {COUNT} unless given")
    arguments = parser.parse_args()
    everything = list(find_docstrings())
    if not 1 <= arguments.count <= len(everything):
        parser.error(f"count is a number from 1 to {len(everything)}, as there are so many docstrings")
    drawn = random.Random(arguments.seed).sample(everything, arguments.count)
    for number, (place, signature, docstring) in enumerate(drawn, 1):
        print(f"{number:>3}  {place}\n     {signature}\n{docstring}\n")


def find_docstrings() -> Iterator[tuple[str, str, str]]:
    """Yields (file and line, signature, docstring) of every module, class and function in the rooms that has
    a docstring."""
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
    main()
