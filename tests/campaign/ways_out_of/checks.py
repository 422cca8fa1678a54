"""Ways out of errors about runs."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row


@row("run_completed", "repo run rerun")
def _a_run_that_is_completed(place: Place) -> None:
    first_push(place)
    run = place.ann.ok("repo", "run", "create", "ci/test", "--conclusion", "failure").out.strip()
    refused(place.ann, "repo", "run", "update", run, "--conclusion", "success", says="repo run rerun")
    again = place.ann.ok("repo", "run", "rerun", run).out.strip()
    place.ann.ok("repo", "run", "update", again, "--conclusion", "success")
    place.ann.ok("repo", "checks", "list", "--branch", "main", "--exit-status")


@row("run_pending", "repo run view")
def _an_attempt_that_is_under_way(place: Place) -> None:
    first_push(place)
    run = place.ann.ok("repo", "run", "create", "ci/test", "--conclusion", "failure").out.strip()
    again = place.ann.ok("repo", "run", "rerun", run).out.strip()
    refused(place.ann, "repo", "run", "rerun", run, says="repo run view")
    assert "queued" in place.ann.ok("repo", "run", "view", again).out
    place.ann.ok("repo", "run", "cancel", again)
    place.ann.ok("repo", "run", "rerun", run)
