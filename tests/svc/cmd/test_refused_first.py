"""How an answer is wanted is checked before a command does anything: every command of the table, with the
requests counted by the relay."""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path

import pytest

from svc.cmd.frame.command import build
from svc.cmd.frame.table import COMMANDS
from tests.svc.conftest import Svc

EVERY = sorted(COMMANDS)
TEXT_ONLY = {
    "app logs",
    "auth git-credential",
    "completions",
    "llm logs",
    "llm run",
    "llm serve",
    "repo api",
    "tui",
}  # no fields
WORDS = {
    "shell": "bash",
    "who": "public",
    "path": "src/a.txt",
    "paths": "src/a.txt",
    "branch": "dev",
    "role": "admin",
}


def asked(node: str) -> int:
    """How many requests the relay has answered, this one not counted."""
    with urllib.request.urlopen(node + "/metrics") as answer:
        text = answer.read().decode()
    counted = re.findall(r'^relay_requests_total\{route="([^"]*)".*\} ([0-9.]+)$', text, re.M)
    return sum(int(float(count)) for route, count in counted if "metrics" not in route)


@pytest.fixture
def linked(alice: Svc) -> Svc:
    """alice in a linked folder with one seal, and a second branch."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/app").code == 0
    Path("src").mkdir()
    Path("src/a.txt").write_text("one\n")
    assert alice("push", "-m", "First").code == 0
    assert alice("repo", "branch", "dev").code == 0
    Path("src/a.txt").write_text("two\n")
    return alice


def words_of(path: str) -> list[str]:
    """The command with a plausible word for each required argument, and a yes to every question."""
    wanted = [param for param in build(path).params if param.param_type_name == "argument" and param.required]
    more = ["-m", "Second"] if path == "push" else []
    return [*path.split(), *(WORDS.get(param.name, "word") for param in wanted), *more, "--yes"]


def test_the_count_counts(linked: Svc, node: str) -> None:
    before = asked(node)
    assert linked("repo", "view").code == 0
    assert asked(node) > before


WRONG = [
    ["--json", "no_such_field"],
    ["--json", "noSuchField"],
    ["--json=no_such_field"],
    ["--json", "id,no_such_field"],
    ["--jq", ".["],
    ["-q", ".[", "--json"],
    ["--template", "{{"],
    ["--template", "{{no_such_field}}"],
]


def test_refused_by_every_command(linked: Svc, node: str) -> None:
    files = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()}
    before = asked(node)
    for path in EVERY:
        for wrong in WRONG:
            told = linked(*words_of(path), *wrong)
            assert (told.code, told.out) == (2, ""), (path, wrong, told)
            if "field" in wrong[-1] and path not in TEXT_ONLY:
                assert "the fields are: " in told.err, (path, wrong, told)
        assert asked(node) == before, path
    assert {file: file.read_bytes() for file in Path().rglob("*") if file.is_file()} == files
