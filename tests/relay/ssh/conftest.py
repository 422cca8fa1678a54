"""One relay with SSH for these tests, and alice with a key."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.remote import files
from tests.relay.ssh.place import Relay, opened, start

CONFINES = shutil.which("ssh") and (os.geteuid() == 0 or files.version() >= files.SCOPED)
BECOME = "import os; os.setgroups([]); os.setgid(2_000_000_000); os.setuid(2_000_000_000)"


def _root_is_whole() -> bool:
    """Whether root may mount here and become any user, as in a container it may not."""
    words = [*opened(), sys.executable, "-c", BECOME]
    return os.geteuid() != 0 or subprocess.run(words, capture_output=True).returncode == 0


@pytest.fixture(scope="session")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    if not CONFINES:
        pytest.skip("needs OpenSSH, and root or a kernel with Landlock and its scopes")
    if not _root_is_whole():
        pytest.skip("root may not mount or change users here")
    found = start(tmp_path_factory.mktemp("ssh"))
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="session")
def key(relay: Relay) -> Path:
    """A key of alice, who has the repository alice/demo."""
    made = relay.key("alice")
    relay.svc("alice", "login", "--device-key", "--handle", "alice")
    relay.register("alice", made)
    relay.svc("alice", "repo", "create", "demo")
    relay.svc("alice", "issue", "create", "-R", "alice/demo", "-t", "Typo", "-b", "It says teh.")
    return made
