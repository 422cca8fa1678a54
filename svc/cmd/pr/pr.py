"""The commands `svc pr list|status|view`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any, Literal

import msgspec
import typer

from localstore.core.model import auth
from localstore.core.model import issue as issues
from localstore.core.model import proposal as proposals
from localstore.core.model import review as reviews
from localstore.core.model import thread as threads
from localstore.core.model.base import PageQuery
from localstore.core.model.issue import Comment
from localstore.core.model.proposal import Proposal, ProposalQuery
from localstore.core.model.review import Review
from localstore.core.model.thread import Thread, ThreadQuery
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.markdown import markdown
from svc.cmd.frame.options import Limit
from svc.cmd.issue.talk import comment_text, in_order, read_happened, said_text
from svc.cmd.issue.words import Web, handle_typed, label_of, note_qualifier
from svc.cmd.pr.threads import thread_texts
from svc.cmd.pr.words import CHECKED, COLUMNS, ONE, Number, find, place_of, say_place
from svc.console import Column, answers
from svc.flows.happened import Happened
from svc.flows.place.known_subjects import listing
from svc.flows.proposal.finding import RepositoryName, from_branch
from svc.http.checked import require_valid

WHY = (*COLUMNS[:2], Column("why"), *COLUMNS[3:])
THREAD = (*ONE, Column("body"), Column("thread"), Column("line_threads"))
Shown = Literal["open", "closed", "merged", "all"]
_SAID = {"approve": "approved", "request_changes": "requested changes", "comment": "reviewed"}


@answers(COLUMNS, Proposal)
def list_proposals(
    ctx: Ctx,
    state: Annotated[Shown, typer.Option("-s", "--state", help="Which of them")] = "open",
    label: Annotated[str, typer.Option("-l", "--label", metavar="NAME", help="With this label")] = "",
    author: Annotated[str, typer.Option("-A", "--author", metavar="HANDLE", help="Whose; @me is you")] = "",
    assignee: Annotated[
        str, typer.Option("-a", "--assignee", metavar="HANDLE", help="Assigned to; @me is you")
    ] = "",
    reviewer: Annotated[
        str, typer.Option("-r", "--reviewer", metavar="HANDLE", help="Who reviews it; @me is you")
    ] = "",
    base: Annotated[str, typer.Option("-B", "--base", metavar="BRANCH", help="For this branch")] = "",
    head: Annotated[str, typer.Option("-H", "--head", metavar="BRANCH", help="Of this branch")] = "",
    draft: Annotated[bool, typer.Option("-d", "--draft", help="Only drafts")] = False,
    search: Annotated[
        str, typer.Option("-S", "--search", metavar="WORDS", help="Words of title or text")
    ] = "",
    web: Web = False,
    limit: Limit = 30,
) -> None:
    """List proposals

    Lists open proposals, newest first. Public repositories need no session.

    Examples:
    svc pr list
    svc pr list --author @me --state all
    svc pr list --base main --reviewer @me --json number,title,reviewed
    """
    query = require_valid(
        ProposalQuery(
            state=state,
            author=handle_typed(author),
            assignee=handle_typed(assignee),
            reviewer=handle_typed(reviewer),
            label=label_of(label),
            base=base or None,
            head=head or None,
            draft=True if draft else None,
            search=search or None,
        )
    )
    place = place_of(ctx, session="@me" in (author, assignee, reviewer))
    repo = place.repo
    if web:
        from svc.cmd.frame.browser import open_repository

        open_repository(ctx, repo, "issues", kind="proposals")
        return
    rows = ctx.reader.items(proposals.LIST, query, limit=limit, id=repo.id)
    note_qualifier(ctx, search)
    say_place(ctx, place)
    empty = f"no proposals match in {repo.full_name}; open one: svc pr create"
    ctx.out.rows(listing(ctx.obj.home, repo.id, rows), COLUMNS, Proposal, empty=empty)


@answers(WHY, Proposal)
def status(ctx: Ctx, limit: Limit = 30) -> None:
    """List the open proposals that concern you

    Lists the proposal of this folder's branch, the proposals that you opened, and the proposals that are
    assigned to you or wait for your review. `why` has the reason. After your verdict a proposal no longer
    waits for you, until your review is requested again.

    Examples:
    svc pr status
    svc pr status --json number,why,merge_state
    """
    place = place_of(ctx)
    repo, fork = place.repo, place.fork
    about: list[tuple[str, ProposalQuery]] = [
        ("author", ProposalQuery(author="@me")),
        ("assigned", ProposalQuery(assignee="@me")),
    ]
    branch = ctx.obj.branch_of(fork or repo)
    by_number: dict[int, dict[str, Any]] = {}

    def add(why: str, some: Iterable[Proposal]) -> None:
        for proposal in some:
            record = by_number.setdefault(proposal.number, {**msgspec.to_builtins(proposal), "why": []})
            record["why"].append(why)

    if fork is not None:
        of = RepositoryName(fork.owner, fork.name)
        add("branch", islice(from_branch(ctx.api, repo, branch, of=of), limit))
    elif branch != repo.default_branch:
        add("branch", ctx.api.items(proposals.LIST, ProposalQuery(head=branch), limit=limit, id=repo.id))
    reviewing = ctx.api.items(proposals.LIST, ProposalQuery(reviewer="@me"), id=repo.id)
    add("review", islice(_waiting_for_me(ctx, reviewing), limit))
    for why, query in about:
        add(why, ctx.api.items(proposals.LIST, query, limit=limit, id=repo.id))
    newest = [by_number[number] for number in sorted(by_number, reverse=True)][:limit]
    say_place(ctx, place)
    empty = f"no open proposal of {repo.full_name} concerns you"
    ctx.out.rows(newest, WHY, Proposal, empty=empty)


def _waiting_for_me(ctx: Ctx, reviewing: Iterable[Proposal]) -> Iterator[Proposal]:
    """Yields the proposals among `reviewing` that still wait for a review by the user."""
    me = ""
    for proposal in reviewing:
        me = me or ctx.api.send(auth.USER_INFO).user_id
        if any(reviewer.who.id == me and reviewer.state == "requested" for reviewer in proposal.reviewers):
            yield proposal


@answers(THREAD, Proposal)
def view(
    ctx: Ctx,
    number: Number = "",
    comments: Annotated[bool, typer.Option("-c", "--comments", help="Its comments and reviews too")] = False,
    web: Web = False,
) -> None:
    """Show a proposal

    Prints its branches, its text and its reviewers. With --comments it also prints the comments and the
    reviews, oldest first, then the comments on lines. On a terminal, what else happened to it stands among
    them. With --json the comments are in the field thread, and the comments on lines in line_threads.

    Examples:
    svc pr view
    svc pr view 12 --comments -R alice/notes
    svc pr view parser --json state,merge_state,blocked_by
    """
    repo, proposal = find(ctx, number, session=False)
    n = str(proposal.number)
    if web:
        from svc.cmd.frame.browser import open_repository

        open_repository(ctx, repo, "issues", n=n)
        return
    thread: list[Comment | Review] = []
    happened: list[Happened] = []
    on_lines: list[Thread] = []
    if comments:
        on_lines = list(ctx.reader.items(threads.LIST, ThreadQuery(live="1"), id=repo.id, n=n))
        thread = [
            *ctx.reader.items(issues.COMMENTS, PageQuery(), id=repo.id, n=n),
            *ctx.reader.items(reviews.LIST, PageQuery(), id=repo.id, n=n),
        ]
        thread.sort(key=lambda entry: entry.created_at)
        happened = read_happened(ctx, repo, proposal, on_lines)
    record = {
        **msgspec.to_builtins(proposal),
        "thread": msgspec.to_builtins(thread) if comments else None,
        "line_threads": msgspec.to_builtins(on_lines) if comments else None,
    }
    parts = [markdown(ctx.out, proposal.body)] if proposal.body.strip() else []
    written = [(entry.created_at, _thread_entry(ctx, entry)) for entry in thread]
    parts += in_order(ctx, written, happened)
    parts += thread_texts(ctx, repo, on_lines)
    columns = THREAD[: None if comments else -2]
    if ctx.out.terminal and not ctx.out.format.as_data:
        columns = (*ONE[:6], CHECKED, *ONE[6:])
    if proposal.state != "open" and not ctx.out.format.as_data:
        columns = tuple(column for column in columns if column.name != "merge_state")
    ctx.out.record(record, columns, Proposal, body="\n\n".join(parts), drawn=True)


def _thread_entry(ctx: Ctx, entry: Comment | Review) -> str:
    if isinstance(entry, Comment):
        return comment_text(ctx, entry)
    gone = ", dismissed" if entry.dismissed_at else ", stale" if entry.stale else ""
    did = f", {_SAID[entry.verdict]} {entry.seal_id[:12]}{gone}"
    return said_text(ctx, entry.reviewer.handle or entry.reviewer.id, entry.created_at, did, entry.body)
