"""A real git, away from the settings of whoever runs the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Git = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Runs git in `tmp_path`; the finished process, whatever its exit code."""
    settings = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }

    def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["git", *arguments],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            check=False,
            env={**os.environ, **settings},
        )

    return run
