"""Saves of a round that failed are not forgotten."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import pytest

from localstore.core.errors import ServerUnreachable
from localstore.sync.owning import Rounds
from svc.agent.steps import Steps
from tests.localstore.place import LINK


def test_what_was_saved_is_looked_at_again_after_a_failure(tmp_path: Path) -> None:
    steps = Steps(tmp_path, 1, LINK, cast("Rounds", None), lambda said: None)
    steps._saves.closed("a.txt", 0.0)
    steps._saves.changed_below("sub/", 0.0)
    found = steps._saves.pop_due(time.monotonic(), lambda path: False, 10)
    assert found == (["a.txt"], {"sub/"})
    with pytest.raises(ServerUnreachable), steps._heard_again(*found):
        raise ServerUnreachable
    assert steps._saves.pop_due(time.monotonic() + 1, lambda path: False, 10) == found


def test_what_was_brought_or_answered_is_sent_again_after_a_failure(tmp_path: Path) -> None:
    steps = Steps(tmp_path, 1, LINK, cast("Rounds", None), lambda said: None)
    with pytest.raises(ServerUnreachable), steps._sent_again(["a.txt"]):
        raise ServerUnreachable
    assert steps._again == {"a.txt"}
