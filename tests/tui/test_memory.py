"""What the app holds after it has freed large blocks."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Large blocks with something small behind each that stays, as answers are decoded, shown and stored; then all
# large ones are freed. The first one makes the C library take such sizes from its heap from then on.
WORK = """
import re
from pathlib import Path
from tui.memory import settle

def held():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024

settle()
first = bytearray(8_000_000)
del first
before, large, small = held(), [], []
for _ in range(10):
    large.append(bytearray(6_000_000))
    large[-1][::4096] = b"x" * len(range(0, 6_000_000, 4096))
    small.append(bytearray(b"x" * 100_000))
assert held() - before > 50, "the blocks are held"
large.clear()
print(held() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has other ways")
def test_large_blocks_go_back_to_the_system_when_they_are_freed() -> None:
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20  # of 60 MB


def test_the_first_paint_imports_what_the_first_screen_shows_only() -> None:
    program = (
        "import sys, svc.cmd.frame.catalogue, svc.flows.outbox.actions, svc.http.session;"
        "import tui.app, tui.screens.home;"
        "print(*(name for name in sys.modules if name.startswith(('localstore.', 'svc.', 'tui.'))))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    models = {name for name in told.stdout.split() if name.startswith("localstore.core.model.")}
    assert models <= {
        "localstore.core.model.base",
        "localstore.core.model.repo",
        "localstore.core.model.limits",
        "localstore.core.model.inbox",
    }
    later = {"tui.contents", "tui.screens.repo", "localstore.agent.talk", "localstore.core.model.rights"}
    assert later.isdisjoint(told.stdout.split())
