"""A short slice of scripts/campaign/real.py: random histories with kills, cuts and late copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.conftest import Place
from tests.campaign.history import History, play
from tests.campaign.person import words
from tests.campaign.world import Node


@pytest.mark.parametrize(("seed", "machines", "acts"), [(2, 3, 9), (1, 2, 9)])
def test_nothing_is_lost_and_everybody_agrees(
    seed: int, machines: int, acts: int, node: Node, tmp_path: Path
) -> None:
    figures = play(node, tmp_path, seed, machines, acts, serial=seed)
    assert figures.failures == []
    assert figures.words > 0
    assert figures.seals > 0


def test_a_reset_on_the_road_is_met_at_once(place: Place) -> None:
    """Not after a minute of silence, which is what the campaign then spent its time on."""
    bob = place.machine("bob")
    place.write(place.ann, "a.txt", "a\n" * 2000)
    place.ann.ok("push", "-m", "a")
    place.node.turn(reset=True, cut_down=30)
    running = bob.begin("pull")
    assert running.wait(seconds=30).code in (0, 1)


def test_a_word_whose_copy_somebody_took_away_may_be_gone() -> None:
    """One person changes the one, another the other: then nobody has it, and nobody lost it."""
    history = History.__new__(History)
    history.given_up = set()
    history.give_up(words(b"k1 k1 k2"), words(b"k1 k2"))
    assert history.given_up == {b"k1"}
