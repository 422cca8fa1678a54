"""Measures how the relay is divided into subjects, and the share of import lines: `python -m
scripts.figures`. docs/design/012-wiring.md says why.

A subject is a folder of `relay/domain`; a noun is a module of `localstore/core/model` that declares
endpoints. Lines are counted in files.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

import grimp

from relay import domain
from relay.http.routing import TABLE, Route
from tests.endpoints import endpoints

ROOT = Path(__file__).resolve().parent.parent
DOMAIN = ROOT / "relay" / "domain"
ROOMS = ("svc", "tui", "relay", "localstore", "llm")


def main() -> None:
    domain.load()
    graph = grimp.build_graph("relay")
    relay = sorted((ROOT / "relay").rglob("*.py"))
    tables = [file for file in relay if file.name == "routes.py"]
    above = imports_of_subjects(graph)
    homes = subjects_of_nouns(tables)
    functions = [function for file in relay for function in functions_of(file)]
    forwarding = [route.name for route in TABLE if forwards(route)]
    rules = {module for module in graph.modules if is_rule(module)}
    code = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    figures = {
        "subjects": len(above),
        "subjects in one ball": len(ball(above)),
        "pairs of subjects that import each other": sum(
            a in above[b] and b in above[a] for a, b in combinations(above, 2)
        ),
        "nouns": len(homes),
        "nouns served from one subject": sum(len(subjects) == 1 for subjects in homes.values()),
        "folders of a noun, at most": max(len(folders_of(noun, homes[noun])) for noun in homes),
        "routes": len(TABLE),
        "lines of tables of routes": sum(map(lines, tables)),
        "files of tables of routes": len(tables),
        "handlers that only call their rule": len(forwarding),
        "rules that import relay.http": sum(
            any(name.startswith("relay.http") for name in graph.find_modules_directly_imported_by(rule))
            for rule in rules
        ),
        "lines of the relay": sum(map(lines, relay)),
        "files of the relay": len(relay),
        "functions of the relay": len(functions),
        "functions of the relay that bind found": sum(map(binds_found, functions)),
        "lines of all rooms": sum(map(lines, code)),
        "lines of imports in all rooms": sum(import_lines(file.read_text("utf-8")) for file in code),
    }
    for name, figure in figures.items():
        print(f"{figure:7,}  {name}")


def imports_of_subjects(graph: grimp.ImportGraph) -> dict[str, set[str]]:
    """Subject → the other subjects that it imports."""
    subjects = {module.rpartition(".")[2] for module in graph.find_children("relay.domain")}
    above: dict[str, set[str]] = {subject: set() for subject in sorted(subjects)}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = [name.split(".")[2] for name in (module, imported) if name.startswith("relay.domain.")]
            if len(pair) == 2 and pair[0] != pair[1]:
                above[pair[0]].add(pair[1])
    return above


def ball(above: dict[str, set[str]]) -> set[str]:
    """The largest set of subjects that all import one another, directly or through others; empty if no
    imports form a cycle. `above`: subject → subjects that it imports."""
    reached = {subject: reach(above, subject) for subject in above}
    balls = [
        {other for other in reached[subject] if subject in reached[other]}
        for subject in above
        if subject in reached[subject]
    ]
    return max(balls, key=len, default=set())


def reach(above: dict[str, set[str]], start: str) -> set[str]:
    """Every subject that `start` imports, directly or through others."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = above[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def subjects_of_nouns(tables: Iterable[Path]) -> dict[str, set[str]]:
    """Noun → the subjects whose route tables have rows for its endpoints."""
    homes: dict[str, set[str]] = {name.partition(".")[0]: set() for name in endpoints()}
    for table in tables:
        tree = ast.parse(table.read_text("utf-8"))
        imported = {
            alias.asname or alias.name: alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("localstore.core.model")
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr.isupper():
                homes.get(imported.get(node.value.id, ""), set()).add(table.parent.name)
    return homes


def folders_of(noun: str, subjects: Iterable[str]) -> set[Path]:
    """The folders of the relay that are about the noun: its subjects, and the folders of SQL statements and
    tables that are named after it."""
    shared = ROOT / "relay" / "db"
    schema = shared / "schema"
    folders = {DOMAIN / subject for subject in subjects}
    for file in shared.rglob(f"{noun}.py"):
        folders.add(schema if schema in file.parents else shared)
    return folders


def forwards(route: Route) -> bool:
    """Whether the route's handler is in a `routes.py` and only passes its own parameters to another
    function."""
    file = ROOT / f"{route.handler.__module__.replace('.', '/')}.py"
    if file.name != "routes.py":
        return False
    name = route.handler.__name__
    handler = next(function for function in functions_of(file) if function.name == name)
    statements = [one for one in handler.body if not isinstance(getattr(one, "value", None), ast.Constant)]
    value = getattr(statements[0], "value", None) if len(statements) == 1 else None
    call = value.value if isinstance(value, ast.Await) else None
    if not isinstance(call, ast.Call) or call.keywords:
        return False
    return [ast.unparse(argument) for argument in call.args] == [one.arg for one in handler.args.args]


def is_rule(module: str) -> bool:
    """Whether a module contains rules of a subject: every module of `relay.domain` except SQL statements,
    route tables and pages."""
    parts = module.split(".")
    of_subject = parts[:2] == ["relay", "domain"] and len(parts) > 3
    return of_subject and not {"rows", "routes", "pages"} & set(parts)


def functions_of(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def binds_found(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a variable or parameter of the function is called `found`, a name that says little."""
    return any(
        (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == "found")
        or (isinstance(node, ast.arg) and node.arg == "found")
        for node in ast.walk(function)
    )


def import_lines(text: str) -> int:
    """The number of lines of a module's text that belong to import statements."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def lines(file: Path) -> int:
    return len(file.read_text("utf-8").splitlines())


if __name__ == "__main__":
    main()
