"""The commands `svc pr comment`, `svc pr react`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import UsageError
from localstore.core.model.issue import Comment
from localstore.core.model.thread import Side
from localstore.core.paths import terminal_safe
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.queueing import queueable
from svc.cmd.frame.text_options import Body, BodyFile, body_of
from svc.cmd.issue import comment as on_issue
from svc.cmd.issue.words import alone
from svc.cmd.pr import threads
from svc.cmd.pr.words import Named, Number, find, number_of
from svc.console import answers


@queueable
@answers(on_issue.COLUMNS, Comment)
def comment(
    ctx: Ctx,
    number: Number = "",
    body: Body = None,
    body_file: BodyFile = None,
    path: Annotated[str, typer.Option("-p", "--path", metavar="PATH", help="On lines of this file")] = "",
    line: Annotated[str, typer.Option("-l", "--line", metavar="A[-B]", help="The line, or lines")] = "",
    side: Annotated[Side, typer.Option("--side", help="Before the change, or after it")] = "new",
    suggest: Annotated[
        str | None,
        typer.Option("--suggest", metavar="TEXT|-", help="Put this in their place; - is standard input"),
    ] = None,
    thread: Annotated[str, typer.Option("--thread", metavar="ID", help="Answer to a comment on lines")] = "",
    draft: Annotated[bool, typer.Option("-d", "--draft", help="Send it with your next review")] = False,
    edit_last: Annotated[bool, typer.Option("--edit-last", help="Change your last comment instead")] = False,
    delete_last: Annotated[bool, typer.Option("--delete-last", help="Delete your last comment")] = False,
    discard: Annotated[
        str,
        typer.Option("--discard", metavar="ID|all", help="Delete what waits for your review, by its thread"),
    ] = "",
) -> None:
    """Comment on a proposal, or on lines of it

    Without a text your editor opens. @HANDLE notifies that person, if they can read the repository. With
    --path and --line the comment is about lines of the newest version, and follows these lines when they
    move. --suggest proposes lines that replace them, which others apply with svc pr apply. --discard deletes
    your unpublished comments, either the comments of one thread or all.

    Examples:
    svc pr comment 12 -b "It works here"
    svc pr comment 12 --path src/a.py --line 12-14 -b "Why twice?" --draft
    svc pr comment 12 --path src/a.py --line 12 --suggest "    return value"
    svc pr comment 12 --discard all
    """
    if discard:
        others = (body, body_file, suggest, path or line or thread or None)
        if others != (None,) * 4 or draft or edit_last or delete_last:
            raise UsageError("--discard deletes what waits for your review and says nothing; use it alone")
        alone(ctx, "--discard")
        threads.discard(ctx, *find(ctx, number), discard)
        return
    on_lines = bool(path or line or thread or draft or suggest is not None)
    if on_lines:
        alone(ctx, "lines of a file")
    else:
        on_issue.comment_on(
            ctx, lambda: number_of(ctx, number), body_of(body, body_file), edit_last, delete_last
        )
        return
    if edit_last or delete_last:
        raise UsageError("--edit-last and --delete-last are for comments on the proposal itself")
    _require_spot(path, line, side, suggest, thread)
    text = body_of(body, body_file)
    if text is None and suggest is None:
        raise UsageError("say the text: -b TEXT or -F FILE, or other lines: --suggest TEXT")
    if line:
        threads.lines_of(line)
    repo, proposal = find(ctx, number)
    if thread:
        posted, spot = threads.answer(ctx, repo, proposal, thread, text or "", draft)
    else:
        new_thread = threads.on_lines(ctx, repo, proposal, path, line, side, text, suggest, draft)
        posted, spot = new_thread.comments[0], f"{terminal_safe(path)}:{line}"
    when = "; it goes out with your review" if posted.draft else ""
    did = "Answered on" if thread else "Commented on" if suggest is None else "Suggested"
    sentence = f"{did} {spot} of #{proposal.number}{when}"
    ctx.out.done(sentence, posted, on_issue.COLUMNS, Comment, value=posted.id)


def _require_spot(path: str, line: str, side: Side, suggest: str | None, thread: str) -> None:
    """Raise UsageError if the options of a comment on lines exclude each other, or if they name neither lines
    nor the thread to answer."""
    if thread and (path or line or suggest is not None):
        raise UsageError("--thread answers on the lines of that thread; omit --path, --line and --suggest")
    if not thread and not (path and line):
        raise UsageError("say which lines: --path FILE and --line A or A-B")
    if suggest is not None and side == "old":
        raise UsageError("a suggestion replaces lines as they are after the change; omit --side old")


@queueable
@answers(on_issue.REACTED)
def react(
    ctx: Ctx,
    number: Named,
    reaction: on_issue.ReactionName,
    comment: on_issue.ReactedComment = "",
    remove: on_issue.Remove = False,
) -> None:
    """React to a proposal or a comment

    Each account can give each reaction once.

    Examples:
    svc pr react 12 +1
    svc pr react 12 heart --remove
    """
    name = on_issue.reaction_of(reaction)
    repo, n = number_of(ctx, number)
    on_issue.send_reaction(ctx, repo, n, name, comment, remove)
