"""`svc pr threads|resolve|apply`, and comments on lines for `svc pr comment`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Any, Literal

import typer

from localstore.core.diff import anchors
from localstore.core.errors import NotFound, SvcError, UsageError
from localstore.core.model import auth, history
from localstore.core.model import issue as issues
from localstore.core.model import seal as seals
from localstore.core.model import thread as threads
from localstore.core.model.issue import Comment
from localstore.core.model.limits import ISSUE_BODY_BYTES
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.model.seal import FinalizeSealsRequest
from localstore.core.model.thread import (
    Side,
    SuggestionsPrepareRequest,
    Thread,
    ThreadComment,
    ThreadCreate,
    ThreadPatch,
    ThreadQuery,
)
from localstore.core.paths import terminal_safe
from localstore.core.words import count
from svc.api import Api
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.markdown import markdown
from svc.cmd.frame.options import Limit
from svc.cmd.frame.text_options import text_of
from svc.cmd.issue.comment import COLUMNS as SAID
from svc.cmd.issue.words import prose
from svc.cmd.pr.words import Named, Number, find, format_title
from svc.console import Column, answers
from svc.flows.happened import name_place
from svc.flows.proposal.finding import explain_missing_proposal
from svc.flows.proposal.suggesting import signature
from svc.flows.sign_in.register_device import signing_key
from svc.http.checked import require_valid

_LINES = re.compile(r"L?([1-9][0-9]{0,8})(?:[-:,]L?([1-9][0-9]{0,8}))?")
_SHOWN = 12  # lines of one thread


def where(record: dict[str, Any]) -> str:
    """Return `PATH:LINES`, the place where the lines of a thread are now, with unsealed edits counted. If the
    lines are gone, return the place where they were. `record` has the fields of the thread."""
    at = record["live"] or record["place"] or record
    lines = f"{at['start']}" if at["start"] == at["end"] else f"{at['start']}-{at['end']}"
    return f"{at['path']}:{lines}"


def state(record: dict[str, Any]) -> str:
    """Return the state of a thread. It is `waits` until its author publishes the review, then `resolved` or
    `open`. If the lines of an open thread have changed, the state says how (`open, moved`)."""
    if record["draft"]:
        return "waits"
    place = record["live"] or record["place"]
    how = "gone" if place is None else place["how"]
    return f"open, {how}" if record["state"] == "open" and how != "same" else str(record["state"])


def _first_text(record: dict[str, Any]) -> str:
    comments = record["comments"]
    return str(comments[0]["body"]) if comments else ""


COLUMNS = (
    Column("id", kind="id"),
    Column("where", where),
    Column("state", state, kind="state"),
    Column("by", lambda one: one["author"].get("handle") or one["author"]["id"], spare=2),
    Column("said", lambda one: len(one["comments"]), spare=3),
    Column("text", _first_text, kind="line"),
)
APPLIED = (Column("number"), Column("seal", kind="id"), Column("threads"), Column("paths"))
Ids = Annotated[list[str], typer.Argument(metavar="ID", help="Threads, by their id or its beginning")]


@answers(COLUMNS, Thread)
def list_threads(
    ctx: Ctx,
    number: Number = "",
    state: Annotated[
        Literal["open", "resolved", "all"], typer.Option("-s", "--state", help="Which of them")
    ] = "all",
    path: Annotated[str, typer.Option("-p", "--path", metavar="PATH", help="On this file")] = "",
    draft: Annotated[bool, typer.Option("-d", "--draft", help="What waits for your review")] = False,
    limit: Limit = 100,
) -> None:
    """List the comments on lines of a proposal

    Shows where the lines are now, and whether they have moved, were edited, or are gone. The field `place`
    does not count unsealed edits. The field `live` does, and only people who may write see it.

    Examples:
    svc pr threads 12 --state open
    svc pr threads 12 --draft
    """
    query = require_valid(ThreadQuery(state=state, path=path or None, draft="1" if draft else "0", live="1"))
    repo, proposal = find(ctx, number, session=False)
    rows = ctx.reader.items(threads.LIST, query, limit=limit, id=repo.id, n=str(proposal.number))
    ctx.out.rows(rows, COLUMNS, Thread, empty=f"no comments on lines of #{proposal.number} match")


@answers(COLUMNS, Thread)
def resolve(
    ctx: Ctx,
    number: Named,
    ids: Ids,
    reopen: Annotated[bool, typer.Option("--reopen", help="Open them again")] = False,
) -> None:
    """Resolve comments on lines, or open them again

    Allowed for the person who began the thread, the author of the proposal, and everybody who may write.

    Examples:
    svc pr resolve 12 3f9a
    svc pr resolve 12 3f9a --reopen
    """
    repo, proposal = find(ctx, number)
    patch = ThreadPatch(state="open" if reopen else "resolved")
    path = {"id": repo.id, "n": str(proposal.number)}
    for named_thread in _find_threads(ctx.api, repo, proposal, ids):
        changed = ctx.api.send(threads.UPDATE, patch, **path, thread=named_thread.id)
        did = "Reopened" if reopen else "Resolved"
        ctx.out.done(
            f"{did} {terminal_safe(name_place(changed))} of {format_title(proposal)}",
            changed,
            COLUMNS,
            Thread,
            value=changed.id,
        )


@answers(APPLIED)
def apply(
    ctx: Ctx,
    number: Named,
    ids: Ids,
    message: Annotated[str, typer.Option("-m", "--message", metavar="MSG", help="What the seal says")] = "",
) -> None:
    """Seal suggested lines onto the branch of a proposal

    All suggestions become one seal, which credits their authors. This machine computes the seal itself and
    signs it. If any of the lines were edited since, the command names them and applies nothing.

    Examples:
    svc pr apply 12 3f9a
    svc pr apply 12 3f9a 77c1 -m "Take in the review"
    """
    repo, proposal = find(ctx, number)
    chosen = _find_threads(ctx.api, repo, proposal, ids)
    key = signing_key(ctx.api, ctx.obj.sessions)
    text = message.strip() or None
    body = SuggestionsPrepareRequest(
        threads=[thread.id for thread in chosen],
        device_key_id=key.id,
        message=text,
        expected_head=proposal.head_seal,
    )
    prepared = ctx.api.send(threads.PREPARE, require_valid(body), id=repo.id, n=str(proposal.number))
    chosen = _find_threads(ctx.api, repo, proposal, ids)
    me = ctx.api.send(auth.USER_INFO).user_id
    signed = signature(ctx.api, repo.id, proposal, chosen, text, prepared, key, me)
    done = FinalizeSealsRequest(prepare_id=prepared.prepare_id, device_key_id=key.id, signatures=[signed])
    (seal,) = ctx.api.send(seals.FINALIZE_SEALS, done, id=repo.id).items
    paths = sorted({thread.place.path for thread in chosen if thread.place is not None})
    record = {
        "number": proposal.number,
        "seal": seal.id,
        "threads": [thread.id for thread in chosen],
        "paths": paths,
    }
    what = "a suggestion" if len(chosen) == 1 else f"{len(chosen)} suggestions"
    ctx.out.done(
        f"Applied {what} to {format_title(proposal)}: {seal.id[:12]}", record, APPLIED, value=seal.id
    )


def on_lines(
    ctx: Ctx,
    repo: Repo,
    proposal: Proposal,
    path: str,
    line: str,
    side: Side,
    text: str | None,
    suggest: str | None,
    draft: bool,
) -> Thread:
    """Begin a thread on lines of the proposal's newest version. Returns the thread. `line` is the line or
    range that the user typed. `suggest` has lines that are suggested as a replacement; "-" reads them from
    standard input."""
    first, last = lines_of(line)
    other = None if suggest is None else suggestion(suggest)
    request = ThreadCreate(
        path=path,
        start=first,
        end=last,
        seal_id=proposal.head_seal,
        body=text if text is not None else "I suggest other lines",
        side=side,
        suggestion=other,
        draft=draft,
    )
    with explain_missing_proposal(ctx.api, repo, str(proposal.number)):
        return ctx.api.send(threads.CREATE, require_valid(request), id=repo.id, n=str(proposal.number))


def answer(
    ctx: Ctx, repo: Repo, proposal: Proposal, thread: str, text: str, draft: bool
) -> tuple[Comment, str]:
    """Answer in a thread. Return the answer, and the lines that the thread is about."""
    (named_thread,) = _find_threads(ctx.api, repo, proposal, [thread])
    body = require_valid(ThreadComment(body=text, draft=draft))
    n = str(proposal.number)
    posted = ctx.api.send(threads.COMMENT, body, id=repo.id, n=n, thread=named_thread.id)
    return posted, terminal_safe(name_place(named_thread))


def waiting(ctx: Ctx, repo: Repo, proposal: Proposal) -> list[Comment]:
    """Return the user's comments on lines that will be published with their next review."""
    every = ctx.api.items(threads.LIST, ThreadQuery(), id=repo.id, n=str(proposal.number))
    return [comment for thread in every for comment in thread.comments if comment.draft]


