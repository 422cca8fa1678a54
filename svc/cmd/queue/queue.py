"""The commands `svc queue …`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from localstore.core.errors import ClientError, NotFound, SvcError, UsageError
from localstore.core.paths import terminal_safe
from localstore.core.words import count
from localstore.outbox import Outbox, QueuedAction
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers
from svc.flows.outbox.account import account_api
from svc.flows.outbox.actions import describe_action, replay, using_outbox

COLUMNS = (
    Column("id", kind="id"),
    Column("state", kind="state"),
    Column("action", kind="line"),
    Column("about"),
    Column("created_at", kind="time"),
    Column("attempts", spare=2),
    Column("reason", kind="line"),
)
FIELDS = (
    *COLUMNS,
    *map(Column, ("path", "value", "timestamp", "origin", "handle", "code")),
)
Ids = Annotated[list[str], typer.Argument(metavar="[ID]...", help="Ids, or their first characters")]


@answers(FIELDS, QueuedAction, table=COLUMNS)
def list_queue(ctx: Ctx) -> None:
    """List the actions that wait or were refused

    Examples:
    svc queue list
    svc queue list --json id,path,value,state,reason
    """
    with using_outbox(ctx.obj.home) as outbox:
        entries = outbox.list()
    ctx.out.rows(map(_record, entries), COLUMNS, QueuedAction, empty="nothing waits")


@answers((Column("sent"),))
def retry(
    ctx: Ctx,
    ids: Ids = [],  # noqa: B006 - Typer reads the default
) -> None:
    """Send what waits now, and refused actions again

    All waiting actions are sent. A refused action is sent again only if its id is given. The server carries
    out each action once, even if it receives it several times.

    Examples:
    svc queue retry
    svc queue retry 019a0c5d31f2
    """
    with using_outbox(ctx.obj.home) as outbox:
        for entry in _find_actions(outbox, ids):
            outbox.retry(entry.id)

        def note_outcome(entry: QueuedAction, error: SvcError | None) -> None:
            what = f"{describe_action(entry)}{f' in {entry.about}' if entry.about else ''}"
            if error is None:
                ctx.out.note(f"sent: {what}")
            else:
                reason = error.detail or error.title
                ctx.out.note(f"refused: {what}: {reason}; to drop it: svc queue drop {entry.id[:12]}")

        report = replay(outbox, ctx.obj.home, lambda *named: account_api(ctx.obj, *named), note_outcome)
        entries = outbox.list()
    waiting = [entry for entry in entries if entry.state != "refused"]
    for (origin, _), reason in report.stopped.items():
        ctx.out.note(f"{origin}: {reason}")
    sentence = f"Sent {count(len(report.sent), 'action')}" if report.sent else "Nothing was sent"
    if waiting:
        raise ClientError(f"{sentence}; {count(len(waiting), 'action')} still waiting; see: svc queue list")
    if report.refused:
        raise ClientError(f"{sentence}; {count(len(report.refused), 'action')} refused; see: svc queue list")
    refused = len(entries) - len(waiting)
    if refused:
        ctx.out.note(f"{count(refused, 'action')} refused before; see: svc queue list")
    ctx.out.done(sentence if report.sent else "Nothing waits", {"sent": len(report.sent)}, (Column("sent"),))


@answers((Column("dropped"),))
def drop(
    ctx: Ctx,
    ids: Ids = [],  # noqa: B006 - Typer reads the default
    everything: Annotated[bool, typer.Option("--all", help="Every action")] = False,
) -> None:
    """Drop actions without sending them

    An action that was sent without getting an answer may have been carried out already.

    Examples:
    svc queue drop 019a0c5d31f2
    svc queue drop --all
    """
    if bool(ids) == everything:
        raise UsageError("name the actions to drop (svc queue list), or give --all")
    with using_outbox(ctx.obj.home) as outbox:
        entries = outbox.list() if everything else _find_actions(outbox, ids)
        if entries:
            ctx.confirm(f"This drops {count(len(entries), 'action')} without sending")
        for entry in entries:
            outbox.remove(entry.id)
    ctx.out.done(f"Dropped {count(len(entries), 'action')}", {"dropped": len(entries)}, (Column("dropped"),))


def _find_actions(outbox: Outbox, ids: Sequence[str]) -> list[QueuedAction]:
    """Return, for each of `ids`, the action whose id begins with it. Raises NotFound if there is none,
    UsageError if there are several."""
    entries = outbox.list()
    selection = []
    for typed in ids:
        matching = [entry for entry in entries if typed and entry.id.startswith(typed.lower())]
        if len(matching) != 1:
            if not matching:
                raise NotFound(f"no action has the id {terminal_safe(typed)}; see: svc queue list")
            raise UsageError(
                f"{len(matching)} actions begin with {terminal_safe(typed)}; see: svc queue list"
            )
        selection.extend(matching)
    return selection


def _record(entry: QueuedAction) -> dict[str, object]:
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
    return {**fields, "action": describe_action(entry), "created_at": entry.created_at}
