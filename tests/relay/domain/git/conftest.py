"""git as a stranger runs it: no configuration but its own, no credentials, no questions."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.relay.conftest import Relay
from tests.relay.histories import Repository


@dataclass(frozen=True)
class Git:
    """The installed git, in a folder of the test."""

    folder: Path
    url: str

    def tried(self, *words: str, at: str = "") -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "GIT_AUTHOR_NAME": "Stranger",
            "GIT_AUTHOR_EMAIL": "stranger@example.org",
            "GIT_COMMITTER_NAME": "Stranger",
            "GIT_COMMITTER_EMAIL": "stranger@example.org",
        }
        return subprocess.run(
            ["git", *words],
            cwd=self.folder / at,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def __call__(self, *words: str, at: str = "") -> str:
        """What git prints."""
        done = self.tried(*words, at=at)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def address(self, repository: Repository) -> str:
        return f"{self.url}/{repository.body['full_name']}.git"

    def clone(self, repository: Repository, to: str, *options: str) -> Path:
        self("clone", "-q", *options, self.address(repository), to)
        return self.folder / to

    def head(self, at: str, ref: str = "HEAD") -> str:
        return self("rev-parse", ref, at=at).strip()


@pytest.fixture
def git(tmp_path: Path, relay: Relay) -> Git:
    return Git(tmp_path, relay.url)


def files(folder: Path) -> dict[str, bytes]:
    """The files of a working copy, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }
