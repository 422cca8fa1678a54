"""Ways out of errors about branches that are gone or not there, and of folders that only show a seal."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row
from tests.campaign.world import Machine


def _on_side(place: Place) -> Machine:
    """Bob's folder, on a branch of its own that has a seal."""
    first_push(place)
    place.ann.ok("repo", "branch", "side")
    bob = place.machine("bob")
    bob.ok("switch", "side")
    place.write(bob, "side.txt", "side\n")
    bob.ok("push", "-m", "side")
    return bob


@row("branch_gone", "switch")
def _a_deleted_branch_is_left(place: Place) -> None:
    bob = _on_side(place)
    place.ann.ok("repo", "branch-delete", "side", "--yes")
    place.write(bob, "a.txt", "one\nbob\n")
    refused(bob, "push", "-m", "late", says="switch main")
    bob.ok("switch", "main")
    bob.ok("push", "-m", "on main")
    place.ann.ok("pull")
    assert place.ann.files() == bob.files()
    assert bob.files()["a.txt"] == b"one\nbob\n"


@row("usage", "diff")
def _two_branches_are_compared(place: Place) -> None:
    bob = _on_side(place)
    refused(bob, "show", "main..side", says="diff main..side")
    assert "+side" in bob.ok("diff", "main..side").out
    assert bob.ok("log", "main..side", "--oneline").out.count("\n") == 1
    refused(bob, "show", "HEAD~9", says="log")
    assert bob.ok("log", "--oneline").out


@row("branch_gone", "repo branch", "pull")
def _a_deleted_branch_is_made_again(place: Place) -> None:
    bob = _on_side(place)
    place.ann.ok("repo", "branch-delete", "side", "--yes")
    place.write(bob, "a.txt", "one\nbob\n")
    for words in (("push", "-m", "late"), ("pull",)):
        said = refused(bob, *words, says="pull --merge").err
    again = said.partition("svc repo branch ")[2].partition(",")[0]
    assert again.startswith("side --from ")
    bob.ok("repo", "branch", *again.split())
    bob.ok("pull", "--merge")
    bob.ok("push", "-m", "again")
    place.ann.ok("switch", "side")
    assert place.ann.files() == bob.files()
    assert bob.files().items() >= {"a.txt": b"one\nbob\n", "side.txt": b"side\n"}.items()


@row("branch_replaced", "pull")
def _another_branch_has_the_name(place: Place) -> None:
    bob = _on_side(place)
    place.ann.ok("repo", "branch-delete", "side", "--yes")
    place.ann.ok("repo", "branch", "side", "--from", "main")
    place.write(bob, "a.txt", "one\nbob\n")
    for words in (("push", "-m", "late"), ("pull",)):
        refused(bob, *words, says="pull --merge")
    bob.ok("pull", "--merge")
    bob.ok("push", "-m", "on the new one")
    place.ann.ok("switch", "side")
    assert place.ann.files() == bob.files()
    assert bob.files()["a.txt"] == b"one\nbob\n"


@row("no_branch", "repo branch")
def _a_branch_that_never_was(place: Place) -> None:
    """A folder without a seal, linked to a branch that is missing, lost nothing with it."""
    link = place.ann.folder / ".svc/repo.json"
    link.write_bytes(link.read_bytes().replace(b'"main"', b'"mian"'))
    place.write(place.ann, "a.txt", "one\n")
    for words in (("pull",), ("push", "-m", "first"), ("repo", "branch", "new")):
        refused(place.ann, *words, says="repo branch")
    (known,) = place.ann.ok("repo", "branch", "--json", "name").json()
    place.ann.ok("switch", known["name"])
    place.ann.ok("push", "-m", "first")


@row("read_only_look", "repo branch", "switch")
def _edits_of_a_seal_that_is_shown(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "tag", "create", "v1")
    place.write(place.ann, "a.txt", "two\n")
    place.ann.ok("push", "-m", "second")
    place.ann.ok("switch", "v1")
    assert place.ann.files()["a.txt"] == b"one\n"
    refused(place.ann, "push", "-m", "nothing", says="switch main")
    place.ann.ok("switch", "main")
    place.ann.ok("switch", "v1")
    place.write(place.ann, "a.txt", "one, mended\n")
    said = refused(place.ann, "push", "-m", "mended", says="repo branch NAME --from").err
    start = said.partition("--from ")[2].partition(",")[0]
    place.ann.ok("repo", "branch", "mended", "--from", start)
    place.ann.ok("switch", "mended")
    place.ann.ok("push", "-m", "mended")
    assert place.ann.files()["a.txt"] == b"one, mended\n"
    assert place.ann.ok("status", "--json", "branch").json()["branch"] == "mended"


@row("usage", "repo branch-delete")
def _a_verb_is_not_made_a_branch(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "branch", "topic")
    refused(place.ann, "repo", "branch", "delete", says="repo branch-delete NAME")
    place.ann.ok("repo", "branch-delete", "topic", "--yes")
    refused(place.ann, "repo", "branch", "delete", says="repo branch delete --from BASE")
    place.ann.ok("repo", "branch", "delete", "--from", "main")
    assert place.ann.ok("repo", "branch", "--json", "name", "--jq", ".[].name").out.split() == [
        "delete",
        "main",
    ]
