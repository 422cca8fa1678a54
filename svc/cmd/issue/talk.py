"""The talk of an issue or a proposal as text: comments, and what else happened, in order of time."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.model import proposal as proposals
from localstore.core.model.base import PageQuery
from localstore.core.model.issue import Comment, Issue
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.model.thread import Thread
from localstore.core.paths import terminal_safe
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.markdown import markdown
from svc.flows.happened import Happened, list_happened


def read_happened(
    ctx: Ctx, repo: Repo, subject: Issue | Proposal, threads: Sequence[Thread] = ()
) -> list[Happened]:
    """Return what happened to an issue or a proposal beside its comments. For data and in a pipe, nothing is
    requested. `threads`: its threads on lines."""
    if not ctx.out.terminal or ctx.out.format.as_data:
        return []
    timeline = list(ctx.reader.items(proposals.TIMELINE, PageQuery(), id=repo.id, n=str(subject.number)))
    return list_happened(timeline, subject, threads)


def comment_text(ctx: Ctx, comment: Comment) -> str:
    """Return a comment as text for a person: who wrote it, when, and its words."""
    edited = ", edited" if comment.updated_at != comment.created_at else ""
    return said_text(
        ctx, comment.author.handle or comment.author.id, comment.created_at, edited, comment.body
    )


def said_text(ctx: Ctx, who: str, at: str, did: str, body: str) -> str:
    """Return what somebody wrote as text for a person. `at`: when. `did`: what else they did with it."""
    text = f"\n\n{markdown(ctx.out, body)}" if body.strip() else ""
    return f"--- {terminal_safe(who)}, {ctx.out.when(at)}{did}{text}"


def in_order(ctx: Ctx, written: Sequence[tuple[str, str]], happened: Sequence[Happened]) -> list[str]:
    """Return the paragraphs of a talk in order of time. `written`: comments and reviews, as (time, text).
    What else happened is one line each, without blank lines between such lines."""
    timed = [(at, text, False) for at, text in written]
    for event in happened:
        who = f"{terminal_safe(event.who)} " if event.who else ""
        words = f"{event.sign} {who}{terminal_safe(event.words)}, {ctx.out.when(event.at)}"
        timed.append((event.at, words, True))
    paragraphs: list[str] = []
    was_line = False
    for _, text, is_line in sorted(timed, key=lambda entry: entry[0]):
        if is_line and was_line:
            paragraphs[-1] += f"\n{text}"
        else:
            paragraphs.append(text)
        was_line = is_line
    return paragraphs
