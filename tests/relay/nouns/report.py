"""Security reports, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World

WISH = {"title": "Keys in the log", "body": "Line 3 has one."}


def _decided(world: World) -> Try:
    url = f"{world.repo.url}/reports"
    return Try(f"{url}/{ok(world.http.post(url, json=WISH))['id']}/decision", {"decision": "triaged"})


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{REPO}/reports"): lambda world: Try(f"{world.repo.url}/reports", WISH),
    ("POST", f"{REPO}/reports/{{report}}/decision"): _decided,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /reports": ["/reports", "/reports?state=new"],
}
