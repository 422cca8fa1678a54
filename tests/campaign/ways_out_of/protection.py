"""Ways out of errors about protected branches."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row


@row("branch_protected", "repo branch", "switch")
def _edits_on_a_protected_branch_go_to_their_own(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "protect", "set", "main", "--require-review")
    place.write(place.ann, "a.txt", "one\nmine\n")
    refused(place.ann, "push", "-m", "mine", says="repo branch NAME --from main")
    assert place.ann.files()["a.txt"] == b"one\nmine\n"
    place.ann.ok("repo", "branch", "topic", "--from", "main")
    place.ann.ok("switch", "topic", "--merge")
    assert place.ann.files()["a.txt"] == b"one\nmine\n"
    place.ann.ok("push", "-m", "mine")
    place.ann.ok("pr", "create", "--title", "Mine")
    assert place.ann.files()["a.txt"] == b"one\nmine\n"


@row("branch_protected", "repo protect clear")
def _a_protected_branch_is_deleted_without_its_rule(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "branch", "stable", "--from", "main")
    place.ann.ok("repo", "protect", "set", "stable", "--lock-writes")
    refused(place.ann, "repo", "branch-delete", "stable", "--yes", says="repo protect clear stable")
    place.ann.ok("repo", "protect", "clear", "stable", "--yes")
    place.ann.ok("repo", "branch-delete", "stable", "--yes")
