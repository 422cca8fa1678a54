"""How the statements on repositories and history are carried out: by index, at any size."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy.sql import ClauseElement

from relay.db import history, repo
from relay.db.engine.sqlite import compile_statement
from relay.db.identity import device_key, gate
from relay.db.live import lane
from relay.domain.history.rows import blame as blames
from tests.databases import POSTGRES
from tests.relay.conftest import Relay

pytestmark = pytest.mark.skipif(POSTGRES, reason="these are SQLite's plans")


async def plan(relay: Relay, statement: ClauseElement) -> list[str]:
    """SQLite's plan for the statement, a line for each step."""
    form = compile_statement(statement)
    sql = form.sql
    for name in form.lists:
        sql = sql.replace(f"__[POSTCOMPILE_{name}]", "?")
    values: list[Any] = [form.defaults.get(name, 1) for name in form.order]
    async with relay.node.db.read() as tx:
        rows = await tx._connection.execute_fetchall(f"EXPLAIN QUERY PLAN {sql}", values)  # type: ignore[attr-defined]
    return [str(row[3]) for row in rows]


def run(relay: Relay, statement: ClauseElement) -> list[str]:
    return relay.run(plan(relay, statement))


@pytest.mark.parametrize(
    "statement",
    [
        repo.VISIBLE,
        gate.LIVE_AND_VISIBLE,
        device_key.SELF,
        repo.OWNER_ID,
        lane.LOGS,
        repo.BY_NAME,
        repo.BY_ALIAS,
        repo.OF_OWNER.first,
        repo.OF_OWNER.next,
        repo.DELETED_OF_OWNER.next,
        history.HELD,
        history.REFS_NAMED,
    ],
    ids=[
        "visible",
        "session and repository",
        "a key by itself",
        "owner",
        "logs",
        "by name",
        "by alias",
        "of owner",
        "of owner, later",
        "deleted, later",
        "held",
        "refs named",
    ],
)
def test_one_repository_and_the_pages_of_an_owner_never_scan(relay: Relay, statement: ClauseElement) -> None:
    steps = run(relay, statement)
    assert any("INDEX" in step for step in steps)
    assert [step for step in steps if step.startswith("SCAN")] == []
    assert [
        step for step in steps if "TEMP B-TREE" in step and "ORDER BY" in step and "LAST" not in step
    ] == []


def test_the_page_of_everything_walks_the_key_and_stops_at_its_end(relay: Relay) -> None:
    assert [step for step in run(relay, repo.ALL.first) if "TEMP B-TREE" in step] == []
    steps = run(relay, repo.ALL.next)
    assert any(step.startswith("SEARCH repo USING INDEX") and "id<" in step for step in steps)
    assert [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step] == []


def test_edited_texts_are_found_without_reading_the_other_files(relay: Relay) -> None:
    assert any("ix_lane_edited" in step for step in run(relay, lane.EDITED))


@pytest.mark.parametrize(
    "statement",
    [
        history.WALK["sqlite"],
        history.WALK_PATH["sqlite"],
        history.LINE,
        history.LINE_PATH,
        history.GRAPH,
        blames.VERSIONS,
    ],
    ids=["walk", "walk of a path", "line", "line of a path", "graph", "versions"],
)
def test_walks_follow_indexes_from_their_heads(relay: Relay, statement: ClauseElement) -> None:
    scanned = [step for step in run(relay, statement) if step.startswith("SCAN")]
    assert {step.split()[1] for step in scanned} <= {"walk", "chain", "line", "way", "2-ROW", "CONSTANT"}, (
        scanned
    )


def test_a_repository_is_shown_without_its_tree_key():
    row = repo.RepoRow(
        id="0190",
        owner_id="a",
        owner="mira",
        name="shown",
        kind="app",
        class_="private_plaintext",
        description="",
        default_branch="main",
        state="active",
        parent_id=None,
        tree_key=b"secret",
        tree_key_id="k",
        created_at=1,
        updated_at=1,
    )
    assert repr(row) == "RepoRow('0190')"
