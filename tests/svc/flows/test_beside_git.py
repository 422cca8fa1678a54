"""A folder that git versions too: what git sees of svc, and what svc takes of what git tracks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.svc.conftest import Svc
from tests.svc.flows.test_folder import git, sealed, write
from tests.svc.flows.test_large_files import made, pushed

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def full(alice: Svc) -> str:
    """The folder we are in is linked to this new repository, and a git repository."""
    name = made(alice, "app", "beside")
    git("init", "-q", "-b", "main")
    return name


def test_git_neither_lists_nor_takes_nor_cleans_the_link(alice: Svc, full: str) -> None:
    write("a.txt", "one\n")
    pushed(alice)
    assert git("status", "--porcelain", "--untracked-files=all") == "?? a.txt\n"
    git("add", "-A")
    assert git("ls-files") == "a.txt\n"
    git("clean", "-fdq")
    assert alice("status").code == 0
    assert sorted(sealed(alice)) == ["a.txt"]


def test_a_link_of_an_earlier_svc_gets_the_rule_with_the_next_push(alice: Svc, full: str) -> None:
    Path(".svc/.gitignore").unlink()
    write("a.txt", "one\n")
    pushed(alice)
    assert git("status", "--porcelain", "--untracked-files=all") == "?? a.txt\n"
    Path(".svc/.gitignore").write_text("# mine\n*\n")
    write("a.txt", "two\n")
    pushed(alice)
    assert Path(".svc/.gitignore").read_text() == "# mine\n*\n"
