"""The commands `svc repo webhook ping|deliveries|delivery|redeliver`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Any

import typer

from localstore.core.model import webhook as webhooks
from localstore.core.model.repo import Repo
from localstore.core.model.webhook import (
    Delivery,
    DeliveryQuery,
    DeliveryState,
    DeliveryWhole,
    Webhook,
)
from localstore.core.paths import terminal_safe
from svc.cmd.access.shared import find_named
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.webhook.webhook import Which, find
from svc.console import Column, answers

LOOKED_THROUGH = 300  # newest deliveries among which one is found by how its id begins


def answer(record: dict[str, Any]) -> str:
    """Return the HTTP status that a webhook's address answered. If it did not answer, return the reason."""
    return str(record["status"] or record["reason"] or "")


COLUMNS = (
    Column("id", kind="name"),
    Column("event"),
    Column("state", kind="state"),
    Column("attempts", spare=2),
    Column("answer", answer),
    Column("created_at", kind="time"),
    Column("next_at", kind="time", spare=1),
)
PAGE = (
    *COLUMNS,
    Column("event_id"),
    Column("redelivery"),
    Column("duration_ms"),
    Column("attempted_at", kind="time"),
    Column("reason"),
)
One = Annotated[str, typer.Argument(metavar="DELIVERY", help="The delivery, by its id or how that begins")]


@answers(COLUMNS, Delivery)
def ping(ctx: Ctx, webhook: Which) -> None:
    """Send a webhook a message of type ping

    Examples:
    svc repo webhook ping 0197c3
    """
    repo = ctx.repo
    hook = find(ctx, repo, webhook)
    _print_started(ctx, hook, ctx.api.send(webhooks.PING, id=repo.id, hook=hook.id))


@answers(COLUMNS, Delivery)
def deliveries(
    ctx: Ctx,
    webhook: Which,
    state: Annotated[DeliveryState | None, typer.Option("--state", "-s", help="That stand so")] = None,
    limit: Limit = 30,
) -> None:
    """List what was sent to a webhook within the last week

    The newest delivery comes first. A message that was not accepted is sent again, up to eight times within
    28 hours.

    Examples:
    svc repo webhook deliveries 0197c3 --state failed
    """
    repo = ctx.repo
    hook = find(ctx, repo, webhook)
    query = DeliveryQuery(state=state)
    rows = ctx.api.items(webhooks.DELIVERIES, query, limit=limit, id=repo.id, hook=hook.id)
    ctx.out.rows(rows, COLUMNS, Delivery, empty="no deliveries")


@answers(PAGE, DeliveryWhole)
def delivery(ctx: Ctx, webhook: Which, delivery: One) -> None:
    """Show one delivery: what was sent, and what was answered

    Examples:
    svc repo webhook delivery 0197c3 0197c4a1
    """
    repo = ctx.repo
    hook = find(ctx, repo, webhook)
    summary = _find(ctx, repo, hook, delivery)
    record = ctx.api.send(webhooks.DELIVERY, id=repo.id, hook=hook.id, delivery=summary.id)
    ctx.out.record(record, PAGE, DeliveryWhole, body=_exchange_text(hook, record))


@answers(COLUMNS, Delivery)
def redeliver(ctx: Ctx, webhook: Which, delivery: One) -> None:
    """Send the message of a delivery once more

    The message keeps its id, so that the receiver recognises it.

    Examples:
    svc repo webhook redeliver 0197c3 0197c4a1
    """
    repo = ctx.repo
    hook = find(ctx, repo, webhook)
    summary = _find(ctx, repo, hook, delivery)
    _print_started(ctx, hook, ctx.api.send(webhooks.REDELIVER, id=repo.id, hook=hook.id, delivery=summary.id))


def _find(ctx: Ctx, repo: Repo, hook: Webhook, typed: str) -> Delivery:
    def names(delivery: Delivery) -> Iterable[str]:
        return (delivery.id,)

    newest = islice(ctx.api.items(webhooks.DELIVERIES, id=repo.id, hook=hook.id), LOOKED_THROUGH)
    return find_named(newest, typed, names, "delivery", f"svc repo webhook deliveries {hook.id}", state="")


def _print_started(ctx: Ctx, hook: Webhook, attempt: Delivery) -> None:
    sentence = f"Sending {attempt.event} to {terminal_safe(hook.url)} as delivery {attempt.id}"
    ctx.out.done(sentence, attempt, COLUMNS, Delivery, value=attempt.id)


def _exchange_text(hook: Webhook, record: DeliveryWhole) -> str:
    """Return the request and the answer of a delivery as text. It has the headers, then the bodies, with JSON
    indented."""
    sent = [f"{name}: {value}" for name, value in record.request_headers.items()]
    lines = [f"POST {hook.url}", *sent, "", _indent_json(record.request_body)]
    if record.status is not None:
        lines += [
            "",
            f"{record.status}",
            *(f"{name}: {value}" for name, value in record.answer_headers.items()),
        ]
        lines += ["", record.answer_body]
    return "\n".join(terminal_safe(line) for line in "\n".join(lines).split("\n")).rstrip()


def _indent_json(body: str) -> str:
    """Return JSON with one member in each line. Other text is returned unchanged."""
    try:
        return json.dumps(json.loads(body), indent=2)
    except (ValueError, RecursionError):
        return body
