"""A request that is sent again with its Idempotency-Key gets its first answer and changes nothing again.

Every route that changes something is tried, and which these are is read from the route table."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import func, insert, select, update

from localstore.core.model import limits
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.domain.catalog.dependents import JOB as DEPENDENTS
from relay.domain.merging.auto import JOB as AUTO_MERGE
from relay.domain.upkeep import upkeep
from relay.domain.webhook.delivery import AGAIN
from relay.domain.webhook.delivery import JOB as WEBHOOK
from relay.http.routing import TABLE
from tests.patience import PATIENCE
from tests.relay.auth.people import Device
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok
from tests.relay.mutations import CHANGING, MUTATIONS, READS, REFUSED, World, world

__all__ = ["world"]  # the fixture
TRIED = CHANGING.keys() - READS.keys() - REFUSED.keys()
KEYED = sorted(named for named in TRIED if CHANGING[named].keyed)
# What each request uses, a repeat too; and what a follower of the log or a job writes in its own time.
USED = ("nonce", "idempotency", "inbox", "merge_trial")
LATER = {"job": (tables["job"].c.kind.not_in((AGAIN, WEBHOOK, AUTO_MERGE, DEPENDENTS)),)}
COUNTED = [name for name in tables if name not in USED]
COUNTS = select(
    *(
        select(func.count()).select_from(tables[name]).where(*LATER.get(name, ())).scalar_subquery()
        for name in COUNTED
    )
)


def counted(world: World) -> dict[str, int]:
    """How many rows each table has."""

    async def count() -> dict[str, int]:
        async with world.relay.node.db.read() as tx:
            row = await tx.one(COUNTS)
            assert row is not None
            return dict(zip(COUNTED, row, strict=True))

    return world.relay.run(count())


@pytest.mark.parametrize("route", KEYED, ids=" ".join)
def test_sent_again_changes_nothing(world: World, route: tuple[str, str]) -> None:
    method, before = route[0], MUTATIONS[route](world)
    key = {"Idempotency-Key": secrets.token_hex(16)}
    first = before.send(world, method, key)
    assert first.is_success, first.text
    rows = counted(world)
    for _ in range(2):
        again = before.send(world, method, key)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        for name in ("content-type", "location", "etag", "cache-control"):
            assert again.headers.get(name) == first.headers.get(name)
        assert counted(world) == rows
    http = before.http or world.http
    refused = http.post("/api/v1/auth/pairing-codes", headers=key)
    if method + before.path != "POST/api/v1/auth/pairing-codes":
        assert refused.status_code == 422, refused.text
        assert "used for another request" in refused.json()["detail"]
    else:
        assert refused.json() == first.json()
    assert counted(world) == rows


def test_the_same_key_with_another_body_or_query_is_refused(world: World) -> None:
    repo, key = world.repo, {"Idempotency-Key": secrets.token_hex(16)}
    assert world.http.patch(repo.url, json={"description": "a"}, headers=key).status_code == 200
    assert world.http.patch(repo.url, json={"description": "b"}, headers=key).status_code == 422
    again = world.http.patch(f"{repo.url}?x=1", json={"description": "a"}, headers=key)
    assert again.status_code == 422
    assert world.http.get(repo.url).json()["description"] == "a"


def test_of_many_at_once_one_is_carried_out(world: World) -> None:
    """Also where each would do something else than the one before."""
    repo, key = world.repo, {"Idempotency-Key": secrets.token_hex(16)}
    (head,) = repo.seal({"f": b"1\n"})
    repo.branch("side", head)

    async def all_at_once() -> list[httpx.Response]:
        async with httpx.AsyncClient(
            base_url=world.relay.url, auth=world.http.auth, timeout=PATIENCE
        ) as http:
            calls = [http.delete(f"{repo.url}/refs/branch/side", headers=key) for _ in range(8)]
            return await asyncio.gather(*calls)

    answers = asyncio.run(all_at_once())
    assert {answer.status_code for answer in answers} == {204}


def test_an_answer_reaches_its_own_key_even_when_the_repository_is_gone(world: World) -> None:
    repo, key = world.repo, {"Idempotency-Key": secrets.token_hex(16)}
    first = ok(world.http.delete(repo.url, headers=key))
    assert world.http.delete(repo.url).status_code == 404
    assert world.http.delete(repo.url, headers=key).json() == first


def test_a_repeat_cannot_be_replayed(world: World) -> None:
    """Its nonce is spent though it changed nothing: the answer may be a secret."""
    key, sent = {"Idempotency-Key": secrets.token_hex(16)}, []
    code = "/api/v1/auth/pairing-codes"
    world.http.event_hooks["request"].append(sent.append)
    first = ok(world.http.post(code, headers=key))
    assert ok(world.http.post(code, headers=key)) == first
    for request in sent:
        with httpx.Client(base_url=world.relay.url, trust_env=False, timeout=PATIENCE) as thief:
            stolen = thief.post(code, headers=request.headers, content=request.content)
        assert (stolen.status_code, stolen.json()["code"]) == (401, "request_not_bound")


def test_what_breaks_after_the_effect_is_done_when_it_is_sent_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The effect and its answer are kept together or not at all."""
    from relay.gate import gate

    key, body = {"Idempotency-Key": secrets.token_hex(16)}, {"name": "once"}
    with monkeypatch.context() as patch:

        def broken(_: Any) -> Any:
            raise ZeroDivisionError

        patch.setattr(gate, "_to_store", broken)
        assert world.http.post("/api/v1/repos", json=body, headers=key).status_code == 500
    first = world.http.post("/api/v1/repos", json=body, headers=key)
    assert first.status_code == 201, first.text
    assert world.http.post("/api/v1/repos", json=body, headers=key).json() == first.json()


