"""Folders that used to be stuck: what the relay no longer knows of them is put right by the next command."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.failures.kills import lay, same, tree


def test_a_branch_that_was_made_again_is_taken_up(place: Place) -> None:
    lay(place.ann, tree(1))
    place.ann.ok("push", "-m", "first")
    place.ann.ok("repo", "branch", "side")
    place.ann.ok("switch", "side")
    place.write(place.ann, "src/a.py", "# a, on the side\n")
    place.ann.ok("push", "-m", "side")
    bob = place.machine("bob")
    bob.ok("repo", "branch-delete", "side", "--yes")
    bob.ok("repo", "branch", "side", "--from", "main")
    place.write(place.ann, "src/b.py", "# b, an edit\n")
    place.ann.ok("pull", "--merge")
    place.ann.ok("push", "-m", "on the new branch")
    bob.ok("switch", "side")
    assert b"# b, an edit\n" in bob.files().values()
    same(bob, place.ann.files())


def test_a_relay_that_lost_the_replica_gives_another(place: Place) -> None:
    """As after a backup of the relay was restored."""
    lay(place.ann, tree(1))
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob")
    place.node.rows(
        "DELETE FROM replica WHERE account_id IN (SELECT id FROM account WHERE handle=?)", place.handle
    )
    place.write(bob, "src/b.py", "# b, bob's\n")
    bob.ok("push", "-m", "bob")
    place.write(place.ann, "src/c.py", "# c, ann's\n")
    place.ann.ok("pull", "--merge")
    place.ann.ok("push", "-m", "ann")
    bob.ok("pull")
    same(bob, place.ann.files())
    assert bob.files().keys() == tree(1).keys()
    assert bob.files().items() >= {"src/b.py": b"# b, bob's\n", "src/c.py": b"# c, ann's\n"}.items()
