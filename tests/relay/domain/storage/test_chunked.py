"""Files above the blob cap over HTTP: what makes one, how it is read, and manifests that lie."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import httpx
import msgspec
import pytest
from blake3 import blake3

from localstore.core.encoding import b64u, unb64u
from localstore.core.model import limits
from localstore.core.storage import chunks
from relay.domain.storage import chunked
from tests.relay.chunked_files import Large, large, send, send_chunks, send_manifest
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok

FILE = large(1)


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("weigher")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Any:
    with relay.client(owner) as client:
        yield client


@pytest.fixture(scope="module")
def model(http: httpx.Client, owner: Account) -> Repository:
    """A model repository whose head holds FILE as `weights.bin` beside a text and a blob."""
    made = create(http, owner, "weights", kind="model")
    assert send(made, FILE).status_code == 201
    made.body["seal"] = seal_file(made, "weights.bin", FILE)
    return made


def seal_file(repo: Repository, path: str, file: Large, kind: str = "chunked") -> str:
    """Seal one large file onto main through an explicit tree."""
    [sealed] = ok(finalized(repo, ok(prepared(repo, path, file.digest, len(file.data), kind))))["items"]
    return str(sealed["id"])


def prepared(repo: Repository, path: str, digest: str, size: int, kind: str) -> httpx.Response:
    asked = {
        "branch": "main",
        "device_key_id": repo.owner.key.id,
        "expected_head": repo.head(),
        "seals": [{"message": "weights", "changes": [[path, kind, digest, size]]}],
    }
    return repo.http.post(f"{repo.url}/seals/prepare", json=asked)


def finalized(repo: Repository, made: dict[str, Any]) -> httpx.Response:
    signatures = [b64u(repo.owner.key.sign(unb64u(one["bytes"]))) for one in made["seals"]]
    asked = {
        "prepare_id": made["prepare_id"],
        "device_key_id": repo.owner.key.id,
        "signatures": signatures,
    }
    return repo.http.post(f"{repo.url}/seals/finalize", json=asked)


# --- one in, and out again


def test_a_manifest_makes_a_file_once(http: httpx.Client, owner: Account) -> None:
    repo, file = create(http, owner, "once", kind="dataset"), large(2)
    first = send(repo, file)
    assert first.status_code == 201
    assert first.json() == {"blake3": file.digest, "size": len(file.data), "chunks": len(file.chunks)}
    assert send(repo, file).status_code == 200
    path = f"{repo.url}/payloads/{file.digest}/manifest"
    assert repo.http.get(path).content == chunks.encode(file.manifest)
    have = repo.http.post(f"{repo.url}/have", content=bytes.fromhex(file.digest))
    assert ok(have) == {"missing": []}


@pytest.mark.parametrize("route", ["raw", "payload"])
def test_a_large_file_is_read_whole_and_in_ranges(model: Repository, route: str) -> None:
    path = f"/raw/{model.body['seal']}/weights.bin" if route == "raw" else f"/payloads/{FILE.digest}"
    whole = model.http.get(model.url + path)
    assert whole.content == FILE.data
    assert whole.headers["content-length"] == str(len(FILE.data))
    assert whole.headers["etag"] == f'"{FILE.digest}"'
    size = len(FILE.data)
    edge = len(FILE.chunks[0])
    for start, end in ((0, 1), (edge - 1, edge + 1), (edge, edge + 200_000), (size - 5, size), (77, size)):
        part = model.http.get(model.url + path, headers={"range": f"bytes={start}-{end - 1}"})
        assert (part.status_code, part.content) == (206, FILE.data[start:end])
    assert model.http.get(model.url + path, headers={"range": f"bytes={size}-"}).status_code == 416
    assert model.http.head(model.url + path).headers["content-length"] == str(size)


def test_archive_history_blob_and_tree_hold_the_large_file(model: Repository) -> None:
    seal = model.body["seal"]
    with tarfile.open(
        fileobj=io.BytesIO(model.http.get(f"{model.url}/archive/{seal}.tar.gz").content)
    ) as tar:
        [name] = [one for one in tar.getnames() if one.endswith("/weights.bin")]
        found = tar.extractfile(name)
        assert found is not None and found.read() == FILE.data
    pack = model.http.get(f"{model.url}/history-pack")
    assert len(pack.content) == int(pack.headers["content-length"])
    with tarfile.open(fileobj=io.BytesIO(pack.content)) as tar:
        found = tar.extractfile(f"blobs/{FILE.digest}")
        assert found is not None and found.read() == FILE.data
        lines = tar.extractfile("manifest.jsonl")
        assert lines is not None
        [entry] = json.loads(lines.readline())["tree"]
    assert entry["kind"] == "chunked" and entry["size"] == len(FILE.data)
    blob = model.get(f"/blob/{seal}/weights.bin")
    assert (blob["kind"], blob["truncated"], blob["content"]) == ("chunked", True, None)
    assert model.http.get(f"{model.url}/seals/{seal}/blame/weights.bin").status_code in (404, 422)


def test_comparison_treats_a_large_file_as_bytes(http: httpx.Client, owner: Account) -> None:
    repo, file = create(http, owner, "compared", kind="model"), large(3)
    send(repo, file)
    first = seal_file(repo, "w.bin", file)
    second = Large(b"!" + file.data)
    before = len(set(second.chunks) - set(file.chunks))
    assert before <= 4, "one byte in front changes a handful of chunks"
    send(repo, second)
    seal_file(repo, "w.bin", second)
    [shown] = repo.get("/compare", base=first, head="main")["files"]
    assert (shown["status"], shown["binary"], shown["patch"]) == ("modified", True, None)


# --- what is refused


@pytest.fixture(scope="module")
def empty(http: httpx.Client, owner: Account) -> Repository:
    return create(http, owner, "strict", kind="model")


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_chunks_must_be_here_first_and_are_named(empty: Repository) -> None:
    file = large(4)
    send_chunks(empty, file.chunks[1:])
    answer = send_manifest(empty, chunks.encode(file.manifest), file.digest)
    assert refused(answer) == (422, "payload_missing")
    assert answer.json()["missing"] == [blake3(file.chunks[0]).hexdigest()]
    assert empty.http.get(f"{empty.url}/payloads/{file.digest}").status_code == 404


def test_chunks_of_another_repository_do_not_count(empty: Repository, model: Repository) -> None:
    answer = send_manifest(empty, chunks.encode(FILE.manifest), FILE.digest)
    assert refused(answer) == (422, "payload_missing")
    assert empty.http.get(f"{empty.url}/payloads/{FILE.digest}/manifest").status_code == 404


def test_manifests_that_lie_are_refused_and_leave_nothing(empty: Repository) -> None:
    file = large(5)
    send_chunks(empty, file.chunks)
    told = msgspec.to_builtins(file.manifest)
    swapped = [told["chunks"][1], told["chunks"][0], *told["chunks"][2:]]
    shifted = [{**told["chunks"][0], "size": told["chunks"][0]["size"] - 1}, *told["chunks"][1:]]
    shifted[1] = {**shifted[1], "size": shifted[1]["size"] + 1}
    other = blake3(b"other").hexdigest()
    lies: dict[str, tuple[dict[str, Any], str]] = {
        "order": ({**told, "chunks": swapped}, "digest_mismatch"),
        "sizes": ({**told, "chunks": shifted}, "invalid"),
        "whole": ({**told, "blake3": other}, "digest_mismatch"),
        "sum": ({**told, "size": told["size"] + 1}, "invalid"),
        "huge": ({**told, "size": limits.CHUNKED_FILE + 1}, "too_large"),
        "none": ({**told, "chunks": []}, "invalid"),
    }
    for name, (lie, code) in lies.items():
        raw = json.dumps(lie, sort_keys=True, separators=(",", ":")).encode()
        answer = send_manifest(empty, raw, lie["blake3"])
        assert answer.json()["code"] == code, name
        assert empty.http.get(f"{empty.url}/payloads/{lie['blake3']}").status_code == 404, name
    assert refused(send_manifest(empty, chunks.encode(file.manifest), other)) == (422, "invalid")
    assert refused(send_manifest(empty, b"nonsense", file.digest)) == (422, "invalid")
    assert send_manifest(empty, chunks.encode(file.manifest), file.digest[:-1]).status_code == 422


def test_a_manifest_over_its_cap_is_not_read(empty: Repository) -> None:
    answer = empty.http.put(
        f"{empty.url}/payloads/{FILE.digest}/manifest",
        content=bytes(limits.CHUNK_MANIFEST + 1),
        extensions={"blake3": bytes(32)},
    )
    assert answer.status_code == 413


def test_lib_keeps_the_cap(http: httpx.Client, owner: Account) -> None:
    repo = create(http, owner, "small", kind="lib")
    assert refused(send(repo, FILE)) == (413, "too_large")
    answer = prepared(repo, "w.bin", FILE.digest, len(FILE.data), "chunked")
    assert refused(answer) == (413, "too_large")


def test_a_tree_names_large_files_as_what_they_are(model: Repository) -> None:
    digest, size = FILE.digest, len(FILE.data)
    assert refused(prepared(model, "b", digest, size, "blob")) == (422, "invalid")
    assert refused(prepared(model, "b", digest, size + 1, "chunked")) == (422, "invalid")
    assert refused(prepared(model, "b", digest, 5, "chunked")) == (422, "invalid")
    alien = blake3(b"alien").hexdigest()
    assert refused(prepared(model, "b", alien, size, "chunked")) == (422, "payload_missing")


def test_readers_do_not_write_and_strangers_see_nothing(model: Repository, relay: Relay) -> None:
    stranger = relay.account("passerby")
    with relay.client(stranger) as http:
        path = f"{model.url}/payloads/{FILE.digest}/manifest"
        assert http.get(path).status_code == 404
        raw = chunks.encode(FILE.manifest)
        answer = http.put(path, content=raw, extensions={"blake3": blake3(raw).digest()})
        assert answer.status_code == 404


def test_the_collector_learns_what_to_keep(model: Repository, relay: Relay) -> None:
    async def kept() -> set[bytes]:
        return {one async for batch in chunked.list_all(relay.node.db, relay.node.objects) for one in batch}

    wanted = {blake3(one).digest() for one in FILE.chunks}
    assert wanted | {blake3(chunks.encode(FILE.manifest)).digest()} <= relay.run(kept())
