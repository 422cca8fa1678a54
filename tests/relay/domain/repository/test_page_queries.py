"""No query of a page is answered by anything but a page: random members with odd values, for each tab."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from relay.domain.repository.pages import TABS, DevQuery
from relay.domain.repository.settings import PANELS
from tests.depth import rounds
from tests.relay.conftest import Relay
from tests.relay.rich import Rich, build
from tests.relay.world import name

REQUESTS = rounds(40, 600)  # for each tab
VIEWS = {
    "overview": ("fork", "access"),
    "code": ("history", "blame", "compare", "push", "travel"),
    "issues": ("new", "edit", "files", "merge"),
    "releases": ("release",),
    "settings": tuple(PANELS),
}
ODD = (
    *(
        "",
        "0",
        "-1",
        "1",
        "2",
        "31",
        "9" * 20,
        "1e9",
        "١",
        "é",
        "\u202e",
        "%00",
        "\0",
        "a" * 300,
        "../..",
        "/",
    ),
    *(
        "//",
        "..",
        ".",
        "src",
        "src/tides.py",
        "README.md",
        "docs/logo.svg",
        "data/tables.bin",
        "main",
        "winter",
    ),
    *("v1.0", "0" * 64, "pr:31", "pr:x", "x:main", "@", "refs/heads/main", "main...streams", "WzBd", "W10"),
    *("WyJhIiwxXQ", "eyJ9", "true", "open", "merged", "all", "proposals", "old", "5-3", "1-", "15-20"),
    *("delete", "transfer", "visibility", "\U0001f600", "<script>", "'\"", "bug", "a,b", "alice"),
)


@pytest.fixture(scope="module")
def rich(relay: Relay) -> Iterator[Rich]:
    rich = build(relay, name())
    yield rich
    rich.close()


@pytest.mark.parametrize("tab", TABS)
def test_each_query_gives_a_page(rich: Rich, tab: str) -> None:
    chance = random.Random(tab)
    members = [member for member in DevQuery.__struct_fields__ if member != "tab"]
    with rich.relay.client() as stranger:
        for _ in range(REQUESTS):
            query = {member: chance.choice(ODD) for member in chance.sample(members, chance.randint(0, 4))}
            if chance.random() < 0.6:
                query["view"] = chance.choice(VIEWS.get(tab, ("",)))
            if chance.random() < 0.4:
                query["n"] = chance.choice(("1", "2", "31"))
            if chance.random() < 0.2:
                query["seal"] = str(rich.repo.head())
            http = rich.owner if chance.random() < 0.7 else stranger
            answer = http.get(f"{rich.at}/dev", params={"tab": tab, **query}, headers={"Accept": "text/html"})
            assert answer.status_code in (200, 303, 404, 422), (query, answer.status_code, answer.text[:300])
            assert answer.status_code == 303 or answer.headers["content-type"].startswith("text/html"), query