def discard(ctx: Ctx, repo: Repo, proposal: Proposal, which: str) -> None:
    """Delete comments of the user that would be published with their next review. `which` is the id of one
    thread, or `all`. Raises NotFound if there are none."""
    n = str(proposal.number)
    every = list(ctx.api.items(threads.LIST, ThreadQuery(), id=repo.id, n=n))
    some = every if which == "all" else _choose_threads(every, proposal, [which])
    waits = [comment for thread in some for comment in thread.comments if comment.draft]
    if not waits:
        there = "" if which == "all" else f" in thread {terminal_safe(which)}"
        raise NotFound(
            f"nothing of yours{there} waits for a review of #{proposal.number}; "
            f"see: svc pr threads {proposal.number} --draft"
        )
    ctx.confirm(f"Discarding {count(len(waits), 'comment')} on lines of #{proposal.number}")
    for comment in waits:
        ctx.api.send(issues.DELETE_COMMENT, id=repo.id, n=n, comment=comment.id)
        ctx.out.done(
            f"Discarded a comment on lines of #{proposal.number}", comment, SAID, Comment, value=comment.id
        )


def lines_of(typed: str) -> tuple[int, int]:
    """Return (first line, last line) of a line or range that the user typed, such as 12 or 12-15. Raises
    UsageError for anything else."""
    match = _LINES.fullmatch(typed.strip())
    if match is None:
        raise UsageError(f"{terminal_safe(typed)} is not a line; say --line 12 or --line 12-15")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"line {last} stands before line {first}")
    return first, last


