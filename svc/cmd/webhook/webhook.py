"""The commands `svc repo webhook create|list|view|edit|delete`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated, Any, cast

import typer

from localstore.core.errors import UsageError
from localstore.core.model import webhook as webhooks
from localstore.core.model.limits import WEBHOOK_SECRET_MAX
from localstore.core.model.repo import Repo
from localstore.core.model.webhook import (
    KINDS,
    EventKind,
    Webhook,
    WebhookCreate,
    WebhookEdit,
    check_url,
    signing_key,
)
from svc.cmd.access.shared import find_named
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.http.checked import require_valid

LIST = "svc repo webhook list"


def state(record: dict[str, Any]) -> str:
    """Return the state of a webhook: `active`, `failing`, or `off`. If the relay switched it off, for example
    after failures, returns the reason instead of `off`."""
    if record["active"]:
        return "failing" if record["failing_since"] else "active"
    why = record["disabled"]
    return "off" if not why or why == "owner" else str(why)


COLUMNS = (
    Column("id", kind="id"),
    Column("url", kind="name"),
    Column("events"),
    Column("state", state, kind="state"),
    Column("created_at", kind="time", spare=1),
)
PAGE = (*COLUMNS, Column("active"), Column("failing_since", kind="time"), Column("updated_at", kind="time"))
MADE = (*COLUMNS, Column("secret"))
Which = Annotated[str, typer.Argument(metavar="ID", help="The webhook, by how its id begins, or its address")]
Events = Annotated[
    str, typer.Option("--events", metavar="LIST", help=f"Kinds with commas between: {', '.join(KINDS)}")
]


@answers(MADE, Webhook)
def create(
    ctx: Ctx,
    url: Annotated[str, typer.Argument(metavar="URL", help="The address, by http or https")],
    events: Events = "push",
    secret: Annotated[
        str,
        typer.Option(
            "--secret", metavar="TEXT", help="The signing secret; - reads standard input; default: a new one"
        ),
    ] = "",
    inactive: Annotated[bool, typer.Option("--inactive", help="Create it without sending")] = False,
) -> None:
    """Send the events of a repository to an address

    Each message is signed by the rules of Standard Webhooks. The secret is shown only this once. After the
    webhook is created, the relay sends a ping.

    Examples:
    svc repo webhook create https://ci.example/hook --events push,proposal
    svc repo webhook create https://chat.example/x --secret - < secret.txt
    """
    if secret == "-":  # noqa: S105  # standard input
        secret = sys.stdin.read(WEBHOOK_SECRET_MAX + 2).strip("\r\n")
        if not secret:
            raise UsageError("standard input has no secret")
    body = require_valid(
        WebhookCreate(url=url, events=kinds_of(events), secret=secret or None, active=not inactive)
    )
    check_url(url)
    if secret:
        signing_key(secret)
    hook = ctx.api.send(webhooks.CREATE, body, id=ctx.repo.id)
    ctx.out.done(
        f"Created webhook {hook.id[:12]} for {', '.join(hook.events)}", hook, MADE, Webhook, value=hook.id
    )
    if not secret:
        ctx.out.note(f"its secret, which is shown this once: {hook.secret}")


@answers(COLUMNS, Webhook)
def list_webhooks(ctx: Ctx, limit: Limit = 30) -> None:
    """List webhooks

    Examples:
    svc repo webhook list
    svc repo webhook list --json id,url,state
    """
    rows = ctx.api.items(webhooks.LIST, limit=limit, id=ctx.repo.id)
    ctx.out.rows(rows, COLUMNS, Webhook, empty="no webhooks")


@answers(PAGE, Webhook)
def view(ctx: Ctx, webhook: Which) -> None:
    """Show a webhook

    Examples:
    svc repo webhook view 0197c3
    """
    repo = ctx.repo
    record = ctx.api.send(webhooks.GET, id=repo.id, hook=find(ctx, repo, webhook).id)
    ctx.out.record(record, PAGE, Webhook)


@answers(COLUMNS, Webhook)
def edit(
    ctx: Ctx,
    webhook: Which,
    events: Events = "",
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Switch it on, or off", show_default=False)
    ] = None,
) -> None:
    """Change what a webhook is told, or switch it on or off

    The server switches off a webhook that failed for days. Switching it on resets its failures.

    Examples:
    svc repo webhook edit 0197c3 --events push,release
    svc repo webhook edit 0197c3 --active
    """
    if not events and active is None:
        raise UsageError("say what changes: --events, --active or --inactive")
    body = require_valid(WebhookEdit(events=kinds_of(events) if events else None, active=active))
    repo = ctx.repo
    hook = ctx.api.send(webhooks.EDIT, body, id=repo.id, hook=find(ctx, repo, webhook).id)
    ctx.out.done(f"Changed webhook {hook.id[:12]}", hook, COLUMNS, Webhook, value=hook.id)


@answers((Column("id"),))
def delete(ctx: Ctx, webhook: Which) -> None:
    """Delete a webhook and its deliveries

    Examples:
    svc repo webhook delete 0197c3 --yes
    """
    repo = ctx.repo
    hook = find(ctx, repo, webhook)
    ctx.confirm(f"Deleting the webhook for {hook.url}")
    ctx.api.send(webhooks.DELETE, id=repo.id, hook=hook.id)
    ctx.out.done(f"Deleted webhook {hook.id[:12]}", {"id": hook.id}, (Column("id"),), value=hook.id)


def find(ctx: Ctx, repo: Repo, typed: str) -> Webhook:
    """Return the webhook that the user named by the beginning of its id, or by its URL. Raises NotFound if
    there is none, UsageError if several match."""

    def names(webhook: Webhook) -> Iterable[str]:
        return webhook.id, webhook.url

    return find_named(ctx.api.items(webhooks.LIST, id=repo.id), typed, names, "webhook", LIST, state="")


def kinds_of(typed: str) -> list[EventKind]:
    """Return the kinds of events in a list separated by commas. Raises UsageError for an unknown kind."""
    kinds = list(dict.fromkeys(kind.strip() for kind in typed.split(",") if kind.strip()))
    wrong = [kind for kind in kinds if kind not in KINDS]
    if wrong or not kinds:
        raise UsageError(f"--events takes kinds with commas between: {','.join(KINDS)}")
    return cast(list[EventKind], kinds)
