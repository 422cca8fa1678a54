"""A Ctrl-C that Python drops is repeated, so that the command ends."""

from __future__ import annotations

import subprocess
import sys

from tests.patience import PATIENCE
from tests.svc.conftest import ROOT

DROPPED = """
import signal, time
from svc.__main__ import repeat_lost_interrupts

class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
repeat_lost_interrupts()
try:
    Dropped()
    time.sleep(1000)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_in_a_destructor_is_not_lost() -> None:
    words = [sys.executable, "-c", DROPPED]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert (ran.stdout, ran.stderr) == ("interrupted\n", "")
