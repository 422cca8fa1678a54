"""A seeded slice of the histories; scripts/campaign_histories.py plays as many as wanted."""

from __future__ import annotations

import pytest

from tests.localstore.histories import play


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_random_histories_lose_and_double_nothing(first: int) -> None:
    for seed in range(first, first + 12):
        play(seed)
