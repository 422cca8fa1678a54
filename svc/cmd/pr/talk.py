"""`svc pr comment`, `svc pr react`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model.collaboration.issue import REACTIONS, Comment
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.text_options import Body, BodyFile
from svc.cmd.issue import comment as on_issue
from svc.cmd.pr.words import Named, Number, number_of
from svc.console import answers


@answers(on_issue.COLUMNS, Comment)
def comment(
    ctx: Ctx,
    number: Number = "",
    body: Body = None,
    body_file: BodyFile = None,
    edit_last: Annotated[bool, typer.Option("--edit-last", help="Change your last comment instead")] = False,
    delete_last: Annotated[bool, typer.Option("--delete-last", help="Delete your last comment")] = False,
) -> None:
    """Comment on a proposal

    Without a text your editor opens. @HANDLE tells somebody who can read the repository.

    Examples:
    svc pr comment 12 -b "It works here"
    svc pr comment -b "Rebased"
    """
    if body is None and body_file is None and not delete_last and not ctx.out.interactive:
        raise UsageError("say the text: -b TEXT or -F FILE; there is no terminal for an editor")
    n = number_of(ctx, ctx.repo, number)
    on_issue.comment(ctx, n, body, body_file, edit_last, delete_last)


@answers(on_issue.REACTED)
def react(
    ctx: Ctx,
    number: Named,
    reaction: Annotated[str, typer.Argument(help="+1, -1, tada, heart, rocket or eyes")],
    comment: Annotated[str, typer.Option("--comment", metavar="ID", help="To a comment of it")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Take yours back")] = False,
) -> None:
    """React to a proposal or a comment

    Each reaction counts once for each account.

    Examples:
    svc pr react 12 +1
    svc pr react 12 heart --remove
    """
    if reaction.strip(":").lower() not in on_issue.SPELLED:
        raise UsageError(f"there is no reaction {reaction}; there are: {', '.join(REACTIONS)}")
    on_issue.react(ctx, number_of(ctx, ctx.repo, number), reaction, comment, remove)
