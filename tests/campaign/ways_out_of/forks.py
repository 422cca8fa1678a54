"""Ways out of errors about forks."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row


@row("fork_private", "repo branch")
def _a_private_repository_is_worked_on_in_branches(place: Place) -> None:
    first_push(place)
    refused(place.ann, "repo", "fork", "--name", "mine", says="repo branch NAME")
    place.ann.ok("repo", "branch", "mine")
    place.ann.ok("switch", "mine")
