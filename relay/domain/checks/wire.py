"""Converts the row of a run to the form in which answers contain it."""

from __future__ import annotations

from localstore.core.model.run import Run
from relay.base.actors import to_actor
from relay.base.clock import rfc3339, rfc3339_or_none
from relay.domain.checks.rows.run import RunRow


def to_wire(run: RunRow) -> Run:
    return Run(
        id=run.id,
        name=run.name,
        seal_id=run.seal_id,
        branch=run.branch,
        attempt=run.attempt,
        status=run.status,
        conclusion=run.conclusion,
        summary=run.summary,
        details_url=run.details_url,
        reported_by=to_actor(run.reporter_id, run.reporter_handle, run.reporter_kind),
        created_at=rfc3339(run.created_at),
        started_at=rfc3339_or_none(run.started_at),
        completed_at=rfc3339_or_none(run.completed_at),
    )
