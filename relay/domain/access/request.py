"""Rules of requests for access. The answer to a request does not tell whether the repository exists: a job
looks it up only after the answer was sent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from localstore.core.errors import NotFound
from localstore.core.model import limits
from localstore.core.model.access import (
    AccessGrant,
    AccessRequest,
    AccessRequestCreate,
    AccessRequested,
    AlreadyCollaborator,
    AlreadyDecided,
)
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.rights import RANK
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import Caller, View, repo_name
from relay.capacity.limiter import Attempts
from relay.db import paging
from relay.db import repo as repos
from relay.db.engine.database import Author, Look, Row, Tx
from relay.domain.access.access import add_collaborator
from relay.domain.access.rows import access as rows
from relay.domain.access.rows.access import RequestRow
from relay.node import Node

KIND = "access_request"
_ASKED = Attempts(
    "access_request", limits.ACCESS_REQUESTS_A_DAY, 24 * 3600, "requests for access that an account makes"
)


def register(node: Node) -> None:
    """Register the job that stores requests. Call it before the node's jobs start."""

    async def store(data: dict[str, Any]) -> None:
        await _store_request(node, data)

    node.jobs.register(KIND, store)


async def create(caller: Caller, body: AccessRequestCreate) -> AccessRequested:
    """Request a role in a repository; the answer does not tell whether the repository exists

    The caller may already have a lower role. Raises AlreadyCollaborator if the caller has the role already.
    """
    me = caller.me
    _ASKED.count(caller.node.limiter, me.account_id)
    owner, _, name = body.repo.lower().partition("/")
    place = {"owner": owner.removeprefix("@"), "name": name}
    request = {**place, "role": body.role, "note": body.note}
    async with caller.write() as tx:
        repo_row = await tx.one(repos.BY_NAME, **place, account=me.account_id)
        held = None if repo_row is None else repos.to_role(repo_row)
        if RANK[held] >= RANK[body.role]:
            raise AlreadyCollaborator(f"you have the role {held} in {body.repo} already")
        await caller.node.jobs.add(tx, KIND, {**request, "account": me.account_id})
    return AccessRequested()


async def page(view: View, query: PageQuery) -> Page[AccessRequest]:
    """Open requests for access"""
    async with view.read() as tx:
        return await paging.read_page(tx, rows.REQUESTS, query, _to_wire, of_repo=view.repo.id)


async def grant(caller: Caller, request_id: str, body: AccessGrant) -> AccessRequest:
    """Grant a request: the role begins

    The account gets the role that `body` names or, if it names none, the requested role.
    """
    async with caller.write(repo_name(await _repo_of(caller, request_id))) as tx:
        row = await _find_open_request(tx, caller, request_id)
        who, role, repo_id = row.account_id, body.role or row.role, row.repo_id
        await tx.run(rows.END_REQUEST, of_id=request_id, new_state="granted")
        collaborator = await tx.one(rows.COLLABORATOR, of_repo=repo_id, who=who)
        if collaborator is None:
            await add_collaborator(tx, caller, repo_id, who, role, on_request=True)
        # A lower role only if the owner names it.
        elif body.role is not None or RANK[role] > RANK[rows.to_collaborator(collaborator).role]:
            await tx.run(rows.SET_ROLE, of_repo=repo_id, who=who, new_role=role)
            await caller.node.hub.announce(
                tx, repo_id, "access.change", audience="owner", account=who, role=role, asked=True
            )
        return _row_to_wire(replace(row, state="granted"))


async def decline(caller: Caller, request_id: str) -> AccessRequest:
    """Decline a request"""
    async with caller.write(repo_name(await _repo_of(caller, request_id))) as tx:
        row = await _find_open_request(tx, caller, request_id)
        await tx.run(rows.END_REQUEST, of_id=request_id, new_state="declined")
        await caller.node.hub.announce(
            tx, row.repo_id, "access.decline", audience="owner", request=request_id, account=row.account_id
        )
        return _row_to_wire(replace(row, state="declined"))


async def _store_request(node: Node, data: dict[str, Any]) -> None:
    """Store a request for access, as a job. Nothing is stored if the repository does not exist or has too
    many requests. Nor is it if the account already has the requested role or a higher one."""
    who = {"account": data["account"]}
    repo_row = await node.db.lookup(repos.ANY_BY_NAME, owner=data["owner"], name=data["name"], **who)
    if repo_row is None:
        return
    repo = repos.to_row(repo_row)
    async with node.db.write(repo_name(repo.id)) as tx:
        current = await tx.one(repos.ONE, id=repo.id, **who)
        if current is None or repos.to_row(current).state not in ("active", "archived"):
            return
        if RANK[repos.to_role(current)] >= RANK[data["role"]]:
            return
        if await tx.value(rows.OPEN_REQUESTS, of_repo=repo.id) >= limits.OPEN_ACCESS_REQUESTS:
            return
        await tx.run(rows.DROP_REQUEST, of_repo=repo.id, who=data["account"])
        request_id = new_id()
        await tx.run(
            rows.ADD_REQUEST,
            id=request_id,
            repo_id=repo.id,
            account_id=data["account"],
            role=data["role"],
            note=data["note"],
            state="pending",
            created_at=now_ms(),
        )
        await node.hub.announce(
            tx,
            repo.id,
            "access.request",
            audience="owner",
            author=Author(data["account"]),
            request=request_id,
            account=data["account"],
            account_id=repos.to_row(current).owner_id,  # whose inbox it reaches
            role=data["role"],
        )


async def _repo_of(caller: Caller, request: str) -> str:
    """The id of the repository of a request. Raises NotFound unless the caller owns the repository."""
    row = await _find_request(caller.node.db.lookup, request)
    owned = await caller.node.db.lookup(repos.VISIBLE, id=row.repo_id, account=caller.me.account_id)
    if owned is None or caller.role_of(owned) != "owner":
        raise NotFound
    return row.repo_id


async def _find_open_request(tx: Tx, caller: Caller, request: str) -> RequestRow:
    """Find an open request for access. Raises NotFound unless the caller owns the repository, and
    AlreadyDecided if the request is not open."""
    row = await _find_request(tx.one, request)
    owned = await caller.recheck(tx, row.repo_id)
    if owned[0] is None or caller.role_of(owned) != "owner":
        raise NotFound
    if row.state != "pending":
        raise AlreadyDecided(f"this request was {row.state} before")
    return row


async def _find_request(look: Look, request: str) -> RequestRow:
    values = await look(rows.REQUEST, id=request)
    if values is None:
        raise NotFound
    return rows.to_request(values)


def _to_wire(values: Row) -> AccessRequest:
    return _row_to_wire(rows.to_request(values))


def _row_to_wire(row: RequestRow) -> AccessRequest:
    account = to_actor(row.account_id, row.handle, row.kind)
    return AccessRequest(
        id=row.id,
        account=account,
        role=row.role,
        note=row.note,
        state=row.state,
        created_at=rfc3339(row.created_at),
    )
