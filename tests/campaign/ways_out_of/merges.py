"""Ways out of errors about merges of branches."""

from __future__ import annotations

import os
import signal

from svc.flows.merge import merge as flow
from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row
from tests.campaign.world import Machine
from tests.patience import until


def _apart(place: Place, ours: str = "ours\n", theirs: str = "theirs\n") -> None:
    """Main has `ours` at a.txt, side `theirs` and a file of its own. The folder is on main."""
    first_push(place)
    place.ann.ok("repo", "branch", "side")
    place.ann.ok("switch", "side")
    place.write(place.ann, "a.txt", theirs)
    place.write(place.ann, "side.txt", "1\n")
    place.ann.ok("push", "-m", "theirs")
    place.ann.ok("switch", "main")
    if ours:
        place.write(place.ann, "a.txt", ours)
        place.ann.ok("push", "-m", "ours")


def _proposed(place: Place, **sides: str) -> Machine:
    _apart(place, **sides)
    place.ann.ok("pr", "create", "--head", "side", "--base", "main", "-t", "side", "-b", "x")
    return place.ann


@row("merge_open", "merge")
def _a_merge_is_open(place: Place) -> None:
    _apart(place)
    place.ann.conflicting("merge", "side")
    refused(place.ann, "switch", "side", says="merge --abort")
    place.ann.ok("merge", "--abort")
    place.ann.ok("switch", "side")


@row("merge_unresolved", "resolve", "merge")
def _a_conflict_of_a_merge_stands(place: Place) -> None:
    _apart(place)
    place.ann.conflicting("merge", "side")
    refused(place.ann, "push", "-m", "joined", says="resolve a.txt")
    place.ann.ok("resolve", "a.txt", "--mine")
    place.ann.ok("merge", "--continue", "-m", "joined")


def _dies() -> None:
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    flow.replace_files = die  # type: ignore[assignment]


@row("merge_interrupted", "merge")
def _a_merge_was_killed(place: Place) -> None:
    _apart(place, ours="")
    assert place.ann.run("merge", "side", before=_dies).code == -signal.SIGKILL
    refused(place.ann, "push", "-m", "half", says="merge --abort")
    place.ann.ok("merge", "--abort")
    place.ann.ok("merge", "side")
    place.ann.ok("merge", "--continue")


@row("no_merge", "merge")
def _there_is_no_merge(place: Place) -> None:
    _apart(place, ours="")
    refused(place.ann, "merge", "--continue", says="merge BRANCH")
    place.ann.ok("merge", "side")
    place.ann.ok("merge", "--continue")


@row("merge_collides", "push")
def _edits_that_no_seal_holds(place: Place) -> None:
    _apart(place, ours="")
    place.write(place.ann, "side.txt", "mine\n")
    refused(place.ann, "merge", "side", says="push")
    place.ann.ok("push", "-m", "mine")
    place.ann.conflicting("merge", "side")


@row("not_mergeable", "pr close", "pr reopen")
def _nothing_is_left_to_merge(place: Place) -> None:
    ann = _proposed(place, ours="")
    ann.ok("pr", "close", "1")
    refused(ann, "pr", "merge", "1", says="pr reopen 1")
    ann.ok("pr", "reopen", "1")
    ann.ok("merge", "side")
    ann.ok("merge", "--continue")
    refused(ann, "pr", "merge", "1", says="pr close 1")
    ann.ok("pr", "close", "1")


@row("not_mergeable", "pr merge")
def _what_the_server_or_a_rule_refuses_is_merged_another_way(place: Place) -> None:
    ann = _proposed(place, ours="")
    refused(ann, "pr", "merge", "1", "--merge", says="pr merge 1 --squash")
    ann.ok("repo", "protect", "set", "main", "--require-review")
    refused(ann, "pr", "merge", "1", "--squash", says="pr merge --auto")
    ann.ok("pr", "merge", "1", "--squash", "--auto")
    ann.ok("repo", "protect", "clear", "main", "--yes")
    until(lambda: "merged" in ann.ok("pr", "view", "1", "--json", "state").out, "it is merged", 0.2)


@row("proposal_merged", "pr view")
def _a_proposal_is_merged_once(place: Place) -> None:
    ann = _proposed(place, ours="")
    ann.ok("pr", "merge", "1")
    refused(ann, "pr", "merge", "1", says="pr view 1")
    assert ann.ok("pr", "view", "1", "--json", "state").json() == {"state": "merged"}


@row("draft", "pr ready")
def _a_draft_is_not_merged(place: Place) -> None:
    ann = _proposed(place, ours="")
    ann.ok("pr", "ready", "1", "--undo")
    refused(ann, "pr", "merge", "1", says="pr ready 1")
    ann.ok("pr", "ready", "1")
    ann.ok("pr", "merge", "1")
