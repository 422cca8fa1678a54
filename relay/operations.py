"""What an operator does to a repository from the command line, beside a running relay."""

from __future__ import annotations

import asyncio

from localstore.core.errors import Conflict, NotFound
from relay import migrations
from relay.caller import repo_name
from relay.clock import now_ms
from relay.db import connect
from relay.db import operator as rows
from relay.db.database import Database
from relay.hub import Hub
from relay.service import audit

TAKEN_OFF = {"suspend": "suspended", "kill": "killed"}


async def set_state(url: str, full_name: str, action: str) -> str:
    """suspend, resume or kill; answers the new state. Readers get the constant 404 from the next request
    on, because the gate reads the state each time. NotFound names the repository, Conflict its state."""
    await asyncio.to_thread(migrations.check, url)
    db = connect.database(url)
    try:
        await db.open()
        return await _set_state(db, full_name, action)
    finally:
        await db.close()


async def _set_state(db: Database, full_name: str, action: str) -> str:
    owner, _, name = full_name.partition("/")
    async with db.read() as tx:
        repo_id = await tx.value(rows.STATE, owner=owner, name=name)
    if repo_id is None:
        raise NotFound(f"there is no repository {full_name}")
    async with db.write(repo_name(repo_id)) as tx:
        row = await tx.one(rows.STATE, owner=owner, name=name)
        if row is None or row[0] != repo_id:
            raise Conflict(f"{full_name} was renamed just now; try again")
        _, state, resume = row
        if action == "resume":
            if state not in TAKEN_OFF.values():
                raise Conflict(f"{full_name} is {state}; there is nothing to resume")
            state, resume = resume or "active", None
        elif state == TAKEN_OFF[action]:
            raise Conflict(f"{full_name} is {state} already")
        else:
            resume = resume if state in TAKEN_OFF.values() else state
            state = TAKEN_OFF[action]
        now = now_ms()
        await tx.run(rows.SET_STATE, repo_id=repo_id, new_state=state, resume=resume, now=now)
        await audit.record(tx, "operator", f"repo.{action}", repo_id, state=state)
        await Hub(db).announce(tx, repo_id, "repo", state=state)
    return str(state)
