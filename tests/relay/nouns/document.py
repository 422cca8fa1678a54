"""Documents, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.relay.histories import ok
from tests.relay.world import Named, Try, World, name

DOCUMENTS = "/api/v1/documents"
DOCUMENT = f"{DOCUMENTS}/{{id}}"
OWN = "nobody but its owner sees a document"


def _on_document(suffix: str = "", json: Any = None, before: str = "") -> Callable[[World], Try]:
    def act(world: World) -> Try:
        document = ok(world.http.post(DOCUMENTS, json={"title": name(), "content": {"a": 1}}))
        url = f"{DOCUMENTS}/{document['id']}"
        if before:
            ok(world.http.post(url + before))
        return Try(url + suffix, json)

    return act


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", DOCUMENTS): lambda world: Try(DOCUMENTS, {"title": name(), "content": [1, "a b"]}),
    ("PUT", DOCUMENT): _on_document(json={"content": {"a": 2}}),
    ("DELETE", DOCUMENT): _on_document(),
    ("POST", f"{DOCUMENT}/archive"): _on_document("/archive"),
    ("POST", f"{DOCUMENT}/unarchive"): _on_document("/unarchive", before="/archive"),
}

QUIET: dict[Named, str] = dict.fromkeys(MUTATIONS, OWN)
