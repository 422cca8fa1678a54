"""An app's manifest raises the cap of its files, up to 100 MiB, for seals from explicit trees too."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import httpx
import pytest
from blake3 import blake3

from localstore.core.encoding import b64u, unb64u
from localstore.core.model import limits
from localstore.core.storage import chunks
from tests.relay.chunked_files import ROOMY, large, send, send_chunks, send_manifest
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok

FILE = large(21)
CHANGE = ["big.bin", "chunked", FILE.digest, ROOMY]
COPY = ["copy.bin", "chunked", FILE.digest, ROOMY]


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("raiser")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Any:
    with relay.client(owner) as client:
        yield client


@pytest.fixture
def app(http: httpx.Client, owner: Account, request: pytest.FixtureRequest) -> Repository:
    """An empty app that holds the bytes of FILE."""
    made = create(http, owner, f"app-{abs(hash(request.node.name))}", kind="app")
    ok(send(made, FILE))
    return made


def manifest(repo: Repository, mib: int) -> list[Any]:
    """A change that sets the cap in `.svc.yaml`; its bytes are stored."""
    text = b"limits: {max_file_mib: %d}\n" % mib
    name = blake3(text)
    ok(
        repo.http.put(
            f"{repo.url}/payloads/{name.hexdigest()}", content=text, extensions={"blake3": name.digest()}
        )
    )
    return [".svc.yaml", "text", name.hexdigest(), len(text)]


def prepared(repo: Repository, *seals: list[list[Any]]) -> httpx.Response:
    body = {
        "branch": "main",
        "device_key_id": repo.owner.key.id,
        "expected_head": repo.head(),
        "seals": [{"message": "work", "changes": changes} for changes in seals],
    }
    return repo.http.post(f"{repo.url}/seals/prepare", json=body)


def sealed(repo: Repository, *seals: list[list[Any]]) -> str:
    """Seal these changes one after the other; the head."""
    made = ok(prepared(repo, *seals))
    body = {
        "prepare_id": made["prepare_id"],
        "device_key_id": repo.owner.key.id,
        "signatures": [b64u(repo.owner.key.sign(unb64u(one["bytes"]))) for one in made["seals"]],
    }
    return str(ok(repo.http.post(f"{repo.url}/seals/finalize", json=body))["items"][-1]["id"])


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_manifest_of_the_same_seal_lets_the_file_in_and_every_route_gives_it_out(app: Repository) -> None:
    assert refused(prepared(app, [CHANGE])) == (413, "too_large")
    assert "limits.max_file_mib in .svc.yaml raises it" in prepared(app, [CHANGE]).json()["detail"]
    assert refused(prepared(app, [manifest(app, 16), CHANGE])) == (413, "too_large")
    head = sealed(app, [CHANGE, manifest(app, 17)])
    assert app.http.get(f"{app.url}/raw/{head}/big.bin").content == FILE.data
    part = app.http.get(f"{app.url}/raw/{head}/big.bin", headers={"range": "bytes=5-9"})
    assert (part.status_code, part.content) == (206, FILE.data[5:10])
    blob = app.get(f"/blob/{head}/big.bin")
    assert (blob["kind"], blob["size"], blob["truncated"]) == ("chunked", ROOMY, True)
    raw = app.http.get(f"{app.url}/archive/{head}.tar.gz").content
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        [name] = [one for one in tar.getnames() if one.endswith("/big.bin")]
        found = tar.extractfile(name)
        assert found is not None and found.read() == FILE.data


def test_each_tree_of_a_chain_is_judged_by_its_own_manifest(app: Repository) -> None:
    raised = manifest(app, 17)
    assert refused(prepared(app, [CHANGE], [raised])) == (413, "too_large")
    sealed(app, [raised], [CHANGE])


def test_a_lowered_cap_keeps_what_is_there_and_refuses_what_comes(app: Repository) -> None:
    sealed(app, [manifest(app, 17), CHANGE])
    sealed(app, [manifest(app, 1), CHANGE])
    answer = prepared(app, [COPY])
    assert refused(answer) == (413, "too_large")
    assert answer.json()["detail"].startswith(f"copy.bin has {ROOMY} bytes")
    assert refused(prepared(app, [[".svc.yaml", None, "", 0], COPY])) == (413, "too_large")


def test_a_manifest_that_cannot_be_read_raises_nothing(app: Repository) -> None:
    assert refused(prepared(app, [[".svc.yaml", "chunked", FILE.digest, ROOMY], CHANGE])) == (
        413,
        "too_large",
    )
    text = b"limits: [\n"
    name = blake3(text)
    path = f"{app.url}/payloads/{name.hexdigest()}"
    ok(app.http.put(path, content=text, extensions={"blake3": name.digest()}))
    broken = [".svc.yaml", "text", name.hexdigest(), len(text)]
    assert refused(prepared(app, [broken, CHANGE])) == (413, "too_large")


def test_an_entry_of_before_that_is_one_object_can_be_sealed_again(app: Repository) -> None:
    blob = ["old.bin", "blob", FILE.digest, ROOMY]
    raised = manifest(app, 17)
    assert refused(prepared(app, [raised, blob])) == (422, "payload_missing")
    send_chunks(app, [FILE.data])
    assert refused(prepared(app, [blob])) == (413, "too_large")
    head = sealed(app, [raised, blob])
    assert app.http.get(f"{app.url}/raw/{head}/old.bin").content == FILE.data
    over = ["over.bin", "blob", FILE.digest, limits.FRAME_RAW_MAX + 1]
    assert refused(prepared(app, [manifest(app, 64), over])) == (422, "invalid")


def test_no_manifest_raises_the_cap_above_the_clamp(app: Repository) -> None:
    sealed(app, [manifest(app, 500)])
    chunk, count = blake3(b"chunk").digest(), 101 * limits.MIB // limits.CHUNK_MAX
    listed = chunks.manifest(blake3(b"whole").digest(), [(chunk, limits.CHUNK_MAX)] * count)
    answer = send_manifest(app, chunks.encode(listed), listed.blake3)
    assert refused(answer) == (413, "too_large")
    assert str(limits.APP_FILE_CLAMP) in answer.json()["detail"]


@pytest.mark.parametrize(("kind", "status"), [("app", 413), ("model", 200)])
def test_large_files_count_in_the_budget_of_a_seal(
    http: httpx.Client, owner: Account, kind: str, status: int
) -> None:
    repo = create(http, owner, f"budget-{kind}", kind=kind)
    ok(send(repo, FILE))
    count = limits.BLOB_TREE // ROOMY
    files = [[f"{number:02}.bin", "chunked", FILE.digest, ROOMY] for number in range(count + 1)]
    sealed(repo, [manifest(repo, 17), *files[:-1]])
    answer = prepared(repo, [files[-1]])
    assert answer.status_code == status
    assert status == 200 or refused(answer) == (413, "seal_budget_exceeded")
