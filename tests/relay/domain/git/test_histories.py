"""Random histories, as `scripts.campaign.git.histories` plays them by the hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.campaign.git.histories import play
from tests.relay.conftest import Relay


@pytest.mark.parametrize("seed", range(1, 4))
def test_every_commit_has_the_files_and_parents_of_its_seal(relay: Relay, tmp_path: Path, seed: int) -> None:
    """Also in a fork whose source is deleted, and after the cache was deleted."""
    assert play(tmp_path, relay, seed, 24)["seals"] >= 24
