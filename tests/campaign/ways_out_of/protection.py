"""Ways out of errors about protected branches."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row
from tests.campaign.ways_out_of.proposals import proposed
from tests.patience import until


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
    place.ann.ok("repo", "protect", "clear", "stable")
    place.ann.ok("repo", "branch-delete", "stable", "--yes")


@row("branch_protected", "pr merge")
def _a_merge_that_lacks_an_approval_lands_by_itself(place: Place) -> None:
    proposed(place)
    place.ann.ok("repo", "protect", "set", "main", "--require-review")
    refused(place.ann, "pr", "merge", "1", says="pr merge --auto")
    place.ann.ok("pr", "merge", "1", "--auto")
    place.ann.ok("repo", "protect", "clear", "main")
    until(lambda: "merged" in place.ann.ok("pr", "view", "1", "--json", "state").out, "it is merged", 0.2)
