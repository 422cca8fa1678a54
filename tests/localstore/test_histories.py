"""A seeded slice of the histories; scripts/campaign_histories.py plays as many as wanted."""

from __future__ import annotations

import pytest

from localstore.core.errors import ServerMisbehaved
from tests.localstore.histories import World, play

MIXED = range(120, 200)  # the first that mixes texts is among the first of these
TORN = 21008


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_random_histories_lose_and_double_nothing(first: int) -> None:
    for seed in range(first, first + 12):
        play(seed)


def test_random_histories_of_two_devices_mix_nothing() -> None:
    assert sum(play(seed, people=2).merges for seed in range(12)) > 0


def test_without_the_refusal_of_moved_lanes_histories_mix_texts() -> None:
    with pytest.raises(AssertionError, match="which nobody wrote"):
        for seed in MIXED:
            try:
                play(seed, refuses_moved=False)
            except ServerMisbehaved:
                continue  # the device notices that the relay has another text than was sent
            except AssertionError as error:
                if "which nobody wrote" in str(error):
                    raise


def test_typed_edits_cost_only_the_words_that_they_tear(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this history a typed edit meets an edit that it did not know, inside a word."""
    assert play(TORN, typing=1.0).tears > 0
    monkeypatch.setattr(World, "note_mixed", lambda world: world.relay.mixed.clear())
    with pytest.raises(AssertionError, match=r"lost|which nobody wrote|twice"):
        play(TORN, typing=1.0)
