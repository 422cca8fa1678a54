"""Ways out of errors about machines at compute providers."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import refused, row


@row("not_found", "cloud list")
def _a_machine_that_nobody_launched(place: Place) -> None:
    refused(place.ann, "cloud", "view", "m1", says="cloud list")
    refused(place.ann, "cloud", "stop", "m1", "--yes", says="cloud list")
    place.ann.ok("cloud", "list")
