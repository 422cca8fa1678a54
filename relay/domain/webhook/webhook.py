"""Rules of webhooks. Only the owner has access to them, their number is limited, and their addresses must be
public.
"""

from __future__ import annotations

import base64
import secrets

import msgspec

from localstore.core.errors import Conflict, Invalid, NotFound, RateLimited
from localstore.core.model import limits
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.webhook import (
    KINDS,
    SECRET_PREFIX,
    Delivery,
    DeliveryQuery,
    DeliveryWhole,
    EventKind,
    Webhook,
    WebhookCreate,
    WebhookEdit,
    WebhookInactive,
    check_url,
    signing_key,
)
from relay.base.clock import now_ms, rfc3339, rfc3339_or_none
from relay.base.ids import new_id
from relay.caller import View, account_name
from relay.db import paging
from relay.db.engine.database import Row, Tx
from relay.domain.webhook import delivery, message
from relay.domain.webhook.rows import webhook as rows
from relay.domain.webhook.rows.webhook import DeliveryRow, WebhookRow
from relay.outbound.client import OutboundForbidden

SECRET_BYTES = 32
MINUTE, DAY = 60_000, 24 * 3600_000


async def page(view: View, query: PageQuery) -> Page[Webhook]:
    """Webhooks of a repository, the oldest first"""
    async with view.read() as tx:
        return await paging.read_page(
            tx, rows.PAGE, query, lambda row: _to_wire(rows.webhook_row(row)), of_repo=view.repo.id
        )


async def get(view: View, hook: str) -> Webhook:
    """One webhook"""
    async with view.read() as tx:
        return _to_wire(await _find(tx, view, hook))


async def create(view: View, body: WebhookCreate) -> Webhook:
    """Send the events of a repository to an address; only this answer has the secret

    An active webhook is sent a ping message at once.
    """
    host, port = check_url(body.url)
    try:
        view.node.outbound.require_reachable(host)
    except OutboundForbidden as error:
        raise Invalid(str(error), pointer="/url") from None
    secret = body.secret or SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    key, now, me, hook_id = signing_key(secret), now_ms(), view.me.account_id, new_id()
    async with view.write(account_name(me)) as tx:
        if await tx.value(rows.COUNT, of_repo=view.repo.id) >= limits.WEBHOOKS:
            raise Conflict(
                f"{view.repo.full_name} has {limits.WEBHOOKS} webhooks, and no repository has more"
            )
        limited = view.node.limiter.enabled
        if limited and await tx.value(rows.MADE_SINCE, who=me, since=now - DAY) >= limits.WEBHOOKS_A_DAY:
            raise RateLimited(
                f"{limits.WEBHOOKS_A_DAY} webhooks within a day are enough; try again tomorrow",
                retry_after=3600,
                limit=limits.WEBHOOKS_A_DAY,
                window=24 * 3600,
            )
        await tx.run(
            rows.INSERT,
            id=hook_id,
            repo_id=view.repo.id,
            url=body.url,
            host=f"{host.lower()}:{port}",
            secret=key,
            events=_join_kinds(body.events),
            active=body.active,
            disabled=None if body.active else "owner",
            creator_id=me,
            created_at=now,
            updated_at=now,
            failing_since=None,
        )
        await view.node.hub.announce(tx, view.repo.id, "webhook.create", audience="owner", id=hook_id)
        webhook = await _find(tx, view, hook_id)
        if body.active:
            await _ping(tx, view, webhook)
        return msgspec.structs.replace(_to_wire(webhook), secret=secret)


async def edit(view: View, hook: str, body: WebhookEdit) -> Webhook:
    """Change the events of a webhook, or switch it on or off

    Switching it on again resets its failures.
    """
    async with view.write() as tx:
        old = await _find(tx, view, hook)
        active = bool(old.active) if body.active is None else body.active
        turned = active != bool(old.active)
        await tx.run(
            rows.EDIT,
            of_hook=hook,
            new_events=old.events if body.events is None else _join_kinds(body.events),
            new_active=active,
            new_disabled=(None if active else "owner") if turned else old.disabled,
            new_failing_since=None if turned else old.failing_since,
            now=now_ms(),
        )
        await view.node.hub.announce(tx, view.repo.id, "webhook.edit", audience="owner", id=hook)
        return _to_wire(await _find(tx, view, hook))


async def delete(view: View, hook: str) -> None:
    """Delete a webhook and its deliveries

    Waiting messages are not sent.
    """
    async with view.write() as tx:
        await _find(tx, view, hook)
        await tx.run(rows.DROP_DELIVERIES, of_hook=hook)
        await tx.run(rows.DELETE, of_hook=hook)
        await view.node.hub.announce(tx, view.repo.id, "webhook.delete", audience="owner", id=hook)


async def switch_off_all(tx: Tx, repo_id: str) -> None:
    """Switch off all webhooks of a repository that gets another owner. The old owner's addresses then receive
    nothing more."""
    await tx.run(rows.DISABLE_ALL, of_repo=repo_id, why="transferred", now=now_ms())


# --- deliveries


async def ping(view: View, hook: str) -> Delivery:
    """Send a webhook a message of type ping"""
    async with view.write() as tx:
        webhook = await _find_active(tx, view, hook)
        await _require_room(view, tx, hook)
        return await _read_delivery(tx, hook, await _ping(tx, view, webhook))


