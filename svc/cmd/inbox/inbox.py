"""The command `svc inbox`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

import msgspec
import typer

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import inbox as endpoints
from localstore.core.model.inbox import (
    InboxItem,
    InboxMarks,
    InboxQuery,
    InboxState,
    Reason,
)
from localstore.core.words import count
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.inbox_words import describe
from svc.flows.place.where import read_address

Mark = Literal["done", "read", "unread"]
MARKS: tuple[Mark, ...] = get_args(Mark)
_NAMED = re.compile(r"(?P<repo>[^#\s]*)#?(?P<number>[1-9][0-9]{0,17})?")
_ID = re.compile(r"[^./#\s]+\.(org|declined|0|[1-9][0-9]{0,17})")


def item(record: dict[str, Any]) -> str:
    """Return the name with which the user refers to an inbox row: OWNER/NAME#12, OWNER/NAME, or an
    organisation."""
    if record["repo"] is None:
        return str(record["subject"]["title"])
    name, number = str(record["repo"]["full_name"]), record["subject"]["number"]
    return f"{name}#{number}" if number else name


def title(record: dict[str, Any]) -> str:
    """Return the title of the issue or proposal of an inbox row. For other rows, return a description of what
    happened."""
    return describe(msgspec.convert(record, InboxItem))


def mark(record: dict[str, Any]) -> str:
    return "done" if record["done"] else "unread" if record["unread"] else "read"


COLUMNS = (
    Column("item", item, kind="name"),
    Column("title", title, kind="line"),
    Column("reason", spare=1),
    Column("state", mark, spare=2),
    Column("updated_at", kind="time"),
)
MARKED = (Column("changed"),)


@answers((*COLUMNS, *MARKED), InboxItem)
def inbox(
    ctx: Ctx,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[done|read|unread] [ITEM]...", help="The mark to set, and on which"),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="With a mark: on every one; else list what is done too")
    ] = False,
    reason: Annotated[
        Reason | None,
        typer.Option(
            "--reason", metavar="REASON", help=f"Only what is here for one of {', '.join(get_args(Reason))}"
        ),
    ] = None,
    limit: Limit = 30,
) -> None:
    """List what concerns you, and mark it as done

    Lists items from all repositories that you watch, or in which you took part or are mentioned or assigned.
    An item that is marked as done comes back when something new happens. For a repository or an organisation,
    the title describes the event. ITEM is a value from the first column, #12 in a linked folder, or an id.
    Answer an invitation to an organisation with svc org invite accept or decline.

    Examples:
    svc inbox
    svc inbox done alice/notes#12
    svc inbox done --all
    svc inbox --reason mention --json item,title
    """
    typed = words or []
    if not typed:
        query = InboxQuery(reason=reason, all=everything)
        items = ctx.api.items(endpoints.LIST, query, limit=limit)
        ctx.out.rows(items, COLUMNS, InboxItem, empty="nothing new concerns you")
        return
    if typed[0] not in MARKS:
        raise UsageError(f"{typed[0]} is none of done, read and unread; see: svc inbox --help")
    if reason is not None:
        raise UsageError("--reason chooses what is listed; name the items to mark")
    if bool(typed[1:]) == everything:
        raise UsageError(f"say which: svc inbox {typed[0]} ITEM, or svc inbox {typed[0]} --all")
    state = InboxState(state=typed[0])
    if everything:
        changed = ctx.api.send(endpoints.UPDATE_ALL, InboxMarks(state=typed[0])).changed
    else:
        named = [(item_id, label) for label in typed[1:] for item_id in _ids(ctx, label)]
        for item_id, label in named:
            try:
                ctx.api.send(endpoints.UPDATE, state, id=item_id)
            except NotFound:
                raise NotFound(f"your inbox has no {label}; see: svc inbox --all") from None
        changed = len(named)
    rows = count(changed, "row")
    ctx.out.done(f"Marked {rows} as {typed[0]}", {"changed": changed}, MARKED, value=str(changed))


def _ids(ctx: Ctx, typed: str) -> list[str]:
    """Return the ids of the inbox rows that `typed` names. It names one row, or all rows of an organisation.
    Raises UsageError if it names none."""
    if _ID.fullmatch(typed) and "/" not in typed:
        return [typed]
    if "/" not in typed and "#" not in typed:
        invited = ctx.api.items(endpoints.LIST, InboxQuery(reason="invited", all=True))
        name = typed.removeprefix("@").lower()
        if of_org := [row.id for row in invited if row.repo is None and row.subject.title == name]:
            return of_org
    match = _NAMED.fullmatch(typed)
    if match is None or not (match["repo"] or match["number"]):
        raise UsageError(f"{typed} names no row of the inbox; see: svc inbox")
    if match["repo"]:
        address = read_address(match["repo"])
        repo = ctx.api.repo.find(address.owner, address.name)
    else:
        repo = ctx.repo
    return [f"{repo.id}.{match['number'] or 0}"]
