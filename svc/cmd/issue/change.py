"""The commands `svc issue edit|close|reopen`, `svc issue label add|remove`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import issue as issues
from localstore.core.model.issue import CommentBody, Issue, IssuePatch, LabelAddQuery, Reason
from localstore.core.model.repo import Repo
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.queueing import queueable
from svc.cmd.frame.text_options import Body, BodyFile, body_of
from svc.cmd.issue.words import (
    COLUMNS,
    Number,
    alone,
    format_title,
    handles_of,
    known_issue,
    names_of,
    number_of,
)
from svc.console import answers
from svc.flows.place.refs import explained_not_found
from svc.http.checked import require_valid

Why = Literal["completed", "not_planned", "not planned"]
Comment = Annotated[str | None, typer.Option("-c", "--comment", metavar="TEXT", help="Say why, in a comment")]
Names = Annotated[list[str], typer.Argument(metavar="LABEL", help="Names of labels")]


def _list_option(option: str, help: str) -> Any:
    return typer.Option(option, metavar="NAME", help=help)


@queueable
@answers(COLUMNS, Issue)
def edit(
    ctx: Ctx,
    number: Number,
    title: Annotated[str | None, typer.Option("-t", "--title", metavar="TEXT", help="The new title")] = None,
    body: Body = None,
    body_file: BodyFile = None,
    add_label: Annotated[list[str] | None, _list_option("--add-label", "Put a label on it")] = None,
    remove_label: Annotated[list[str] | None, _list_option("--remove-label", "Take a label off it")] = None,
    add_assignee: Annotated[list[str] | None, _list_option("--add-assignee", "Assign somebody")] = None,
    remove_assignee: Annotated[
        list[str] | None, _list_option("--remove-assignee", "Unassign somebody")
    ] = None,
) -> None:
    """Change the title, text, labels or assignees of an issue

    Without an option your editor opens with the current title and text. Only the author and people with the
    role admin may change the title and the text.

    Examples:
    svc issue edit 12 -t "It ends after a minute"
    svc issue edit 12 --add-label bug,ui --remove-assignee @me
    svc issue edit 12
    """
    n = number_of(number)
    patch = IssuePatch(
        title=title,
        body=body_of(body, body_file),
        add_labels=names_of(add_label),
        remove_labels=names_of(remove_label),
        add_assignees=handles_of(add_assignee),
        remove_assignees=handles_of(remove_assignee),
    )
    if patch == IssuePatch():
        alone(ctx, "an editor")
        issue = _rewrite_in_editor(ctx, n)
    else:
        require_valid(patch)
        issue = _change(ctx, ctx.repo, n, patch)
    _print_done(ctx, f"Changed issue {format_title(issue)}", issue)


@queueable
@answers(COLUMNS, Issue)
def close(
    ctx: Ctx,
    number: Number,
    reason: Annotated[Why, typer.Option("-r", "--reason", help="Done, or not to be done")] = "completed",
    comment: Comment = None,
) -> None:
    """Close an issue

    Allowed for the author of the issue, and for people with the role triage.

    Examples:
    svc issue close 12
    svc issue close 12 --reason not_planned -c "See #7"
    """
    n, body = number_of(number), _comment_body(ctx, comment)
    repo = ctx.repo
    why: Reason = "completed" if reason == "completed" else "not_planned"
    issue = _change(ctx, repo, n, IssuePatch(state="closed", state_reason=why))
    _say(ctx, repo, n, body)
    _print_done(ctx, f"Closed issue {format_title(issue)}", issue)


@queueable
@answers(COLUMNS, Issue)
def reopen(ctx: Ctx, number: Number, comment: Comment = None) -> None:
    """Open a closed issue again

    Examples:
    svc issue reopen 12 -c "It came back"
    """
    n, body = number_of(number), _comment_body(ctx, comment)
    repo = ctx.repo
    issue = _change(ctx, repo, n, IssuePatch(state="open"))
    _say(ctx, repo, n, body)
    _print_done(ctx, f"Reopened issue {format_title(issue)}", issue)


@queueable
@answers(COLUMNS, Issue)
def add_label(
    ctx: Ctx,
    number: Number,
    labels: Names,
    create: Annotated[bool, typer.Option("--create", help="Make labels that the repository lacks")] = False,
) -> None:
    """Put labels on an issue

    Examples:
    svc issue label add 12 bug ui
    svc issue label add 12 "help wanted" --create
    """
    n, names = number_of(number), names_of(labels)
    require_valid(IssuePatch(add_labels=names))
    if create and len(names) > 1:
        alone(ctx, "another label")
    repo = ctx.repo
    if not create:
        issue = _change(ctx, repo, n, IssuePatch(add_labels=names))
    else:
        with known_issue(ctx, repo, n):
            for name in names:
                query = LabelAddQuery(create="1")
                issue = ctx.api.send(issues.ADD_LABEL, query=query, id=repo.id, n=n, name=name)
    _print_done(
        ctx, f"Labelled issue {format_title(issue)}: {', '.join(label.name for label in issue.labels)}", issue
    )


@answers(COLUMNS, Issue)
def remove_label(ctx: Ctx, number: Number, labels: Names) -> None:
    """Take labels off an issue

    Examples:
    svc issue label remove 12 bug
    """
    n, names = number_of(number), names_of(labels)
    require_valid(IssuePatch(remove_labels=names))
    repo = ctx.repo
    with known_issue(ctx, repo, n):
        on = {label.name.casefold() for label in ctx.api.send(issues.GET, id=repo.id, n=n).labels}
    for name in names:
        if name.casefold() not in on:
            raise NotFound(f"issue #{n} of {repo.full_name} has no label {name}")
    for name in names:
        with explained_not_found(repo, f"label {name} on issue #{n}", "svc label list"):
            issue = ctx.api.send(issues.REMOVE_LABEL, id=repo.id, n=n, name=name)
    remaining = ", ".join(label.name for label in issue.labels) or "none are left"
    _print_done(ctx, f"Took {', '.join(names)} off issue {format_title(issue)}; labels: {remaining}", issue)


def _change(ctx: Ctx, repo: Repo, number: str, patch: IssuePatch) -> Issue:
    with known_issue(ctx, repo, number):
        return ctx.api.send(issues.UPDATE, patch, id=repo.id, n=number)


def _rewrite_in_editor(ctx: Ctx, number: str) -> Issue:
    """Let the user rewrite the title and text of an issue in an editor, and send them to the server. Returns
    the changed issue."""
    from svc.cmd.frame.editor import compose_text

    if not ctx.out.interactive:
        raise UsageError("say what to change: -t TITLE, -b TEXT, --add-label NAME …")
    repo = ctx.repo
    with known_issue(ctx, repo, number):
        old = ctx.api.send(issues.GET, id=repo.id, n=number)
    remarks = ["The first line is the title, the rest the text."]
    with compose_text(f"{old.title}\n\n{old.body}".rstrip(), remarks, ctx.obj.environment) as (typed, file):
        title, _, body = typed.partition("\n")
        try:
            patch = require_valid(IssuePatch(title=title.strip(), body=body.strip()))
            return _change(ctx, repo, number, patch)
        except Exception:
            ctx.out.note(f"svc: your text is in {file}")
            raise


def _comment_body(ctx: Ctx, comment: str | None) -> CommentBody | None:
    if comment is None:
        return None
    alone(ctx, "a comment")
    return require_valid(CommentBody(body=comment))


def _say(ctx: Ctx, repo: Repo, number: str, body: CommentBody | None) -> None:
    if body is not None:
        ctx.api.send(issues.COMMENT, body, id=repo.id, n=number)


def _print_done(ctx: Ctx, sentence: str, issue: Issue) -> None:
    ctx.out.done(sentence, issue, COLUMNS, Issue, value=str(issue.number))
