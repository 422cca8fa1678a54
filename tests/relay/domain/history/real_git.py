"""A repository of the real git, whose commits stand for seals."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from tests.relay.histories import Repository


class Git:
    """A repository of the real git whose commits stand for seals."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seal_of: dict[str, str] = {}
        self.run("init", "-q", "-b", "main")

    def run(self, *arguments: str) -> str:
        identity = {
            f"GIT_{who}_{what}": "t@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        clean = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env={**identity, **clean}, check=True, capture_output=True
        )
        return done.stdout.decode()

    def commit(self, files: dict[str, bytes], seal_id: str) -> str:
        for path, data in files.items():
            (self.folder / path).write_bytes(data)
        self.run("add", "-A")
        self.run("commit", "-q", "--allow-empty", "-m", seal_id)
        return self.name(seal_id)

    def name(self, seal_id: str) -> str:
        commit = self.run("rev-parse", "HEAD").strip()
        self.seal_of[commit] = seal_id
        return commit

    def blame(self, commit: str, path: str, *options: str) -> list[str]:
        lines = self.run("blame", *options, "--porcelain", commit, "--", path).splitlines()
        return [self.seal_of[line[:40]] for line in lines if line[:40] in self.seal_of and line[40:41] == " "]


def owners(repo: Repository, seal_id: str, path: str = "f.txt", **query: Any) -> list[str]:
    """The seal that each line of a file comes from."""
    body = repo.get(f"/seals/{seal_id}/blame/{path}", **query)
    found = [one["seal_id"] for one in body["ranges"] for _ in range(one["start"], one["end"] + 1)]
    assert len(found) == body["lines"]
    return found
