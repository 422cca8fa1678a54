"""What an open proposal waits for, from the user's side: who acts next, and with which key if it is the
user."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core.model.proposal import Proposal
from localstore.core.words import count
from tui.text import Part, safe

ME: Part = ("you: ", "accent")


def next_step(
    proposal: Proposal,
    account: str,
    key_of: Callable[[str], str],
    *,
    merges: bool,
    approves: bool = False,
    shows_since: bool = False,
) -> list[Part]:
    """Returns parts that say who acts next on a proposal, and what they do. Returns [] if it is not open.
    `account`: the handle of the user. `key_of`: returns the key of an action. `merges`: whether the user may
    merge it. `approves`: whether an approval of the user counts. `shows_since`: whether what
    was pushed since the user's review can be shown."""
    if proposal.state != "open":
        return []
    author = proposal.author.handle or "?"
    mine = author == account
    who: Part = ME if mine else (f"@{safe(author)} ", "person")

    def step(words_of_mine: str, words: str) -> list[Part]:
        return [who, (words_of_mine if mine else words, "text")]

    if proposal.draft:
        return step(f"{key_of('draft')} says that it is ready", "says when it is ready")
    asked_me = _find(proposal, account)
    if asked_me:
        again = " again, because it has changed" if asked_me == "stale" else ""
        verdicts = f"{key_of('approve')} approves, {key_of('changes')} asks for changes"
        shows = f"{key_of('open')} shows the files"
        if shows_since:
            shows = f"{key_of('changed_since')} shows what changed since your review"
        return [ME, (f"review it{again}: {shows}, {verdicts}", "text")]
    if proposal.merge_state == "conflicts":
        return step("resolve the conflicts, as below", "resolves the conflicts")
    critic = next((it for it in proposal.reviewers if it.state == "changes_requested" and not it.stale), None)
    if critic is not None:
        of = f"what @{safe(critic.who.handle or '?')} asks for"
        again = f", push, and ask again with {key_of('reviewer')}"
        return step(f"change {of}{again}", f"changes {of}")
    if proposal.checks.failed:
        failed = count(proposal.checks.failed, "failed check")
        return step(f"look at the {failed}, and push", f"looks at the {failed}")
    reviewers = [it.who.handle or "?" for it in proposal.reviewers if it.state == "requested" or it.stale]
    if reviewers:
        names = ", ".join(f"@{safe(name)}" for name in reviewers)
        return [(names, "person"), (" review it" if len(reviewers) > 1 else " reviews it", "text")]
    if "review_required" in proposal.blocked_by and approves and not mine:
        return [
            ("you may: ", "accent"),
            (f"{key_of('open')} shows the files, {key_of('approve')} approves; nobody is asked", "text"),
        ]
    return _step_of_codes(proposal, mine, key_of, merges)


def _step_of_codes(proposal: Proposal, mine: bool, key_of: Callable[[str], str], merges: bool) -> list[Part]:
    codes = proposal.blocked_by
    if "review_required" in codes and mine:
        return [ME, (f"ask somebody for a review with {key_of('reviewer')}; nobody is asked", "text")]
    if "review_required" in codes:
        return [("whoever may approve reviews it; nobody is asked", "text")]
    if proposal.checks.pending or "checks_required" in codes:
        return [("checks run; nobody has to do anything", "text")]
    if "unresolved_threads" in codes:
        threads = count(proposal.threads.open, "open thread")
        return [("resolve the ", "text"), (f"{threads}: {key_of('open')} shows the files with them", "text")]
    if codes:
        return []
    if merges:
        return [ME, (f"{key_of('merge')} merges it", "text")]
    return [("somebody with write access merges it", "text")]


def _find(proposal: Proposal, account: str) -> str:
    """Returns whether the user's review is asked for: "new", "stale" if it was given for an older version, ""
    if it is not asked for."""
    for reviewer in proposal.reviewers:
        if reviewer.who.handle == account and (reviewer.state == "requested" or reviewer.stale):
            return "stale" if reviewer.stale else "new"
    return ""
