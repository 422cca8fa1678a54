"""A run as readers see it."""

from __future__ import annotations

from localstore.core.model.collaboration.run import Run
from relay.base.actors import actor
from relay.base.clock import rfc3339, rfc3339_or_none
from relay.domain.checks.rows.run import RunRow


def to_wire(found: RunRow) -> Run:
    return Run(
        id=found.id,
        name=found.name,
        seal_id=found.seal_id,
        branch=found.branch,
        attempt=found.attempt,
        status=found.status,
        conclusion=found.conclusion,
        summary=found.summary,
        details_url=found.details_url,
        reported_by=actor(found.reporter_id, found.reporter_handle, found.reporter_kind),
        created_at=rfc3339(found.created_at),
        started_at=rfc3339_or_none(found.started_at),
        completed_at=rfc3339_or_none(found.completed_at),
    )
