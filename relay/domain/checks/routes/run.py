"""Runs of checks on seals."""

from __future__ import annotations

from localstore.core.model.base import Page
from localstore.core.model.collaboration import run as endpoints
from localstore.core.model.collaboration.run import Run, RunCreate, RunPatch, RunQuery
from relay.caller import View
from relay.domain.checks import run as runs
from relay.http.routing import serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.LIST, operation="run.list", flag=FLAG)
async def list_runs(view: View, query: RunQuery) -> Page[Run]:
    """Runs, newest first"""
    return await runs.page(view, query)


@serves(endpoints.CREATE, operation="run.create", flag=FLAG, errors=(409,))
async def create_run(view: View, body: RunCreate) -> Run:
    """Record a run of a check on a seal: its first attempt, or the next one"""
    return await runs.create(view, body)


@serves(endpoints.GET, operation="run.get", flag=FLAG)
async def get_run(view: View, run: str) -> Run:
    """One run"""
    return await runs.get(view, run)


@serves(endpoints.UPDATE, operation="run.update", flag=FLAG, errors=(409,))
async def update_run(view: View, run: str, body: RunPatch) -> Run:
    """Update the state of a run that is not completed"""
    return await runs.update(view, run, body)


@serves(endpoints.CANCEL, operation="run.cancel", flag=FLAG, errors=(409,))
async def cancel_run(view: View, run: str) -> Run:
    """Complete a run as cancelled"""
    return await runs.cancel(view, run)


@serves(endpoints.RERUN, operation="run.rerun", flag=FLAG, errors=(409,))
async def rerun_run(view: View, run: str) -> Run:
    """Request another attempt of a completed run"""
    return await runs.rerun(view, run)
