"""Pulls a model from a repository. The newest seal is verified, as it is for a clone."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from localstore.core import manifest as manifests
from localstore.core.errors import NotFound, ServerMisbehaved, SvcError
from localstore.core.manifest import RepoManifest
from localstore.core.model.limits import BLOB_FILE, MANIFEST_BYTES
from localstore.core.model.repo import Repo
from localstore.core.names import MANIFEST
from localstore.core.storage import chunks
from localstore.folder.chunking import ChunkList
from localstore.models.names import ModelName
from localstore.models.pulls import PullReport
from localstore.models.store import Models, Source
from localstore.record.database import SealedFile
from localstore.sync import verify
from localstore.sync.transfer.fetch import fetch
from localstore.sync.transfer.fill import OtherBytes, fill
from localstore.sync.transfer.transport import Transport
from svc.api.sync_transport import BranchTransport
from svc.flows.models.choosing import OtherModel, choose
from svc.flows.models.fetching import Part, WrongBytes, known_files
from svc.flows.place.where import Where


class RepositoryModel(NamedTuple):
    """A model in a repository. It has the model's files in order, its projector (the file with which it reads
    pictures) if there is one, and the repository and seal from which it is taken."""

    files: list[Part]
    projector: Part | None
    source: Source


def find(where: Where, models: Models, name: ModelName) -> RepositoryModel | OtherModel:
    """Find a model in its repository, without downloading it. If the repository refers to a model elsewhere,
    returns the name of that model. Raises NotFound, NoSuchModel, ServerMisbehaved."""
    repo = where.reader.repo.find(name.owner, name.name)
    transport = BranchTransport(where.reader, repo.id, repo.default_branch)
    head = transport.ref().head
    if head is None:
        raise NotFound(f"{repo.full_name} has no seal yet, so there is no model in it")
    payload = verify.seal(transport.seal(head), head, repo.id)
    files = verify.files(transport, head, payload)
    chosen = choose(files, _manifest(transport, files), name.tag, repo.full_name)
    if isinstance(chosen, OtherModel):
        return chosen
    source = Source(server=where.server, repo_id=repo.id, seal=head, path=chosen.files[0])
    part = partial(_part, transport, models, files, repo, where.note)
    return RepositoryModel(
        [part(path) for path in chosen.files],
        part(chosen.projector) if chosen.projector is not None else None,
        source,
    )


def _manifest(transport: Transport, files: dict[str, SealedFile]) -> RepoManifest:
    file = files.get(MANIFEST)
    if file is None or file.size > MANIFEST_BYTES:
        return RepoManifest()
    data = dict(fetch(transport, None, {file.digest: file.size})).get(file.digest)
    if data is None:
        raise ServerMisbehaved(f"the server did not send {MANIFEST}; try again")
    return manifests.parse(data)


def _part(
    transport: Transport,
    models: Models,
    files: dict[str, SealedFile],
    repo: Repo,
    note: Callable[[str], None],
    path: str,
) -> Part:
    file = files[path]
    return Part(
        f"blake3:{file.digest.hex()}",
        file.size,
        f"{repo.full_name}/{path}",
        partial(_write, transport, models, file, note),
    )


def _write(
    transport: Transport,
    models: Models,
    file: SealedFile,
    note: Callable[[str], None],
    fd: int,
    seen: Callable[[bytes], object],
    report: PullReport,
) -> ChunkList | None:
    """Download the missing bytes of a file of the repository into the file `fd`. `seen` is called with all
    bytes of the file, in order, and `note` with sentences for the user. Returns the file's list of chunks;
    None for a small file. Raises WrongBytes."""
    if file.size <= BLOB_FILE:
        data = dict(fetch(transport, None, {file.digest: file.size})).get(file.digest)
        if data is None:
            raise ServerMisbehaved("the server did not send the file; try again")
        os.ftruncate(fd, 0)
        with open(fd, "wb", closefd=False) as target:
            target.write(data)
        seen(data)
        return None
    listed = _rows(transport, file)
    present = 0

    def learn(count: int) -> None:
        nonlocal present
        present = count
        report(0, file.size, present)

    try:
        fill(
            fd,
            listed,
            file.digest,
            known_files(models, file.size, note),
            lambda sizes: fetch(transport, None, sizes),
            lambda phase, done, total, count=0: report(count, file.size, present),
            seen,
            learn,
        )
    except OtherBytes:
        raise WrongBytes from None
    return ChunkList.of((bytes.fromhex(row.blake3), row.size) for row in listed)


def _rows(transport: Transport, file: SealedFile) -> list[chunks.ChunkRow]:
    try:
        listed = chunks.decode(transport.manifest(file.digest))
    except SvcError as error:
        if isinstance(error, ServerMisbehaved) or error.status not in (413, 422):
            raise
        raise ServerMisbehaved(f"the server sent an invalid manifest: {error.detail}") from None
    if (listed.blake3, listed.size) != (file.digest.hex(), file.size):
        raise ServerMisbehaved("the server sent the manifest of another file")
    return listed.chunks
