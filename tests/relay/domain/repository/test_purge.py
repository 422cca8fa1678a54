"""A deleted repository goes whatever it held, and takes nothing with it that is another's."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Integer,
    LargeBinary,
    String,
    Table,
    bindparam,
    func,
    insert,
    select,
    update,
)

from relay.db.schema import metadata, tables
from relay.domain.upkeep.upkeep import PURGED_AT_ONCE, PurgeFailed, purge_deleted
from tests import databases
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok


def below(root: Table) -> list[Table]:
    """Every table with a foreign key to `root`, or to one that has; found anew, from the schema alone."""
    found = {root.name}
    while True:
        more = {
            table.name
            for table in metadata.sorted_tables
            if table.name not in found and {key.column.table.name for key in table.foreign_keys} & found
        }
        if not more:
            return [table for table in metadata.sorted_tables if table.name in found - {root.name}]
        found |= more


HANGING = below(tables["repo"])


def filled(http: httpx.Client, owner: Account, name: str, relay: Relay) -> Repository:
    """A repository that was worked with, and one row more in every table that hangs on it."""
    made = create(http, owner, name)
    made.push(owner.key)
    yaml = {".svc.yaml": f"depends: [{owner.handle}/tool]\n".encode()}
    (head,) = made.seal({"src/deep/y.txt": b"more"}, {"z.bin": b"\0" * 100}, yaml)[-1:]
    end = time.monotonic() + PATIENCE
    while not relay.run(_depends(relay, made.id)):
        assert time.monotonic() < end
        time.sleep(0.02)
    made.branch("side", head)
    ok(http.post(f"{made.url}/refs", json={"type": "tag", "name": "v1", "head": head}))
    ok(http.patch(made.url, json={"name": f"{name}-renamed"}))
    relay.run(_one_row_each(relay, owner, made.id))
    return made


async def _depends(relay: Relay, repo_id: str) -> bool:
    """Whether the job that keeps dependencies has been here."""
    table = tables["dependency"]
    async with relay.node.db.read() as tx:
        return bool(await tx.value(select(func.count()).select_from(table).where(table.c.repo_id == repo_id)))


async def _one_row_each(relay: Relay, owner: Account, repo_id: str) -> None:
    values: dict[str, Any] = {
        f"{tables['repo'].name}.id": repo_id,
        f"{tables['account'].name}.id": owner.id,
        f"{tables['device_key'].name}.id": owner.key.id,
    }
    for table in HANGING:
        if table.name in ("event", "social", "watch", "dependency"):
            continue  # the work left real ones; listeners read each event
        row = {column.name: _value(column, values) for column in table.columns}
        async with relay.node.db.write() as tx:
            await tx.run(insert(table), **row)
        values |= {f"{table.name}.{name}": value for name, value in row.items()}


def _value(column: Any, values: dict[str, Any]) -> Any:
    for key in column.foreign_keys:
        return values[f"{key.column.table.name}.{key.column.name}"]
    if isinstance(column.type, Boolean):
        return False
    if isinstance(column.type, BigInteger):  # as a time: in the future, so that nothing else sweeps it
        return 2**45 + secrets.randbelow(2**30)
    if isinstance(column.type, Integer):
        return secrets.randbelow(2**30)
    if isinstance(column.type, LargeBinary):
        return secrets.token_bytes(32)
    assert isinstance(column.type, String), column
    return secrets.token_hex(8)


async def counts(relay: Relay) -> dict[str, int]:
    async with relay.node.db.read() as tx:
        return {
            table.name: await tx.value(select(func.count()).select_from(table))
            for table in (tables["repo"], *HANGING)
        }


async def expire(relay: Relay, *ids: str) -> None:
    due = (
        update(tables["repo"])
        .where(tables["repo"].c.id == bindparam("repo_id"))
        .values(purge_at=bindparam("at"))
    )
    async with relay.node.db.write() as tx:
        for place, repo_id in enumerate(ids):
            await tx.run(due, repo_id=repo_id, at=place + 1)


def test_a_repository_with_something_in_every_table_is_purged(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    assert {"lane_dir", "update_answer", "seal_parent", "repo_object"} <= {table.name for table in HANGING}
    owner = account()
    http = client(owner)
    create(http, owner, "tool")
    kept = filled(http, owner, "kept", relay)
    before = relay.run(counts(relay))
    gone = filled(http, owner, "gone", relay)
    full = relay.run(counts(relay))
    assert [name for name in full if full[name] <= before[name]] == [], "something of it is in every table"
    assert http.delete(gone.url).is_success
    relay.run(expire(relay, gone.id))
    assert relay.run(purge_deleted(relay.node)) == 1
    assert relay.run(counts(relay)) == before
    assert http.get(gone.url).status_code == 404
    assert len(kept.get("/log")["items"]) == 4
    assert ok(http.post("/api/v1/repos", json={"name": "gone"}))["name"] == "gone"


def test_one_that_fails_keeps_no_other_from_going(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    """More than are looked at together fail in front of the others: a table that this program does not know
    hangs on them, as one of a later version would."""
    owner = account()
    http = client(owner)
    made = [create(http, owner, f"r{number}").id for number in range(PURGED_AT_ONCE + 3)]
    stuck, free = made[:-2], made[-2:]
    url = relay.node.config.database_url
    databases.rows(url, "CREATE TABLE stranger (repo_id VARCHAR REFERENCES repo(id))")
    try:
        for repo_id in stuck:
            databases.rows(url, "INSERT INTO stranger VALUES (?)", repo_id)
        for repo_id in made:
            assert http.delete(f"/api/v1/repos/{repo_id}").is_success
        relay.run(expire(relay, *made))
        with pytest.raises(PurgeFailed) as raised:
            relay.run(purge_deleted(relay.node))
        assert all(repo_id in str(raised.value) for repo_id in stuck)
        assert not any(repo_id in str(raised.value) for repo_id in free)

        async def left() -> set[str]:
            async with relay.node.db.read() as tx:
                return {row[0] for row in await tx.all(select(tables["repo"].c.id))}

        assert relay.run(left()) & set(made) == set(stuck)
        databases.rows(url, "DELETE FROM stranger")
        assert relay.run(purge_deleted(relay.node)) == len(stuck)
    finally:
        databases.rows(url, "DROP TABLE stranger")
