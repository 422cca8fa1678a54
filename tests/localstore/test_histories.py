"""A seeded slice of the histories; scripts/campaign/histories.py plays as many as wanted."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from localstore.core.errors import ServerMisbehaved
from tests.localstore.histories import World, play, run, tokens, words

MIXED = range(120, 200)  # the first that mixes texts is among the first of these


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


def test_random_histories_with_typed_edits_lose_and_double_nothing_else() -> None:
    for seed in range(6):
        play(seed, people=2, typing=1.0)


def test_a_typed_edit_excuses_only_the_words_that_it_tore(tmp_path: Path) -> None:
    world = World(0, tmp_path, calm=True, people=2)
    ann, bob = world.places
    saved = {b"k1 k2\n": ann, b"k1x k2\n": ann, b"k1y k2\n": bob}
    for data, place in saved.items():
        world.born |= tokens(data)
        world.written.update(words(data))
        place.write("a.txt", data)
        if place is ann:
            ann.push()
        else:
            with bob.device() as device:
                run(device, "typed")
        if data == b"k1 k2\n":
            bob.pull("merge")
            world.dead.add("k1")  # both replace it
    world.rest()
    with patch.object(World, "note_mixed", lambda _: None), pytest.raises(AssertionError, match="lost"):
        world.check()
    world.check()
    assert world.tears == 2
    world.born.add("k9")
    with pytest.raises(AssertionError, match=r"lost \['k9'\]") as raised:
        world.check()
    assert "k1" not in str(raised.value)
