"""The commands `svc issue comment`, `svc issue react`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import auth
from localstore.core.model import issue as issues
from localstore.core.model.base import PageQuery
from localstore.core.model.issue import REACTIONS, Comment, CommentBody, Reaction
from localstore.core.model.repo import Repo
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.queueing import queueable
from svc.cmd.frame.text_options import Body, BodyFile, body_of
from svc.cmd.issue.words import Number, alone, author, known_issue, number_of
from svc.console import Column, answers
from svc.http.checked import require_valid

COLUMNS = (
    Column("id"),
    Column("author", author),
    Column("body", kind="line"),
    Column("created_at", kind="time"),
)
SPELLED: dict[str, Reaction] = {
    **{name: name for name in REACTIONS},
    **dict.fromkeys(("👍", "thumbs_up", "thumbsup", "up"), "+1"),
    **dict.fromkeys(("👎", "thumbs_down", "thumbsdown", "down"), "-1"),
    **dict.fromkeys(("🎉", "hooray"), "tada"),
    "❤️": "heart",
    "❤": "heart",
    "🚀": "rocket",
    "👀": "eyes",
}
ReactionName = Annotated[str, typer.Argument(help="+1, -1, tada, heart, rocket or eyes")]
ReactedComment = Annotated[str, typer.Option("--comment", metavar="ID", help="React to a comment of it")]
Remove = Annotated[bool, typer.Option("--remove", help="Remove your reaction")]
REACTED = (Column("number"), Column("reaction"), Column("given"))


@queueable
@answers(COLUMNS, Comment)
def comment(
    ctx: Ctx,
    number: Number,
    body: Body = None,
    body_file: BodyFile = None,
    edit_last: Annotated[bool, typer.Option("--edit-last", help="Change your last comment instead")] = False,
    delete_last: Annotated[bool, typer.Option("--delete-last", help="Delete your last comment")] = False,
) -> None:
    """Comment on an issue

    Without a text your editor opens. @HANDLE notifies that person, if they can read the repository.

    Examples:
    svc issue comment 12 -b "It happens here too"
    make 2>&1 | svc issue comment 12 -F -
    svc issue comment 12 --edit-last -b "It happens on Linux too"
    """
    n, text = number_of(number), body_of(body, body_file)
    comment_on(ctx, lambda: (ctx.repo, n), text, edit_last, delete_last)


def comment_on(
    ctx: Ctx,
    subject: Callable[[], tuple[Repo, str]],
    text: str | None,
    edit_last: bool,
    delete_last: bool,
) -> None:
    """Comment on an issue or proposal. With `edit_last`, change the user's last comment there instead; with
    `delete_last`, delete it. `subject` returns (repository, number), and is called after the options were
    checked. If `text` is None, an editor opens."""
    if edit_last and delete_last:
        raise UsageError("--edit-last and --delete-last are two things; use one of them")
    if delete_last and text is not None:
        raise UsageError("--delete-last takes no text")
    if edit_last or delete_last or text is None:
        alone(ctx, "a question")
    if text is not None:
        require_valid(CommentBody(body=text))
    elif not delete_last and not ctx.out.interactive:
        raise UsageError("say the text: -b TEXT or -F FILE; there is no terminal for an editor")
    repo, n = subject()
    last = _find_last(ctx, repo, n) if edit_last or delete_last else None
    if delete_last and last is not None:
        ctx.confirm(f"Deleting your last comment on #{n}")
        ctx.api.send(issues.DELETE_COMMENT, id=repo.id, n=n, comment=last.id)
        ctx.out.done(f"Deleted your last comment on #{n}", last, COLUMNS, Comment, value=last.id)
        return
    sent = _send(ctx, repo, n, text, last) if text is not None else _write_in_editor(ctx, repo, n, last)
    did = "Changed your last comment" if last else "Commented"
    ctx.out.done(f"{did} on #{n}", sent, COLUMNS, Comment, value=sent.id)


@queueable
@answers(REACTED)
def react(
    ctx: Ctx,
    number: Number,
    reaction: ReactionName,
    comment: ReactedComment = "",
    remove: Remove = False,
) -> None:
    """React to an issue or a comment

    Each account can give each reaction once.

    Examples:
    svc issue react 12 +1
    svc issue react 12 heart --remove
    """
    n = number_of(number)
    name = reaction_of(reaction)
    send_reaction(ctx, ctx.repo, n, name, comment, remove)


def reaction_of(typed: str) -> Reaction:
    """Return the reaction that the user typed, such as `+1` or `:heart:`. Raises UsageError if there is no
    such reaction."""
    name = SPELLED.get(typed.strip(":").lower())
    if name is None:
        raise UsageError(f"there is no reaction {typed}; there are: {', '.join(REACTIONS)}")
    return name


def send_reaction(ctx: Ctx, repo: Repo, n: str, name: Reaction, comment: str, remove: bool) -> None:
    """Add or remove a reaction. If `comment` is the id of a comment, the reaction is to that comment. If
    `comment` is "", it is to the issue or proposal with the number `n`."""
    with known_issue(ctx, repo, n):
        if comment:
            route = issues.UNREACT_TO_COMMENT if remove else issues.REACT_TO_COMMENT
            ctx.api.send(route, id=repo.id, n=n, comment=comment, reaction=name)
        else:
            route = issues.UNREACT if remove else issues.REACT
            ctx.api.send(route, id=repo.id, n=n, reaction=name)
    what = f"Removed {name} from" if remove else f"Reacted with {name} to"
    record = {"number": int(n), "reaction": name, "given": not remove}
    ctx.out.done(f"{what} #{n}", record, REACTED, value=name)


def _send(ctx: Ctx, repo: Repo, number: str, text: str, last: Comment | None) -> Comment:
    body = require_valid(CommentBody(body=text))
    with known_issue(ctx, repo, number):
        if last is None:
            return ctx.api.send(issues.COMMENT, body, id=repo.id, n=number)
        return ctx.api.send(issues.EDIT_COMMENT, body, id=repo.id, n=number, comment=last.id)


def _write_in_editor(ctx: Ctx, repo: Repo, number: str, last: Comment | None) -> Comment:
    """Let the user write a comment in an editor, and send it to the server. If `last` is given, the text
    replaces that comment. Returns the comment. If sending fails, the text is kept in its file."""
    from svc.cmd.frame.editor import compose_text

    with known_issue(ctx, repo, number):
        about = ctx.api.send(issues.GET, id=repo.id, n=number)
    remarks = [f"A comment on #{number}: {about.title}"]
    with compose_text(last.body if last else "", remarks, ctx.obj.environment) as (typed, file):
        try:
            return _send(ctx, repo, number, typed, last)
        except Exception:
            ctx.out.note(f"svc: your text is in {file}")
            raise


def _find_last(ctx: Ctx, repo: Repo, number: str) -> Comment:
    """Return the user's last comment on the issue. Raises NotFound if they wrote none."""
    me, last = ctx.api.send(auth.USER_INFO).user_id, None
    with known_issue(ctx, repo, number):
        for candidate in ctx.api.items(issues.COMMENTS, PageQuery(), id=repo.id, n=number):
            last = candidate if candidate.author.id == me else last
    if last is None:
        raise NotFound(f"you have no comment on #{number} of {repo.full_name}")
    return last
