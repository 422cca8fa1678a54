"""Which commands run over SSH."""

from __future__ import annotations

from svc.cmd.frame.over_ssh import OFFERED
from svc.cmd.frame.table import COMMANDS


def test_the_commands_that_are_offered_exist() -> None:
    assert COMMANDS.keys() >= OFFERED
