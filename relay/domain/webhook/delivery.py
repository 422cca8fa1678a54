"""Delivers messages as jobs, one attempt after the other. A message is delivered at least once, always under
the id of its event.

A delivery is a row. Its job has the id of the delivery and the number of the attempt. The outcome of an
attempt and the job of the next one are written together. So after a crash only the interrupted attempt is
repeated.

A slow address does not delay others. The number of concurrent requests is limited for each host, and a
webhook sends one message at a time. Webhooks whose last attempt failed or took long have separate slots.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final, Literal

import msgspec

from localstore.core.model.limits import OUTBOUND_SECONDS, WEBHOOK_EXCERPT, WEBHOOK_WAITING
from relay.base.clock import now_ms
from relay.base.ids import new_id
from relay.caller import repo_name
from relay.db.engine.database import NODE, Tx
from relay.domain.webhook.rows import webhook as rows
from relay.domain.webhook.rows.webhook import ToSend
from relay.events import log
from relay.events.jobs import DAY, HOUR, SECOND, Pace
from relay.node import Node
from relay.outbound.client import OutboundAnswer, OutboundFailed

JOB, AGAIN = "webhook", "webhook_again"
MINUTE = 60 * SECOND
PAUSES: Final = (5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR)
ATTEMPTS: Final = len(PAUSES) + 1
FAILING = 3 * DAY  # of failures without a success after which a webhook is switched off
GONE = 410
SLOTS, EACH = 64, 16  # first attempts at once; of one host
SLOTS_AGAIN, EACH_AGAIN = 32, 4  # likewise, of the other ones
TURN = 1.0  # seconds that a delivery waits for the one before it to the same webhook
SENT_KEPT = ("webhook-id", "webhook-timestamp", "webhook-signature", "webhook-event", "webhook-delivery")
HEADERS_KEPT, HEADER_CHARS = 20, 200  # of an answer


def register(node: Node) -> None:
    """Register the jobs that deliver. Call it before the node's jobs start."""

    turns = _Turns()

    async def first_job(data: dict[str, Any]) -> None:
        async with turns.of(str(data["hook"])) as mine:
            if mine:
                await attempt(node, str(data["delivery"]), int(data["attempt"]))
            else:
                async with node.db.write() as tx:
                    await node.jobs.add(tx, AGAIN, data, lane=str(data["host"]))

    async def again_job(data: dict[str, Any]) -> None:
        await attempt(node, str(data["delivery"]), int(data["attempt"]))

    deadline = (OUTBOUND_SECONDS + 45) * SECOND
    # Of many attempts: a job fails by itself only where the database or this relay does.
    pace = Pace(slots=SLOTS, deadline=deadline, attempts=100, each=EACH)
    node.jobs.register(JOB, first_job, pace)
    node.jobs.register(AGAIN, again_job, replace(pace, slots=SLOTS_AGAIN, each=EACH_AGAIN))