def suggestion(typed: str) -> str:
    if typed != "-":
        return typed
    names = ("--suggest", "--suggest")
    return text_of(None, "-", names, "a suggestion", ISSUE_BODY_BYTES) or "" if sys.stdin else ""


def thread_texts(ctx: Ctx, repo: Repo, every: Iterable[Thread]) -> Iterator[str]:
    """Yields each thread as text for a person: its lines and comments."""
    files: dict[tuple[str, str], bytes] = {}
    for thread in every:
        at = thread.place
        gone = "" if at is not None else ", gone from the newest version"
        how = f", {at.how}" if at is not None and at.how != "same" else gone
        waits = ", waits for your review" if thread.draft else ""
        now = ""
        if thread.live is not None:
            lines = f"{thread.live.start}" + (
                f"-{thread.live.end}" if thread.live.end != thread.live.start else ""
            )
            live = "gone" if thread.live.how == "gone" else f"at {terminal_safe(thread.live.path)}:{lines}"
            now = f"; {live} with unsealed edits"
        spot = terminal_safe(name_place(thread))
        parts = [f"--- {spot} ({thread.id[:12]}), {thread.state}{how}{waits}{now}"]
        if at is not None:
            parts.append(_quote_lines(ctx, repo, files, at.seal_id, at.path, at.start, at.end))
        if thread.suggestion is not None:
            seal = thread.suggestion.applied_seal
            parts.append("\n".join(f"    + {prose(line)}" for line in thread.suggestion.text.splitlines()))
            parts += [f"    applied in {seal[:12]}"] if seal else []
        for comment in thread.comments:
            who = comment.author.handle or comment.author.id
            when = ctx.out.when(comment.created_at)
            parts.append(f"{terminal_safe(who)}, {when}\n\n{markdown(ctx.out, comment.body)}")
        yield "\n\n".join(filter(None, parts))


def _quote_lines(
    ctx: Ctx,
    repo: Repo,
    files: dict[tuple[str, str], bytes],
    seal: str,
    path: str,
    start: int,
    end: int,
) -> str:
    """Return the lines `start` to `end` of a file in a seal with their numbers, at most _SHOWN lines. "" if
    the file is not text or cannot be read. `files` is a cache of files by (seal, path)."""
    if (seal, path) not in files:
        files[seal, path] = b""
        with suppress(SvcError):
            blob = ctx.reader.send(history.BLOB, id=repo.id, sha=seal, path=path)
            if blob.encoding == "utf-8" and blob.content is not None:
                files[seal, path] = blob.content.encode()
    numbered = []
    for number in range(start, min(end, start + _SHOWN - 1) + 1):
        if anchors.of_lines(files[seal, path], number, number) is not None:
            line = anchors.content(files[seal, path], number, number).decode("utf-8", "replace")
            numbered.append(f"    {number:>4}  {terminal_safe(line)}")
    return "\n".join(numbered)


def _find_threads(api: Api, repo: Repo, proposal: Proposal, ids: list[str]) -> list[Thread]:
    """Return, for each of `ids`, the thread whose id begins with it. Raises NotFound if there is none,
    UsageError if there are several."""
    return _choose_threads(
        list(api.items(threads.LIST, ThreadQuery(), id=repo.id, n=str(proposal.number))), proposal, ids
    )


def _choose_threads(every: list[Thread], proposal: Proposal, ids: list[str]) -> list[Thread]:
    named: dict[str, Thread] = {}
    for typed in ids:
        matching = [thread for thread in every if thread.id.startswith(typed)] if typed else []
        if len(matching) > 1:
            raise UsageError(
                f"{len(matching)} threads begin with {terminal_safe(typed)}; type more of the id"
            )
        if not matching:
            raise NotFound(
                f"#{proposal.number} has no thread {terminal_safe(typed)}; "
                f"see: svc pr threads {proposal.number}"
            )
        named[matching[0].id] = matching[0]
    return list(named.values())