def test_answers_are_kept_for_thirty_days_and_swept(world: World) -> None:
    key = {"Idempotency-Key": secrets.token_hex(16)}
    ok(world.http.post("/api/v1/repos", json={"name": "kept"}, headers=key))
    rows, now = tables["idempotency"], now_ms()

    async def pass_by() -> tuple[int, int]:
        async with world.relay.node.db.write() as tx:
            ends = int(await tx.value(select(func.max(rows.c.expires_at))))
            await tx.run(update(rows).values(expires_at=now - 1))
        await upkeep.delete_expired(world.relay.node)
        async with world.relay.node.db.read() as tx:
            return ends, int(await tx.value(select(func.count()).select_from(rows)))

    ends, left = world.relay.run(pass_by())
    assert abs(ends - now - 30 * 24 * 3600_000) < 60_000
    assert left == 0


def test_an_account_keeps_so_many_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "IDEMPOTENCY_KEYS", 50)

    async def fill() -> None:
        async with world.relay.node.db.write() as tx:
            await tx.many(
                insert(tables["idempotency"]),
                [
                    {
                        "account_id": world.who.id,
                        "key": f"k{n}",
                        "request": b"",
                        "status": 200,
                        "body": b"",
                        "expires_at": now_ms() + 60_000,
                    }
                    for n in range(50)
                ],
            )

    world.relay.run(fill())
    answers = [
        world.http.post("/api/v1/repos", json={"name": f"r{n}"}, headers={"Idempotency-Key": f"key-{n}"})
        for n in range(100)
    ]
    refused = [answer for answer in answers if answer.status_code != 201]
    assert refused  # one in sixteen counts
    assert {answer.json()["code"] for answer in refused} == {"quota_exceeded"}
    made = {one["name"] for one in ok(world.http.get("/api/v1/repos?owner=@me&limit=100"))["items"]}
    assert len(made) == len(answers) - len(refused)  # what was refused left nothing


def test_a_refused_request_may_be_sent_again(world: World) -> None:
    """Only what was done is kept, with its effect: what failed left nothing, and works once it can."""
    key = {"Idempotency-Key": secrets.token_hex(16)}
    repo, tag = world.repo, {"type": "tag", "name": "v1"}
    assert world.http.post(f"{repo.url}/refs", json=tag, headers=key).status_code == 422
    repo.seal({"f": b"1\n"})
    first = world.http.post(f"{repo.url}/refs", json=tag, headers=key)
    assert first.status_code == 201
    assert world.http.post(f"{repo.url}/refs", json=tag, headers=key).json() == first.json()
    assert world.http.post(f"{repo.url}/refs", json=tag).status_code == 409


def test_a_key_is_one_accounts(world: World, account: Callable[..., Account], client: Any) -> None:
    key = {"Idempotency-Key": secrets.token_hex(16)}
    other = account()
    ids = {
        ok(http.post("/api/v1/repos", json={"name": "same"}, headers=key))["id"]
        for http in (world.http, client(other))
    }
    assert len(ids) == 2


def test_without_an_account_a_key_is_refused_not_ignored(relay: Relay, client: Any) -> None:
    key = {"Idempotency-Key": secrets.token_hex(16)}
    anonymous = [route for route in TABLE if route.changes and not route.stream and not route.keyed]
    assert anonymous
    for route in anonymous:
        asked = Device(relay.url).start("somebody") if "challenge" in route.path else {}
        answer = client().post(route.path.replace("{id}", "x"), json=asked, headers=key)
        assert answer.status_code == 422, (route.path, answer.text)
    assert client().post("/api/v1/repos", json={"name": "x"}, headers=key).status_code == 401


def test_neither_keys_nor_tokens_lie_in_the_database(world: World) -> None:
    """Whoever reads a backup learns no token that was shown once."""
    key = secrets.token_hex(16)
    made = world.browser.post("/api/v1/auth/tokens", json={"label": "ci"}, headers={"Idempotency-Key": key})
    code = world.http.post("/api/v1/auth/pairing-codes", headers={"Idempotency-Key": key})

    async def kept() -> list[Any]:
        async with world.relay.node.db.read() as tx:
            return [tuple(row) for row in await tx.all(select(tables["idempotency"]))]

    text = repr(world.relay.run(kept()))
    assert len(text) > 100
    for secret in (key, made.json()["token"], made.json()["id"], code.json()["code"]):
        assert secret not in text