class _Turns:
    """Gives webhooks their turns, so that each webhook sends one message at a time."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._asking: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def of(self, hook_id: str) -> AsyncIterator[bool]:
        """A context in which the webhook has its turn. Yields True; or False if another message of this
        webhook is still being sent after TURN seconds."""
        lock = self._locks.setdefault(hook_id, asyncio.Lock())
        self._asking[hook_id] += 1
        mine = False
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TURN):
                    mine = await lock.acquire()
            yield mine
        finally:
            if mine:
                lock.release()
            self._asking[hook_id] -= 1
            if not self._asking[hook_id]:
                del self._asking[hook_id], self._locks[hook_id]


# --- making them


async def keep(tx: Tx, event_id: int, repo_id: str, type_: str, body: bytes) -> None:
    """Store the message of an event, once for all webhooks that receive it."""
    values = {"event_id": event_id, "repo_id": repo_id, "type": type_, "body": body.decode()}
    await tx.many(rows.MESSAGE, [{**values, "created_at": now_ms()}])


async def queue(
    node: Node,
    tx: Tx,
    hook_id: str,
    host: str,
    event_id: int,
    *,
    failing: bool = False,
    redelivery: bool = False,
) -> str:
    """Queue a delivery of a stored message, which is due at once. Returns the id of the delivery. `failing`:
    the last attempts of the webhook failed; if too many of its deliveries wait, this one counts as failed and
    is not sent. `redelivery`: the message was sent before."""
    delivery_id, now = new_id(), now_ms()
    full = failing and await tx.value(rows.COUNT_WAITING, of_hook=hook_id) >= WEBHOOK_WAITING
    blank = dict.fromkeys(
        ("status", "duration", "sent_headers", "answer_headers", "answer_body", "attempted_at")
    )
    await tx.run(
        rows.DELIVER,
        id=delivery_id,
        webhook_id=hook_id,
        event_id=event_id,
        redelivery=redelivery,
        state="failed" if full else rows.WAITING,
        attempts=0,
        reason=f"{WEBHOOK_WAITING} others waited" if full else None,
        created_at=now,
        next_at=None if full else now,
        **blank,
    )
    if not full:
        job = _job_data(delivery_id, hook_id, host, 0)
        await node.jobs.add(tx, AGAIN if failing else JOB, job, lane=host)
    return delivery_id


def _job_data(delivery: str, hook_id: str, host: str, attempt: int) -> dict[str, Any]:
    """The data of the job for one attempt of a delivery. `attempt`: how many attempts there were before."""
    return {"delivery": delivery, "hook": hook_id, "host": host, "attempt": attempt}


# --- carrying them out


async def attempt(node: Node, delivery: str, number: int) -> None:
    """Send the message once and record the outcome. `number`: how many attempts were made before this one. If
    the delivery has another number of attempts, this one was made already, and nothing is sent."""
    async with node.db.read() as tx:
        row = await tx.one(rows.TO_SEND, of_delivery=delivery)
    to_send = ToSend(*row) if row is not None else None
    if to_send is None or to_send.state != rows.WAITING or to_send.attempts != number:
        return
    if to_send.alive is None or not to_send.active:
        why = "the webhook is switched off" if to_send.alive else "the repository is not there"
        async with node.db.write(repo_name(to_send.repo_id)) as tx:
            await tx.run(rows.GIVE_UP, of_delivery=delivery, why=why)
        return
    headers = headers_of(to_send, delivery, now_ms() // SECOND)
    began = time.monotonic()
    answer: OutboundAnswer | None = None
    try:
        answer = await node.outbound.send("POST", to_send.url, headers, to_send.body.encode())
        reason = None if 200 <= answer.status < 300 else f"it answered {answer.status}"
    except OutboundFailed as error:
        reason = str(error)
    took = round((time.monotonic() - began) * SECOND)
    async with node.db.write(repo_name(to_send.repo_id)) as tx:
        await _record_attempt(node, tx, to_send, delivery, _Outcome(headers, answer, reason, took))


def headers_of(to_send: ToSend, delivery: str, timestamp: int) -> dict[str, str]:
    """The headers of a delivery, as in Standard Webhooks. The signature covers id, timestamp and body."""
    id_ = str(to_send.event_id)
    return {
        "content-type": "application/json",
        "webhook-id": id_,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(bytes(to_send.secret), id_, timestamp, to_send.body.encode()),
        "webhook-event": to_send.type,
        "webhook-delivery": delivery,
    }


def sign(key: bytes, id_: str, timestamp: int, body: bytes) -> str:
    """Sign the text `ID.TIMESTAMP.BODY` with HMAC-SHA256. Returns `v1,` and the signature in base64."""
    signed = f"{id_}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


class _Outcome(msgspec.Struct):
    """The result of an attempt. `reason`: why it failed, or None if the message was accepted. `took`: the
    duration in milliseconds."""

    sent: dict[str, str]
    answer: OutboundAnswer | None
    reason: str | None
    took: int


async def _record_attempt(node: Node, tx: Tx, to_send: ToSend, delivery: str, out: _Outcome) -> None:
    now, tried, answer = now_ms(), to_send.attempts + 1, out.answer
    is_unsubscribed = answer is not None and answer.status == GONE
    again = out.reason is not None and not is_unsubscribed and tried < ATTEMPTS
    next_at = now + PAUSES[tried - 1] if again else None
    sent_headers = {name: out.sent[name] for name in SENT_KEPT}
    changed = await tx.run(
        rows.TRIED,
        of_delivery=delivery,
        before=to_send.attempts,
        new_state=rows.WAITING if again else "delivered" if out.reason is None else "failed",
        new_attempts=tried,
        new_status=answer.status if answer else None,
        new_reason=out.reason,
        new_duration=out.took,
        new_sent=msgspec.json.encode(sent_headers).decode(),
        new_headers=msgspec.json.encode(_to_excerpt(answer)).decode() if answer else None,
        new_body=answer.body[:WEBHOOK_EXCERPT] if answer else None,
        now=now,
        new_next_at=next_at,
    )
    if not changed:  # somebody else has tried it, or the webhook is gone
        return
    if again:
        job = _job_data(delivery, to_send.hook_id, to_send.host, tried)
        await node.jobs.add(tx, AGAIN, job, run_at=next_at, lane=to_send.host)
    if out.reason is None:
        await tx.run(rows.SET_FAILING, of_hook=to_send.hook_id, since=None)
        return
    since = await tx.value(rows.FAILING_SINCE, of_hook=to_send.hook_id)
    if since is None:
        await tx.run(rows.SET_FAILING, of_hook=to_send.hook_id, since=now)
    if is_unsubscribed or now - (since or now) > FAILING:
        await _disable(tx, to_send, "gone" if is_unsubscribed else "failing")


async def _disable(tx: Tx, to_send: ToSend, why: Literal["gone", "failing"]) -> None:
    """Switch the webhook off, and write the event that informs its owner."""
    if await tx.run(rows.DISABLE, of_hook=to_send.hook_id, why=why, now=now_ms()):
        await log.append(
            tx,
            "webhook.disable",
            repo_id=to_send.repo_id,
            audience="owner",
            author=NODE,
            data={"id": to_send.hook_id, "reason": why, "account": to_send.owner_id},
        )


def _to_excerpt(answer: OutboundAnswer) -> dict[str, str]:
    first = list(answer.headers.items())[:HEADERS_KEPT]
    return {name[:HEADER_CHARS]: value[:HEADER_CHARS] for name, value in first}
