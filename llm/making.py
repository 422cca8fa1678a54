"""Stores uploaded blobs (files of models), and makes models from blobs and from other models: /api/blobs and
/api/create."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from blake3 import blake3

from llm import wire
from llm.problem import Refused
from localstore.core.model.limits import GIB
from localstore.core.times import rfc3339_now
from localstore.models.intake import take_upload
from localstore.models.names import ModelName
from localstore.models.store import Installed, Models, Record

LARGEST = 1024 * GIB
_SHA256 = re.compile(r"sha256[:-]([0-9a-f]{64})")
_OF_GO = re.compile(r"\{\{-?\s*(?:\.|if \.|range \.|with \.|\$)")


def sha256_of(digest: str) -> str:
    """The hexadecimal part of `sha256:…`. Raises Refused if the text has another form."""
    match = _SHA256.fullmatch(digest)
    if match is None:
        raise Refused(400, "invalid digest format: it is sha256: and 64 hexadecimal digits")
    return match[1]


async def take_blob(models: Models, sha256: str, pieces: AsyncIterator[bytes]) -> None:
    """Receive an uploaded blob and store it under its SHA-256. Raises Refused if the bytes do not match the
    digest, and BadModel if the blob is not a model."""
    if models.about(sha256) is not None:
        async for _ in pieces:
            pass
        return
    models.blobs.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = models.blobs / f".{secrets.token_hex(8)}"
    try:
        received_sha256, received_blake3 = await _write_upload(part, pieces)
        if received_sha256 != sha256:
            raise Refused(400, f"digest mismatch, expected sha256:{sha256}, got sha256:{received_sha256}")
        take_upload(models, part, sha256, received_blake3, "upload")
    finally:
        part.unlink(missing_ok=True)


async def _write_upload(part: Path, pieces: AsyncIterator[bytes]) -> tuple[str, str]:
    """Write an upload to the new file `part`. Returns its (SHA-256, BLAKE3) in hexadecimal. Raises Refused if
    the disk is full."""
    sha256_hasher, blake3_hasher = hashlib.sha256(), blake3()
    with part.open("xb") as file:
        async for piece in pieces:
            _write_piece(file, piece, part.parent)
            sha256_hasher.update(piece)
            blake3_hasher.update(piece)
        file.flush()
        os.fsync(file.fileno())
    return sha256_hasher.hexdigest(), blake3_hasher.hexdigest()


def _write_piece(file: BinaryIO, piece: bytes, folder: Path) -> None:
    try:
        file.write(piece)
    except OSError as error:
        free = shutil.disk_usage(folder).free
        raise Refused(507, f"the blob cannot be written: {error.strerror}; {free:,} bytes are free") from None


def record_of(request: wire.Create, models: Models, find: Callable[[str | None], Installed]) -> Record:
    """Make the `Record` (what a model's name stands for) of the model that a body of /api/create describes.
    `find`: returns the installed model with a given name. Raises Refused."""
    for name in ("quantize", "adapters"):
        if getattr(request, name):
            raise Refused(501, f"{name}: making models this way is not in this version of svc")
    if request.from_:
        base = find(request.from_).record
    elif request.files:
        base = _of_files(request.files, models)
    else:
        raise Refused(400, "neither 'from' or 'files' was specified")
    if request.template and _OF_GO.search(request.template):
        raise Refused(
            400,
            "template: it is one of Go, which the engine does not read; leave it out for the model's own, or "
            "send a Jinja template",
        )  # fmt: skip
    if request.parameters:
        wire.options_of(request.parameters)
        wire.context_of(request.parameters)
    licence = "\n".join(request.license) if isinstance(request.license, list) else request.license
    messages = [msgspec.to_builtins(message) for message in request.messages] if request.messages else None
    changed: dict[str, Any] = {
        "system": request.system,
        "template": request.template,
        "license": licence,
        "parameters": {**base.parameters, **request.parameters} if request.parameters else None,
        "messages": messages,
    }
    given = {name: value for name, value in changed.items() if value is not None}
    return msgspec.structs.replace(base, modified_at=rfc3339_now(), **given)


def _of_files(files: dict[str, str], models: Models) -> Record:
    parts: dict[int, str] = {}
    count, projector = 1, None
    for name, text in files.items():
        digest = sha256_of(text)
        about = models.about(digest)
        if about is None:
            raise Refused(
                400, f"the blob of {name[:100]!r} is not here; send it first: POST /api/blobs/{text}"
            )
        if about.header.is_projector:
            projector = digest
            continue
        place, of = about.header.shard
        if place in parts or (parts and of != count):
            raise Refused(400, "files: they hold more than one model")
        parts[place], count = digest, of
    if not parts:
        raise Refused(400, "files: none of them is a model that generates")
    if len(parts) != count:
        raise Refused(400, f"files: they hold {len(parts)} of the {count} shards of a model; send all")
    model, *shards = [parts[place] for place in sorted(parts)]
    return Record(model=model, shards=shards, projector=projector, modified_at=rfc3339_now())


def create(models: Models, target: ModelName, record: Record) -> Iterator[dict[str, str]]:
    """Make `target` the name of the model that `record` describes. Yields the lines of the answer, which
    report the progress."""
    for digest in record.digests:
        yield {"status": f"using existing layer sha256:{digest}"}
    models.put(target, record)
    yield {"status": "writing manifest"}
    yield {"status": "success"}
