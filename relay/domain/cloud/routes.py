"""Routes of cloud compute. The gate refuses callers who may not launch machines. All other callers are told
which parts this node lacks to launch one.
"""

from __future__ import annotations

from typing import NoReturn

from localstore.core.errors import NotFound
from localstore.core.model import cloud as endpoints
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.cloud import (
    CloudCapability,
    Instance,
    LaunchContext,
    LaunchContextCreate,
    LaunchCreate,
)
from relay.caller import Caller
from relay.db.paging import Cursor
from relay.http.routing import serves

MISSING = ["billing", "credential", "provider"]


@serves(endpoints.PREPARE, operation="cloud.launch", errors=(501,))
async def prepare(caller: Caller, app_id: str, body: LaunchContextCreate) -> LaunchContext:
    """Prepare a launch of a machine: its price, and which parts for it this node lacks"""
    _refuse()


@serves(endpoints.LAUNCH, operation="cloud.launch", errors=(501,))
async def launch(caller: Caller, app_id: str, body: LaunchCreate) -> Instance:
    """Launch the machine that a launch context (the answer to a prepared launch) describes"""
    _refuse()


@serves(endpoints.LIST, operation="cloud.list")
async def list_instances(caller: Caller, query: PageQuery) -> Page[Instance]:
    """Machines of the caller, newest first"""
    Cursor.read(query.cursor, "")
    return Page(items=[])


@serves(endpoints.STOP, operation="cloud.stop", errors=(404,))
async def stop(caller: Caller, id: str) -> Instance:
    """Stop a machine and its billing"""
    raise NotFound


@serves(endpoints.STATUS, operation="cloud.status", errors=(404,))
async def status(caller: Caller, id: str) -> Instance:
    """One machine of the caller"""
    raise NotFound


def _refuse() -> NoReturn:
    raise CloudCapability(
        "this node launches no machines: it has no billing, no compute credential and no provider",
        missing=MISSING,
    )
