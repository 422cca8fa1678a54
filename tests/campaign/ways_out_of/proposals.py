"""Ways out of errors about proposals."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row


def _topic(place: Place) -> None:
    """The folder is on a branch `topic` with a seal of its own."""
    first_push(place)
    place.ann.ok("repo", "branch", "topic")
    place.ann.ok("switch", "topic")
    place.write(place.ann, "a.txt", "one\ntwo\n")
    place.ann.ok("push", "-m", "two")


def proposed(place: Place) -> None:
    """The branch `topic` is proposed for main, as number 1."""
    _topic(place)
    place.ann.ok("pr", "create", "--fill")


@row("nothing_proposed", "repo branch", "switch")
def _the_default_branch_is_not_proposed_for_itself(place: Place) -> None:
    first_push(place)
    refused(place.ann, "pr", "create", "-t", "two", says="repo branch NAME --from main")
    place.ann.ok("repo", "branch", "topic", "--from", "main")
    place.ann.ok("switch", "topic", "--merge")
    place.write(place.ann, "a.txt", "one\ntwo\n")
    place.ann.ok("push", "-m", "two")
    place.ann.ok("pr", "create", "-t", "two")


@row("nothing_proposed", "push")
def _a_branch_without_news(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "branch", "topic")
    place.ann.ok("switch", "topic")
    place.write(place.ann, "a.txt", "one\ntwo\n")
    refused(place.ann, "pr", "create", "-t", "two", says="push")
    refused(place.ann, "pr", "create", "--fill", says="push")
    place.ann.ok("push", "-m", "two")
    place.ann.ok("pr", "create", "--fill")


@row("invalid", "push")
def _a_branch_without_a_seal(place: Place) -> None:
    place.ann.ok("repo", "branch", "topic")
    place.ann.ok("switch", "topic")
    refused(place.ann, "pr", "create", "-t", "two", says="push")
    place.ann.ok("switch", "main")
    first_push(place)
    place.ann.ok("switch", "topic", "--merge")
    place.write(place.ann, "c.txt", "two\n")
    place.ann.ok("push", "-m", "two")
    place.ann.ok("pr", "create", "-t", "two")


@row("proposal_exists", "pr view")
def _a_branch_is_proposed_once(place: Place) -> None:
    proposed(place)
    refused(place.ann, "pr", "create", "--fill", says="pr view 1")
    assert place.ann.ok("pr", "view", "1", "--json", "state").json() == {"state": "open"}


@row("proposal_branch_gone", "repo branch")
def _the_branch_of_a_proposal_is_gone(place: Place) -> None:
    proposed(place)
    place.ann.ok("switch", "main")
    place.ann.ok("repo", "branch-delete", "topic", "--yes")
    said = refused(place.ann, "pr", "reopen", "1", says="repo branch topic --from ").err
    place.ann.ok("repo", "branch", *said.partition("svc repo branch ")[2].split())
    place.ann.ok("pr", "reopen", "1")


@row("proposal_branch_gone", "pr edit")
def _the_base_of_a_proposal_is_gone(place: Place) -> None:
    _topic(place)
    place.ann.ok("repo", "branch", "lower", "--from", "main")
    place.ann.ok("pr", "create", "--fill", "--base", "lower")
    place.ann.ok("repo", "branch-delete", "lower", "--yes")
    refused(place.ann, "pr", "reopen", "1", says="pr edit 1 --base main")
    place.ann.ok("pr", "edit", "1", "--base", "main")
    place.ann.ok("pr", "reopen", "1")


@row("not_found", "pr create")
def _a_branch_that_is_not_proposed_yet(place: Place) -> None:
    _topic(place)
    refused(place.ann, "pr", "view", says="pr create")
    place.ann.ok("pr", "create", "--fill")
    place.ann.ok("pr", "view")


@row("not_found", "pr versions")
@row("conflict", "pr versions")
def _a_version_that_never_was(place: Place) -> None:
    proposed(place)
    refused(place.ann, "pr", "range-diff", "1", says="pr versions")
    place.write(place.ann, "a.txt", "one\ntwo\nthree\n")
    place.ann.ok("push", "-m", "three")
    refused(place.ann, "pr", "range-diff", "1", "1..3", says="pr versions 1")
    found = [str(one["n"]) for one in place.ann.ok("pr", "versions", "1", "--json", "n").json()]
    place.ann.ok("pr", "range-diff", "1", "..".join(found))


@row("not_found", "pr diff")
def _a_proposal_that_was_not_reviewed(place: Place) -> None:
    proposed(place)
    refused(place.ann, "pr", "diff", "1", "--since-review", says="pr diff 1")
    assert "+two" in place.ann.ok("pr", "diff", "1").out
    place.ann.ok("pr", "review", "1", "--comment", "-b", "mine")
    place.ann.ok("pr", "diff", "1", "--since-review")


@row("not_found", "pr view")
def _a_verdict_of_nobody(place: Place) -> None:
    proposed(place)
    refused(place.ann, "pr", "review", "1", "--dismiss", "nobody", says="pr view 1")
    refused(place.ann, "issue", "view", "1", says="pr view 1")
    assert place.ann.ok("pr", "view", "1", "--json", "reviewers").json() == {"reviewers": []}


@row("not_found", "issue view")
def _an_issue_is_no_proposal(place: Place) -> None:
    proposed(place)
    place.ann.ok("issue", "create", "-t", "Broken", "-b", "")
    refused(place.ann, "pr", "view", "2", says="issue view 2")
    assert "Broken" in place.ann.ok("issue", "view", "2").out


@row("suggestion_moved", "pr threads")
def _lines_were_edited_since_they_were_suggested(place: Place) -> None:
    proposed(place)
    place.ann.ok("pr", "comment", "1", "--path", "a.txt", "--line", "2", "--suggest", "2")
    place.write(place.ann, "a.txt", "one\nzwei\n")
    place.ann.ok("push", "-m", "zwei")
    (one,) = place.ann.ok("pr", "threads", "1", "--json", "id").json()
    refused(place.ann, "pr", "apply", "1", one["id"], says="pr threads 1")
    assert "edited" in place.ann.ok("pr", "threads", "1").out


@row("not_found", "pr threads")
def _no_comment_on_lines_has_this_id(place: Place) -> None:
    proposed(place)
    place.ann.ok("pr", "comment", "1", "--path", "a.txt", "--line", "2", "-b", "why?")
    refused(place.ann, "pr", "resolve", "1", "nothing", says="pr threads 1")
    (one,) = place.ann.ok("pr", "threads", "1", "--json", "id").json()
    place.ann.ok("pr", "resolve", "1", one["id"])


@row("invalid", "label create")
def _a_label_that_is_not_there_is_made(place: Place) -> None:
    refused(
        place.ann,
        "issue",
        "create",
        "-t",
        "It hangs",
        "-b",
        "",
        "-l",
        "odd one",
        says="label create 'odd one'",
    )
    place.ann.ok("label", "create", "odd one")
    place.ann.ok("issue", "create", "-t", "It hangs", "-b", "", "-l", "odd one")
