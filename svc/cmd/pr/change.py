"""The commands `svc pr edit|close|reopen|ready`, `svc pr label add|remove`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import issue as issues
from localstore.core.model import proposal as proposals
from localstore.core.model.issue import CommentBody, LabelAddQuery
from localstore.core.model.proposal import Proposal, ProposalPatch
from localstore.core.model.repo import Repo
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.queueing import queueable
from svc.cmd.frame.text_options import Body, BodyFile, body_of
from svc.cmd.issue.change import Comment, Names
from svc.cmd.issue.words import alone, handles_of, names_of
from svc.cmd.pr.words import COLUMNS, Named, Number, find, format_title, number_of
from svc.console import answers
from svc.flows.proposal.finding import explain_missing_proposal
from svc.http.checked import require_valid


def _list_option(option: str, help: str) -> Any:
    return typer.Option(option, metavar="NAME", help=help)


@queueable
@answers(COLUMNS, Proposal)
def edit(
    ctx: Ctx,
    number: Number = "",
    title: Annotated[str | None, typer.Option("-t", "--title", metavar="TEXT", help="The new title")] = None,
    body: Body = None,
    body_file: BodyFile = None,
    base: Annotated[
        str | None, typer.Option("-B", "--base", metavar="BRANCH", help="For which branch it is")
    ] = None,
    add_reviewer: Annotated[list[str] | None, _list_option("--add-reviewer", "Ask for a review")] = None,
    remove_reviewer: Annotated[list[str] | None, _list_option("--remove-reviewer", "Ask no more")] = None,
    add_label: Annotated[list[str] | None, _list_option("--add-label", "Put a label on it")] = None,
    remove_label: Annotated[list[str] | None, _list_option("--remove-label", "Take a label off it")] = None,
    add_assignee: Annotated[list[str] | None, _list_option("--add-assignee", "Assign somebody")] = None,
    remove_assignee: Annotated[
        list[str] | None, _list_option("--remove-assignee", "Unassign somebody")
    ] = None,
) -> None:
    """Change the title, text, base or people of a proposal

    Without an option your editor opens with the current title and text. Only the author and people with the
    role admin may change the title, text and base.

    Examples:
    svc pr edit 12 -t "Parse dates and times" --add-reviewer bob
    svc pr edit 12 --base release
    svc pr edit --add-label parser
    """
    patch = ProposalPatch(
        title=title,
        body=body_of(body, body_file),
        base=base,
        add_labels=names_of(add_label),
        remove_labels=names_of(remove_label),
        add_assignees=handles_of(add_assignee),
        remove_assignees=handles_of(remove_assignee),
        add_reviewers=handles_of(add_reviewer),
        remove_reviewers=handles_of(remove_reviewer),
    )
    if patch == ProposalPatch():
        if not ctx.out.interactive:
            raise UsageError("say what to change: -t TITLE, -b TEXT, --base BRANCH, --add-reviewer NAME …")
        alone(ctx, "an editor")
        proposal = _rewrite_in_editor(ctx, *find(ctx, number))
    else:
        require_valid(patch)
        proposal = _change(ctx, *number_of(ctx, number), patch)
    _print_done(ctx, f"Changed proposal {format_title(proposal)}", proposal)


@queueable
@answers(COLUMNS, Proposal)
def close(ctx: Ctx, number: Number = "", comment: Comment = None) -> None:
    """Close a proposal

    Allowed for the author of the proposal, and for people with the role triage. The proposed branch is not
    deleted.

    Examples:
    svc pr close 12 -c "See #14"
    """
    _set_state(ctx, number, comment, ProposalPatch(state="closed"), "Closed")


@queueable
@answers(COLUMNS, Proposal)
def reopen(ctx: Ctx, number: Number = "", comment: Comment = None) -> None:
    """Open a closed proposal again

    Its branches must still exist. Seals that were pushed meanwhile become a new version.

    Examples:
    svc pr reopen 12
    """
    _set_state(ctx, number, comment, ProposalPatch(state="open"), "Reopened")


@queueable
@answers(COLUMNS, Proposal)
def ready(
    ctx: Ctx,
    number: Number = "",
    undo: Annotated[bool, typer.Option("--undo", help="Make it a draft again")] = False,
) -> None:
    """Mark a draft as ready, or a proposal as a draft

    A draft cannot be approved or merged.

    Examples:
    svc pr ready
    svc pr ready 12 --undo
    """
    proposal = _change(ctx, *number_of(ctx, number), ProposalPatch(draft=undo))
    _print_done(
        ctx,
        f"Proposal {format_title(proposal)} is {'a draft again' if undo else 'ready for review'}",
        proposal,
    )


@queueable
@answers(COLUMNS, Proposal)
def add_label(
    ctx: Ctx,
    number: Named,
    labels: Names,
    create: Annotated[bool, typer.Option("--create", help="Make labels that the repository lacks")] = False,
) -> None:
    """Put labels on a proposal

    Examples:
    svc pr label add 12 parser
    svc pr label add 12 "help wanted" --create
    """
    names = names_of(labels)
    require_valid(ProposalPatch(add_labels=names))
    if create and len(names) > 1:
        alone(ctx, "another label")
    repo, n = number_of(ctx, number)
    if not create:
        proposal = _change(ctx, repo, n, ProposalPatch(add_labels=names))
    else:
        with explain_missing_proposal(ctx.api, repo, n):
            for name in names:
                query = LabelAddQuery(create="1")
                proposal = ctx.api.send(proposals.ADD_LABEL, query=query, id=repo.id, n=n, name=name)
    _print_done(
        ctx,
        f"Labelled proposal {format_title(proposal)}: {', '.join(label.name for label in proposal.labels)}",
        proposal,
    )


@answers(COLUMNS, Proposal)
def remove_label(
    ctx: Ctx,
    number: Named,
    labels: Names,
    create: Annotated[bool, typer.Option("--create", hidden=True, help="As for add; makes nothing")] = False,
) -> None:
    """Take labels off a proposal

    Examples:
    svc pr label remove 12 parser
    """
    names = names_of(labels)
    require_valid(ProposalPatch(remove_labels=names))
    repo, proposal = find(ctx, number)
    on = {label.name.casefold() for label in proposal.labels}
    for name in names:
        if name.casefold() not in on:
            raise NotFound(f"proposal #{proposal.number} has no label {name}")
    n = str(proposal.number)
    with explain_missing_proposal(ctx.api, repo, n):
        for name in names:
            changed = ctx.api.send(proposals.REMOVE_LABEL, id=repo.id, n=n, name=name)
    remaining = ", ".join(label.name for label in changed.labels) or "none are left"
    _print_done(
        ctx, f"Took {', '.join(names)} off proposal {format_title(changed)}; labels: {remaining}", changed
    )


def _set_state(ctx: Ctx, number: str, comment: str | None, patch: ProposalPatch, did: str) -> None:
    body = None if comment is None else require_valid(CommentBody(body=comment))
    if body is not None:
        alone(ctx, "a comment")
    if ctx.obj.queues:  # the change goes to the outbox, and the state before it is not known
        _change(ctx, *number_of(ctx, number), patch)
    repo, before = find(ctx, number)
    n = str(before.number)
    after = _change(ctx, repo, n, patch)
    if body is not None:
        ctx.api.send(issues.COMMENT, body, id=repo.id, n=n)
    if before.state == after.state:
        _print_done(ctx, f"Proposal {format_title(after)} was {after.state} already", after)
    else:
        _print_done(ctx, f"{did} proposal {format_title(after)}", after)


def _change(ctx: Ctx, repo: Repo, number: str, patch: ProposalPatch) -> Proposal:
    with explain_missing_proposal(ctx.api, repo, number):
        return ctx.api.send(proposals.UPDATE, patch, id=repo.id, n=number)


def _rewrite_in_editor(ctx: Ctx, repo: Repo, old: Proposal) -> Proposal:
    """Let the user rewrite the title and text of a proposal in an editor, and send them to the server.
    Returns the changed proposal."""
    from svc.cmd.frame.editor import compose_text

    remarks = ["The first line is the title, the rest the text."]
    with compose_text(f"{old.title}\n\n{old.body}".rstrip(), remarks, ctx.obj.environment) as (typed, file):
        title, _, body = typed.partition("\n")
        try:
            patch = require_valid(ProposalPatch(title=title.strip(), body=body.strip()))
            return _change(ctx, repo, str(old.number), patch)
        except Exception:
            ctx.out.note(f"svc: your text is in {file}")
            raise


def _print_done(ctx: Ctx, sentence: str, proposal: Proposal) -> None:
    ctx.out.done(sentence, proposal, COLUMNS, Proposal, value=str(proposal.number))
