"""The relay keeps to its own description: a short, seeded slice of scripts/fuzz/api.py."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from localstore.core.model.limits import MIB
from relay import domain
from relay.http import openapi
from scripts.fuzz import api as fuzz_api
from tests import buckets, databases
from tests.depth import DEEP, rounds
from tests.relay.watching import documented

SEED, EXAMPLES = 20261121, rounds(2, 3)
ROUTES = rounds(8, 1)  # every eighth in the suite; the other tests check each answer against the document
domain.load()
NAMES = [
    (method, path, operation["operationId"])
    for path, methods in openapi.make_document()["paths"].items()
    for method, operation in methods.items()
]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = Path(tmp_path_factory.mktemp("fuzz"))
    with fuzz_api.serving(folder, **databases.variables(folder), **buckets.variables(folder)) as relay:
        yield relay


@pytest.fixture(scope="module")
def described(served):
    return {(one.method, one.path): one for one in fuzz_api.operations(served.url)}


@pytest.fixture(scope="module")
def untouched(served):
    targets = fuzz_api.RequestTargets(served.url)
    yield targets
    targets.close()


@pytest.fixture(scope="module")
def changed():
    """The targets of the requests that change something, as long as they stand."""
    kept = []
    yield kept
    for one in kept:
        one.close()


@pytest.fixture
def targets(served, untouched, changed, method):
    """Another than that of the reading requests for what may delete, rename or sign out."""
    if method == "get":
        return untouched
    if not changed or not changed[-1].stands():
        changed.append(fuzz_api.RequestTargets(served.url))
    return changed[-1]


@pytest.mark.parametrize(
    ("method", "path", "name"), NAMES[::ROUTES], ids=[name for _, _, name in NAMES[::ROUTES]]
)
def test_every_answer_is_one_that_the_document_names(served, described, targets, method, path, name):
    modes = fuzz_api.MODES
    if not DEEP:  # requests that fit the document, or those that do not: every second of these routes each
        modes = modes[:1] if NAMES.index((method, path, name)) % (2 * ROUTES) else modes[1:]
    sent = fuzz_api.attack(targets, described[method, path], EXAMPLES, SEED, modes)
    assert sent or fuzz_api.attack(targets, described[method, path], EXAMPLES, SEED)
    assert served.alive()


@pytest.mark.parametrize("path", ["/api/v1/cloud/launch/{app_id}/context", "/api/v1/billing/checkout"])
def test_that_a_node_lacks_something_is_an_expected_answer(served, described, untouched, path):
    """These answer 501 to whoever may ask for them."""
    assert fuzz_api.attack(untouched, described["post", path], 12, SEED, fuzz_api.MODES[:1])


def test_an_answer_that_the_document_lacks_is_noticed():
    def answered(method: str, path: str, status: int) -> httpx.Response:
        return httpx.Response(status, request=httpx.Request(method, f"http://x{path}"))

    documented.check(answered("GET", "/api/v1/repos/a", 200))
    documented.check(answered("GET", "/elsewhere", 418))
    for method, path in (
        ("GET", "/api/v1/repos/a"),
        ("HEAD", "/api/v1/repos/a/raw/main/b/c"),
        ("PATCH", "/api/v1/repos/a/refs/branch/b%2Fc/d"),
    ):
        with pytest.raises(AssertionError, match="which its description lacks"):
            documented.check(answered(method, path, 418))


def test_the_relay_is_well_afterwards(served, untouched):
    assert served.alive()
    assert untouched.browser.get("/readyz").json()["status"] == "ok"
    assert served.anonymous_memory() < 400 * MIB
    assert '"request failed"' not in served.log.read_text()