async def deliveries(view: View, hook: str, query: DeliveryQuery) -> Page[Delivery]:
    """Deliveries to a webhook during the last days, newest first"""
    keyset = rows.deliveries(query.state is not None)
    filters = {} if query.state is None else {"of_state": query.state}
    async with view.read() as tx:
        await _find(tx, view, hook)
        return await paging.read_page(tx, keyset, query, _delivery_of_row, of_hook=hook, **filters)


async def get_delivery(view: View, hook: str, delivery: str) -> DeliveryWhole:
    """One delivery with its request and the beginning of its answer"""
    async with view.read() as tx:
        await _find(tx, view, hook)
        row = await _find_delivery(tx, hook, delivery)
    summary = msgspec.structs.asdict(_to_delivery(row))
    return DeliveryWhole(
        **summary,
        request_headers=_headers(row.sent_headers),
        request_body=row.body,
        answer_headers=_headers(row.answer_headers),
        answer_body=bytes(row.answer_body or b"").decode("utf-8", "replace"),
    )


async def redeliver(view: View, hook: str, delivery_id: str) -> Delivery:
    """Send the message of a delivery once more, under the same id"""
    async with view.write() as tx:
        webhook = await _find_active(tx, view, hook)
        old = await _find_delivery(tx, hook, delivery_id)
        await _require_room(view, tx, hook)
        redelivery_id = await delivery.queue(
            view.node,
            tx,
            hook,
            webhook.host,
            old.event_id,
            failing=webhook.failing_since is not None,
            redelivery=True,
        )
        await view.node.hub.announce(
            tx, view.repo.id, "webhook.redeliver", audience="owner", id=hook, delivery=redelivery_id
        )
        return await _read_delivery(tx, hook, redelivery_id)


async def _ping(tx: Tx, view: View, hook: WebhookRow) -> str:
    repo = view.repo
    event = await view.node.hub.announce(tx, repo.id, "webhook.ping", audience="owner", id=hook.id)
    more = {"webhook": {"id": hook.id, "events": hook.events.split()}}
    actor, name = view.me.account_id, repo.full_name
    body = await message.encode(tx, "ping", now_ms(), repo.id, name, actor, "pinged", more)
    await delivery.keep(tx, event, repo.id, "ping", body)
    failing = hook.failing_since is not None
    return await delivery.queue(view.node, tx, hook.id, hook.host, event, failing=failing)


async def _require_room(view: View, tx: Tx, hook: str) -> None:
    limited = view.node.limiter.enabled
    if (
        limited
        and await tx.value(rows.ASKED_SINCE, of_hook=hook, since=now_ms() - MINUTE) >= limits.WEBHOOK_ASKED
    ):
        raise RateLimited(
            f"{limits.WEBHOOK_ASKED} pings and redeliveries of one webhook within a minute are enough; "
            "try again later",
            retry_after=60,
            limit=limits.WEBHOOK_ASKED,
        )


# --- rows


async def _find(tx: Tx, view: View, hook: str) -> WebhookRow:
    row = await tx.one(rows.ONE, of_repo=view.repo.id, of_hook=hook)
    if row is None:
        raise NotFound
    return rows.webhook_row(row)


async def _find_active(tx: Tx, view: View, hook: str) -> WebhookRow:
    webhook = await _find(tx, view, hook)
    if not webhook.active:
        raise WebhookInactive(
            f"this webhook is switched off; to switch it on: svc repo webhook edit {hook} --active"
        )
    return webhook


async def _find_delivery(tx: Tx, hook: str, delivery: str) -> DeliveryRow:
    row = await tx.one(rows.DELIVERY, of_hook=hook, of_delivery=delivery)
    if row is None:
        raise NotFound
    return rows.delivery_row(row)


async def _read_delivery(tx: Tx, hook: str, delivery: str) -> Delivery:
    return _to_delivery(await _find_delivery(tx, hook, delivery))


def _join_kinds(events: list[EventKind]) -> str:
    return f" {' '.join(kind for kind in KINDS if kind in events)} "


def _to_wire(row: WebhookRow) -> Webhook:
    return Webhook(
        id=row.id,
        url=row.url,
        events=row.events.split(),
        active=bool(row.active),
        disabled=row.disabled,
        failing_since=rfc3339_or_none(row.failing_since),
        created_at=rfc3339(row.created_at),
        updated_at=rfc3339(row.updated_at),
    )


def _delivery_of_row(row: Row) -> Delivery:
    return _to_delivery(rows.delivery_row(row))


def _to_delivery(row: DeliveryRow) -> Delivery:
    return Delivery(
        id=row.id,
        event_id=str(row.event_id),
        event=row.type,
        redelivery=bool(row.redelivery),
        state=row.state,
        attempts=row.attempts,
        status=row.status,
        reason=row.reason,
        duration_ms=row.duration,
        created_at=rfc3339(row.created_at),
        attempted_at=rfc3339_or_none(row.attempted_at),
        next_at=rfc3339_or_none(row.next_at),
    )


def _headers(raw: str | None) -> dict[str, str]:
    return {} if raw is None else msgspec.json.decode(raw, type=dict[str, str])
