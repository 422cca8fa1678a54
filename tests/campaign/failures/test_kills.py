"""Samples of scripts/campaign/kills.py: commands that die after a write, and the same command again."""

from __future__ import annotations

import pytest

from tests import depth
from tests.campaign.conftest import Place
from tests.campaign.failures.kills import SCENARIOS, die_after, lay, rounds, same, tree


@pytest.mark.parametrize(
    ("name", "first", "stride", "least"),
    [
        ("push", 5, 17, 3),
        ("pull", 20, 60, 3),
        ("force", 30, 70, 3),
        ("switch", 30, 80, 3),
        ("switch-edited", 25, 75, 3),
        ("restore", 28, 36, 3),
        ("clone", 3, 16, 3),
        ("relink", 4, 11, 3),
    ],
)
def test_what_died_is_finished_by_the_next_command(
    name: str, first: int, stride: int, least: int, place: Place
) -> None:
    most = depth.rounds(2, 10_000)
    assert rounds(SCENARIOS[name](place), first, stride, most) >= min(least, most)


def test_a_clone_that_was_cut_short_in_a_file_leaves_no_copy(place: Place) -> None:
    """A power cut may leave an empty file of which the record says that it is whole."""
    lay(place.ann, tree(1))
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob", clone=False)
    clone = ("repo", "clone", place.repo, str(bob.folder))
    bob.run(*clone, where=place.base, before=lambda: die_after(44))
    whole = [path for path, data in bob.files().items() if data]
    assert len(whole) > 3
    place.write(bob, whole[0], b"")
    place.write(bob, whole[1], place.ann.files()[whole[1]][:5])
    (bob.folder / whole[2]).unlink()
    lay(place.ann, place.ann.files() | {whole[0]: b"moved on\n"})
    place.ann.ok("push", "-m", "moved on")
    bob.ok(*clone, where=place.base)
    same(bob, place.ann.files())


def test_what_somebody_wrote_into_an_interrupted_clone_is_kept(place: Place) -> None:
    lay(place.ann, tree(1))
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob", clone=False)
    clone = ("repo", "clone", place.repo, str(bob.folder))
    bob.run(*clone, where=place.base, before=lambda: die_after(44))
    place.write(bob, "mine.txt", b"mine\n")
    place.write(bob, "src/a.py", b"something of mine\n")
    cloned = bob.run(*clone, where=place.base)
    assert (cloned.code, "conflict in src/a.py: your version is kept as" in cloned.err) == (1, True), cloned
    assert bob.files()["mine.txt"] == b"mine\n"
    [conflict] = bob.run("conflicts", "--json").json()
    assert (conflict["path"], bob.files()[conflict["kept_as"]]) == ("src/a.py", b"something of mine\n")


def test_a_pull_or_a_push_goes_on_where_a_clone_died(place: Place) -> None:
    for words in (("pull",), ("push", "-m", "nothing")):
        lay(place.ann, tree(len(words)))
        place.ann.ok("push", "-m", "work")
        bob = place.machine(f"bob-{words[0]}", clone=False)
        bob.run("repo", "clone", place.repo, str(bob.folder), where=place.base, before=lambda: die_after(44))
        bob.ok(*words)
        bob.ok("pull")
        same(bob, place.ann.files())


def test_a_folder_with_files_of_its_own_is_still_refused(place: Place) -> None:
    lay(place.ann, tree(1))
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob", clone=False)
    place.write(bob, "mine.txt", b"mine\n")
    refused = bob.run("repo", "clone", place.repo, str(bob.folder), where=place.base)
    assert (refused.code, "is not empty" in refused.err) == (1, True)
    assert bob.files() == {"mine.txt": b"mine\n"}
