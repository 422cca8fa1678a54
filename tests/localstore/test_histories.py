"""A seeded slice of the histories; scripts/campaign/histories.py plays as many as wanted."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

from localstore.core.errors import ServerMisbehaved
from tests.depth import rounds
from tests.localstore.histories import World, play, run, tokens, words


@pytest.mark.parametrize("first", range(0, rounds(24, 48), 12))
def test_random_histories_lose_and_double_nothing(first: int) -> None:
    for seed in range(first, first + 12):
        play(seed)


def test_random_histories_of_two_devices_mix_nothing() -> None:
    assert sum(play(seed, people=2).merges for seed in range(12)) > 0


@pytest.mark.parametrize("refuses", [True, False])
def test_without_the_refusal_of_moved_lanes_texts_mix_and_that_is_seen(tmp_path: Path, refuses: bool) -> None:
    world = World(0, tmp_path, calm=True, people=2)
    world.relay.refuses_moved = refuses
    ann, bob = world.places
    world.written = {"k1", "k1x", "k1y", "k2"}
    ann.write("a.txt", "k1 k2\n")
    ann.push()
    bob.pull("merge")
    ann.write("a.txt", "k1x k2\n")
    ann.push()
    bob.write("a.txt", "k1y k2\n")
    noticed = (
        nullcontext() if refuses else pytest.raises(ServerMisbehaved, match="another text than was sent")
    )
    with bob.device() as device, noticed:
        run(device, "live")
    ann.pull("merge")
    with nullcontext() if refuses else pytest.raises(AssertionError, match="which nobody wrote"):
        world.nothing_mixed(ann)


def test_random_histories_with_typed_edits_lose_and_double_nothing_else() -> None:
    for seed in range(rounds(3, 6)):
        play(seed, people=2, typing=1.0)


def test_random_histories_of_people_who_may_only_read_for_a_while_lose_nothing() -> None:
    for seed in range(rounds(12, 48)):
        play(seed, people=2 + seed % 2, reading=0.3)


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
