"""The official JavaScript clients of Ollama and OpenAI, call by call, where node is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.llm.javascript import HERE
from tests import npm
from tests.llm.conftest import Kept


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the clients."""
    folder = tmp_path_factory.mktemp("npm")
    shutil.copy(HERE / "package.json", folder)
    npm.install(folder)
    return folder


def test_each_call_of_the_clients_answers_as_they_expect(kept: Kept, packages: Path) -> None:
    command = ["node", str(HERE / "clients.mjs"), kept.url, str(packages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("ok ")] == [], done.stderr
    assert (done.returncode, len(lines) >= 28) == (0, True), done.stderr
