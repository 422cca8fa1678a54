"""The command `svc pr review`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import review as reviews
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.model.review import Review, ReviewCreate, ReviewPatch, Verdict
from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.text_options import Body, BodyFile, body_of
from svc.cmd.pr import threads
from svc.cmd.pr.words import Number, find, format_title
from svc.console import Column, answers
from svc.flows.proposal.finding import explain_missing_proposal
from svc.http.checked import require_valid


def reviewer(record: dict[str, dict[str, str]]) -> str:
    who = record["reviewer"]
    return str(who.get("handle") or who["id"])


COLUMNS = (
    Column("id"),
    Column("reviewer", reviewer),
    Column("verdict"),
    Column("seal_id", kind="id"),
    Column("body", kind="line"),
    Column("created_at", kind="time"),
)
_DID: dict[Verdict, str] = {
    "approve": "Approved",
    "request_changes": "Requested changes to",
    "comment": "Reviewed",
}


@answers(COLUMNS, Review)
def review(
    ctx: Ctx,
    number: Number = "",
    approve: Annotated[bool, typer.Option("-a", "--approve", help="It can be merged")] = False,
    request_changes: Annotated[
        bool, typer.Option("-r", "--request-changes", help="It cannot be merged as it is; say why")
    ] = False,
    comment: Annotated[bool, typer.Option("-c", "--comment", help="Say something without a verdict")] = False,
    body: Body = None,
    body_file: BodyFile = None,
    dismiss: Annotated[
        str, typer.Option("--dismiss", metavar="HANDLE", help="Take away the verdict of somebody")
    ] = "",
) -> None:
    """Approve a proposal, request changes, or say something

    The verdict applies to the newest version and replaces your last verdict. It becomes stale when the change
    is edited. Comments on lines that you made with --draft are published with the review; svc pr threads
    --draft lists them. A review with only a text is a comment without a verdict. You cannot give a verdict on
    your own proposal. --dismiss needs the role admin.

    Examples:
    svc pr review 12 --approve
    svc pr review 12 --request-changes -b "The parser needs a test"
    svc pr review 12 --dismiss bob
    """
    verdicts: list[Verdict] = []
    verdicts += ["approve"] if approve else []
    verdicts += ["request_changes"] if request_changes else []
    verdicts += ["comment"] if comment else []
    text = body_of(body, body_file)
    if dismiss and (verdicts or text is not None):
        raise UsageError("--dismiss takes a verdict away and gives none; use it alone")
    if not verdicts and text is not None:
        verdicts = ["comment"]
    if not dismiss and len(verdicts) != 1:
        raise UsageError("say one of --approve, --request-changes and --comment, or give a text: -b TEXT")
    repo, proposal = find(ctx, number)
    waiting = [] if dismiss else threads.waiting(ctx, repo, proposal)
    if not dismiss and verdicts != ["approve"] and not (text or "").strip() and not waiting:
        raise UsageError("say what is to change, or what you think: -b TEXT or -F FILE")
    if dismiss:
        _dismiss(ctx, repo, proposal, dismiss.removeprefix("@"))
        return
    request = require_valid(ReviewCreate(verdict=verdicts[0], body=text or "", seal_id=proposal.head_seal))
    with explain_missing_proposal(ctx.api, repo, str(proposal.number)):
        posted = ctx.api.send(reviews.CREATE, request, id=repo.id, n=str(proposal.number))
    sentence = f"{_DID[posted.verdict]} {format_title(proposal)} at {posted.seal_id[:12]}"
    sentence += f", with {count(len(waiting), 'comment')} on lines" if waiting else ""
    ctx.out.done(sentence, posted, COLUMNS, Review, value=posted.id)
    if not posted.counts and posted.verdict != "comment":
        ctx.out.note(f"verdicts of those who may write to {repo.full_name} count; yours is advice")


def _dismiss(ctx: Ctx, repo: Repo, proposal: Proposal, handle: str) -> None:
    standing = next((review for review in proposal.reviews if review.reviewer.handle == handle.lower()), None)
    if standing is None:
        raise NotFound(
            f"no verdict of {handle} stands on #{proposal.number}; see: svc pr view {proposal.number}"
        )
    patch = ReviewPatch(state="dismissed")
    dismissed = ctx.api.send(reviews.DISMISS, patch, id=repo.id, n=str(proposal.number), review=standing.id)
    ctx.out.done(
        f"Dismissed the verdict of {handle} on {format_title(proposal)}",
        dismissed,
        COLUMNS,
        Review,
        value=dismissed.id,
    )
