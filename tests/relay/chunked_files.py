"""Large files for tests: cut, packed and sent as a client does it."""

from __future__ import annotations

import io
import random
from functools import cached_property

import httpx
from blake3 import blake3

from localstore.core.model import limits
from localstore.core.storage import chunks
from localstore.core.storage.chunks import ChunkManifest
from localstore.core.storage.pack import write_packs
from localstore.folder import chunking
from tests.relay.histories import Repository, ok

ROOMY = 17 * limits.MIB  # a little above the blob cap


class Large:
    """A file as it is sent. It is cut when its chunks are asked for: such files are constants of modules, and
    each process of tests imports all modules."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @cached_property
    def chunks(self) -> list[bytes]:
        return [
            self.data[one.offset :][: one.size] for one in chunking.cut_into_chunks(io.BytesIO(self.data))
        ]

    @property
    def manifest(self) -> ChunkManifest:
        rows = [(blake3(one).digest(), len(one)) for one in self.chunks]
        return chunks.manifest(blake3(self.data).digest(), rows)

    @property
    def digest(self) -> str:
        return blake3(self.data).hexdigest()


def large(seed: int, size: int = ROOMY) -> Large:
    return Large(random.Random(seed).randbytes(size))


def send_chunks(repo: Repository, parts: list[bytes]) -> None:
    for pack in write_packs((blake3(one).digest(), one, False) for one in parts):
        answer = repo.http.post(
            f"{repo.url}/packs", content=b"".join(pack.parts()), extensions={"blake3": pack.toc_digest}
        )
        ok(answer)


def send_manifest(repo: Repository, raw: bytes, name: str) -> httpx.Response:
    path = f"{repo.url}/payloads/{name}/manifest"
    return repo.http.put(path, content=raw, extensions={"blake3": blake3(raw).digest()})


def send(repo: Repository, file: Large) -> httpx.Response:
    send_chunks(repo, file.chunks)
    return send_manifest(repo, chunks.encode(file.manifest), file.digest)
